// Laws of runs whose ranks share experts: every schedule over layouts of eight devices.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/result/plan_line.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Comparison compared(const std::string& parallel, const std::string& engine, const std::string& detail) {
  return compare_text("model: small-mixture.yaml\nplatform: dgx-h100\nengine: " + engine + "\ndetail: " + detail +
                      "\ntraining: {global_batch: 32, micro_batches: 4, precision: bf16, optimizer: adam, parallel: " +
                      parallel + "}\ncompare: {strategies: [mesh, optimal], schedules: all}\n")
      .comparison;
}

// With every exchange a task a run is what it is with passes as blocks, where ranks have equal loads or meet at each
// exchange; no replay with shared links is faster than one where each exchange has its links alone.
TEST_CASE("every schedule runs with shared experts, keeps the bound, and is no faster where links are shared",
          "[study][mesh][experts][conformance]") {
  int feasible = 0;
  for (const std::string parallel :
       {"{data: 8, expert: 8}", "{pipeline: 2, data: 4, expert: 4, zero: 1}", "{data: 8, expert: 4, zero: 3}",
        "{pipeline: 2, tensor: 2, sequence: true, data: 2, expert: 4}",
        "{pipeline: 2, tensor: 2, data: 2, expert: 2, expert_tensor: 2, zero: 1}",
        "{data: 8, expert: 8}, token_dispatcher: allgather",
        "{data: 4, tensor: 2, sequence: true, expert: 4, expert_tensor: 2}, token_dispatcher: allgather",
        "{data: 8, expert: 2, zero: 3, shard: 4}", "{pipeline: 2, data: 4, expert: 2, zero: 1, shard: 2}",
        "{data: 4, tensor: 2, expert: 8, tensor_rule: torchtitan, zero: 3}",
        "{pipeline: 2, data: 2, tensor: 2, expert: 2, expert_tensor: 2, tensor_rule: torchtitan}",
        "{pipeline: 2, context: 2, data: 2, expert: 4, context_rule: all-gather}"}) {
    const Comparison alone = compared(parallel, "analytic", "all");
    const Comparison shared = compared(parallel, "simgrid", "auto");
    for (const Run& run : alone.runs) {
      CAPTURE(parallel, run.strategy, run.schedule, run.why_not);
      const Run& other = find_run(shared, run.strategy, run.schedule, run.micro_batches);
      REQUIRE(run.feasible == other.feasible);
      CHECK(run.feasible == run.why_not.empty());
      if (run.feasible) {
        ++feasible;
        const double period = run.metrics.iteration.value;
        CHECK((std::isfinite(period) && period > 0));
        CHECK(run.lower_bound.value <= period * (1 + 1e-9));
        CHECK(period <= other.metrics.iteration.value * (1 + 1e-9));
        for (const Bytes peak : run.metrics.peak_memory) {
          CHECK(peak.value > 0);
        }
      }
    }
  }
  CHECK(feasible > 60);
}

// Eight samples of each replica in four micro-batches, whatever the number of replicas.
Run both_ways(const std::string& schedule, int data, const std::string& more) {
  const std::string host = "{cores: 64, core_speed: 40 GFLOP/s, memory: 1 TiB, memory_bandwidth: 380 GB/s, "
                           "disk_bandwidth: 6 GB/s, power: {idle: 350 W, core_busy: 4 W, core_spin: 2 W}}";
  const std::string node =
      "{name: n, count: 1, host: " + host + ", devices: [{type: h100-sxm-80gb, count: " + std::to_string(2 * data) +
      "}], links: [{kind: nvswitch, devices: all, bandwidth: 400 GB/s, latency: 1 us, power: {idle: 2 W, busy: 9 W}}]}";
  const std::string text =
      "model: small-mixture.yaml\nplatform: {name: one, nodes: [" + node +
      "]}\nengine: analytic\ntraining: {global_batch: " + std::to_string(8 * data) +
      ", micro_batches: 4, precision: bf16, optimizer: adam, parallel: {pipeline: 2, data: " + std::to_string(data) +
      more + "}}\ncompare: {strategies: [mesh], schedules: [" + schedule + "]}\n";
  const Run run = compare_text(text).comparison.runs.front();
  CAPTURE(schedule, data, more, run.why_not);
  REQUIRE(run.feasible);
  return run;
}

