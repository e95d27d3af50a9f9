// Every number of the verdict is a figure of a run.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

TEST_CASE("the verdict repeats the figures of the runs it speaks of", "[study]") {
  const ComparisonResult result = compare_text("model: squeezenet\nplatform: mixed-v100-p100\nengine: analytic\n"
                                               "training: {global_batch: 64, micro_batches: [4, 16]}\n"
                                               "compare: {strategies: [uniform, capability, optimal], "
                                               "schedules: [accumulate, gpipe, 1f1b]}\n");
  const Comparison& comparison = result.comparison;
  const Run& best = comparison.runs.front();
  const int naive = naive_run(comparison);
  REQUIRE(naive > 0);
  const Run& other = comparison.runs[naive];
  CHECK(other.strategy == "uniform");
  for (int i = 0; i < naive; ++i) {
    CHECK(comparison.runs[i].strategy != "uniform");
  }
  REQUIRE(comparison.verdict.size() == 8);
  const std::string name = best.strategy + " under " + best.schedule + " with " + std::to_string(best.micro_batches);
  CHECK_THAT(comparison.verdict[0], StartsWith(name) && Contains(to_text(best.metrics.iteration)) &&
                                        Contains(to_text(best.samples_per_second, 1)) &&
                                        Contains(to_text(best.speedup, 2)));
  CHECK_THAT(comparison.verdict[1], Contains(to_text(other.metrics.iteration / best.metrics.iteration, 2)) &&
                                        Contains(to_text(other.metrics.iteration)));
  REQUIRE(best.expected);
  CHECK_THAT(comparison.verdict[2], StartsWith("Measured, it would take between " + to_text(best.expected->low) +
                                               " and " + to_text(best.expected->high)));
  CHECK_THAT(comparison.verdict[3],
             Contains(to_text(best.lower_bound)) &&
                 Contains(to_text(100 * (best.metrics.iteration / best.lower_bound - 1), 1) + " %"));
  const auto infeasible =
      std::count_if(comparison.runs.begin(), comparison.runs.end(), [](const Run& run) { return !run.feasible; });
  CHECK_THAT(comparison.verdict[5], Contains(to_text(best.energy_per_sample) + " per sample") &&
                                        Contains("A million samples cost ~" + to_text(best.cost_per_million_samples)));
  CHECK(comparison.verdict[6] ==
        "Prices: v100-sxm2-16gb 2.86 USD/h (Google Cloud list price, date not known); p100-sxm2-16gb 1.43 USD/h "
        "(assumed: half of a V100 at Google Cloud's list price). What rests on an assumed price is marked ~. They are "
        "of different sources or dates, so a ranking by money compares offers that nobody makes together.");
  CHECK_THAT(comparison.verdict[7], StartsWith(std::to_string(infeasible) + " of 18 runs are infeasible"));
}

TEST_CASE("money is marked only where an assumed price is paid", "[study]") {
  const Comparison comparison =
      compare_text("model: squeezenet\nplatform: mixed-v100-p100\nengine: analytic\ntraining: {global_batch: 64, "
                   "micro_batches: 4}\ncompare: {strategies: [single, uniform], schedules: [accumulate, 1f1b]}\n")
          .comparison;
  const Run& alone = find_run(comparison, "single", "1f1b", 4); // one V100, whose price somebody asks
  const Run& both = find_run(comparison, "uniform", "1f1b", 4); // four of each at full and half price
  CHECK(cost_of_million(alone) == to_text(alone.cost_per_million_samples));
  CHECK(cost_of_million(both) == "~" + to_text(both.cost_per_million_samples));
  CHECK(both.metrics.assumed_cost / both.metrics.cost == Approx(1.0 / 3));
  REQUIRE(both.prices.size() == 2);
  CHECK(alone.prices == std::vector<NamedPrice>{both.prices.front()});
}

TEST_CASE("the verdict says that a winner's weights are stale, and names the fastest run without stale weights",
          "[study]") {
  const std::string study = "training: {global_batch: 8, micro_batches: [8]}\n"
                            "compare: {strategies: [uniform], schedules: ";
  const Comparison mixed =
      compare_text(chain_study(study + "[gpipe, 1f1b, pipedream-2bw], rank: throughput}\n")).comparison;
  REQUIRE(mixed.runs[0].schedule == "pipedream-2bw");
  CHECK_THAT(mixed.verdict[2], StartsWith("It is asynchronous: weights up to 1.0 steps old; the fastest that is not is "
                                          "uniform under " +
                                          mixed.runs[1].schedule + " with 8 micro-batches (" +
                                          to_text(mixed.runs[1].metrics.iteration) + ")."));
  const Comparison stale = compare_text(chain_study(study + "pipedream-2bw}\n")).comparison;
  CHECK(stale.verdict[1] ==
        "It is asynchronous: weights up to 1.0 steps old; no run of exact training is feasible here.");
}

// Two stages of F 2 s and B 4 s, and 4 MB that take 10 s between them. 1f1b has two micro-batches in flight: F0 until 2
// s, two transfers until 22, F and B of the last stage until 28, a gradient until 38, B and the last F until 44, its
// transfer until 54, F and B until 60, the gradient until 70, B until 74. Of that 50 s are transfers: 10 % faster,
// 50/11 s less. gpipe takes 2 + 4 * 10 + 6 + 4 * 10 + 4 s. The busiest device computes 24 s, the busiest link carries
// data for 40.
TEST_CASE("the verdict names the part that helps most, whatever is busiest", "[study]") {
  const ComparisonResult result =
      compare_text(chain_study("training: {global_batch: 4, micro_batches: [4]}\n"
                               "compare: {strategies: [uniform], schedules: [gpipe, 1f1b]}\n",
                               "{devices: 2, bandwidth: 0.4 MB/s}"));
  const Run& best = result.comparison.runs.front();
  CHECK(best.metrics.iteration.value == near(74));
  CHECK_THAT(
      result.comparison.verdict[3],
      StartsWith("What would help most is a faster part 'all links within nodes': 10 % faster, an iteration takes " +
                 to_text(100 * 50.0 / 11 / 74, 1) + " % less. The busiest device, ") &&
          Contains("computes " + to_text(100 * 24.0 / 74, 1) + " % of the time, the busiest link, '" +
                   best.busiest_link + "', carries data " + to_text(100 * 40.0 / 74, 1) + " %"));
}

