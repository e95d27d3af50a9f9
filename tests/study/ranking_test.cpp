// Which runs a comparison ranks first: those of exact training, unless the study asks for throughput.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

// Equal stages, so that only the schedules differ; some runs do not fit.
const std::string kAll = chain_study("training: {global_batch: 8, micro_batches: [4, 8]}\nengine: analytic\n"
                                     "compare: {strategies: [single, uniform, data-parallel], schedules: all}\n",
                                     "{devices: 2, bandwidth: 1 GB/s, memory: 60 MB}");

// 0 for exact training, 1 for asynchronous, 2 for infeasible; by the schedule that ran, not by the figures.
int kind_of(const ComparisonResult& result, std::size_t run) {
  return !result.comparison.runs[run].feasible ? 2 : result.prepared[result.of_run[run]].schedule.flushes ? 0 : 1;
}

// Over the rows of the table of schedules: a new one is ranked by the same law.
TEST_CASE("no asynchronous run is ranked above a feasible one of exact training", "[study][ranking]") {
  const ComparisonResult result = compare_text(kAll);
  const auto& runs = result.comparison.runs;
  std::set<int> kinds;
  std::set<std::string> asynchronous;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    INFO(i << ": " << runs[i].strategy << " under " << runs[i].schedule << " with " << runs[i].micro_batches);
    kinds.insert(kind_of(result, i));
    CHECK(runs[i].is_exact() == (kind_of(result, i) != 1));
    if (kind_of(result, i) == 1) {
      asynchronous.insert(runs[i].schedule);
    }
    if (i > 0) {
      CHECK(kind_of(result, i - 1) <= kind_of(result, i));
      if (kind_of(result, i) == kind_of(result, i - 1) && runs[i].feasible) {
        CHECK(runs[i - 1].metrics.iteration.value <= runs[i].metrics.iteration.value * (1 + 1e-9));
      }
    }
  }
  CHECK(kinds == std::set<int>{0, 1, 2}); // so that each pair was seen
  CHECK(asynchronous == std::set<std::string>{"pipedream", "pipedream-2bw", "pipemare", "xpipe"});
  // The law says something: by time alone the first of the others would win.
  const int late = best_asynchronous(result.comparison);
  REQUIRE(late > 0);
  CHECK(runs[late].metrics.iteration < runs[0].metrics.iteration);
}

TEST_CASE("by throughput the order is that of time, whatever is learnt", "[study][ranking]") {
  const ComparisonResult result = compare_text(kAll, {{"compare.rank", "throughput"}});
  const auto& runs = result.comparison.runs;
  for (std::size_t i = 1; i < runs.size() && runs[i].feasible; ++i) {
    CHECK(runs[i - 1].metrics.iteration.value <= runs[i].metrics.iteration.value * (1 + 1e-9));
  }
  CHECK(kind_of(result, 0) == 1);
  CHECK(best_asynchronous(result.comparison) == -1); // none is ranked apart
  CHECK_THAT(result.comparison.verdict[2],
             StartsWith("It is asynchronous: ") && Contains("the fastest that is not is"));
}

TEST_CASE("compare.rank is exact or throughput", "[study][ranking]") {
  CHECK(study(kAll).rank == RankBy::exact);
  CHECK(study(kAll, {{"compare.rank", "exact"}}).rank == RankBy::exact);
  CHECK(study(kAll, {{"compare.rank", "throughput"}}).rank == RankBy::throughput);
  CHECK_THAT(error_of([] {
               study(kAll, {{"compare.rank", "exakt"}});
             }),
             StartsWith("--set compare.rank") && Contains("'exakt'; did you mean 'exact'?") &&
                 Contains("exact, throughput"));
}

std::string schedules_of(const std::string& names, const std::string& more = "") {
  return chain_study("training: {global_batch: 8, micro_batches: [8]}\nengine: analytic\n"
                     "compare: {strategies: [uniform], schedules: " +
                     names + "}\n" + more);
}

