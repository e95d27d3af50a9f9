// Convolutions of each channel by itself, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/depthwise.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr double kOfPeak = 0.65;
constexpr double kOutputs = 4 * 3 * 3, kInputs = 4 * 6 * 6; // four channels of 6 x 6, every second position

// 3 x 3 taps, stride 2, padding 1, of `channels` channels in `groups` groups.
Operator convolution(double channels, double groups) {
  const KernelCall call{KernelOp::convolution, {1, channels, 6, 6, channels, 3, 3, 2, 1, groups}, 0};
  Operator what;
  what.kind = KernelKind::convolution;
  what.forward = what.backward_input = what.backward_weight = {Flops{1}, 5, 10, 1, {call}};
  return what;
}

std::optional<Seconds> time_of(const Operator& what, KernelPass which, const DeviceType& type, double samples = 1,
                               Precision precision = Precision::fp32, const Shard& shard = {}) {
  return depthwise_time(what, what.forward, which, type, samples, precision, shard);
}

// 50 FLOP/s of vectors, and as fast in 16 bits as to have no tensor cores: 0.65 x 50 / 2 instructions a second.
TEST_CASE("a depthwise convolution takes the instructions of its taps", "[cost][depthwise]") {
  const Operator what = convolution(4, 4);
  const DeviceType type = test::round_device();
  constexpr double kRate = kOfPeak * 50 / 2, kLaunch = 0.5;
  CHECK(time_of(what, KernelPass::forward, type)->value == near(kLaunch + kOutputs * (120 + 9 * 15) / kRate));
  CHECK(time_of(what, KernelPass::backward_input, type)->value == near(kLaunch + kInputs * (120 + 9 * 20) / kRate));
  CHECK(time_of(what, KernelPass::backward_weight, type)->value == near(kLaunch + kOutputs * 9 * 60 / kRate));
  CHECK(time_of(what, KernelPass::forward, type, 3)->value == near(kLaunch + 3 * kOutputs * (120 + 9 * 15) / kRate));
}

TEST_CASE("integers have units of their own where there are tensor cores, and no more than one of them for each",
          "[cost][depthwise]") {
  const Operator what = convolution(4, 4);
  DeviceType type = test::round_device();
  const double plain = time_of(what, KernelPass::forward, type)->value - 0.5;
  auto& half = type.rates[static_cast<std::size_t>(KernelKind::matmul)][static_cast<std::size_t>(Precision::fp16)];
  half = FlopsPerSecond{250}; // the limit: 2.5 times as fast as in fp32
  CHECK(time_of(what, KernelPass::forward, type)->value - 0.5 == near(plain));
  half = FlopsPerSecond{251};
  CHECK(time_of(what, KernelPass::forward, type)->value - 0.5 == near(plain / 2));
  // Twice as many units of floating point: above 300 GFLOP/s of a multiprocessor.
  type.rates[static_cast<std::size_t>(KernelKind::elementwise)][static_cast<std::size_t>(Precision::fp32)] =
      FlopsPerSecond{300e9};
  type.processors = 1;
  type.memory_bandwidth = BytesPerSecond{1e15};
  const double single = time_of(what, KernelPass::forward, type)->value;
  type.rates[static_cast<std::size_t>(KernelKind::elementwise)][static_cast<std::size_t>(Precision::fp32)] =
      FlopsPerSecond{301e9};
  CHECK(time_of(what, KernelPass::forward, type)->value - 0.5 == near((single - 0.5) * 2 * 300 / 301));
}

TEST_CASE("in 16 bits cuDNN's kernels are faster, and memory may bind", "[cost][depthwise]") {
  Operator what = convolution(4, 4);
  const DeviceType type = test::round_device();
  const double full = time_of(what, KernelPass::forward, type)->value - 0.5;
  const double backward = time_of(what, KernelPass::backward_input, type)->value - 0.5;
  CHECK(time_of(what, KernelPass::forward, type, 1, Precision::fp16)->value - 0.5 == near(full / 1.23));
  CHECK(time_of(what, KernelPass::backward_input, type, 1, Precision::fp16)->value - 0.5 == near(backward / 1.30));
  CHECK(time_of(what, KernelPass::forward, type, 1, Precision::fp32, {.degree = 2, .activations = 0.5})->value - 0.5 ==
        near(full / 2));
  what.forward.moved_elements = 1e6; // 4 bytes each, at 10 B/s, beside 10 parameters
  CHECK(time_of(what, KernelPass::forward, type)->value == near(0.5 + (1e6 + 10) * 4 / 10));
}

TEST_CASE("a convolution that sums over channels is none of each by itself", "[cost][depthwise]") {
  const DeviceType type = test::round_device();
  CHECK(!time_of(convolution(4, 2), KernelPass::forward, type).has_value());
  CHECK(!time_of(convolution(4, 1), KernelPass::forward, type).has_value());
  CHECK(!time_of(convolution(1, 1), KernelPass::forward, type).has_value());
}

TEST_CASE("cost models of shapes and of fits take a depthwise convolution's instructions", "[cost][depthwise]") {
  const Operator what = convolution(4, 4);
  const ModelGraph model = make_graph("m", {what}, {}, {}, {"test", 0, 0});
  const DeviceType type = test::round_device();
  for (const char* name : {"roofline", "calibrated"}) {
    INFO(name);
    const auto cost = std::get<std::unique_ptr<CostModel>>(make_cost_model(name, {.model = model}, {"test", 0, 0}));
    const OperatorTime time = *cost->time(0, type, 2, Precision::fp32);
    CHECK(time.forward == *time_of(what, KernelPass::forward, type, 2));
    CHECK(time.backward_weight == *time_of(what, KernelPass::backward_weight, type, 2));
    const auto least = cost->least_time(0, type, Precision::fp32, {.samples = 2, .degree = 1});
    REQUIRE(least.has_value());
    CHECK(least->each.forward.value <= time.forward.value / 2 + 1e-9);
  }
}

// Fits are of convolutions that sum over channels, whatever they say of this shape.
TEST_CASE("a depthwise convolution rests on no fit", "[cost][depthwise]") {
  const Operator what = convolution(4, 4);
  const ModelGraph model = make_graph("m", {what}, {}, {}, {"test", 0, 0});
  DeviceType type = test::round_device();
  auto fits = std::make_shared<KernelFits>();
  fits->measured.push_back(
      {{KernelOp::convolution, KernelPass::forward, Precision::fp32, what.forward.calls.front().shape},
       Seconds{1},
       0.02});
  type.fits = std::move(fits);
  const auto cost =
      std::get<std::unique_ptr<CostModel>>(make_cost_model("calibrated", {.model = model}, {"test", 0, 0}));
  CHECK(cost->time(0, type, 1, Precision::fp32)->forward == *time_of(what, KernelPass::forward, type));
  CHECK(cost->error(0, type, 1, Precision::fp32).forward.source == CostSource::roofline);
}

} // namespace
} // namespace stagecraft
