// The least time per sample that a cost model tells: nothing falls below it, and something comes near.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "sim/base/system/file.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/cost/device_speeds.hpp"
#include "sim/cost/least_over_parts.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using test::near;

Operator with_passes(std::string name, KernelKind kind, std::vector<KernelCall> calls, bool weights) {
  Operator made;
  made.name = std::move(name);
  made.kind = kind;
  const Kernel one{calls.front().op, KernelPass::forward, Precision::fp32, calls.front().shape};
  made.parameters = weights ? 1e6 : 0;
  made.forward = {flops_of(one), bytes_of(one).value / 8, weights ? bytes_of(one).value / 8 : 0, 1, {calls.front()}};
  made.backward_input = made.forward;
  made.backward_input.calls = {calls[calls.size() > 1 ? 1 : 0]};
  if (weights) {
    made.backward_weight = made.forward;
    made.backward_weight.calls = {calls.back()};
  }
  return made;
}

Operator linear(std::string name, double rows, double in, double out) {
  return with_passes(std::move(name), KernelKind::matmul,
                     {{KernelOp::gemm, {1, rows, out, in}, 1},
                      {KernelOp::gemm, {1, rows, in, out}, 1},
                      {KernelOp::gemm, {1, in, out, rows}, 3}},
                     true);
}

// A product whose input and whose output's gradient are cast, for which a group may have to gather either.
Operator cast_product() {
  Operator made = linear("cast", 512, 768, 3072);
  made.forward.casts = made.backward_input.casts = 1;
  made.forward.cast_bytes = 4 * 512 * 768;
  made.forward.cast_of = CastOf::input;
  made.backward_input.cast_bytes = 4 * 512 * 3072;
  made.backward_input.cast_of = CastOf::gradient;
  return made;
}

// Products of few and many rows, one with casts, a batch of small ones, a convolution, attention with grouped keys,
// memory-bound kernels.
ModelGraph kernels_of_all_kinds() {
  const KernelCall convolution{KernelOp::convolution, {1, 64, 28, 28, 96, 3, 3, 1, 1, 1}, 0};
  const std::vector<Operator> operators = {
      linear("few rows", 1, 1024, 1000),
      linear("many rows", 512, 768, 3072),
      cast_product(),
      with_passes("batch", KernelKind::matmul, {{KernelOp::gemm, {12, 128, 128, 64}, 0}}, false),
      with_passes("convolution", KernelKind::convolution, {convolution, convolution, convolution}, true),
      with_passes("attention", KernelKind::attention, {{KernelOp::attention, {1, 512, 16, 4, 64, 1}, 0}}, false),
      with_passes("norm", KernelKind::normalization, {{KernelOp::layer_norm, {512, 768}, 0}}, false),
      with_passes("relu", KernelKind::elementwise, {{KernelOp::relu, {512, 768}, 0}}, false),
      with_passes("add", KernelKind::elementwise, {{KernelOp::add, {512, 768}, 0}}, false),
      with_passes("gelu", KernelKind::elementwise, {{KernelOp::gelu, {512, 768}, 0}}, false),
      with_passes("pooling", KernelKind::pooling, {{KernelOp::sum, {512, 768}, 0}}, false)};
  std::vector<Profile> profiles;
  for (const auto& [samples, slower] : {std::pair{2.0, 1.0}, {7.0, 0.4}, {20.0, 0.7}}) {
    profiles.push_back({"", samples, Precision::fp32, {}});
    for (std::size_t op = 0; op < operators.size(); ++op) {
      const double seconds = samples * slower * (1 + static_cast<double>(op));
      profiles.back().times.push_back({Seconds{seconds}, Seconds{1.5 * seconds}});
    }
  }
  return make_graph("kinds", operators, {}, profiles, {"test", 0, 0});
}

