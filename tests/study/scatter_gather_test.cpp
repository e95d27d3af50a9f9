// Tensors that go to another stage in parts, one from each device of a tensor group.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Comparison scattered(const std::string& parallel, bool parts, const std::string& schedules, bool fold = true) {
  std::vector<Setting> settings;
  if (!fold) {
    settings.push_back({"unfold", "true"});
  }
  return compare_text("model: small-transformer.yaml\nplatform: 2 x dgx-h100\ntraining: {global_batch: 32, "
                      "micro_batches: 4, precision: bf16, blocking_sends: true, scatter_gather: " +
                          std::string(parts ? "true" : "false") + ", parallel: " + parallel +
                          "}\ncompare: {strategies: [mesh], schedules: " + schedules + "}\n",
                      settings)
      .comparison;
}

// Two stages on a node each, of two groups of four whose devices each have a NIC and wait for what they send: a tensor
// crosses the network in a fourth of the time, and the gather inside the node takes less than that saves.
TEST_CASE("a tensor group crosses the network in parts", "[study][scatter]") {
  const auto seconds = [](const std::string& parallel, bool parts) {
    const Run run = scattered(parallel, parts, "[gpipe]").runs.front();
    INFO(run.why_not);
    REQUIRE(run.feasible);
    return run.metrics.iteration.value;
  };
  CHECK(seconds("{pipeline: 2, tensor: 4, data: 2}", true) < seconds("{pipeline: 2, tensor: 4, data: 2}", false));
  // Tokens of its own are a part already; one device has no group, and one stage no other.
  for (const std::string parallel :
       {"{pipeline: 2, tensor: 4, data: 2, sequence: true}", "{pipeline: 2, data: 8}", "{tensor: 4, data: 4}"}) {
    CAPTURE(parallel);
    CHECK(seconds(parallel, true) == seconds(parallel, false));
  }
}

TEST_CASE("parts go with replicas, folding and every schedule", "[study][scatter]") {
  for (const std::string parallel :
       {"{pipeline: 2, tensor: 4, data: 2}", "{pipeline: 4, tensor: 2, data: 2, zero: 1}"}) {
    const Comparison folded = scattered(parallel, true, "all"), unfolded = scattered(parallel, true, "all", false);
    REQUIRE(folded.runs.size() == unfolded.runs.size());
    for (std::size_t at = 0; at < folded.runs.size(); ++at) {
      const Run &one = folded.runs[at], &other = unfolded.runs[at];
      CAPTURE(parallel, one.schedule, one.why_not);
      REQUIRE(one.feasible == other.feasible);
      if (one.feasible) {
        CHECK(one.metrics.iteration.value == near(other.metrics.iteration.value));
      }
    }
  }
}

} // namespace
} // namespace stagecraft::test
