// The closed form of an iteration beside its replay, where nothing shares links: equal in a stage by itself, and close
// in pipelines.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// A transformer of four layers on eight devices of two nodes.
Run analytic_run(const std::string& parallel, const std::string& schedule, const std::vector<Setting>& settings) {
  const std::string text =
      "model: small-transformer.yaml\nplatform: 2 x dgx-h100\nengine: analytic\ntraining: {global_batch: 64, "
      "micro_batches: 4, precision: bf16, optimizer: adam, parallel: " +
      parallel + "}\ncompare: {strategies: [mesh], schedules: [" + schedule + "]}\n";
  const std::vector<Run> runs = compare_text(text, settings).comparison.runs;
  REQUIRE(runs.size() == 1);
  CAPTURE(runs.front().why_not);
  REQUIRE(runs.front().feasible);
  return runs.front();
}

// Buckets are reduced one after the other while the last backward goes on; of ZeRO 1 the gather comes behind the step.
TEST_CASE("the estimate of one stage reduces buckets beside its backward, as the replay does", "[study][estimate]") {
  const std::string parallel =
      GENERATE("{pipeline: 1}", "{zero: 1}", "{zero: 1, shard: 8}", "{zero: 1, gather: broadcasts}",
               "{zero: 1, shard: 8, gather: broadcasts}", "{tensor: 2, sequence: true}", "{zero: 2}");
  for (const std::string bucket : {"1 TB", "20 MB", "4 MB", "100 kB"}) {
    CAPTURE(parallel, bucket);
    const Run run = analytic_run(parallel, "1f1b", {{"training.gradient_bucket", bucket}});
    CHECK(run.estimate.value == Approx(run.metrics.iteration.value).epsilon(1e-6));
  }
}

// Each of eight replicas sends an eighth of a micro-batch's activations. Over a slow network the estimate had eight
// times the transfer.
TEST_CASE("the estimate of a pipeline sends each replica's part of a micro-batch", "[study][estimate]") {
  const std::vector<Setting> slow = {{"platform.network.bandwidth", "10 GB/s"}, {"training.all_reduce", "ring"}};
  const Run run = analytic_run("{pipeline: 2, order: tensor-data-pipeline}", "gpipe", slow);
  CHECK(run.estimate.value == Approx(run.metrics.iteration.value).epsilon(0.05));
}

// Of two stages only the last one runs forward again between its forward and its backward: the first has done so when
// the gradient comes.
TEST_CASE("the estimate of a pipeline leaves out what runs again while gradients are on their way",
          "[study][estimate]") {
  const auto run = [](const std::string& when) {
    return analytic_run("{pipeline: 2}", "1f1b", {{"training.recompute", "{what: full, when: " + when + "}"}});
  };
  const Run early = run("early"), lazy = run("lazy");
  CHECK(early.estimate < lazy.estimate);
  CHECK(early.estimate.value == Approx(early.metrics.iteration.value).epsilon(0.02));
}

// Of two directions each has half of the micro-batches, so that a device with a stage of either computes for all of
// them no longer than under 1F1B; its estimate was nearly twice its replay. What fills and drains is another.
TEST_CASE("the estimate of two directions counts half of the micro-batches for each", "[study][estimate]") {
  const std::vector<Setting> many = {{"training.micro_batches", "32"}, {"training.global_batch", "256"}};
  const Run both = analytic_run("{pipeline: 2}", "dualpipe", many);
  CHECK(both.estimate.value == Approx(both.metrics.iteration.value).epsilon(0.15));
}

} // namespace
} // namespace stagecraft::test