TEST_CASE("where no single part helps, the verdict says so", "[study]") {
  const Comparison comparison = compare_text("model: squeezenet\nplatform: mixed-v100-p100\nengine: analytic\n"
                                             "training: {global_batch: 64, micro_batches: [4, 16]}\n"
                                             "compare: {strategies: [uniform, optimal], schedules: [gpipe]}\n")
                                    .comparison;
  const std::vector<Sensitivity> none = {{"gpu", comparison.runs.front().metrics.iteration}};
  CHECK_THAT(make_verdict(comparison, none)[4],
             StartsWith("No single part of the cluster that is 10 % faster would make it shorter. The busiest device"));
  CHECK_THAT(make_verdict(comparison)[4], StartsWith("The busiest device"));
}

TEST_CASE("one run alone takes its time and wins nothing", "[study]") {
  const ComparisonResult result = compare_text(chain_study("training: {global_batch: 4, micro_batches: [4]}\n"
                                                           "compare: {strategies: [uniform], schedules: [gpipe]}\n"));
  REQUIRE(result.comparison.verdict.size() == 3);
  CHECK_THAT(result.comparison.verdict[0], StartsWith("uniform under gpipe with 4 micro-batches takes 30.00 s"));
}

TEST_CASE("one device is not compared with itself, and what is as fast is called so", "[study]") {
  const ComparisonResult alone =
      compare_text(chain_study("training: {global_batch: 4, micro_batches: [4]}\n"
                               "compare: {strategies: [uniform, optimal], schedules: [gpipe]}\n",
                               "{devices: 1}"));
  CHECK(alone.comparison.verdict[0].find("fastest single device") == std::string::npos);
  CHECK_THAT(alone.comparison.verdict[1], StartsWith("Practically as fast is ") || StartsWith("No naive choice"));
}

TEST_CASE("where nothing is feasible the verdict says that", "[study]") {
  const ComparisonResult result = compare_text(
      chain_study("compare: {strategies: [uniform], schedules: [gpipe, 1f1b]}\n", "{devices: 2, memory: 1 kB}"));
  CHECK(naive_run(result.comparison) == -1);
  REQUIRE_FALSE(result.comparison.verdict.empty());
  CHECK(result.comparison.verdict.front() == "Nothing is feasible here.");
  CHECK_THAT(
      result.comparison.verdict.back(),
      StartsWith("2 of 2 runs are infeasible, all for one reason: weights, gradients and optimizer states take"));
}

TEST_CASE("a winner's billion tokens have a time, and a price where its devices have one", "[study]") {
  Comparison comparison = compare_text(chain_study("training: {global_batch: 4, micro_batches: [4]}\n"
                                                   "compare: {strategies: [uniform], schedules: [gpipe]}\n"))
                              .comparison;
  Run& run = comparison.runs.at(0);
  run.samples_per_second = 10;
  run.tokens_per_second = 10'000; // a billion in 1e5 s, with a million samples
  run.cost_per_million_samples = Dollars{0};
  const auto says = [&](const std::string& text) {
    const std::vector<std::string> verdict = make_verdict(comparison);
    return std::any_of(verdict.begin(), verdict.end(),
                       [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  CHECK(says("A billion tokens take 27.8 hours."));
  run.cost_per_million_samples = Dollars{50};
  CHECK(says("A million samples cost 50.00 USD. A billion tokens take 27.8 hours and cost 50.00 USD."));
  run.tokens_per_second = 5000; // in 2e5 s, with two million samples
  run.metrics.assumed_cost = Dollars{1};
  CHECK(says("A billion tokens take 2.3 days and cost ~100.00 USD."));
}

// Two plans of one rank that differ in the schedule alone, and one in what it recomputes.
TEST_CASE(
    "runs of one name are told apart by what they recompute, and schedules of one rank are not set against each other",
    "[study]") {
  Comparison comparison{.model = "m", .platform = "p", .global_batch = 8};
  const auto add = [&](const char* schedule, const char* recompute, double seconds) {
    Run run;
    run.strategy = "mesh";
    run.schedule = schedule;
    run.recompute.what = recompute;
    run.feasible = true;
    run.metrics.iteration = Seconds{seconds};
    run.metrics.busy = {Seconds{seconds}};
    run.samples_per_second = 8 / seconds;
    run.devices = {"a"};
    run.stages.resize(1);
    run.stages[0].devices = {"a"};
    run.confidence = RunConfidence{.iteration = {10, Seconds{1}, Seconds{1}, Seconds{2}}, .best = 0.4};
    comparison.runs.push_back(run);
  };
  add("1f1b", "none", 1);
  add("zb-h1", "none", 1.001);
  add("1f1b", "full", 1.5);
  const std::vector<std::string> verdict = make_verdict(comparison);
  CHECK(verdict[1] ==
        "That is 1.50 times as fast as mesh under 1f1b with 1 micro-batch, with recomputation (1.500 s).");
  CHECK_THAT(verdict[2], Contains("too close to call: mesh under 1f1b with 1 micro-batch is it in 40 %"));
}

} // namespace
} // namespace stagecraft::test
