// Comparisons of small studies whose numbers can be made by hand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "sim/plan/stage_cost/passes/stream_times.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

const std::string kFour = "training: {global_batch: 4, micro_batches: [2, 4]}\n";

TEST_CASE("a comparison has a run per strategy, schedule and number of micro-batches, ranked", "[study]") {
  const ComparisonResult result = compare_text(
      chain_study(kFour + "compare: {strategies: [single, uniform], schedules: [accumulate, gpipe, 1f1b]}\n"));
  const auto& runs = result.comparison.runs;
  REQUIRE(runs.size() == 2 * 3 * 2);
  REQUIRE(result.of_run.size() == runs.size());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    CHECK(runs[i - 1].feasible >= runs[i].feasible);
    if (runs[i].feasible) {
      CHECK(runs[i - 1].metrics.iteration <= runs[i].metrics.iteration);
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK((result.prepared[result.of_run[i]].graph != nullptr) == runs[i].feasible);
  }
}

// Alone on one device all schedules take the same time, whatever their sums round to: rows keep the order of the
// tables.
TEST_CASE("equal runs keep the order in which they were asked for", "[study]") {
  const ComparisonResult result =
      compare_text(chain_study(kFour + "compare: {strategies: [single], schedules: all}\n"));
  std::vector<std::string> names;
  for (const Run& run : result.comparison.runs) {
    if (run.micro_batches == 2 && run.feasible) {
      names.push_back(run.schedule);
    }
  }
  std::vector<std::string> expected = names_of(schedules()); // but for those that want several stages per device
  std::erase_if(expected, [&](const std::string& name) { return std::count(names.begin(), names.end(), name) == 0; });
  CHECK(names == expected);
  CHECK(names.size() > 5);
}

// F 2 s and B 4 s per stage and sample, transfers take no time: GPipe and 1F1B last (M + 1) * 6 s at one sample each;
// with two micro-batches of two samples (2 + 1) * 12 s. Alone, one device takes 4 * 12 s.
TEST_CASE("iteration times of two equal stages are those of the closed form", "[study]") {
  const ComparisonResult result =
      compare_text(chain_study(kFour + "compare: {strategies: [single, uniform], schedules: [gpipe, 1f1b]}\n"));
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const Run& fine = find_run(result.comparison, "uniform", schedule, 4);
    CHECK(fine.metrics.iteration.value == near(30));
    CHECK(fine.speedup == near(48.0 / 30));
    CHECK(fine.samples_per_second == near(4.0 / 30));
    CHECK(fine.metrics.bubble_fraction == near(1.0 / 5));
    CHECK(fine.bottleneck.value == near(6));
    CHECK(fine.estimate.value == near(30));
    CHECK(fine.lower_bound.value == near(24));
    CHECK(find_run(result.comparison, "uniform", schedule, 2).metrics.iteration.value == near(36));
    CHECK(find_run(result.comparison, "single", schedule, 4).metrics.iteration.value == near(48));
    CHECK(find_run(result.comparison, "single", schedule, 4).unused_devices.size() == 1);
  }
}

TEST_CASE("runs with equal plans and orders share one replay and have equal figures", "[study]") {
  const ComparisonResult result = compare_text(
      chain_study(kFour + "compare: {strategies: [uniform, parameters, single], schedules: [naive, accumulate]}\n"));
  int graphs = 0;
  int twins = 0;
  for (const Prepared& prepared : result.prepared) {
    graphs += prepared.graph != nullptr ? 1 : 0;
    twins += prepared.twin >= 0 ? 1 : 0;
  }
  // naive: uniform = parameters, and single; twice, for two numbers of micro-batches. accumulate: single as under
  // naive.
  CHECK(graphs == 4);
  CHECK(twins == 4);
  const Run& uniform = find_run(result.comparison, "uniform", "naive", 4);
  const Run& twin = find_run(result.comparison, "parameters", "naive", 4);
  CHECK(uniform.metrics.iteration == twin.metrics.iteration);
  CHECK(uniform.stages.size() == twin.stages.size());
  CHECK(twin.feasible);
  CHECK(twin.strategy == "parameters");
}

// Two stages of 6 s per micro-batch of one sample, 24 s of work each: 30 s are a quarter over the bound.
TEST_CASE("runs know the bound, and the least bottleneck where optimal has proved it", "[study]") {
  const ComparisonResult with = compare_text(
      chain_study(kFour + "compare: {strategies: [single, uniform, optimal], schedules: [gpipe, 1f1b]}\n"));
  for (const Run& run : with.comparison.runs) {
    INFO(run.strategy << " under " << run.schedule << " with " << run.micro_batches);
    REQUIRE(run.optimal_bottleneck.has_value());
    CHECK(run.optimal_bottleneck->value == near(6 * 4.0 / run.micro_batches));
    CHECK(run.bottleneck >= *run.optimal_bottleneck);
  }
  CHECK(find_run(with.comparison, "uniform", "1f1b", 4).over_bound() == near(30.0 / 24 - 1));
  const ComparisonResult without =
      compare_text(chain_study(kFour + "compare: {strategies: [uniform], schedules: [1f1b]}\n"));
  CHECK_FALSE(without.comparison.runs.front().optimal_bottleneck.has_value());
}

