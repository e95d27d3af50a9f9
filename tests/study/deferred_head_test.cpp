// Gradients of the last product's weights that wait until the last stage has run its backwards.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Stage 0 is a and g, stage 1 is b and h: F 2 s and B 4 s each of four micro-batches, of which 1 s is the gradient of
// b's weights. Nothing takes time on the way.
Run run_of(const std::string& deferred, const std::string& schedule, const std::string& more = "") {
  return compare_text("model: gelu.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4, "
                      "optimizer: sgd, deferred_head: " +
                      deferred + more + "}\ncompare: {strategies: [uniform], schedules: [" + schedule + "]}\n")
      .comparison.runs.front();
}

// 1F1B: stage 1 F0 2-4 B0 4-7 F1 7-9 B1 9-12, stage 0 B0 7-11 F2 11-13 B1 13-17 F3 17-19; stage 1 F2 13-15 B2 15-18 F3
// 19-21 B3 21-24 and the four gradients 24-28, stage 0 B2 19-23 B3 24-28. GPipe: stage 1 B 10-22 and the gradients
// 22-26, stage 0 B 13-29.
TEST_CASE("gradients that wait fill the drain of the last stage", "[study][deferred]") {
  for (const auto& [schedule, seconds] : {std::pair{"1f1b", 28.0}, {"gpipe", 29.0}}) {
    CAPTURE(schedule);
    const Run whole = run_of("false", schedule), waits = run_of("true", schedule);
    CHECK(whole.metrics.iteration.value == near(30));
    CHECK(waits.metrics.iteration.value == near(seconds));
    for (const std::size_t device : {0, 1}) {
      CHECK(waits.metrics.busy[device].value == near(whole.metrics.busy[device].value));
    }
  }
}

// In 1e6 B stage 1 keeps 20 of a micro-batch, of which b's gradient needs 4: three of these are left when the fourth
// micro-batch runs.
TEST_CASE("what they need is kept until then", "[study][deferred]") {
  const Run whole = run_of("false", "1f1b"), waits = run_of("true", "1f1b");
  const auto more = [&](std::size_t device) {
    return (waits.metrics.peak_memory[device] - whole.metrics.peak_memory[device]).value;
  };
  CHECK(more(0) == near(0));
  CHECK(more(1) == near(3 * 4e6));
}

TEST_CASE("schedules that split backwards, and plans without a pipeline, defer nothing", "[study][deferred]") {
  CHECK(run_of("true", "zb-h1").metrics.iteration == run_of("false", "zb-h1").metrics.iteration);
  const auto alone = [](const std::string& deferred) {
    return compare_text("model: gelu.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 2, "
                        "optimizer: sgd, deferred_head: " +
                        deferred + "}\ncompare: {strategies: [data-parallel], schedules: [1f1b]}\n")
        .comparison.runs.front()
        .metrics.iteration;
  };
  CHECK(alone("true") == alone("false"));
}

// Of Llama on tensor groups: whatever runs, the devices compute as long, and one more schedule or layout breaks no law.
TEST_CASE("deferred gradients go with tensor groups, replicas, buckets and every schedule", "[study][deferred]") {
  for (const std::string parallel :
       {"{pipeline: 2, tensor: 2, sequence: true, data: 2}", "{pipeline: 2, data: 4, zero: 1}",
        "{pipeline: 2, tensor: 2, data: 2, zero: 1}, gradient_bucket: 4 MB"}) {
    const auto runs = [&](const std::string& deferred, bool fold) {
      std::vector<Setting> settings;
      if (!fold) {
        settings.push_back({"unfold", "true"});
      }
      return compare_text("model: small-transformer.yaml\nplatform: dgx-h100\ntraining: {global_batch: 32, "
                          "micro_batches: 4, precision: bf16, deferred_head: " +
                              deferred + ", parallel: " + parallel +
                              "}\ncompare: {strategies: [mesh], schedules: all}\n",
                          settings)
          .comparison;
    };
    const Comparison whole = runs("false", true), waits = runs("true", true), unfolded = runs("true", false);
    REQUIRE(waits.runs.size() == whole.runs.size());
    for (const Run& run : waits.runs) {
      const Run& other = find_run(unfolded, run.strategy, run.schedule, 4);
      const Run& before = find_run(whole, run.strategy, run.schedule, 4);
      CAPTURE(parallel, run.schedule, run.why_not);
      REQUIRE(run.feasible == before.feasible);
      if (run.feasible) {
        CHECK(run.metrics.iteration.value == near(other.metrics.iteration.value));
        CHECK(run.lower_bound.value <= run.metrics.iteration.value * (1 + 1e-9));
        CHECK(run.metrics.iteration.value < 1.2 * before.metrics.iteration.value);
      }
    }
  }
}

TEST_CASE("gradients that replicas share with each backward cannot wait", "[study][deferred]") {
  CHECK_THAT(error_of([] {
               study(
                   "model: gelu.yaml\nplatform: {devices: 2}\ntraining: {deferred_head: true, parallel: {zero: 2}}\n");
             }),
             Catch::Contains("3:27: gradients that replicas share are reduced with each backward"));
}

} // namespace
} // namespace stagecraft::test
