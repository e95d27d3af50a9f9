// How much of a run is replayed as tasks of its own makes no difference where nothing shares links.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/communication.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Layers of GPT-2 in two stages of two replicas of two devices. Ranks that share tokens wait for each other where one's
// transfer takes longer: these are on devices whose links are alike.
Comparison compared(const std::string& detail, const std::string& training, const std::string& engine) {
  const bool shares_tokens = training.find("context") != std::string::npos;
  const std::string platform = shares_tokens ? "dgx-h100" : "nvlink-v100";
  const std::string text = "model: gpt2\nplatform: " + platform + "\nengine: " + engine + "\ndetail: " + detail +
                           "\ntraining: {global_batch: 16, micro_batches: 4, precision: fp16, optimizer: adam, " +
                           training + "}\ncompare: {strategies: [mesh], schedules: all}\n";
  return compare_text(text).comparison;
}

void check_alike(const Comparison& blocks, const Comparison& all) {
  int feasible = 0;
  for (const Run& one : blocks.runs) {
    CAPTURE(one.schedule, one.why_not);
    const Run& other = find_run(all, one.strategy, one.schedule, one.micro_batches);
    REQUIRE(one.feasible == other.feasible);
    if (!one.feasible) {
      continue;
    }
    ++feasible;
    CHECK(other.metrics.tasks > 2 * one.metrics.tasks);
    CHECK(other.metrics.iteration.value == near(one.metrics.iteration.value));
    CHECK(other.metrics.makespan.value == near(one.metrics.makespan.value));
    CHECK(other.metrics.bubble_fraction == near(one.metrics.bubble_fraction));
    CHECK(other.metrics.energy.total().value == near(one.metrics.energy.total().value));
    for (std::size_t device = 0; device < one.metrics.busy.size(); ++device) {
      CHECK(other.metrics.busy[device].value == near(one.metrics.busy[device].value));
      CHECK(other.metrics.exposed[device].value == near(one.metrics.exposed[device].value));
      CHECK(other.metrics.peak_memory[device].value == near(one.metrics.peak_memory[device].value));
    }
  }
  CHECK(feasible >= 15);
}

TEST_CASE("with every exchange a task, a run is what it is with passes as blocks", "[study][detail]") {
  const std::string degrees = "parallel: {tensor: 2, pipeline: 2}";
  for (const std::string& training :
       {degrees, std::string("parallel: {tensor: 2, pipeline: 2, sequence: true}"), degrees + ", recompute: full",
        degrees + ", recompute: {kinds: [attention]}", degrees + ", gradient_bucket: 1 MB",
        std::string("parallel: {tensor: 2, pipeline: 2, zero: 1}"), std::string("parallel: {context: 4, pipeline: 2}"),
        std::string("parallel: {context: 2, tensor: 2, sequence: true, pipeline: 2, context_rule: all-gather}"),
        std::string("parallel: {context: 4, pipeline: 2, context_rule: both, context_heads: 2, zero: 1}"),
        std::string("parallel: {tensor: 2, pipeline: 2, zero: 3, reshard: after-forward}"),
        std::string("parallel: {tensor: 2, pipeline: 2, zero: 3}, recompute: blocks, gradient_bucket: none"),
        std::string("parallel: {tensor: 2, pipeline: 2, zero: 1}, offload: {optimizer: 1, gradients: true}"),
        degrees + ", step: local",
        // With these recipes exchanges slow computations down, those that a pass hides and those beside it.
        degrees + ", framework: megatron-lm-2025", degrees + ", framework: torchtitan",
        degrees + ", framework: torchtitan, pipelined_exchange: true",
        std::string("parallel: {tensor: 2, pipeline: 2, sequence: true}, framework: megatron-lm-2025"),
        std::string("parallel: {tensor: 2, pipeline: 2, sequence: true, zero: 1}, gradient_bucket: 1 MB, "
                    "framework: nemo-2024"),
        std::string("parallel: {tensor: 2, pipeline: 2, zero: 3}, recompute: blocks, framework: fsdp"),
        std::string("parallel: {context: 4, pipeline: 2}, framework: megatron-lm-2025")}) {
    CAPTURE(training);
    check_alike(compared("blocks", training, "analytic"), compared("all", training, "analytic"));
  }
}

