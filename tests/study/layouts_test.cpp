// Laws of runs with given degrees: every schedule over every layout of eight devices, with and without recompute.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// A transformer of four layers on one node whose devices each have a port of a switch.
std::string layouts_study(const std::string& parallel, const std::string& recompute, const std::string& engine,
                          const std::string& platform = "dgx-h100") {
  return "model: small-transformer.yaml\nplatform: " + platform + "\nengine: " + engine +
         "\ntraining: {global_batch: 16, micro_batches: 4, precision: bf16, optimizer: adam, recompute: " + recompute +
         ", parallel: " + parallel + "}\ncompare: {strategies: [mesh, optimal], schedules: all}\n";
}

std::vector<Run> runs_of(const std::string& parallel, const std::string& recompute, const std::string& engine) {
  return compare_text(layouts_study(parallel, recompute, engine)).comparison.runs;
}

const std::vector<std::string> kLayouts = {
    "{tensor: 4, pipeline: 2}",
    "{tensor: 4, sequence: true, pipeline: 2}",
    "{tensor: 2, sequence: true, data: 2}",
    "{tensor: 2, data: 4, order: tensor-pipeline-data}",
    "{data: 4, order: tensor-pipeline-data}",
    "{pipeline: 4}",
    "{tensor: 2, sequence: true, data: 2, zero: 1}",
    "{data: 4, zero: 1, order: tensor-pipeline-data}",
    "{data: 4, zero: 2}",
    "{data: 8, zero: 1, shard: 4}",
    "{data: 4, zero: 1, quantized_weights: fp8}, fp8: delayed, fp8_weights: true",
    "{context: 2, tensor: 2, sequence: true, data: 2, zero: 3}",
    "{context: 4, context_rule: all-to-all, pipeline: 2, zero: 1}",
    "{tensor: 2, sequence: true, data: 2, zero: 3}",
    "{data: 4, zero: 3, shard: 2, reshard: after-forward, reduce: each-micro-batch, prefetch: 2}",
    "{data: 8, zero: 3, quantized_weights: int8, hpz_partition_size: 2, quantized_gradients: true}",
    "{tensor: 2, data: 2, zero: 3}, offload: {optimizer: 1, gradients: true, parameters: true}",
    "{tensor: 2, data: 2, zero: 1}, offload: {optimizer: 0.5, gradients: true}",
};
const std::vector<std::string> kRecomputes = {"none", "full", "{kinds: [attention, elementwise], when: lazy}"};

void check_laws(const Run& run) {
  CHECK(run.feasible == run.why_not.empty());
  if (!run.feasible) {
    return;
  }
  const double period = run.metrics.iteration.value;
  CHECK((std::isfinite(period) && period > 0));
  CHECK(run.lower_bound.value <= period * (1 + 1e-9));
  CHECK((run.mfu > 0 && run.mfu < 1));
  CHECK(run.hfu < 1);
  const Platform platform = study("model: gpt2\nplatform: dgx-h100\n").platform;
  for (std::size_t device = 0; device < run.metrics.busy.size(); ++device) {
    CHECK(run.metrics.busy[device].value <= period * (1 + 1e-9));
    CHECK(run.metrics.waiting[device].value >= -period * 1e-9);
    CHECK((run.metrics.peak_memory[device].value > 0 && run.metrics.peak_memory[device] <= platform.type_of(0).memory));
  }
}

// The analytic engine gives every transfer its links alone, so that no replay with shared links is faster.
TEST_CASE("every schedule runs over every layout, keeps the bound and memory, and is no faster where links are shared",
          "[study][mesh][conformance]") {
  int feasible = 0;
  for (const std::string& layout : kLayouts) {
    for (const std::string& recompute : kRecomputes) {
      const std::vector<Run> alone = runs_of(layout, recompute, "analytic");
      const ComparisonResult shared = compare_text(layouts_study(layout, recompute, "simgrid"));
      for (const Run& run : alone) {
        CAPTURE(layout, recompute, run.strategy, run.schedule, run.why_not);
        check_laws(run);
        const Run& other = find_run(shared.comparison, run.strategy, run.schedule, run.micro_batches);
        check_laws(other);
        REQUIRE(run.feasible == other.feasible);
        if (run.feasible) {
          ++feasible;
          CHECK(run.metrics.iteration.value <= other.metrics.iteration.value * (1 + 1e-9));
        }
      }
    }
  }
  CHECK(feasible > 400);
}

// Two replicas of two pipeline ranks, cut between layers, each rank on a node of its own: a device sends its part to
// its counterpart alone, through a NIC of its own, and exchanges data with its group inside the node.
TEST_CASE("the engines agree where nothing is shared, with exchanges as tasks or not", "[study][mesh][conformance]") {
  const std::string nodes = "{nodes: 2 x dgx-h100}";
  int compared = 0;
  for (const std::string layout :
       {"{tensor: 4, pipeline: 2}", "{tensor: 4, sequence: true, pipeline: 2}", "{context: 4, pipeline: 2}"}) {
    for (const std::string& recompute : kRecomputes) {
      const ComparisonResult alone = compare_text(layouts_study(layout, recompute, "analytic", nodes));
      const std::string text = layouts_study(layout, recompute, "simgrid", nodes);
      const ComparisonResult shared = compare_text(text);
      const ComparisonResult all = compare_text(text, {{"detail", "all"}});
      for (const Run& run : alone.comparison.runs) {
        CAPTURE(layout, recompute, run.strategy, run.schedule);
        const auto iteration_in = [&](const ComparisonResult& other) {
          return find_run(other.comparison, run.strategy, run.schedule, run.micro_batches).metrics.iteration.value;
        };
        const ScheduleRow& row = find_by_name(schedules(), run.schedule, "schedule", {});
        const bool reduces_at_the_end = row.chunks == 1 && !row.bidirectional && run.is_exact();
        if (run.feasible && run.strategy == "mesh" && reduces_at_the_end) {
          CHECK(run.metrics.iteration.value == near(iteration_in(shared)));
          CHECK(run.metrics.iteration.value == near(iteration_in(all)));
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 50);
}

} // namespace
} // namespace stagecraft::test
