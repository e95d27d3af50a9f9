// Laws of every run: each strategy under each schedule, on one device or several, replayed by each engine.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/replay/engines.hpp"
#include "tests/study/random_studies.hpp"

namespace stagecraft::test {
namespace {

// All figures of a run are numbers, no device works longer than a period lasts, and none waits for less than nothing.
void check_laws(const Run& run) {
  CAPTURE(run.strategy, run.schedule, run.order, run.micro_batches, run.engine, run.why_not);
  CHECK(run.feasible == run.why_not.empty());
  if (!run.feasible) {
    return;
  }
  constexpr double kRounding = 1e-9;
  const double period = run.metrics.iteration.value;
  CHECK(std::isfinite(period));
  CHECK(period > 0);
  CHECK(std::isfinite(run.metrics.makespan.value));
  CHECK(std::isfinite(run.samples_per_second));
  CHECK(std::isfinite(run.speedup));
  CHECK(std::isfinite(run.metrics.energy.total().value));
  CHECK(std::isfinite(run.metrics.bubble_fraction));
  for (std::size_t device = 0; device < run.metrics.busy.size(); ++device) {
    CAPTURE(run.devices[device]);
    CHECK(run.metrics.busy[device].value <= period * (1 + kRounding));
    CHECK(run.metrics.waiting[device].value >= -period * kRounding);
    CHECK(std::isfinite(run.metrics.exposed[device].value));
    CHECK(std::isfinite(run.metrics.peak_memory[device].value));
  }
}

struct Case {
  std::string engine;
  int devices, micro_batches;
  std::string links; // of the platform, and a comma before
};

// Returns how many runs were feasible.
int check_all(const Case& one, const std::string& schedules, std::mt19937& random) {
  CAPTURE(one.engine, one.devices, one.micro_batches, one.links);
  const std::string count = std::to_string(one.micro_batches);
  const ComparisonResult result =
      compare_text("model: long-chain.yaml\nplatform: {devices: " + std::to_string(one.devices) + one.links +
                       "}\ntraining: {global_batch: " + count + ", micro_batches: " + count +
                       "}\nengine: " + one.engine + "\ncompare: {strategies: all, schedules: " + schedules + "}\n",
                   random_chain(random));
  int feasible = 0;
  for (const Run& run : result.comparison.runs) {
    check_laws(run);
    feasible += run.feasible ? 1 : 0;
  }
  return feasible;
}

const std::string kSlow = ", bandwidth: 0.1 GB/s, latency: 1 ms";
const std::string kFast = ", bandwidth: 1 GB/s, latency: 1 us";

// On three devices piper divides a stage over two of them and leaves one to another.
TEST_CASE("every strategy runs under every schedule, or says why not", "[study][conformance]") {
  std::mt19937 random(7);
  CHECK(check_all({"analytic", 1, 4, ""}, "all", random) > 100);
  CHECK(check_all({"simgrid-full", 3, 4, ""}, "all", random) > 100);
  CHECK(check_all({"simgrid", 3, 8, kSlow}, "all", random) > 100);
  CHECK(check_all({"analytic", 7, 4, kSlow}, "all", random) > 100);
}

// Few micro-batches on many devices, whose transfers share links: it takes long until all devices keep the same pace.
TEST_CASE("no device works longer than a period of an asynchronous schedule lasts", "[study][conformance]") {
  std::mt19937 random(2);
  for (int i = 0; i < 8; ++i) {
    check_all({"simgrid", 6, 4, kFast}, "[pipedream, pipedream-2bw, pipemare, xpipe]", random);
  }
}

// Both ends of what a profile may hold; nothing is lost in a replay at the one, nor infinite at the other.
TEST_CASE("the shortest and the longest times are planned and replayed", "[study][conformance]") {
  for (const std::string time : {"1 ns", "1e9 s"}) {
    std::vector<Setting> settings;
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string key = "model.layers." + std::to_string(layer) + ".";
      settings.push_back({key + "forward_time", time});
      settings.push_back({key + "backward_time", time});
    }
    for (const EngineRow& engine : kEngines) {
      const ComparisonResult result = compare_text(
          "model: long-chain.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4}\nengine: " +
              std::string(engine.name) +
              "\ncompare: {strategies: [single, uniform, mcmc, dapple], schedules: [1f1b]}\n",
          settings);
      for (const Run& run : result.comparison.runs) {
        check_laws(run);
        CHECK(run.feasible);
        CHECK(run.metrics.iteration.value >= run.lower_bound.value * (1 - 1e-9));
      }
    }
  }
}

// 1e15 elements of 4 B are 4e15 B a sample: 250 samples are the most that a transfer holds, 251 are more.
TEST_CASE("a transfer of more bytes than an engine can count is infeasible", "[study][conformance]") {
  for (const int samples : {250, 251}) {
    const std::string text = "training: {global_batch: " + std::to_string(samples) +
                             ", micro_batches: 1}\ncompare: {strategies: [uniform], schedules: [1f1b, xpipe]}\n";
    const ComparisonResult result =
        compare_text(chain_study(text, "{devices: 2, bandwidth: 10 GB/s}"), {{"model.layers.1.output", "1e15"}});
    for (const Run& run : result.comparison.runs) {
      check_laws(run);
      CHECK(run.feasible == (samples == 250));
      CHECK_THAT(run.why_not, Catch::Contains(samples == 250 ? "" : "more than a replay holds; allowed"));
    }
  }
}

// As many devices as a platform may have. Whoever would look at each pair of them says so instead.
TEST_CASE("a hundred thousand devices are planned for, or refused with the number that is not",
          "[study][conformance]") {
  const ComparisonResult result = compare_text(chain_study(
      "training: {global_batch: 4, micro_batches: 4}\n"
      "compare: {strategies: [single, data-parallel, uniform, parameters, heft, piper], schedules: [1f1b]}\n",
      "{devices: 100000, bandwidth: 10 GB/s}"));
  for (const char* strategy : {"single", "data-parallel", "uniform"}) {
    CHECK(find_run(result.comparison, strategy, "1f1b", 4).feasible);
  }
  CHECK_THAT(find_run(result.comparison, "heft", "1f1b", 4).why_not,
             Catch::StartsWith("heft plans for at most 4096 devices, not for 100000: "));
  CHECK_THAT(find_run(result.comparison, "piper", "1f1b", 4).why_not,
             Catch::StartsWith("piper plans for at most 512 devices, not for 100000: "));
  CHECK_THAT(find_run(result.comparison, "parameters", "1f1b", 4).why_not,
             Catch::Contains("fewer than the 100000 stages"));
}

TEST_CASE("every strategy runs under every schedule on every small star", "[.nightly]") {
  std::mt19937 random(11);
  for (const EngineRow& engine : kEngines) {
    for (int devices = 1; devices <= 8; ++devices) {
      for (const int micro_batches : {2, 4, 16}) {
        for (const std::string& links : {std::string(), kSlow, kFast}) {
          check_all({std::string(engine.name), devices, micro_batches, links}, "all", random);
        }
      }
    }
  }
}

} // namespace
} // namespace stagecraft::test
