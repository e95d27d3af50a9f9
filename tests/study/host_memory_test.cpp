// Staged transfers cross the memory of a host, in every engine.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Run run_of(std::string_view engine, const std::string& memory) {
  return compare_text("model: products.yaml\nplatform: two-vendors.yaml\ntraining: {global_batch: 1}\nengine: " +
                          std::string(engine) + "\ncompare: {strategies: [uniform], schedules: [gpipe]}\n",
                      {{"platform.nodes.0.host.memory_bandwidth", memory}})
      .comparison.runs.front();
}

// One sample of 1024 x 1024 numbers of 4 B crosses the boundary, and its gradient comes back: each is written to the
// memory and read from there, at the links' 10 GB/s or the memory's own bandwidth, whichever is less.
TEST_CASE("memory of a host slows staged transfers where it is slower than their links", "[study][platform]") {
  constexpr double kBytes = 1024 * 1024 * 4;
  for (const EngineRow& engine : kEngines) {
    INFO(engine.name);
    const double fast = run_of(engine.name, "100 GB/s").metrics.iteration.value;
    CHECK(run_of(engine.name, "10 GB/s").metrics.iteration.value == near(fast));
    const Run slow = run_of(engine.name, "1 GB/s");
    CHECK(slow.metrics.iteration.value - fast == Approx(4 * kBytes * (1 / 1e9 - 1 / 10e9)).epsilon(1e-6));
    CHECK(slow.busiest_link == "node/host memory");
  }
}

} // namespace
} // namespace stagecraft::test
