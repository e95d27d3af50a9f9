// How the GPU harness takes samples: what it drops, and when it gives up holding the stream.
// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/fake_cuda.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/device/power.hpp"
#include "calibrate/gpu/device/sampler.hpp"

namespace stagecraft::gpu {
namespace {

struct Bench {
  cudaStream_t stream = nullptr;
  std::unique_ptr<Sampler> sampler;

  Bench() {
    fake::state() = {};
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    sampler = std::make_unique<Sampler>(stream, 1e6);
  }
  ~Bench() {
    fake::state() = {};
    cudaStreamDestroy(stream);
  }
};

TEST_CASE("the reference clock is that of a device that only spins", "[gpu][sampler]") {
  const Bench bench;
  CHECK(bench.sampler->reference_clock() == Approx(fake::kClock));
}

TEST_CASE("a steady kernel needs the fewest samples, each held back while it is enqueued", "[gpu][sampler]") {
  Bench bench;
  const Timing timing = bench.sampler->measure([](cudaStream_t on) { fake::spend(on, 1e-3); }, Method());
  CHECK(timing.seconds.median == Approx(1e-3));
  CHECK(timing.seconds.samples == StopRule().least);
  CHECK(timing.clock == Approx(fake::kClock));
  CHECK(timing.dropped == 0);
  CHECK(fake::state().held == StopRule().least); // not during warm-up
}

TEST_CASE("samples of a throttled device are dropped and counted, but not for ever", "[gpu][sampler]") {
  Bench bench;
  int runs = 0;
  // Three to warm up, then four at 0.8 of the clock.
  const Timing some = bench.sampler->measure(
      [&](cudaStream_t on) {
        fake::state().clock = ++runs > 3 && runs <= 7 ? 0.8 * fake::kClock : fake::kClock;
        fake::spend(on, 1e-3);
      },
      Method());
  CHECK(some.dropped == 4);
  CHECK(some.clock == Approx(fake::kClock));
  fake::state().clock = 0.8 * fake::kClock;
  const Timing all = bench.sampler->measure([](cudaStream_t on) { fake::spend(on, 1e-3); }, Method());
  CHECK(all.dropped == 8);
  CHECK(all.clock == Approx(0.8 * fake::kClock));
  Method keep;
  keep.drop_throttled = false;
  CHECK(bench.sampler->measure([](cudaStream_t on) { fake::spend(on, 1e-3); }, keep).dropped == 0);
}

TEST_CASE("samples of kernels too short for clock readings are not dropped", "[gpu][sampler]") {
  Bench bench;
  fake::state().clock = 0.5 * fake::kClock;
  const Timing timing = bench.sampler->measure([](cudaStream_t on) { fake::spend(on, 10e-6); }, Method());
  CHECK((timing.dropped == 0 && timing.clock == 0));
}

TEST_CASE("a stream that is not released in time is held no longer, and its samples do not count", "[gpu][sampler]") {
  Bench bench;
  fake::state().times_out = true;
  const Timing timing = bench.sampler->measure([](cudaStream_t on) { fake::spend(on, 1e-3); }, Method());
  CHECK(fake::state().held == 2);
  CHECK(timing.seconds.samples == StopRule().least);
}

TEST_CASE("a sample of a short kernel is many runs where samples have a least duration", "[gpu][sampler]") {
  Bench bench;
  int runs = 0;
  Method method;
  method.flush = false;
  method.least_seconds = 20e-6;
  const Timing timing = bench.sampler->measure(
      [&](cudaStream_t on) {
        ++runs;
        fake::spend(on, 2e-6);
      },
      method);
  CHECK(runs == 3 + 10 * timing.seconds.samples);
  CHECK(timing.seconds.median == Approx(2e-6).epsilon(1e-3));
}

TEST_CASE("sustained times are those of one run among many", "[gpu][sampler]") {
  Bench bench;
  bool began = false;
  const Timing timing = bench.sampler->measure_sustained([](cudaStream_t on) { fake::spend(on, 1e-3); }, 0.002, 0.002,
                                                         [&] { began = true; });
  CHECK(began);
  CHECK(timing.seconds.samples >= 3);
  CHECK(timing.seconds.median == Approx(1e-3).epsilon(1e-3));
}

TEST_CASE("an exception while a stream is filled releases the stream", "[gpu][sampler]") {
  Bench bench;
  int runs = 0;
  const auto launch = [&](cudaStream_t) {
    if (++runs > 3) {
      throw DeviceError("refused");
    }
  };
  CHECK_THROWS_WITH(bench.sampler->measure(launch, Method()), "refused");
  CHECK(bench.sampler->measure([](cudaStream_t on) { fake::spend(on, 1e-3); }, Method()).seconds.median ==
        Approx(1e-3));
}

TEST_CASE("without a driver there is no power", "[gpu][sampler]") {
  const Nvml nvml;
  PowerMeter meter(nvml);
  meter.start();
  CHECK_FALSE(meter.stop().has_value());
  CHECK(nvml.state().empty());
}

} // namespace
} // namespace stagecraft::gpu
