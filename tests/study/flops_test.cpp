// Tokens per second and the utilization of devices by FLOPs, against formulas of papers.
// SPDX-License-Identifier: Apache-2.0
#include "sim/result/metrics_table.hpp"
#include "sim/workload/model_flops.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

constexpr double kBatch = 16, kTokens = 1024;

Run gpt2_on_eight(const std::string& recompute) {
  return compare_text("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 16, "
                      "micro_batches: 8, precision: fp16, recompute: " +
                      recompute + "}\ncompare: {strategies: [uniform], schedules: [1f1b]}\n")
      .comparison.runs.front();
}

// Of 12 layers of 768 features, 12 heads of 64 and 50257 words, products read 12 h^2 parameters a layer and the head's
// table. A V100 SXM2 computes 125 TFLOP/s in half precision.
TEST_CASE("tokens per second and MFU are PaLM's", "[study][metrics]") {
  const Run run = gpt2_on_eight("none");
  REQUIRE(run.feasible);
  REQUIRE(run.devices.size() == 8);
  const double seconds = run.metrics.iteration.value;
  CHECK(value_of(metric("tokens_per_second"), run) == near(kBatch * kTokens / seconds));
  CHECK(value_of(metric("tokens_per_device_second"), run) == near(kBatch * kTokens / seconds / 8));
  const double weights = 12 * 12 * 768.0 * 768 + 50257 * 768.0;
  const double a_token = 6 * weights + 12 * 12 * 12 * 64 * kTokens;
  CHECK(value_of(metric("mfu"), run) == near(kBatch * kTokens * a_token / (8 * 125e12 * seconds)));
}

// Attention is over all of its T^2 pairs in both figures, whatever the mask: 4 L H Q of two products each in forward.
TEST_CASE("HFU is MFU and once more the forward products that run again", "[study][metrics]") {
  const Run kept = gpt2_on_eight("none");
  const Run again = gpt2_on_eight("full");
  const auto computed = [](const Run& run) {
    return value_of(metric("hfu"), run) * run.metrics.iteration.value * 8 * 125e12 / (kBatch * kTokens);
  };
  const double weights = 12 * 12 * 768.0 * 768 + 50257 * 768.0;
  const double attention = 4 * 12 * 768 * kTokens;
  CHECK(value_of(metric("hfu"), kept) == near(value_of(metric("mfu"), kept)));
  CHECK(value_of(metric("hfu"), again) > value_of(metric("mfu"), again));
  CHECK(computed(again) - computed(kept) == near(2 * weights + attention));
}

TEST_CASE("models without tokens, and devices without a peak, have no such figures", "[study][metrics]") {
  const Run chain =
      compare_text(chain_study("compare: {strategies: [uniform], schedules: [gpipe]}\n")).comparison.runs.front();
  REQUIRE(chain.feasible);
  for (const std::string_view name : {"tokens_per_second", "tokens_per_device_second", "mfu", "hfu"}) {
    CAPTURE(name);
    const auto row =
        std::find_if(kMetrics.begin(), kMetrics.end(), [&](const Metric& one) { return one.name == name; });
    CHECK(std::isnan(value_of(*row, chain)));
  }
}

} // namespace
} // namespace stagecraft::test
