// Studies with a loader: what is chosen, what waits, what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// On one device a sample of the chain takes 12 s, four of them 48 s.
Run run_of(const std::string& loader, const std::string& strategy = "single", int micro_batches = 4) {
  const ComparisonResult result = compare_text(
      chain_study("training: {global_batch: 4, micro_batches: " + std::to_string(micro_batches) +
                  "}\nloader: " + loader + "\ncompare: {strategies: " + strategy + ", schedules: gpipe}\n"));
  return result.comparison.runs.front();
}

TEST_CASE("workers are chosen so that host and device balance", "[study][loader]") {
  const Run run = run_of("{decode: 20 s}"); // 20 / 2 <= 0.95 * 12
  REQUIRE(run.feasible);
  CHECK(run.loader->workers == 2);
  CHECK(run.loader->queue == 3 + 3); // GPipe takes four batches in a row
  CHECK(run.loader->host == "spin");
  CHECK(run.metrics.iteration.value == near(48));
  CHECK(run.data_stall.value == near(0));
  CHECK(run_of("{decode: 11.4 s}").loader->workers == 1);
  CHECK(run_of("{decode: 11.5 s}").loader->workers == 2);
}

TEST_CASE("a lone worker that is slower than the device stalls it", "[study][loader]") {
  const Run run = run_of("{decode: 20 s, workers: 1}");
  REQUIRE(run.feasible);
  // Under GPipe four forwards of 4 s take batches, then 32 s of backwards do not, while the queue of three refills: the
  // fourth batch is claimed when the first is taken. A batch every 20 s, whatever the order: 80 s.
  CHECK(run.metrics.iteration.value == near(80));
  CHECK(run.data_stall.value == near(32));
  CHECK(run.metrics.makespan.value == near(80 + 4 + 32)); // from empty: four loads, the last forward, four backwards
}

TEST_CASE("without a loader there is nothing to wait for", "[study][loader]") {
  const ComparisonResult result = compare_text(chain_study("compare: {strategies: single, schedules: gpipe}\n"));
  const Run& run = result.comparison.runs.front();
  CHECK(!run.loader.has_value());
  CHECK(run.data_stall.value == 0);
  CHECK(run.metrics.energy.hosts_dynamic.value == 0);
}

TEST_CASE("every replica of the first stage has a loader for its share", "[study][loader]") {
  // Two replicas with one sample of each micro-batch: 20 s to load it, 12 s to train on it.
  const Run run = run_of("{decode: 20 s, workers: 1, queue: 2}", "data-parallel", 2);
  REQUIRE(run.feasible);
  CHECK(run.devices.size() == 2);
  CHECK(run.metrics.iteration.value == near(40).epsilon(1e-3)); // gradients of 16 kB, without limit
}

TEST_CASE("more workers than free cores are infeasible", "[study][loader]") {
  const auto runs_with = [](int workers, const char* host) {
    const std::string text = "model: resnet50\nplatform: pcie-v100\ntraining: {global_batch: 64}\nloader: {workers: " +
                             std::to_string(workers) + ", host: " + host +
                             "}\ncompare: {strategies: data-parallel, schedules: gpipe}\n";
    return compare_text(text).comparison.runs.front();
  };
  CHECK(runs_with(9, "spin").feasible); // 4 loaders of 9 and 4 drivers: the 40 cores of the server
  CHECK_THAT(runs_with(10, "spin").why_not, Catch::Contains("36 free cores of 'server'"));
  CHECK(runs_with(10, "block").feasible); // drivers that sleep
  CHECK(!runs_with(11, "block").feasible);
}

TEST_CASE("work to decode takes the time that the core's speed gives it", "[study][loader]") {
  // 32 GFLOP/s a core: 1.6 GFLOP are 50 ms.
  const auto stall = [](const char* decode) {
    const std::string text = std::string("model: resnet50\nplatform: pcie-v100\ntraining: {global_batch: 64}\n") +
                             "loader: {workers: 1, decode: " + decode +
                             "}\ncompare: {strategies: single, schedules: gpipe}\n";
    return compare_text(text).comparison.runs.front().data_stall.value;
  };
  CHECK(stall("1.6 GFLOP") > 1);
  CHECK(stall("1.6 GFLOP") == near(stall("50 ms")));
}

} // namespace
} // namespace stagecraft::test