std::vector<DeviceType> devices() {
  const std::filesystem::path folder = test::source_dir() / "platforms/devices";
  std::vector<DeviceType> types;
  for (const char* name : {"h200-sxm", "h100-sxm-80gb", "a100-pcie-80gb", "v100-pcie-16gb", "p100-pcie-16gb", "t4-16gb",
                           "l4-24gb", "mi300x-192gb"}) {
    const std::string file = (folder / (std::string(name) + ".yaml")).string();
    types.push_back(load_device_type(yaml::parse(read_file(file), file), device_types_in(folder)));
  }
  DeviceType derived = types.front(); // half the arithmetic, launches and memory a little better
  auto fits = std::make_shared<KernelFits>(*derived.fits);
  fits->scale = FitScale{.flops = 0.5, .memory_bandwidth = 1.2, .launch = 0.7, .processors = 0.8, .attention = 0.9};
  derived.name = "derived";
  derived.fits = std::move(fits);
  types.push_back(std::move(derived));
  return types;
}

std::unique_ptr<CostModel> made(const CostModelRow& row, const ModelGraph& model) {
  return std::get<std::unique_ptr<CostModel>>(row.make({.model = model}));
}

struct Part {
  double samples;
  Shard shard;
};

std::vector<Part> parts_up_to(double most, int degree, std::mt19937& random) {
  std::vector<Part> parts = {{most, {}}};
  for (const double measured : {2.0, 7.0, 20.0}) { // of the profile
    parts.push_back({std::min(measured, most), {}});
  }
  for (int n = 0; n < 300; ++n) {
    const double share = static_cast<double>(1 + random() % 1000) / 1000;
    const double samples = n % 3 == 0   ? std::ceil(most * share)
                           : n % 3 == 1 ? most * share
                                        : most * std::pow(1e-3, share);
    const int group = n % 2 == 0 ? 1 : 1 + static_cast<int>(random() % degree);
    const double cut = static_cast<double>(random() % 3) / 2; // none, half or all of the activations
    const bool sums = random() % 2 == 0;
    parts.push_back({std::min(samples, most), {group, 1 - cut + cut / group, sums}});
  }
  return parts;
}

// For each pass and for all: what a part takes per sample on all devices of its group.
std::array<double, 4> taken(const OperatorTime& time, const OperatorTime& gaps, double factor) {
  const auto left = [&](Seconds seconds, Seconds gap) { return std::max(0.0, (seconds - gap).value) * factor; };
  std::array<double, 4> each = {left(time.forward, gaps.forward), left(time.backward_input, gaps.backward_input),
                                left(time.backward_weight, gaps.backward_weight), 0};
  each[3] = each[0] + each[1] + each[2];
  return each;
}

std::array<double, 4> numbers(const LeastTime& least) {
  return {least.each.forward.value, least.each.backward_input.value, least.each.backward_weight.value, least.all.value};
}

void check_least(const CostModel& cost, OperatorId op, const DeviceType& type, const AnyPart& part,
                 std::mt19937& random, bool near_enough) {
  const auto least = cost.least_time(op, type, Precision::fp32, part);
  REQUIRE(least.has_value() == cost.time(op, type, part.samples, Precision::fp32).has_value());
  if (!least) {
    return;
  }
  const std::array<double, 4> bounds = numbers(*least);
  std::array<double, 4> seen = {1e300, 1e300, 1e300, 1e300};
  for (const Part& one : parts_up_to(part.samples, part.degree, random)) {
    const auto time = cost.time_of_shard(op, type, one.samples, Precision::fp32, one.shard);
    const std::array<double, 4> takes = taken(*time, part.gaps, one.shard.degree / one.samples);
    for (std::size_t i = 0; i < takes.size(); ++i) {
      seen[i] = std::min(seen[i], takes[i]);
      if (takes[i] < bounds[i] * (1 - 1e-9)) {
        CAPTURE(i, one.samples, one.shard.degree, one.shard.activations);
        FAIL_CHECK(takes[i] << " is less than " << bounds[i]);
      }
    }
  }
  for (std::size_t i = 0; i < seen.size() && near_enough; ++i) {
    CAPTURE(i, seen[i]);
    CHECK(bounds[i] >= 0.95 * seen[i]);
  }
}

