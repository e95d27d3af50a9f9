// Emulated links: namespaces, shaped links, TCP. If the machine does not grant them, a line says why.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>

#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/measure_parts.hpp"
#include "calibrate/pipeline/network.hpp"

namespace stagecraft::pipeline {
namespace {

// Two transfers of 40 kB at 20 MB/s, there and back: at least 4 ms.
struct Small {
  test::PipelineRun run;
  Channels channels;

  Small() {
    test::Pipeline pipeline = test::equal_stages(2, 1, {0.001, 0.001, 0}, 0.001);
    pipeline.bytes = {40'000};
    pipeline.bandwidth = 20e6;
    run = test::run(pipeline, test::schedule_of("gpipe", 2, 2));
    run.graph = chain_transfers(run.graph);
    channels = channels_of(run.graph);
  }
  Setting setting() const { return {run.graph, run.platform, channels}; }
};

// The backend, or nullptr, after a line that says why, if namespaces are not granted.
std::unique_ptr<Backend> emulated(const Setting& setting) {
  try {
    return make_emulated(setting);
  } catch (const Unavailable& reason) {
    std::cout << "SKIPPED: " << reason.what() << "\n";
    return nullptr;
  }
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("transfers over emulated links take no less than their bytes and latency", "[pipeline][network]") {
  const std::size_t files = open_files();
  {
    const Small small;
    const std::unique_ptr<Backend> backend = emulated(small.setting());
    if (!backend) {
      return;
    }
    const Execution execution = execute(small.setting(), *backend, {2, true});
    for (std::size_t entry = 0; entry < execution.timeline.start.size(); ++entry) {
      const Work& work = small.run.graph.works[small.run.graph.work[entry % small.run.graph.tasks()]];
      if (work.transfers()) { // a token bucket lets some packets through early; the backend waits for that head start
        CHECK(execution.timeline.finish[entry] - execution.timeline.start[entry] > 0.95 * work.seconds.value);
      }
    }
  }
  CHECK(open_files() == files); // namespaces live as long as their descriptors, and no longer
}

TEST_CASE("parts measured alone are those of the links", "[pipeline][network]") {
  const Small small;
  const std::unique_ptr<Backend> backend = emulated(small.setting());
  if (!backend) {
    return;
  }
  const PartTimes parts = measure_parts(small.setting(), *backend, true);
  REQUIRE(parts.legs.size() == small.run.graph.legs.size());
  for (const PathCost& leg : parts.legs) { // wide limits: this is no benchmark
    CHECK(leg.latency.value > 0.0005);
    CHECK(leg.seconds_per_byte > 0.2 / 20e6);
  }
}

TEST_CASE("a run that fails does not wait for transfers on the network", "[pipeline][network]") {
  const Small small;
  const std::unique_ptr<Backend> backend = emulated(small.setting());
  if (!backend) {
    return;
  }
  backend->interrupt();
  CHECK_THROWS_AS(execute(small.setting(), *backend, {}), ExecutionFailure);
}

} // namespace
} // namespace stagecraft::pipeline
