// Replicas that share the optimiser's states by whole tensors, and broadcast what they have stepped.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/study/compare/replay_prepared.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Run chain_run(int devices, const std::string& sharing, const std::string& engine) {
  const std::string count = std::to_string(devices);
  const Run run =
      compare_text("model: chain.yaml\nplatform: {devices: " + count + ", latency: 3 s}\nengine: " + engine +
                   "\ntraining: {global_batch: 8, micro_batches: 1, optimizer: sgd, parallel: {data: " + count +
                   sharing + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n")
          .comparison.runs.front();
  INFO(run.why_not);
  REQUIRE(run.feasible);
  return run;
}

// Four operators have a tensor each, so no more than four of the replicas have one to send. A broadcast passes all
// other replicas, 3 s each, and gradients are summed as without sharing.
TEST_CASE("each replica that has stepped a tensor broadcasts it to all others in turn", "[study][zero]") {
  for (const std::string engine : {"analytic", "simgrid"}) {
    for (const int devices : {2, 4, 8}) {
      CAPTURE(engine, devices);
      const Run alone = chain_run(devices, "", engine);
      const Run shared = chain_run(devices, ", zero: 1, gather: broadcasts", engine);
      const int broadcasts = std::min(4, devices);
      CHECK((shared.metrics.iteration - alone.metrics.iteration).value == near(broadcasts * (devices - 1) * 3.0));
      CHECK((shared.estimate - alone.estimate).value == near(broadcasts * (devices - 1) * 3.0));
    }
  }
}

// Of eight replicas four share, twice; each group broadcasts for itself, while all eight sum gradients.
TEST_CASE("groups that share broadcast among themselves", "[study][zero]") {
  const Run alone = chain_run(8, "", "analytic");
  const Run shared = chain_run(8, ", zero: 1, shard: 4, gather: broadcasts", "analytic");
  CHECK((shared.metrics.iteration - alone.metrics.iteration).value == near(4 * 3 * 3.0));
}

std::string sharing_transformer(const std::string& parallel, int nodes = 2) {
  return "model: small-transformer.yaml\nplatform: " + std::to_string(nodes) +
         " x dgx-h100\nengine: analytic\ntraining: {global_batch: 64, micro_batches: 2, precision: bf16, optimizer: "
         "adam, gradient_bucket: 20 MB, parallel: " +
         parallel + "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
}

StageCost stage_of(const std::string& text) {
  const Study read = study(text);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const ComparisonResult result = compare(memo);
  return cost_plan(memo.costs.problem(2, 0), result.prepared.front().plan).stages.front();
}

// Adam holds 12 B for each of the parameters that a replica steps. The largest tensor expands 1024 features to twice
// 4096, more than a sixteenth of all and less than a half. Layers have six tensors, and an embedding, a norm and a head
// stand around them: 27 for 16 or 32 replicas.
TEST_CASE("a replica steps whole tensors, the largest at least", "[study][zero]") {
  constexpr double kLargest = 1024.0 * 2 * 4096;
  const auto replicas = [](const StageCost& cost) {
    return std::accumulate(cost.broadcasts.begin(), cost.broadcasts.end(), 0,
                           [](int sum, const StepsAlike& alike) { return sum + alike.replicas; });
  };
  const StageCost all = stage_of(sharing_transformer("{zero: 1, gather: broadcasts}"));
  const StageCost two = stage_of(sharing_transformer("{zero: 1, gather: broadcasts, shard: 2}"));
  const StageCost even = stage_of(sharing_transformer("{zero: 1, shard: 2}"));
  CHECK(all.replicas.front().memory.optimizer.value == near(kLargest * 12));
  CHECK(two.replicas.front().memory.optimizer.value ==
        Approx(even.replicas.front().memory.optimizer.value).epsilon(0.01));
  CHECK(replicas(all) == 16);
  CHECK(replicas(two) == 2);
  CHECK(even.broadcasts.empty());
  CHECK(replicas(stage_of(sharing_transformer("{zero: 1, gather: broadcasts}", 4))) == 27);
}

TEST_CASE("a task says whether parameters are gathered or broadcast", "[study][zero]") {
  const auto kinds = [](const std::string& parallel) {
    const Study read = study(sharing_transformer(parallel));
    StudyCosts costs(read);
    const ComparisonResult result = compare_text(sharing_transformer(parallel));
    std::set<TaskKind> found;
    for (const Work& work : whole_run(costs, result.prepared.front()).graph.works) {
      if (is_collective(work.kind) && work.transfers()) {
        found.insert(work.kind);
      }
    }
    return found;
  };
  using K = TaskKind;
  CHECK(kinds("{zero: 1, gather: broadcasts}") == std::set<K>{K::all_reduce, K::broadcast});
  CHECK(kinds("{zero: 1, gather: broadcasts, shard: 8}") == std::set<K>{K::all_reduce, K::broadcast});
  CHECK(kinds("{zero: 1}") == std::set<K>{K::reduce_scatter, K::all_gather});
}

TEST_CASE("broadcasts come to the same with and without folding", "[study][zero][fold]") {
  for (const std::string parallel : {"{zero: 1, gather: broadcasts}", "{zero: 1, gather: broadcasts, shard: 8}",
                                     "{tensor: 2, pipeline: 2, zero: 1, gather: broadcasts}",
                                     "{pipeline: 2, zero: 1, gather: broadcasts, shard: 4}"}) {
    CAPTURE(parallel);
    const Run folded = compare_text(sharing_transformer(parallel)).comparison.runs.front();
    const Run unfolded = compare_text(sharing_transformer(parallel), {{"unfold", "true"}}).comparison.runs.front();
    INFO(folded.why_not);
    REQUIRE(folded.feasible);
    CHECK(folded.folded_replicas > 1);
    CHECK(folded.metrics.iteration.value == near(unfolded.metrics.iteration.value));
  }
}

TEST_CASE("a ring that is named carries broadcasts, and other algorithms do not", "[study][zero]") {
  const auto why_not = [](const std::string& algorithm) {
    return compare_text(sharing_transformer("{zero: 1, gather: broadcasts}"), {{"training.all_reduce", algorithm}})
        .comparison.runs.front()
        .why_not;
  };
  CHECK(why_not("ring").empty());
  CHECK_THAT(why_not("hierarchical"), Catch::Contains("cannot broadcast parameters by 'hierarchical'"));
}

} // namespace
} // namespace stagecraft::test
