// Kernels in a run: products and the casts before them are slowed apart.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernel_speed.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;

// On the round device: a launch of 0.5 s and 100 FLOP at 100 FLOP/s; a cast is a launch and 30 bytes at 10 B/s.
constexpr double kProduct = 0.5 + 1, kCasts = 0.5 + 3;

ModelGraph cast_model() {
  Operator product;
  product.name = "product";
  product.kind = KernelKind::matmul;
  product.forward = {Flops{100}, 1, 0, 1};
  product.forward.casts = 1;
  product.forward.cast_bytes = 30;
  return make_graph("m", {product}, {}, {}, {"test", 0, 0});
}

std::unique_ptr<CostModel> cost_at(const ModelGraph& model, const KernelSpeed& speed,
                                   std::vector<SlowestDevice> slowest = {}) {
  return at_kernel_speed(
      std::get<std::unique_ptr<CostModel>>(make_cost_model("roofline", {.model = model}, {"test", 0, 0})), model, speed,
      std::move(slowest));
}

TEST_CASE("memory bounds casts, so they are slowed as other kernels", "[cost][fp8]") {
  const ModelGraph model = cast_model();
  const auto cost = [&](const KernelSpeed& speed) { return cost_at(model, speed); };
  const DeviceType type = test::round_device();
  const auto seconds = [&](double matrix, double other) {
    return cost({.matrix = matrix, .other = other})->time(0, type, 1, Precision::fp32)->forward.value;
  };
  CHECK(seconds(1, 1) == near(kProduct + kCasts));
  CHECK(seconds(0.5, 1) == near(kProduct / 0.5 + kCasts));
  CHECK(seconds(0.5, 0.25) == near(kProduct / 0.5 + kCasts / 0.25));
  const auto least = cost({.matrix = 0.5, .other = 0.8})->least_time(0, type, Precision::fp32, {1, 1, {}});
  REQUIRE(least);
  CHECK(least->each.forward.value <= seconds(0.5, 0.8));
}

// Scores bound the kernels of a separate attention. A fused one has no scores in memory, whatever stands beside it, as
// what makes the keys of a latent attention does. 0.5 s of launch and 100 FLOP at 100 FLOP/s.
TEST_CASE("attention is slowed as products are, but by separate kernels as others", "[cost]") {
  const auto seconds = [](std::vector<KernelCall> calls) {
    Operator attention;
    attention.name = "attention";
    attention.kind = KernelKind::attention;
    attention.forward = {Flops{100}, 1, 0, 1, std::move(calls)};
    const ModelGraph model = make_graph("m", {attention}, {}, {}, {"test", 0, 0});
    DeviceType type = test::round_device();
    type.rates[static_cast<std::size_t>(KernelKind::attention)][static_cast<std::size_t>(Precision::fp32)] =
        FlopsPerSecond{100};
    return cost_at(model, {.matrix = 0.5, .other = 0.25})->time(0, type, 1, Precision::fp32)->forward.value;
  };
  const KernelCall fused{KernelOp::attention, {1, 4, 2, 2, 5, 1}, 0}, copy{KernelOp::copy, {4, 5}, 0},
      product{KernelOp::gemm, {1, 4, 4, 5}, 0};
  CHECK(seconds({fused}) == near(1.5 / 0.5));
  CHECK(seconds({fused, copy}) == near(1.5 / 0.5));
  CHECK(seconds({product, copy}) == near(1.5 / 0.25));
}

TEST_CASE("clocks differ between devices, memory does not, so products alone are those of the slowest", "[cost]") {
  const ModelGraph model = cast_model();
  const DeviceType type = test::round_device();
  const auto seconds = [&](const std::string& slowest, const KernelSpeed& speed = {}) {
    return cost_at(model, speed, {{slowest, 8, 1.25}})->time(0, type, 1, Precision::fp32)->forward.value;
  };
  CHECK(seconds(type.name) == near(kProduct * 1.25 + kCasts));
  CHECK(seconds(type.name, {.matrix = 0.5}) == near(kProduct * 1.25 / 0.5 + kCasts));
  CHECK(seconds("another") == near(kProduct + kCasts));
  const auto least = cost_at(model, {}, {{type.name, 8, 1.25}})->least_time(0, type, Precision::fp32, {1, 1, {}});
  REQUIRE(least);
  CHECK(least->each.forward.value <= seconds(type.name));
}

} // namespace
} // namespace stagecraft