TEST_CASE("an infeasible run says why and has no figures", "[study]") {
  const ComparisonResult result = compare_text(chain_study(
      kFour + "compare: {strategies: [uniform], schedules: [accumulate, gpipe]}\n", "{devices: 2, memory: 25 kB}"));
  for (const Run& run : result.comparison.runs) {
    CHECK_FALSE(run.feasible);
    CHECK_FALSE(run.why_not.empty());
    CHECK(run.metrics.iteration.value == 0);
  }
  CHECK_THAT(find_run(result.comparison, "uniform", "gpipe", 4).why_not,
             Catch::Contains("'node/profiled-1' needs") && Catch::Contains("more than its 24.41 KiB"));
}

TEST_CASE("a schedule for one stage refuses a pipeline, and no memory helps", "[study]") {
  const ComparisonResult result =
      compare_text(chain_study(kFour + "compare: {strategies: [uniform], schedules: [accumulate]}\n"));
  for (const Run& run : result.comparison.runs) {
    CHECK_THAT(run.why_not, Catch::StartsWith("accumulate runs one stage"));
    CHECK(run.would_fit.empty());
  }
}

// Applies "key: value" of the training settings, or "so many GiB more memory per device" to devices of `memory`.
Setting change_of(const std::string& would_fit, const std::string& memory) {
  const std::size_t more = would_fit.find(" more memory per device");
  if (more != std::string::npos) {
    const Bytes sum = parse_quantity<Bytes>(memory, {}) + parse_quantity<Bytes>(would_fit.substr(0, more), {});
    return {"platform.memory", to_text(sum.value, 0) + " B"};
  }
  const std::size_t colon = would_fit.find(": ");
  return {"training." + would_fit.substr(0, colon), would_fit.substr(colon + 2)};
}

// Device 1 keeps, per sample in flight, 8 MB of stash, and 8 MB of buffers per sample of a micro-batch.
TEST_CASE("the change that is said to make a run fit does so when applied", "[study]") {
  const std::string memory = GENERATE(as<std::string>(), "20 MB", "30 MB", "45 MB");
  const std::string text =
      chain_study("training: {global_batch: 8, micro_batches: [1, 2, 4]}\n"
                  "compare: {strategies: [single, uniform, optimal], schedules: [accumulate, gpipe, 1f1b]}\n",
                  "{devices: 2, memory: " + memory + "}");
  int applied = 0;
  for (const Run& run : compare_text(text).comparison.runs) {
    INFO(run.strategy << " under " << run.schedule << " with " << run.micro_batches << ": " << run.would_fit);
    if (run.would_fit.empty()) {
      continue;
    }
    CHECK_FALSE(run.feasible);
    const ComparisonResult changed = compare_text(text, {{"compare.strategies", run.strategy},
                                                         {"compare.schedules", run.schedule},
                                                         {"training.micro_batches", std::to_string(run.micro_batches)},
                                                         change_of(run.would_fit, memory)});
    REQUIRE(changed.comparison.runs.size() == 1);
    INFO(changed.comparison.runs.front().why_not);
    CHECK(changed.comparison.runs.front().feasible);
    ++applied;
  }
  CHECK(applied > 0);
}

TEST_CASE("a plan that is no pipeline runs in list order, and the run says so", "[study]") {
  const Study read = study(chain_study(kFour + "compare: {schedules: [1f1b]}\n"));
  Plan plan{.strategy = "given"};
  for (const auto& [op, device] : {std::pair{0, 0}, {1, 1}, {2, 0}, {3, 0}}) {
    plan.stages.push_back({.operators = {op}, .devices = {device}});
  }
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const Run run = run_scenario(memo, {.plan = &plan, .schedule = read.schedules.front().row, .micro_batches = 4}).run;
  REQUIRE(run.feasible);
  CHECK(run.schedule == "1f1b");
  CHECK(run.order == "list");
  CHECK(run.metrics.busy[0].value == near(4 * 9));
  CHECK(run.metrics.iteration.value >= 36);
}

