// How sure a comparison is: spreads as the error formula gives them, draws shared by runs, and the sentences.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/study/studies.hpp"

namespace stagecraft {
namespace {

using test::near;

// Equal linear layers on V100s: a family, a few shapes, nothing else but the optimiser step.
std::string layers_study(const std::string& file, const std::string& more) {
  return "model: " + file + "\nplatform: nvlink-v100\ntraining: {global_batch: 8, micro_batches: 1, optimizer: sgd}\n" +
         more;
}

// Half the distance of the 5 % and the 95 % quantile of ln(time), in standard deviations: 1.645 each.
double log_spread(const RunSpread& spread) { return std::log(spread.high / spread.low) / (2 * 1.6449); }

TEST_CASE("a roofline's single run spreads as its error says", "[study][confidence]") {
  // Forward and weight gradient are one family and two shapes (the first layer hands on no gradient), of equal FLOPs:
  // each ln error has variance 0.2^2, half of it common. Of a sum of two equal terms the variance is 0.2^2 (1/2 + 1/2 /
  // 2), as far as exp is linear.
  const ComparisonResult result = test::compare_text(
      layers_study("product.yaml", "cost_model: roofline\ncompare: {strategies: [single], schedules: [1f1b]}\n"
                                   "confidence: 4000\n"));
  const Run& run = result.comparison.runs.front();
  REQUIRE(run.confidence);
  CHECK(run.confidence->iteration.samples == 4000);
  CHECK(log_spread(run.confidence->iteration) == Approx(0.2 * std::sqrt(0.75)).epsilon(0.08));
  CHECK(run.confidence->iteration.median / run.metrics.iteration == Approx(1).margin(0.02));
  CHECK(run.confidence->best == 1);
}

TEST_CASE("transfers spread as their links say", "[study][confidence]") {
  // Two devices of uncertain-links.yaml, 32 MiB each way at 1 kB/s beside seconds of computation that are taken at
  // their word: both transfers are one family and one shape, so ln(time) has the deviation of the link, 0.3.
  const ComparisonResult result =
      test::compare_text("model: products.yaml\nplatform: uncertain-links.yaml\ncost_model: constant\n"
                         "training: {global_batch: 8, micro_batches: 1, optimizer: sgd}\n"
                         "compare: {strategies: [uniform], schedules: [gpipe]}\nconfidence: 4000\n");
  const Run& run = result.comparison.runs.front();
  REQUIRE(run.confidence);
  CHECK(log_spread(run.confidence->iteration) == Approx(0.3).epsilon(0.05));
}

TEST_CASE("a cost model without errors has no spread", "[study][confidence]") {
  const ComparisonResult result = test::compare_text(
      test::chain_study("training: {global_batch: 4, micro_batches: 4}\ncost_model: constant\n"
                        "compare: {strategies: [uniform], schedules: [gpipe, 1f1b]}\nconfidence: 20\n"));
  for (const Run& run : result.comparison.runs) {
    REQUIRE(run.confidence);
    CHECK(run.confidence->iteration.low == run.metrics.iteration);
    CHECK(run.confidence->iteration.high == run.metrics.iteration);
  }
}

TEST_CASE("runs share their draws: a better plan on the same devices stays better", "[study][confidence]") {
  // Eight equal layers over eight equal devices: whatever a layer takes, 8 micro-batches leave more bubble than 16.
  // Links hide behind the layers; if they bound, of known speed and one transfer after another, times would hardly
  // spread.
  const std::string text =
      layers_study("products.yaml", "compare: {strategies: [uniform], schedules: [gpipe]}\nconfidence: 200\n");
  const ComparisonResult result = test::compare_text(
      text, {{"platform", "dgx-a100-cluster"}, {"training.global_batch", "16"}, {"training.micro_batches", "[8, 16]"}});
  const Run& best = result.comparison.runs[0];
  const Run& other = result.comparison.runs[1];
  CHECK(best.micro_batches == 16);
  CHECK(best.confidence->best + other.confidence->best == near(1));
  const RunSpread& quick = best.confidence->iteration;
  const RunSpread& slow = other.confidence->iteration;
  CHECK(quick.high > slow.low);
  // With draws of its own, ln(time) being about normal, it would win this often.
  const double deviation = std::hypot(log_spread(quick), log_spread(slow));
  const double unshared = 0.5 * std::erfc(-std::log(slow.median / quick.median) / deviation / std::sqrt(2));
  CHECK(unshared < 0.9);
  CHECK(best.confidence->best > 0.95);
}

TEST_CASE("a run's spread does not depend on what it is compared with", "[study][confidence]") {
  const std::string alone =
      layers_study("products.yaml", "compare: {strategies: [uniform], schedules: [gpipe]}\nconfidence: 30\n");
  const std::string beside = layers_study(
      "products.yaml", "compare: {strategies: [optimal, uniform], schedules: [1f1b, gpipe]}\nconfidence: 30\n");
  const ComparisonResult first = test::compare_text(alone);
  const ComparisonResult second = test::compare_text(beside);
  const Run& one = test::find_run(first.comparison, "uniform", "gpipe", 1);
  const Run& same = test::find_run(second.comparison, "uniform", "gpipe", 1);
  CHECK(one.confidence->iteration.low == same.confidence->iteration.low);
  CHECK(one.confidence->iteration.high == same.confidence->iteration.high);
  // Equal runs are the fastest equally often.
  for (const Run& run : second.comparison.runs) {
    CHECK(run.confidence);
  }
}

TEST_CASE("the verdict says when a comparison is too close to call", "[study][confidence]") {
  Comparison comparison{.model = "m", .platform = "p", .global_batch = 1};
  const auto run = [&](const char* strategy, double seconds, double best) {
    Run& one = comparison.runs.emplace_back();
    one.strategy = strategy;
    one.schedule = "1f1b";
    one.feasible = true;
    one.devices = {"d"};
    one.metrics.iteration = Seconds{seconds};
    one.metrics.busy = one.metrics.exposed = {Seconds{seconds}};
    one.confidence = RunConfidence{{100, Seconds{0.9 * seconds}, Seconds{seconds}, Seconds{1.25 * seconds}}, best};
  };
  run("a", 1, 0.5);
  run("b", 1.1, 0.2);
  run("c", 1.2, 0.3);
  const auto sentence = [&] { return make_verdict(comparison)[2]; };
  CHECK(sentence() ==
        "The cost model may err: in 100 draws it takes 900.0 ms to 1.250 s (5 to 95 %) and is the fastest "
        "in 50 %; too close to call: c under 1f1b with 1 micro-batch is it in 30 %.");
  comparison.runs[0].confidence->best = 0.9;
  CHECK(sentence() ==
        "The cost model may err: in 100 draws it takes 900.0 ms to 1.250 s (5 to 95 %) and is the fastest "
        "in 90 %.");
}

} // namespace
} // namespace stagecraft