// A replica of a pipeline whose micro-batches come from both ends does what such a pipeline does alone, and holds as
// much: two stages on each device. Of replicas that share experts each has a part of them; with shared states, those
// of a stage are shared by the replicas of both directions.
TEST_CASE("pipelines from both ends have replicas, whose ranks share experts", "[study][mesh][experts]") {
  for (const std::string schedule : {"chimera", "dualpipe"}) {
    const Run alone = both_ways(schedule, 1, "");
    const Run four = both_ways(schedule, 4, "");
    CHECK(alone.devices.size() == 2);
    CHECK(four.devices.size() == 8);
    for (std::size_t device = 0; device < four.devices.size(); ++device) {
      const std::size_t same = device / 4; // ranks of the pipeline outermost
      CHECK(four.metrics.busy[device].value == near(alone.metrics.busy[same].value));
      CHECK(four.metrics.peak_memory[device] == alone.metrics.peak_memory[same]);
    }
    const Run shared = both_ways(schedule, 4, ", expert: 4");
    CHECK(shared.metrics.peak_memory.front() < four.metrics.peak_memory.front());
    CHECK(shared.stages.front().experts == Experts{4, 1});
    CHECK(shared.stages.front().turns == 2);
    const Run states = both_ways(schedule, 4, ", expert: 4, zero: 1");
    CHECK(states.stages.front().shard == 8);
    CHECK(states.metrics.peak_memory.front() < shared.metrics.peak_memory.front());
    CHECK_THAT(plan_line(shared), Catch::StartsWith("data 4, tensor 1, pipeline 2 both ways, expert 4, no ZeRO"));
    CHECK_THAT(plan_line(shared), Catch::EndsWith("4 micro-batches of 2 sequences a replica"));
  }
}

// Where tokens take long to their experts, a pair that waits for dispatched gradients behind those of the weights takes
// longer than one that delays these; no other schedule has such pairs. A pair takes no less than what either stream
// has, and no more than both passes.
TEST_CASE("delayed gradients of weights hide exchanges in pairs of layers", "[study][mesh][experts]") {
  const std::vector<Setting> eight_nodes = {
      {"platform.nodes.0.count", "3"},           {"platform.nodes.2.count", "4"},
      {"platform.nodes.0.devices.0.count", "1"}, {"platform.nodes.1.devices.0.count", "1"},
      {"platform.nodes.2.devices.0.count", "1"}, {"platform.network.bandwidth", "20 GB/s"}};
  const auto seconds_under = [&](const std::string& schedule, const std::string& delayed) {
    const Run run =
        compare_text("model: small-mixture.yaml\nplatform: straggling-nodes.yaml\nengine: analytic\n"
                     "training: {global_batch: 64, micro_batches: 8, precision: bf16, delayed_weights: " +
                         delayed + ", parallel: {data: 8, expert: 8}}\ncompare: {strategies: [mesh], schedules: [" +
                         schedule + "]}\n",
                     eight_nodes)
            .comparison.runs.front();
    CAPTURE(schedule, delayed, run.why_not);
    REQUIRE(run.feasible);
    return run.metrics.iteration.value;
  };
  const double at_once = seconds_under("combined-1f1b", "false"), delayed = seconds_under("combined-1f1b", "true");
  CHECK(delayed < at_once);
  CHECK(at_once < seconds_under("accumulate", "false"));
  CHECK(seconds_under("accumulate", "true") == near(seconds_under("accumulate", "false")));
}

TEST_CASE("experts shared by more ranks take less memory, and a result says how they lie", "[study][mesh][experts]") {
  const Run few = find_run(compared("{data: 8, expert: 2}", "analytic", "blocks"), "mesh", "1f1b", 4);
  const Run many = find_run(compared("{data: 8, expert: 8}", "analytic", "blocks"), "mesh", "1f1b", 4);
  CHECK(many.metrics.peak_memory.front() < few.metrics.peak_memory.front());
  CHECK(many.stages.front().experts == Experts{8, 1});
}

// Of eight replicas that share all, two have the same experts: with weights shared too a device holds less.
TEST_CASE("replicas with the same experts share these, and all replicas the rest", "[study][mesh][experts]") {
  const Run states = find_run(compared("{data: 8, expert: 4, zero: 1}", "simgrid", "auto"), "mesh", "1f1b", 4);
  const Run all = find_run(compared("{data: 8, expert: 4, zero: 3}", "simgrid", "auto"), "mesh", "1f1b", 4);
  CHECK(all.why_not.empty());
  CHECK(all.metrics.peak_memory.front() < states.metrics.peak_memory.front());
  // Where groups of four share, a group has each expert once, so a device more of them than a half.
  const Run some =
      find_run(compared("{data: 8, expert: 4, zero: 3, shard: 4}", "analytic", "blocks"), "mesh", "1f1b", 4);
  CHECK(some.why_not.empty());
  CHECK(all.metrics.peak_memory.front() < some.metrics.peak_memory.front());
}

} // namespace
} // namespace stagecraft::test