TEST_CASE("both engines agree where no transfers share a link", "[study]") {
  const std::string text =
      chain_study(kFour + "compare: {strategies: [uniform, optimal], schedules: [gpipe, 1f1b, zb-h1]}\n",
                  "{devices: 2, bandwidth: 4 MB/s, latency: 1 ms}");
  const ComparisonResult shared = compare_text(text);
  const ComparisonResult alone = compare_text(text, {{"engine", "analytic"}});
  for (const Run& run : shared.comparison.runs) {
    const Run& other = find_run(alone.comparison, run.strategy, run.schedule, run.micro_batches);
    CHECK(run.metrics.iteration.value == near(other.metrics.iteration.value));
  }
}

TEST_CASE("no run beats the lower bound", "[study]") {
  const ComparisonResult result =
      compare_text("model: squeezenet\nplatform: mixed-v100-p100\n"
                   "training: {global_batch: 64, micro_batches: [4, 16]}\nengine: analytic\n");
  int feasible = 0;
  for (const Run& run : result.comparison.runs) {
    INFO(run.strategy << " under " << run.schedule << " with " << run.micro_batches);
    if (run.feasible) {
      ++feasible;
      CHECK(run.metrics.iteration >= run.lower_bound);
      CHECK(run.lower_bound.value > 0);
    }
  }
  CHECK(feasible > 20);
}

// Two stages of c = (1 + 2) 2 4/M s with a boundary of 2 x 4/M s: (M + 1) c + 4 x 4/M falls with M = 1, 2, 4.
TEST_CASE("of several numbers of micro-batches the least estimate is chosen", "[study]") {
  const Study read =
      study(chain_study("training: {global_batch: 4, micro_batches: auto}\n", "{devices: 2, bandwidth: 4 MB/s}"));
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const Scenario scenario{.strategy = &find_by_name(strategies(), "uniform", "strategy", {}),
                          .schedule = &find_by_name(schedules(), "gpipe", "schedule", {})};
  CHECK(choose_micro_batches(memo, scenario) == 4);
  const Study two =
      study(chain_study("training: {global_batch: 4, micro_batches: [2, 1]}\n", "{devices: 2, bandwidth: 4 MB/s}"));
  StudyMemo other(two, counts);
  CHECK(choose_micro_batches(other, scenario) == 2);
}

// The engine of the study is the one that searches measure by, so what they found is what is shown.
TEST_CASE("strategies that search show what they measured, no worse than where they started", "[study]") {
  const ComparisonResult result = compare_text(
      "model: squeezenet\nplatform: mixed-v100-p100\ntraining: {global_batch: 64, micro_batches: [4, 16]}\n"
      "compare: {strategies: [data-parallel, uniform, random, best-of-random, mcmc], schedules: [gpipe, 1f1b]}\n"
      "engine: analytic\n");
  const Comparison& all = result.comparison;
  for (const Run& run : all.runs) {
    INFO(run.strategy << " under " << run.schedule << " with " << run.micro_batches);
    REQUIRE(run.feasible);
    if (run.strategy != "mcmc") {
      continue;
    }
    const auto other = [&](std::string_view strategy) {
      return find_run(all, strategy, run.schedule, run.micro_batches).metrics.iteration.value * (1 + 1e-9);
    };
    CHECK(run.objective->value.value == near(run.metrics.iteration.value));
    CHECK(run.metrics.iteration.value <= std::min(other("data-parallel"), other("uniform")));
    CHECK(run.metrics.iteration.value <= other("random"));
    CHECK(find_run(all, "best-of-random", run.schedule, run.micro_batches).metrics.iteration.value <= other("random"));
  }
}

TEST_CASE("`step: local` measures a period that is no longer than the makespan", "[study]") {
  const std::string text = chain_study("training: {global_batch: 4, micro_batches: [4], step: local}\n"
                                       "compare: {strategies: [uniform], schedules: [1f1b]}\n");
  const Run local = compare_text(text).comparison.runs.front();
  CHECK(local.metrics.makespan.value == near(30));
  CHECK(local.metrics.iteration <= local.metrics.makespan);
  const Run barrier = compare_text(text, {{"training.step", "barrier"}}).comparison.runs.front();
  CHECK(barrier.metrics.iteration == barrier.metrics.makespan);
}

TEST_CASE("a study that perturbs gives quantiles of every run", "[study][perturb]") {
  const std::string text = chain_study(kFour + "compare: {strategies: [uniform], schedules: [1f1b]}\n"
                                               "perturb: {samples: 9, jitter: 0.1}\n");
  const ComparisonResult result = compare_text(text);
  for (const Run& run : result.comparison.runs) {
    REQUIRE(run.perturbed);
    CHECK(run.perturbed->samples == 9);
    CHECK(run.perturbed->low < run.perturbed->median);
    CHECK(run.perturbed->median < run.perturbed->high);
    CHECK(run.perturbed->low < run.metrics.iteration * 1.2);
    CHECK(run.perturbed->high > run.metrics.iteration * 0.8);
  }
  CHECK(to_json(result.comparison, false) == to_json(compare_text(text).comparison, false));
}

