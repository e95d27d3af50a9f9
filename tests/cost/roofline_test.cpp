// The roofline by hand: launches, and the longer of arithmetic and memory traffic.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;

double seconds(const Pass& pass, KernelKind kind, double samples, Precision precision) {
  return roofline_time(pass, kind, test::round_device(), samples, precision)->value;
}

TEST_CASE("a pass is bound by arithmetic or by traffic", "[cost][roofline]") {
  // 300 FLOP and 5 elements a sample, 10 parameters, two launches.
  const Pass pass{Flops{300}, 5, 10, 2};
  // 1 sample, fp32: 1 + max(300 / 100, (5 + 10) 4 / 10 = 6) = 7.
  CHECK(seconds(pass, KernelKind::matmul, 1, Precision::fp32) == near(7));
  // 4 samples: 1 + max(12, (20 + 10) 4 / 10 = 12): the ridge.
  CHECK(seconds(pass, KernelKind::matmul, 4, Precision::fp32) == near(13));
  // 5 samples: 1 + max(15, (25 + 10) 4 / 10 = 14).
  CHECK(seconds(pass, KernelKind::matmul, 5, Precision::fp32) == near(16));
  // fp16 doubles the rate and halves the bytes: 1 + max(7.5, 7).
  CHECK(seconds(pass, KernelKind::matmul, 5, Precision::fp16) == near(8.5));
}

// 1 + max(600 / 100, 6), and twice as slow 1 + max(12, 6); traffic takes no longer.
TEST_CASE("a pass may take longer for each FLOP than its kind", "[cost][roofline]") {
  Pass pass{Flops{600}, 5, 10, 2};
  CHECK(seconds(pass, KernelKind::matmul, 1, Precision::fp32) == near(7));
  pass.slower = 2;
  CHECK(seconds(pass, KernelKind::matmul, 1, Precision::fp32) == near(13));
  pass.flops = Flops{100};
  CHECK(seconds(pass, KernelKind::matmul, 1, Precision::fp32) == near(7));
}

// 0.5 + 2 x 5 x 4 / 10 = 4.5 of two samples. Of two lengths two samples have 1 or 2, half of the time each: 1.5, which
// move 2 x 10 x 1.5 x 4 B at 10 B/s. One sample has one length, and so have all where there is but one.
TEST_CASE("packed sequences are taken apart for each length among them", "[cost][roofline]") {
  Pass pass{Flops{0}, 5, 0, 1};
  pass.unpacked_elements = 10;
  pass.lengths = 2;
  CHECK(seconds(pass, KernelKind::recurrent, 2, Precision::fp32) == near(4.5 + 12));
  CHECK(seconds(pass, KernelKind::recurrent, 1, Precision::fp32) == near(0.5 + 2 + 4));
  pass.lengths = 1;
  CHECK(seconds(pass, KernelKind::recurrent, 2, Precision::fp32) == near(4.5 + 8));
}

// A GPU of 50 FLOP/s without tensor cores issues 0.65 x 50 / 2 = 16.25 instructions a second: 65 take 4 s, where what
// is moved takes 5 x 4 / 10 = 2. Of a shard with half of it all takes half as long.
TEST_CASE("a GPU's kernel may be bound by its instructions", "[cost][roofline]") {
  Pass pass{Flops{0}, 5, 0, 1};
  pass.instructions = 65;
  DeviceType type = test::round_device();
  const auto time = [&](const Pass& one, double samples) {
    return roofline_time(one, KernelKind::pooling, type, samples, Precision::fp32)->value;
  };
  for (const char* other : {"", "google"}) { // other kernels than PyTorch's for GPUs
    type.vendor = other;
    CHECK(time(pass, 1) == near(0.5 + 2));
  }
  for (const char* gpu : {"nvidia", "amd"}) {
    type.vendor = gpu;
    CHECK(time(pass, 1) == near(0.5 + 4));
    CHECK(time(pass, 3) == near(0.5 + 12));
    CHECK(time(pass_of_shard(pass, {.degree = 2, .activations = 0.5}), 1) == near(0.5 + 2));
  }
  pass.instructions = 32; // less than the traffic takes
  CHECK(time(pass, 1) == near(0.5 + 2));
}

TEST_CASE("other kernels have rates of their own", "[cost][roofline]") {
  const Pass pass{Flops{300}, 0, 0, 1};
  CHECK(seconds(pass, KernelKind::convolution, 1, Precision::fp32) == near(0.5 + 3));
  CHECK(seconds(pass, KernelKind::softmax, 1, Precision::fp32) == near(0.5 + 6));
}

TEST_CASE("a pass without kernels takes no time, wherever it runs", "[cost][roofline]") {
  CHECK(seconds({Flops{300}, 5, 10, 0}, KernelKind::attention, 1, Precision::fp32) == 0);
}

TEST_CASE("a device that lacks the kernel or the precision has no roofline time", "[cost][roofline]") {
  const Pass pass{Flops{1}, 1, 1, 1};
  CHECK(!roofline_time(pass, KernelKind::attention, test::round_device(), 1, Precision::fp32).has_value());
  CHECK(!roofline_time(pass, KernelKind::matmul, test::round_device(), 1, Precision::bf16).has_value());
  CHECK(roofline_time(pass, KernelKind::matmul, test::round_device(), 1, Precision::fp16).has_value());
}

TEST_CASE("more samples take longer, but not in proportion", "[cost][roofline]") {
  const Pass pass{Flops{300}, 5, 10, 2};
  double before = 0;
  double before_per_sample = 1e300;
  for (double samples = 1; samples <= 1024; samples *= 2) {
    const double now = seconds(pass, KernelKind::matmul, samples, Precision::fp32);
    CHECK(now > before);
    CHECK(now / samples < before_per_sample);
    before = now;
    before_per_sample = now / samples;
  }
}

} // namespace
} // namespace stagecraft
