// The cost model calibrated: kernels that were measured, a roofline for the rest.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/cost_model.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;

// y[rows, 32] = x[rows, 8] W[8, 32], 16 rows a sample, and an element-wise operator whose kernel nobody measured.
ModelGraph product_model() {
  Operator product;
  product.name = "product";
  product.kind = KernelKind::matmul;
  product.forward = {Flops{100}, 10, 10, 1, {{KernelOp::gemm, {1, 16, 32, 8}, 1}}};
  product.backward_weight = {Flops{100}, 10, 10, 1, {{KernelOp::gemm, {1, 8, 32, 16}, 3}}};
  Operator other;
  other.name = "other";
  other.kind = KernelKind::elementwise;
  other.forward = {Flops{100}, 10, 0, 1, {{KernelOp::gelu, {16, 32}, 0}}};
  return make_graph("m", {product, other}, {{0, 1}}, {}, {"test", 0, 0});
}

DeviceType measured_device() {
  DeviceType type = test::round_device();
  auto fits = std::make_shared<KernelFits>();
  const auto add = [&](KernelPass pass, KernelShape shape, double seconds) {
    fits->measured.push_back({{KernelOp::gemm, pass, Precision::fp32, shape}, Seconds{seconds}, 0.02});
  };
  add(KernelPass::forward, {1, 48, 32, 8}, 5);
  add(KernelPass::forward, {1, 48, 16, 8}, 3);
  add(KernelPass::backward_weight, {1, 8, 32, 48}, 7);
  std::sort(fits->measured.begin(), fits->measured.end(), measured_before);
  type.fits = std::move(fits);
  return type;
}

std::unique_ptr<CostModel> made(std::string_view name, const ModelGraph& model) {
  return std::get<std::unique_ptr<CostModel>>(make_cost_model(name, {.model = model}, {"test", 0, 0}));
}

TEST_CASE("a measured kernel takes its measured time, at the shape that the micro-batch gives it",
          "[cost][calibrated]") {
  const ModelGraph model = product_model();
  const DeviceType type = measured_device();
  const auto cost = made("calibrated", model);
  const auto time = cost->time(0, type, 3, Precision::fp32); // 3 x 16 = 48 rows
  CHECK(time->forward.value == near(5));
  CHECK(time->backward_weight.value == near(7));
  const OperatorError error = cost->error(0, type, 3, Precision::fp32);
  CHECK(error.forward.spread == near(0.02));
  CHECK(error.forward.source == CostSource::table);
  CHECK(cost->error(1, type, 3, Precision::fp32).forward.source == CostSource::roofline);
}

// Where half of the weights meet a token the product is of two experts: its time is the product's by the ratio of its
// pass.
TEST_CASE("a grouped product takes as many times as long as products as its device's ratio says",
          "[cost][calibrated]") {
  ModelGraph dense = product_model(), mixture = product_model();
  mixture.operators.front().active = 0.5;
  DeviceType type = measured_device();
  auto fits = std::make_shared<KernelFits>(*type.fits);
  fits->grouped = {{.pass = KernelPass::forward, .precision = Precision::fp32, .factor = 1.2, .spread = 0.1},
                   {.pass = KernelPass::backward_weight, .precision = Precision::bf16, .factor = 3}};
  type.fits = std::move(fits);
  const auto product = made("calibrated", dense), grouped = made("calibrated", mixture);
  CHECK(product->time(0, type, 3, Precision::fp32)->forward.value == near(5));
  CHECK(grouped->time(0, type, 3, Precision::fp32)->forward.value == near(1.2 * 5));
  CHECK(grouped->time(0, type, 3, Precision::fp32)->backward_weight.value == near(7)); // that ratio is of bf16
  CHECK(grouped->error(0, type, 3, Precision::fp32).forward.spread == near(std::hypot(0.02, 0.1)));
}

TEST_CASE("a tensor-parallel group divides the columns of the weight", "[cost][calibrated]") {
  const ModelGraph model = product_model();
  const auto time = made("calibrated", model)->time_of_shard(0, measured_device(), 3, Precision::fp32, {.degree = 2});
  CHECK(time->forward.value == near(3)); // 32 / 2 columns
}

TEST_CASE("what was not measured, and devices without fits, follow the roofline", "[cost][calibrated]") {
  const ModelGraph model = product_model();
  const auto calibrated = made("calibrated", model);
  const auto roofline = made("roofline", model);
  const DeviceType type = measured_device();
  CHECK(calibrated->time(1, type, 3, Precision::fp32)->forward == roofline->time(1, type, 3, Precision::fp32)->forward);
  CHECK(calibrated->error(1, type, 3, Precision::fp32).forward.spread == kRooflineSpread);
  const DeviceType plain = test::round_device();
  CHECK(calibrated->time(0, plain, 3, Precision::fp32)->forward ==
        roofline->time(0, plain, 3, Precision::fp32)->forward);
}

} // namespace
} // namespace stagecraft