// Where backward is one pass, all its exchanges run beside gradients of weights here; where it is split, none does.
// 2,048 micro-batches make 583,752 tasks of two stages and two groups each, 1,536 three quarters of them.
TEST_CASE("a graph that is replayed many times is not divided into too many tasks", "[study][detail]") {
  const auto run_of = [](int micro_batches, const std::string& detail) {
    const std::string text = "model: gpt2\nplatform: dgx-h100\nengine: simgrid\ndetail: " + detail +
                             "\ntraining: {global_batch: " + std::to_string(2 * micro_batches) +
                             ", micro_batches: " + std::to_string(micro_batches) +
                             ", precision: bf16, framework: megatron-lm-2025, "
                             "parallel: {tensor: 2, pipeline: 2, zero: 1}}\n"
                             "compare: {strategies: [mesh], schedules: [1f1b]}\n";
    return compare_text(text).comparison.runs.front();
  };
  CHECK(run_of(1536, "auto").note.empty());
  CHECK_THAT(run_of(2048, "auto").note, Catch::Contains("would make 583752 tasks"));
  CHECK(run_of(2048, "auto").metrics.iteration.value == near(run_of(2048, "blocks").metrics.iteration.value));
}

TEST_CASE("exchanges that are wholly hidden are told as hidden", "[study][explain]") {
  const auto exchanged = [](const std::string& schedule) {
    const Study read = study("model: gpt2\nplatform: dgx-a100\nengine: analytic\ntraining: {global_batch: 32, "
                             "micro_batches: 4, precision: bf16, parallel: {tensor: 2, pipeline: 2, data: 2}}\n"
                             "compare: {strategies: [mesh], schedules: [" +
                             schedule + "]}\n");
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    const Prepared one = run_scenario(memo, scenarios_of(read).front());
    const std::vector<Communication> all = communication_of(*one.graph, one.timeline);
    return *std::find_if(all.begin(), all.end(), [](const Communication& of) { return of.axis == "tensor"; });
  };
  const Communication beside = exchanged("1f1b"), apart = exchanged("zb-h1");
  CHECK(apart.hidden.value < 1e-12);
  CHECK(beside.hidden.value > 0.3 * apart.exposed.value);
  CHECK((beside.exposed + beside.hidden).value == near(apart.exposed.value));
}

// Weights are gathered and gradients reduced beside the passes. A type that states its own factors keeps them.
TEST_CASE("exchanges slow computing down by the rule where the study says so and the type states nothing",
          "[study][beside]") {
  const auto seconds_with = [](const std::string& type, const std::string& slow) {
    std::vector<Setting> settings;
    for (const char* group : {"0", "1", "2"}) {
      settings.push_back({"platform.nodes." + std::string(group) + ".devices.0.type", type});
    }
    const Run run = compare_text("model: gpt2\nplatform: straggling-nodes.yaml\nengine: analytic\ntraining: "
                                 "{global_batch: 64, micro_batches: 2, precision: bf16, exchanges_slow: " +
                                     slow + ", parallel: {data: 16, zero: 3}}\ncompare: {strategies: [mesh]}\n",
                                 settings)
                        .comparison.runs.front();
    CAPTURE(type, slow, run.why_not);
    REQUIRE(run.feasible);
    return run.metrics.iteration.value;
  };
  CHECK(seconds_with("h200-sxm", "true") > seconds_with("h200-sxm", "false"));
  CHECK(seconds_with("h200-sxm-measured", "true") == seconds_with("h200-sxm-measured", "false"));
}

} // namespace
} // namespace stagecraft::test