// What an asynchronous run may overlap is no reason to bound exact ones less tightly. From empty something crosses a
// link of 28 s, or all is done by one device in 48 s: 28 s. Otherwise half of the 48 s.
TEST_CASE("asynchronous runs do not weaken the winner's bound", "[study][ranking][bound]") {
  const auto compared = [](const std::string& schedules) {
    return compare_text(chain_study("training: {global_batch: 4, micro_batches: [4]}\nengine: analytic\n"
                                    "compare: {strategies: [uniform], schedules: " +
                                        schedules + "}\n",
                                    "{devices: 2, latency: 28 s}"))
        .comparison;
  };
  const Comparison alone = compared("[gpipe, 1f1b]");
  const Comparison both = compared("[gpipe, 1f1b, pipedream-2bw]");
  const Comparison by_time = compared("[gpipe, 1f1b, pipedream-2bw], rank: throughput");
  CHECK(both.bound_holds_for == alone.bound_holds_for);
  CHECK_THAT(alone.bound_holds_for, EndsWith("whose kernels and iterations run one after another"));
  CHECK_THAT(by_time.bound_holds_for, EndsWith("whose kernels run one after another"));
  const auto bound = [](const Comparison& comparison, const char* schedule) {
    return find_run(comparison, "uniform", schedule, 4).lower_bound;
  };
  CHECK(bound(both, "pipedream-2bw").value == near(24));
  for (const char* exact : {"gpipe", "1f1b"}) {
    CHECK(bound(alone, exact).value == near(28));
    CHECK(bound(both, exact) == bound(alone, exact));
    CHECK(bound(by_time, exact).value == near(24));
  }
}

// Shares of draws of the runs of a block add up to 1, equal runs counting once; asynchronous ones take none of those
// of exact training.
TEST_CASE("a run of exact training is the fastest as often as without asynchronous ones",
          "[study][ranking][confidence]") {
  const auto text = [](const std::string& schedules) {
    return "model: products.yaml\nplatform: dgx-a100-cluster\ntraining: {global_batch: 16, micro_batches: 8, "
           "optimizer: sgd}\nengine: analytic\ncompare: {strategies: [uniform, optimal], schedules: " +
           schedules + "}\nconfidence: 40\n";
  };
  const Comparison alone = compare_text(text("[gpipe, 1f1b]")).comparison;
  const Comparison both = compare_text(text("[gpipe, 1f1b, pipedream-2bw]")).comparison;
  for (const Run& run : alone.runs) {
    REQUIRE(run.confidence);
    CHECK(find_run(both, run.strategy, run.schedule, run.micro_batches).confidence->best == run.confidence->best);
  }
  const Comparison by_time =
      compare_text(text("[gpipe, 1f1b, pipedream-2bw]"), {{"compare.rank", "throughput"}}).comparison;
  CHECK(find_run(by_time, alone.runs[0].strategy, alone.runs[0].schedule, 8).confidence->best <
        alone.runs[0].confidence->best);
}

// Two stages of F 2 s and B 4 s, eight micro-batches, transfers that take no time: 1f1b (8 + 1) * 6 s = 54 s, which a
// local step does not shorten, as the first stage ends last and begins first. pipedream-2bw 8 * 6 s = 48 s.
TEST_CASE("the verdict says what stale weights gain, and what is left of that without a barrier", "[study][ranking]") {
  const Comparison comparison = compare_text(schedules_of("[gpipe, 1f1b, pipedream-2bw]")).comparison;
  REQUIRE(comparison.runs[2].schedule == "pipedream-2bw");
  CHECK(comparison.runs[0].metrics.iteration.value == near(54));
  CHECK(comparison.verdict[2] ==
        "Ranked apart, as throughput only: uniform under pipedream-2bw with 8 micro-batches takes 48.00 s, " +
            to_text(100 * 6.0 / 54, 1) +
            " % less than the winner; it is asynchronous: weights up to 1.0 steps old, and its steps wait for no "
            "barrier. Without one ('training.step: local') the winner takes 54.00 s, which leaves 100 % of that lead.");
}

