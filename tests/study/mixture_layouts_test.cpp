// Laws of runs whose ranks share experts: every schedule over layouts of eight devices.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

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