TEST_CASE("no part of a micro-batch takes less per sample than the least, under every cost model", "[cost][bound]") {
  const ModelGraph model = kernels_of_all_kinds();
  std::mt19937 random(5);
  for (const CostModelRow& row : cost_models()) {
    const auto cost = made(row, model);
    for (const DeviceType& type : devices()) {
      for (OperatorId op = 0; op < model.size(); ++op) {
        const double samples = std::array{1.0, 8.0, 37.5, 300.0}.at(random() % 4);
        CAPTURE(row.name, type.name, model.operators[op].name, samples);
        check_least(*cost, op, type, {samples, 1}, random, true);
        check_least(*cost, op, type, {samples, 1 + static_cast<int>(random() % 12)}, random, true);
        const Seconds gap = type.launch_overhead * (static_cast<double>(random() % 4) / 3); // of its one launch
        check_least(*cost, op, type, {samples, 1, {gap, gap, gap}}, random, false);
      }
    }
  }
}

TEST_CASE("a cost model at other speeds tells the least of its own times", "[cost][bound]") {
  const ModelGraph model = kernels_of_all_kinds();
  std::mt19937 random(6);
  const auto cost = made(find_by_name(cost_models(), "calibrated", "cost model", {}), model);
  const Platform platform = make_star_platform(devices().front(), 2, BytesPerSecond{1e9}, Seconds{0});
  const SpeedWorld world = at_speeds(platform, *cost, std::array{1.0, 0.5});
  for (const DeviceType& type : world.platform.types) {
    CAPTURE(type.name);
    check_least(*world.cost, 1, type, {16, 1}, random, true);
  }
}

// 16 rows a sample; 48 rows were measured, at 5 s, so three samples take 5/3 s each. The roofline of any other size
// takes 0.5 s and at least 10 s a sample.
TEST_CASE("a measured kernel that is faster than its neighbours is found", "[cost][bound]") {
  Operator product;
  product.name = "product";
  product.kind = KernelKind::matmul;
  product.forward = {Flops{1000}, 10, 10, 1, {{KernelOp::gemm, {1, 16, 32, 8}, 1}}};
  const ModelGraph model = make_graph("m", {product}, {}, {}, {"test", 0, 0});
  DeviceType type = test::round_device();
  auto fits = std::make_shared<KernelFits>();
  fits->measured.push_back({{KernelOp::gemm, KernelPass::forward, Precision::fp32, {1, 48, 32, 8}}, Seconds{5}, 0});
  type.fits = std::move(fits);
  const auto cost = made(find_by_name(cost_models(), "calibrated", "cost model", {}), model);
  REQUIRE(cost->time(0, type, 3, Precision::fp32)->forward.value == near(5));
  REQUIRE(cost->time(0, type, 4, Precision::fp32)->forward.value / 4 > 2);
  const auto least = [&](double samples) {
    return cost->least_time(0, type, Precision::fp32, {samples})->each.forward.value;
  };
  CHECK(least(8) <= 5.0 / 3);
  CHECK(least(8) > 0.99 * 5 / 3);
  CHECK(least(3) <= 5.0 / 3);
  CHECK(least(2.9) > 2);
}

// (x - 3)^2 + degree: least at 3 on one device; where 3 is out of reach, at the end.
TEST_CASE("the search over sizes and degrees ends near the least value, and never above it", "[cost][bound]") {
  const auto bound_of = [](const PartRange& range) {
    const double near_three = std::clamp(3.0, range.low, range.high);
    return (near_three - 3) * (near_three - 3) + range.least_degree;
  };
  const double inside = least_over_parts({0, 10, 1, 64}, bound_of);
  CHECK(inside <= 1);
  CHECK(inside > 0.99);
  CHECK(least_over_parts({0, 2, 1, 64}, bound_of) == near(2));
  CHECK(least_over_parts({0, 10, 5, 5}, bound_of) > 0.99 * 5);
}

} // namespace
} // namespace stagecraft