TEST_CASE("a winner without a barrier is replayed as the study with local steps replays it", "[study][ranking]") {
  for (const char* exact : {"1f1b", "zb-h1", "zb-h2", "interleaved", "zb-v", "gpipe"}) {
    INFO(exact);
    const std::string text = schedules_of("[" + std::string(exact) + ", pipedream-2bw]");
    const Comparison comparison = compare_text(text).comparison;
    const Run local = find_run(compare_text(text, {{"training.step", "local"}}).comparison, "uniform", exact, 8);
    const Run& late = comparison.runs[1];
    REQUIRE(late.metrics.iteration < comparison.runs[0].metrics.iteration);
    const Seconds lead = comparison.runs[0].metrics.iteration - late.metrics.iteration;
    const Seconds left = local.metrics.iteration - late.metrics.iteration;
    CHECK_THAT(comparison.verdict[2],
               EndsWith("the winner takes " + to_text(local.metrics.iteration) + ", which leaves " +
                        (left.value > 0 ? to_text(100 * (left / lead), 0) + " %" : "nothing") + " of that lead."));
  }
}

TEST_CASE("where all steps are local, nobody pays a barrier", "[study][ranking]") {
  const Comparison comparison =
      compare_text(schedules_of("[gpipe, pipedream-2bw]"), {{"training.step", "local"}}).comparison;
  CHECK_THAT(comparison.verdict[2], StartsWith("Ranked apart") && EndsWith("weights up to 1.0 steps old."));
}

// pipedream steps after each micro-batch, so with one device it takes longer than accumulate, and learns in other
// steps.
TEST_CASE("an asynchronous schedule that is not faster is said to be none", "[study][ranking]") {
  const Comparison comparison =
      compare_text(chain_study("training: {global_batch: 8, micro_batches: [8]}\nengine: analytic\n"
                               "compare: {strategies: [single], schedules: [accumulate, pipedream]}\n"))
          .comparison;
  CHECK(comparison.runs[0].schedule == "accumulate");
  CHECK(comparison.runs[1].staleness == std::vector<double>{0}); // not late, and yet not what a batch would teach
  CHECK_FALSE(comparison.runs[1].is_exact());
  CHECK_THAT(comparison.verdict[2], StartsWith("Ranked apart") && EndsWith(", so no asynchronous run is faster."));
}

TEST_CASE("where only asynchronous runs are feasible one of them wins, and the verdict says so", "[study][ranking]") {
  const Comparison stale = compare_text(schedules_of("[pipedream-2bw, pipemare]")).comparison;
  CHECK_FALSE(stale.runs[0].is_exact());
  CHECK_THAT(stale.verdict[2], StartsWith("It is asynchronous: weights up to ") &&
                                   EndsWith("; no run of exact training is feasible here."));
  CHECK(best_asynchronous(stale) == -1); // all are in the winner's block
  CHECK(naive_run(stale) == 0);
}

// The naive run and the run that draws least are of the winner's block.
TEST_CASE("the winner is compared with runs of exact training", "[study][ranking]") {
  const ComparisonResult result = compare_text(
      "model: squeezenet\nplatform: mixed-v100-p100\nengine: analytic\ntraining: {global_batch: 64, micro_batches: "
      "[4, 16]}\ncompare: {strategies: [uniform, optimal], schedules: [1f1b, pipedream-2bw, pipemare]}\n");
  const Comparison& comparison = result.comparison;
  const Run& naive = comparison.runs[naive_run(comparison)];
  CHECK(naive.is_exact());
  CHECK(naive.strategy == "uniform");
  const Comparison without_uniform =
      compare_text(chain_study("training: {global_batch: 8, micro_batches: [4, 8]}\nengine: analytic\n"
                               "compare: {strategies: [optimal], schedules: [gpipe, pipedream-2bw]}\n"))
          .comparison; // the slowest of its block is the naive one
  REQUIRE(without_uniform.runs.size() == 4);
  CHECK(naive_run(without_uniform) == 1);
  const auto frugal = [&](bool exact) {
    const Run* least = nullptr;
    for (const Run& run : comparison.runs) {
      const bool counts = run.feasible && run.is_exact() == exact;
      least = counts && (least == nullptr || run.energy_per_sample < least->energy_per_sample) ? &run : least;
    }
    return least->energy_per_sample;
  };
  CHECK(frugal(false) < frugal(true)); // one that does not compete draws less
  const auto told = std::find_if(comparison.verdict.begin(), comparison.verdict.end(),
                                 [](const std::string& sentence) { return sentence.starts_with("It draws "); });
  REQUIRE(told != comparison.verdict.end());
  CHECK_THAT(*told, Contains(to_text(frugal(true))) && !Contains(to_text(frugal(false))) && !Contains("pipe"));
}

} // namespace
} // namespace stagecraft::test