TEST_CASE("a straggler slows a run, and the ranking stays that of the platform", "[study][perturb]") {
  // Two equal stages of 6 s a sample; the second at half speed takes 12 s: 4 samples take (4 - 1) 12 + 6 + 12 s.
  const ComparisonResult result =
      compare_text(chain_study(kFour + "compare: {strategies: [uniform], schedules: [gpipe]}\n"
                                       "perturb: {samples: 2, stragglers: {node/profiled-1: 0.5}}\n"));
  const Run& run = find_run(result.comparison, "uniform", "gpipe", 4);
  CHECK(run.metrics.iteration.value == near(30));
  CHECK(run.perturbed->median.value == near(4 * 12 + 6));
  CHECK(run.perturbed->low == run.perturbed->high);
}

// With 32 micro-batches on links that devices share, `analytic` prefers another order to the one that is fastest there.
TEST_CASE("orders that are searched are no slower than the named ones on the study's engine", "[study][compare]") {
  const Comparison result =
      compare_text("model: resnet50\nplatform: mixed-v100-p100\n"
                   "training: {global_batch: 256, micro_batches: [8, 32], optimizer: momentum}\n"
                   "compare: {strategies: [antichain, uniform], schedules: [gpipe, 1f1b, eager-1f1b, zb-h1, zb-h2, "
                   "zb-auto, search]}\n")
          .comparison;
  for (const char* strategy : {"antichain", "uniform"}) {
    for (const int micro_batches : {8, 32}) {
      CAPTURE(strategy, micro_batches);
      const auto seconds = [&](const char* schedule) {
        const Run& run = find_run(result, strategy, schedule, micro_batches);
        return run.feasible ? run.metrics.iteration.value : std::numeric_limits<double>::infinity();
      };
      for (const char* named : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "zb-auto"}) {
        CHECK(seconds("search") <= seconds(named) * (1 + 1e-9));
      }
      CHECK(seconds("zb-auto") <= std::min(seconds("zb-h1"), seconds("zb-h2")) * (1 + 1e-9));
    }
  }
}

// A forward beside a backward of another micro-batch: memory-bound kernels of one fill what matrix kernels of the other
// leave, on as many streams as the training says.
TEST_CASE("what a schedule fuses shares the streams of its device", "[study][streams]") {
  const auto result = [](const std::string& streams, const std::string& rest, const std::string& count = "4") {
    return compare_text("model: squeezenet\nplatform: pcie-v100\nengine: analytic\n"
                        "training: {global_batch: 64, micro_batches: " +
                        count + ", streams: " + streams + "}\ncompare: " + rest + "\n");
  };
  const std::string lone = "{strategies: single, schedules: [1f1b, combined-1f1b]}";
  const auto seconds = [&](const std::string& streams, std::string_view schedule) {
    return find_run(result(streams, lone).comparison, "single", schedule, 4).metrics.iteration.value;
  };
  CHECK(seconds("1", "combined-1f1b") == Approx(seconds("1", "1f1b")).epsilon(1e-9));
  CHECK(seconds("4", "combined-1f1b") < 0.95 * seconds("4", "1f1b"));

  // F, three pairs, B, and the step: three times what a pair saves.
  const Study read = study("model: squeezenet\nplatform: pcie-v100\n"
                           "training: {global_batch: 64, micro_batches: 4, streams: 4}\ncompare: " +
                           lone + "\n");
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const Problem& problem = memo.costs.problem(4);
  std::vector<OperatorId> all(problem.model.size());
  std::iota(all.begin(), all.end(), 0);
  const StreamTimes alone = stream_times(problem, all, 0, 1, 4);
  const double pair = seconds_side_by_side(problem, {all}, {all}, true, 0, 4);
  CHECK(seconds("4", "1f1b") - seconds("4", "combined-1f1b") ==
        Approx(3 * (alone.forward + alone.backward - pair)).epsilon(1e-9));

  // DualPipe's pairs are shorter than its forwards alone, with several streams only.
  const auto times_of_forward = [&](const std::string& streams) {
    const ComparisonResult compared = result(streams, "{strategies: uniform, schedules: dualpipe}", "8");
    std::set<double> times;
    const TaskGraph& graph = *compared.prepared.front().graph;
    for (const std::int32_t work : graph.work) {
      if (graph.works[work].kind == TaskKind::forward && graph.works[work].stage == 0 &&
          graph.works[work].device == 0) {
        times.insert(graph.works[work].seconds.value);
      }
    }
    return times.size();
  };
  CHECK(times_of_forward("1") == 1);
  CHECK(times_of_forward("4") == 2);
}

} // namespace
} // namespace stagecraft::test
