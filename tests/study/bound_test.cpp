// One bound for a comparison, which none of its runs beats, whatever the study allows.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/study/planning/plan_scenario.hpp"
#include "tests/study/random_studies.hpp"

namespace stagecraft::test {
namespace {

// Every run is at the bound or above it, and all of a block, exact or asynchronous, have the same one. Returns how many
// were feasible.
int check_bound(const Comparison& comparison) {
  int feasible = 0;
  for (const Run& run : comparison.runs) {
    if (!run.feasible) {
      continue;
    }
    ++feasible;
    const Run& first = *std::find_if(comparison.runs.begin(), comparison.runs.end(), [&](const Run& other) {
      return block_of(other, comparison.rank) == block_of(run, comparison.rank);
    });
    if (run.metrics.iteration.value < run.lower_bound.value * (1 - 1e-9) || run.lower_bound != first.lower_bound) {
      CAPTURE(run.strategy, run.schedule, run.order, run.micro_batches, first.lower_bound.value);
      FAIL_CHECK(to_text(run.metrics.iteration) << " and the bound " << to_text(run.lower_bound));
    }
  }
  return feasible;
}

template <class Row> std::string some_of(std::span<const Row> table, int count, std::mt19937& random) {
  std::vector<std::string> names;
  while (static_cast<int>(names.size()) < count) {
    const std::string name(table[random() % table.size()].name);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return "[" + join(names) + "]";
}

struct Case {
  std::string text;
  std::vector<Setting> settings;
};

// A model and a platform that the cost model can time.
Case random_world(const std::string& cost, std::mt19937& random) {
  const std::string star =
      "platform: {devices: " + std::to_string(1 + random() % 4) +
      any_of(std::array{"", ", bandwidth: 1 GB/s, latency: 1 us", ", bandwidth: 0.1 GB/s, latency: 1 ms"}, random) +
      "}\n";
  if (cost == "profiled" || cost == "constant") {
    return {"model: long-chain.yaml\n" + star, random_chain(random)};
  }
  const std::vector<std::string> fitted = {"h200-sxm",       "h100-sxm-80gb", "a100-pcie-80gb", "v100-pcie-16gb",
                                           "p100-pcie-16gb", "t4-16gb",       "l4-24gb"};
  Case one{"model: shapes.yaml\nplatform: two-nodes.yaml\n", random_shapes(random)};
  for (Setting& setting : random_nodes(fitted, random)) {
    one.settings.push_back(std::move(setting));
  }
  return one;
}

// What training may add: numbers of micro-batches, recomputation, streams, steps, buckets.
std::string random_training(const std::string& cost, std::mt19937& random) {
  const int samples = static_cast<int>(any_of(std::array{1, 2, 12, 100}, random));
  const std::string batch = std::to_string(8 * samples);
  std::string text = "training: {global_batch: " + batch +
                     ", micro_batches: " + any_of(std::array{"[1, 8]", "[2, 4]", "4", "8"}, random) +
                     ", recompute: " + any_of(std::array{"none", "full", "[none, full]"}, random) +
                     ", step: " + any_of(std::array{"barrier", "barrier", "local"}, random) +
                     ", streams: " + any_of(std::array{"1", "1", "3"}, random);
  text += random() % 2 == 0 ? ", gradient_bucket: 1 MB" : "";
  text += random() % 2 == 0 ? ", optimizer: sgd" : "";
  text += cost == "calibrated" && random() % 3 == 0 ? ", precision: fp16" : "";
  return text + "}\n";
}

int check_random_case(std::mt19937& random) {
  const std::string cost(
      any_of(std::vector<std::string>{"roofline", "profiled", "calibrated", "calibrated", "constant"}, random));
  Case one = random_world(cost, random);
  one.text += random_training(cost, random) + "cost_model: " + cost + "\n" +
              "engine: " + (random() % 16 == 0 ? "simgrid" : "analytic") + "\n" +
              "compare: {strategies: " + some_of(strategies(), 2, random) +
              ", schedules: " + some_of(schedules(), 3, random) + any_of(std::array{"", ", rank: throughput"}, random) +
              "}\n";
  std::string settings;
  for (const Setting& setting : one.settings) {
    settings += setting.key + "=" + setting.value + " ";
  }
  CAPTURE(one.text, settings);
  return check_bound(compare_text(one.text, one.settings).comparison);
}

int check_random_cases(int cases, unsigned seed) {
  std::mt19937 random(seed);
  int feasible = 0;
  for (int n = 0; n < cases; ++n) {
    CAPTURE(n);
    feasible += check_random_case(random);
  }
  return feasible;
}

TEST_CASE("no run beats the bound of its comparison, under any cost model, strategy, schedule and training",
          "[study][bound]") {
  CHECK(check_random_cases(100, 41) > 250);
}

TEST_CASE("no run beats the bound of its comparison, in thousands of them", "[.nightly]") {
  CHECK(check_random_cases(4000, 43) > 10'000);
}

// Plans of some strategies under some schedules; of those that run, how many have a bound of more than half their time.
int check_least_iterations(std::mt19937& random) {
  const std::string cost(any_of(std::vector<std::string>{"roofline", "profiled", "calibrated", "constant"}, random));
  const Case one = random_world(cost, random);
  const Study read = study(one.text + random_training(cost, random) + "cost_model: " + cost + "\n", one.settings);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  int tight = 0;
  for (const ScheduleRow& schedule : schedules()) {
    for (const char* const name : {"random", "uniform", "data-parallel", "layered"}) {
      const Scenario scenario{.strategy = &find_by_name(strategies(), name, "strategy", {}),
                              .schedule = &schedule,
                              .micro_batches = read.training.micro_batches.back()};
      const PlanResult planned = plan_scenario(memo, scenario).result;
      const PlanRequest request = plan_request(memo, scenario);
      const Plan* plan = std::get_if<Plan>(&planned);
      const Evaluation measured = plan != nullptr ? request.evaluate(*plan) : Evaluation{.why_not = "no plan"};
      if (measured.why_not.empty()) {
        const double least = request.at_least(*plan);
        CAPTURE(one.text, name, schedule.name, scenario.micro_batches);
        CHECK(least <= measured.iteration.value * (1 + 1e-9));
        tight += 2 * least > measured.iteration.value ? 1 : 0;
      }
    }
  }
  return tight;
}

TEST_CASE("no replay takes less than a search is told that its plan takes at least", "[study][bound]") {
  std::mt19937 random(47);
  int tight = 0;
  for (int n = 0; n < 40; ++n) {
    CAPTURE(n);
    tight += check_least_iterations(random);
  }
  CHECK(tight > 300);
}

// Two stages of two operators, F 2 s and B 4 s for each of four micro-batches, and no time between them. The second
// stage begins after a forward of the first, works 4 x 6 s, and a backward of the first follows: 30 s, which GPipe
// takes. One micro-batch at a time goes through both stages and back, 4 x (2 + 2 + 4 + 4) s. One of all four samples
// goes through four stages of an operator and back, 4 x (4 + 4) s without gradients of weights, in any order.
TEST_CASE("what a plan takes at least is the fill, the work and the drain of its busiest device", "[study][bound]") {
  const Study read = study(chain_study("training: {global_batch: 4, micro_batches: [1, 4], optimizer: sgd}\n"));
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const auto least_under = [&](const char* schedule, int micro_batches = 4) {
    const Scenario scenario{.strategy = &find_by_name(strategies(), "uniform", "strategy", {}),
                            .schedule = &find_by_name(schedules(), schedule, "schedule", {}),
                            .micro_batches = micro_batches};
    return plan_request(memo, scenario).at_least(std::get<Plan>(plan_scenario(memo, scenario).result));
  };
  CHECK(least_under("gpipe") == Catch::Detail::Approx(2 + 4 * 6 + 4));
  CHECK(least_under("naive") == Catch::Detail::Approx(4 * 12));
  CHECK(least_under("pipemare") == Catch::Detail::Approx(4 * 6)); // iterations overlap
  CHECK(least_under("zb-v", 1) == Catch::Detail::Approx(4 * (4 + 4)));
  CHECK(least_under("chimera") == Catch::Detail::Approx(4 * 6)); // one direction works while the other one waits
}

// A product of 16 896 rows takes more time per row on an H200 than one of half as many, and two devices have half each:
// 3.0 % less than twice the whole in half the time, which was taken for a bound.
TEST_CASE("shares that take less time per sample than the whole micro-batch stay above the bound", "[study][bound]") {
  std::vector<Setting> settings = {{"platform.nodes.0.devices.0.count", "1"},
                                   {"platform.nodes.1.devices.0.count", "1"},
                                   {"platform.network.bandwidth", "400 GB/s"},
                                   {"model.input.shape", "[1, 4096]"}};
  for (int layer = 0; layer < 8; ++layer) {
    settings.push_back({"model.layers." + std::to_string(layer) + ".features", "4096"});
  }
  const Comparison comparison =
      compare_text("model: products.yaml\nplatform: two-nodes.yaml\ncost_model: calibrated\nengine: analytic\n"
                   "training: {global_batch: 2162688, micro_batches: 128, precision: bf16, optimizer: sgd}\n"
                   "compare: {strategies: [single, data-parallel], schedules: [accumulate]}\n",
                   settings)
          .comparison;
  CHECK(check_bound(comparison) == 2);
  CHECK(comparison.runs.front().strategy == "data-parallel");
  CHECK(comparison.runs.front().over_bound() < 0.05);
}

// One device: kernels side by side on streams take less than one after the other, so a table that has both has the
// lesser bound.
TEST_CASE("a table with streams has one bound, which holds for runs with streams", "[study][bound]") {
  const std::string text = "model: inception-v3\nplatform: pcie-v100\ntraining: {global_batch: 32, micro_batches: 1}\n"
                           "compare: {strategies: ";
  const Comparison alone = compare_text(text + "single, schedules: accumulate}\n").comparison;
  const Comparison both = compare_text(text + "[single, layered], schedules: accumulate}\n").comparison;
  CHECK(check_bound(both) >= 2);
  CHECK(find_run(both, "single", "accumulate", 1).lower_bound < alone.runs.front().lower_bound);
  CHECK_THAT(alone.bound_holds_for,
             Catch::EndsWith("with 1 micro-batch whose kernels and iterations run one after another"));
  CHECK_THAT(both.bound_holds_for, Catch::EndsWith("with 1 micro-batch whose iterations run one after another"));
}

// SqueezeNet on pcie-v100: with 32 micro-batches no plan takes less than 49.9 ms, with one 45.1 ms are enough.
TEST_CASE("the verdict names the devices and numbers of micro-batches that the bound covers", "[study][bound]") {
  const std::string text = "model: squeezenet\nplatform: pcie-v100\nengine: analytic\ntraining: {global_batch: 256, "
                           "micro_batches: ";
  const std::string rest = "}\ncompare: {strategies: [data-parallel], schedules: [accumulate]}\n";
  const Comparison many = compare_text(text + "32" + rest).comparison;
  const Comparison some = compare_text(text + "[32, 1, 2]" + rest).comparison;
  CHECK_THAT(many.bound_holds_for, Catch::Contains("devices with 32 micro-batches whose"));
  CHECK_THAT(some.bound_holds_for, Catch::Contains("devices with 1, 2 or 32 micro-batches whose"));
  CHECK(some.runs.front().lower_bound < many.runs.front().lower_bound);
  const auto names_it = [](const Comparison& comparison) {
    return std::any_of(comparison.verdict.begin(), comparison.verdict.end(), [&](const std::string& sentence) {
      return sentence.starts_with("No plan " + comparison.bound_holds_for + " can take less than " +
                                  to_text(comparison.runs.front().lower_bound) + "; this one is ");
    });
  };
  CHECK(names_it(many));
  CHECK(names_it(some));
}

TEST_CASE("a bound says what it presumes: iterations that overlap are named by their absence", "[study][bound]") {
  const std::string text =
      "training: {global_batch: 4, micro_batches: 4}\ncompare: {strategies: [uniform], schedules: ";
  const Comparison flushing = compare_text(chain_study(text + "[gpipe, 1f1b]}\n")).comparison;
  const Comparison mixed = compare_text(chain_study(text + "[gpipe, pipedream-2bw], rank: throughput}\n")).comparison;
  CHECK(flushing.bound_holds_for ==
        "of these 2 devices with 4 micro-batches whose kernels and iterations run one after another");
  CHECK(mixed.bound_holds_for == "of these 2 devices with 4 micro-batches whose kernels run one after another");
  CHECK(check_bound(mixed) == 2);
}

} // namespace
} // namespace stagecraft::test
