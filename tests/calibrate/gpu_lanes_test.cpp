// Pipelines on partitions of a GPU, on a runtime without a device: order, times, failures, and what is left behind.
// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/fake_cuda.hpp"
#include "tests/calibrate/pipelines.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/pipelines/gpu_lanes.hpp"

namespace stagecraft::gpu {
namespace {

constexpr double kOnce = 1000.0 * 2000 / fake::kKernelRate; // seconds of one kernel

Pipeline two_partitions() { return test::two_stages(2, "gelu forward bf16 rows=1000 columns=2000"); }

std::string condition(const CarriedOut& carried, const std::string& name) {
  for (const auto& [key, value] : carried.conditions) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

TEST_CASE("partitions of a GPU carry out a pipeline in order, and its parts are what the runtime's clocks say",
          "[gpu][lanes]") {
  fake::state() = {};
  Session session(0, {});
  const int before = fake::state().allocations;
  {
    Pipeline pipeline = two_partitions();
    pipeline.works[5].route = CopyRoute::host;
    const std::unique_ptr<Lanes> lanes = make_gpu_lanes(pipeline, session);
    const CarriedOut carried = carry_out(pipeline, *lanes, 2);
    CHECK(test::broken_order(pipeline, carried.spans).empty());
    CHECK(carried.parts.alone[0] == Approx(4 * kOnce).epsilon(1e-3));
    CHECK(carried.parts.alone[3] == Approx(8 * kOnce).epsilon(1e-3));
    CHECK(carried.parts.hops[4].front() == Approx((1 << 20) / fake::kCopyRate).epsilon(1e-3));
    CHECK(carried.parts.hops[5].front() == Approx(2.0 * (1 << 20) / fake::kCopyRate).epsilon(1e-3)); // there and back
    CHECK(carried.parts.slowdowns[0] == Approx(1).epsilon(1e-3));
    CHECK(condition(carried, "multiprocessors") == "64, 32; 32 for copies"); // of 16 units of 8
    CHECK(condition(carried, "launches") == "a graph per computation");
    CHECK(condition(carried, "device") == "NVIDIA Fake 80GB");
  }
  CHECK(fake::state().allocations == before);
}

TEST_CASE("a shaped copy takes its link's latency and bandwidth", "[gpu][lanes]") {
  fake::state() = {};
  Session session(0, {});
  Pipeline pipeline = two_partitions();
  pipeline.works[4].route = CopyRoute::shaped;
  pipeline.works[4].latency = 20e-6;
  pipeline.works[4].bandwidth = 1e10;
  const std::unique_ptr<Lanes> lanes = make_gpu_lanes(pipeline, session);
  const CarriedOut carried = carry_out(pipeline, *lanes, 1);
  CHECK(carried.parts.hops[4].front() == Approx(20e-6 + (1 << 20) / 1e10).epsilon(1e-3));
}

// The device's clock is simulated, the host's is real: only the order can be checked.
TEST_CASE("a GPU and threads of its host wait for each other", "[gpu][lanes]") {
  fake::state() = {};
  Session session(0, {});
  Pipeline pipeline = two_partitions();
  pipeline.devices = {{"cpu", 0, 2}, {"gpu", 0, 0}};
  const int before = fake::state().allocations;
  {
    const std::unique_ptr<Lanes> lanes = make_gpu_lanes(pipeline, session);
    const CarriedOut carried = carry_out(pipeline, *lanes, 2);
    CHECK(test::broken_order(pipeline, carried.spans).empty());
    CHECK(carried.parts.alone[0] > 0);
    CHECK(carried.parts.alone[2] == Approx(4 * kOnce).epsilon(1e-3));
  }
  CHECK(fake::state().allocations == before);
}

TEST_CASE("a step that fails on the device ends the run with its cause and leaves nothing behind", "[gpu][lanes]") {
  fake::state() = {};
  Session session(0, {});
  const int before = fake::state().allocations;
  for (const bool host : {false, true}) {
    Pipeline pipeline = two_partitions();
    if (host) { // threads wait for something that never happens
      pipeline.devices = {{"cpu", 0, 2}, {"gpu", 0, 0}};
    }
    pipeline.works[5].bytes = 5000;
    fake::state().refused_copy = 5000;
    {
      const std::unique_ptr<Lanes> lanes = make_gpu_lanes(pipeline, session);
      CHECK_THROWS_WITH(carry_out(pipeline, *lanes, 1),
                        Catch::Contains("@1>0 of iteration 0 on gpu") && Catch::Contains("cudaMemcpyAsync"));
      fake::state().refused_copy = 0;
      CHECK_NOTHROW(carry_out(pipeline, *lanes, 1)); // the next run works again
    }
    CHECK(fake::state().allocations == before);
  }
}

TEST_CASE("parts of a pipeline may hold every kernel of a residual block", "[gpu][lanes]") {
  fake::state() = {};
  Session session(0, {});
  Pipeline pipeline = two_partitions();
  for (const char* kernel : {"add forward bf16 rows=64 columns=64", "add backward-input bf16 rows=64 columns=64"}) {
    pipeline.works[0].kernels.push_back({parse_kernel(kernel), 1});
  }
  CHECK_NOTHROW(make_gpu_lanes(pipeline, session));
}

TEST_CASE("a pipeline that a device cannot hold is refused before anything runs", "[gpu][lanes]") {
  fake::state() = {};
  Session session(0, {});
  Pipeline pipeline = two_partitions();
  pipeline.devices[0].processors = 96;
  CHECK_THROWS_WITH(make_gpu_lanes(pipeline, session), Catch::Contains("allowed: 120"));
  pipeline.devices[0].processors = 64;
  pipeline.works[0].kernels.push_back({parse_kernel("relu backward-weight bf16 rows=10 columns=20"), 1});
  CHECK_THROWS_WITH(make_gpu_lanes(pipeline, session),
                    "relu backward-weight bf16 rows=10 columns=20: no kernel for this pass and precision");
  pipeline.works[0].kernels.back() = {parse_kernel("copy forward fp32 rows=100000 columns=10000"), 1};
  CHECK_THROWS_WITH(make_gpu_lanes(pipeline, session), Catch::Contains("does not fit into device memory"));
}

} // namespace
} // namespace stagecraft::gpu
