// Weights of experts that are gathered when their unit begins, as Megatron Core's chain of buckets has it.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

std::string gathering(const std::string& layout, const std::string& gathers, const std::string& bucket = "4 MB") {
  return "model: small-mixture.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: 16, "
         "micro_batches: 2, precision: bf16, expert_skew: 0, gradient_bucket: " +
         bucket + ", parallel: {" + layout + ", zero: 1, gather: before-use" + gathers +
         "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
}

// The late weights of the stage's units, in bytes.
std::vector<double> late_bytes(const std::string& study_text) {
  const Study read = study(study_text);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const ComparisonResult result = compare(memo);
  const PlanCost cost = cost_plan(memo.costs.problem(2, 0), result.prepared.front().plan);
  std::vector<double> bytes;
  for (const ShardUnit& unit : cost.stages.front().units) {
    if (unit.expert_weights.value > 0) {
      bytes.push_back(unit.late_weights.value);
    }
  }
  return bytes;
}

// An expert's first weight has 512 x 2048 numbers, its second 1024 x 512. Gradients of 2 B fill a bucket of 4 MB by two
// of the first weight, and by four of the second, so that of four experts of a rank two are late with their first
// weight; one of 1 MB by one, so that of two experts one is late with both. An only expert is not, and none is where a
// bucket takes all gradients. Four ranks leave two stages, of two layers each.
TEST_CASE("of a rank's experts those beyond the first bucket are late", "[study][experts]") {
  constexpr double kFirst = 512 * 2048 * 2, kSecond = 1024 * 512 * 2;
  const std::string on = ", late_experts: true";
  CHECK(late_bytes(gathering("data: 4, expert: 2", on)) == std::vector<double>(2, 2 * kFirst));
  CHECK(late_bytes(gathering("data: 8", on)).empty()); // whose experts no ranks share
  CHECK(late_bytes(gathering("data: 8, expert: 8", on)) == std::vector<double>(4, 0));
  CHECK(late_bytes(gathering("data: 8, expert: 4", on, "1 MB")) == std::vector<double>(4, kFirst + kSecond));
  CHECK(late_bytes(gathering("data: 4, expert: 2", "")) == std::vector<double>(2, 0));
  CHECK(late_bytes(gathering("data: 4, expert: 2", on, "none")) == std::vector<double>(1, 0));
}

// FSDP2 splits what it gathered into tensors, which reads and writes all of it: of a unit's weights but for experts
// that no replica shares.
TEST_CASE("what a unit gathers is copied out", "[study][experts]") {
  DeviceType type;
  const auto stage = [&](const std::string& parallel) {
    const Study asked = study("model: small-mixture.yaml\nplatform: dgx-h100\ntraining: {global_batch: 8, precision: "
                              "bf16, kernel_speed: {other: 0.5}, parallel: {data: 8, zero: 3, " +
                              parallel + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n");
    type = asked.platform.types.front();
    ScheduleCounts counts;
    StudyMemo memo(asked, counts);
    const ComparisonResult result = compare(memo);
    return cost_plan(memo.costs.problem(1, 0), result.prepared.front().plan).stages.front();
  };
  CHECK(stage("expert: 8").kernels.empty());
  for (const int experts : {2, 8}) {
    const StageCost cost = stage("copied_out: true, expert: " + std::to_string(experts));
    REQUIRE(cost.kernels.size() == cost.units.size());
    for (std::size_t u = 0; u < cost.units.size(); ++u) {
      const ShardUnit& unit = cost.units[u];
      const Bytes gathered = unit.weights + (experts == 8 ? Bytes{0} : unit.expert_weights);
      const Seconds copied = type.launch_overhead + 2 * gathered / type.memory_bandwidth / 0.5;
      CHECK(cost.kernels[u].after_gather.value == near(copied.value));
    }
  }
}

TEST_CASE("the estimate of late experts is their replay", "[study][experts]") {
  for (const std::string layout : {"data: 8, expert: 2", "tensor: 2, sequence: true, data: 4, expert: 2"}) {
    CAPTURE(layout);
    const auto run = [&](const std::string& gathers) {
      return compare_text(gathering(layout, gathers, "1 MB")).comparison.runs.front();
    };
    const Run early = run(""), late = run(", late_experts: true");
    REQUIRE(late.feasible);
    CHECK(late.estimate.value == Approx(late.metrics.iteration.value).epsilon(1e-6));
    CHECK(late.metrics.iteration > early.metrics.iteration);
  }
}

TEST_CASE("only parameters that are gathered before their use can be late", "[study][experts]") {
  const auto refused = [](const std::string& parallel) {
    return error_of(
        [&] { study("model: gpt2\nplatform: dgx-h100\ntraining: {global_batch: 8, parallel: " + parallel + "}\n"); });
  };
  CHECK_THAT(refused("{data: 8, zero: 1, late_experts: true}"),
             Catch::Contains("with 'gather: before-use' and 'zero' 1 or 2"));
  CHECK_THAT(refused("{data: 8, zero: 3, late_experts: true}"),
             Catch::Contains("with 'gather: before-use' and 'zero' 1 or 2"));
  CHECK(refused("{data: 8, zero: 1, gather: before-use, late_experts: true}").empty());
}

} // namespace
} // namespace stagecraft::test
