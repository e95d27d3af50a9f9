// Gradients of weights that are added to sums: what the sums move beside the products, or behind all kernels.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/gradient_sums.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr double kGradients = 40, kBandwidth = 10; // of the round device

// A product with 40 weights, and an operator with weights that multiplies nothing.
ModelGraph weights_model() {
  Operator product;
  product.name = "product";
  product.kind = KernelKind::matmul;
  product.forward = {Flops{100}, 10, kGradients, 1};
  product.backward_weight = {Flops{100}, 10, kGradients, 1};
  Operator norm = product;
  norm.name = "norm";
  norm.kind = KernelKind::normalization;
  return make_graph("m", {product, norm}, {{0, 1}}, {}, {"test", 0, 0});
}

// Seconds that an operator's gradients of weights take longer with sums than without.
double longer(OperatorId op, Training training, const DeviceType& type, const Shard& shard = {}) {
  const ModelGraph model = weights_model();
  const auto made = [&] {
    return std::get<std::unique_ptr<CostModel>>(make_cost_model("roofline", {.model = model}, {"test", 0, 0}));
  };
  const auto of = [&](const CostModel& cost) { return *cost.time_of_shard(op, type, 1, training.precision, shard); };
  const OperatorTime alone = of(*made()), both = of(*with_gradient_sums(made(), model, training));
  CHECK(both.forward == alone.forward);
  CHECK(both.backward_input == alone.backward_input);
  return (both.backward_weight - alone.backward_weight).value;
}

Training fused(Precision sums) {
  Training training;
  training.precision = Precision::fp16;
  training.gradient_precision = sums;
  training.fused_gradient_sums = true;
  return training;
}

TEST_CASE("a sum is read and written in place of the gradient that a product alone writes", "[cost][sums]") {
  const DeviceType type = test::round_device();
  const double shown = PassRatio{}.sums; // what products do not hide, where nobody measured it
  CHECK(longer(0, fused(Precision::fp32), type) == near(kGradients * (4 + 4 - 2) / kBandwidth * shown));
  CHECK(longer(0, fused(Precision::fp16), type) == near(kGradients * (2 + 2 - 2) / kBandwidth * shown));
  CHECK(longer(1, fused(Precision::fp32), type) == 0); // no product
  Training apart = fused(Precision::fp32);
  apart.fused_gradient_sums = false;
  CHECK(longer(0, apart, type) == 0);
}

Training separate(Precision sums) {
  Training training = fused(sums);
  training.fused_gradient_sums = false;
  training.separate_gradient_sums = true;
  return training;
}

// A kernel of its own reads gradient and sum, and writes the sum: after every operator with weights, at the speed of
// kernels that memory bounds.
TEST_CASE("kernels of their own add up the gradients of all weights", "[cost][sums]") {
  const DeviceType type = test::round_device();
  CHECK(longer(0, separate(Precision::fp32), type) == near(kGradients * (2 + 4 + 4) / kBandwidth));
  CHECK(longer(1, separate(Precision::fp16), type) == near(kGradients * (2 + 2 + 2) / kBandwidth));
  Training slower = separate(Precision::fp16);
  slower.kernel_speed.other = 0.5;
  CHECK(longer(0, slower, type) == near(kGradients * 6 / kBandwidth / 0.5));
  Training parts = separate(Precision::fp16); // each micro-batch's are reduced, so that a part alone is added up
  parts.sharding = {.zero = Zero::weights, .reduce = Reduce::each_micro_batch};
  CHECK(longer(0, parts, type) == 0);
  parts.sharding.reduce = Reduce::last_micro_batch;
  CHECK(longer(0, parts, type) == near(kGradients * 6 / kBandwidth));
}

TEST_CASE("each rank adds the gradients of its own weights", "[cost][sums]") {
  const DeviceType type = test::round_device();
  const double whole = longer(0, fused(Precision::fp32), type);
  CHECK(longer(0, fused(Precision::fp32), type, {.degree = 4}) == near(whole / 4));
  CHECK(longer(0, fused(Precision::fp32), type, {.replicas = 8}) == near(whole / 8)); // an eighth of the experts
}

TEST_CASE("a device says what its products do not hide of sums", "[cost][sums]") {
  DeviceType type = test::round_device();
  auto fits = std::make_shared<KernelFits>();
  fits->passes.push_back({.pass = KernelPass::backward_weight, .sums = 0.25});
  type.fits = std::move(fits);
  CHECK(longer(0, fused(Precision::fp32), type) == near(kGradients * 6 / kBandwidth * 0.25));
}

} // namespace
} // namespace stagecraft
