// Measured times: as they are, between two sizes, beyond them, and on other devices.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sim/cost/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;
constexpr double kNever = std::numeric_limits<double>::infinity();

// A matrix product with parameters and a softmax without, both forward 2 s, backward 6 s at 4 samples and 3 s, 10 s
// at 8.
ModelGraph profiled_model() {
  Operator product;
  product.name = "product";
  product.kind = KernelKind::matmul;
  product.parameters = 1;
  Operator softmax;
  softmax.name = "softmax";
  softmax.kind = KernelKind::softmax;
  const std::vector<MeasuredTime> at_4(2, {Seconds{2}, Seconds{6}});
  const std::vector<MeasuredTime> at_8(2, {Seconds{3}, Seconds{10}});
  // Larger first: the order of the file does not matter.
  const std::vector<Profile> profiles = {{"round", 8, Precision::fp32, at_8}, {"round", 4, Precision::fp32, at_4}};
  return make_graph("profiled", {product, softmax}, {{0, 1}}, profiles, {"test", 0, 0});
}

struct Times {
  double forward, backward;
};

Times times_of(OperatorId op, const DeviceType& type, double samples, const DeviceType* reference) {
  const ModelGraph model = profiled_model();
  const auto made = make_profiled({.model = model, .reference = reference});
  const auto time = std::get<std::unique_ptr<CostModel>>(made)->time(op, type, samples, Precision::fp32);
  REQUIRE(time.has_value());
  return {time->forward.value, (time->backward_input + time->backward_weight).value};
}

void check_times(OperatorId op, const DeviceType& type, double samples, const DeviceType* reference, Times expected) {
  const Times got = times_of(op, type, samples, reference);
  CAPTURE(op, samples);
  CHECK(got.forward == near(expected.forward));
  CHECK(got.backward == near(expected.backward));
}

TEST_CASE("times at measured sizes are as measured, and interpolated between them", "[cost][profiled]") {
  const DeviceType type = test::round_device();
  check_times(0, type, 4, nullptr, {2, 6});
  check_times(0, type, 8, nullptr, {3, 10});
  check_times(0, type, 5, nullptr, {2.25, 7});
  check_times(0, type, 6, nullptr, {2.5, 8});
}

TEST_CASE("beyond the measured sizes all time but the launch is proportional to the size", "[cost][profiled]") {
  const DeviceType type = test::round_device(); // launches of 0.5 s
  check_times(0, type, 2, nullptr, {0.5 + 1.5 / 2, 0.5 + 5.5 / 2});
  check_times(0, type, 16, nullptr, {0.5 + 2.5 * 2, 0.5 + 9.5 * 2});
  DeviceType slow_launches = type;
  slow_launches.launch_overhead = Seconds{5}; // no longer than what was measured
  check_times(0, slow_launches, 2, nullptr, {2, 5 + 1.0 / 2});
}

TEST_CASE("the weight gradient is half of the backward pass of operators with parameters", "[cost][profiled]") {
  const ModelGraph model = profiled_model();
  const auto made = make_profiled({.model = model});
  const auto& cost = *std::get<std::unique_ptr<CostModel>>(made);
  const auto product = cost.time(0, test::round_device(), 4, Precision::fp32);
  CHECK(product->backward_input.value == near(3));
  CHECK(product->backward_weight.value == near(3));
  const auto softmax = cost.time(1, test::round_device(), 4, Precision::fp32);
  CHECK(softmax->backward_input.value == near(6));
  CHECK(softmax->backward_weight.value == 0);
}

TEST_CASE("on another device matrix kernels go by rate, the others by memory bandwidth", "[cost][profiled]") {
  const DeviceType reference = test::round_device();
  DeviceType other = test::round_device("other");
  other.rates[static_cast<std::size_t>(KernelKind::matmul)][0] = FlopsPerSecond{400};
  other.memory_bandwidth = BytesPerSecond{20};
  check_times(0, other, 4, &reference, {2 / 4.0, 6 / 4.0});
  check_times(1, other, 4, &reference, {2 / 2.0, 6 / 2.0});
  check_times(0, reference, 4, &reference, {2, 6});
  check_times(0, other, 4, nullptr, {2, 6}); // a profile that names no device: all count as alike
}

TEST_CASE("a device that lacks the kernel has no profiled time", "[cost][profiled]") {
  const ModelGraph model = profiled_model();
  const auto made = make_profiled({.model = model});
  DeviceType lacking = test::round_device();
  lacking.rates[static_cast<std::size_t>(KernelKind::matmul)][0] = std::nullopt;
  CHECK(!std::get<std::unique_ptr<CostModel>>(made)->time(0, lacking, 4, Precision::fp32).has_value());
  CHECK(std::get<std::unique_ptr<CostModel>>(made)->time(1, lacking, 4, Precision::fp32).has_value());
}

TEST_CASE("profiles of several device types: each its own, others scale from the first", "[cost][profiled]") {
  ModelGraph model = profiled_model();
  model.profiles = {{"round", 4, Precision::fp32, {{Seconds{2}, Seconds{6}}, {Seconds{2}, Seconds{6}}}},
                    {"square", 4, Precision::fp32, {{Seconds{20}, Seconds{60}}, {Seconds{kNever}, Seconds{0}}}}};
  const DeviceType reference = test::round_device();
  DeviceType twice = test::round_device("twice");
  twice.rates[static_cast<std::size_t>(KernelKind::matmul)][0] =
      2 * *reference.rate(KernelKind::matmul, Precision::fp32);
  const auto made = make_profiled({.model = model, .reference = &reference});
  const auto& cost = *std::get<std::unique_ptr<CostModel>>(made);
  CHECK(cost.time(0, reference, 4, Precision::fp32)->forward.value == near(2));
  CHECK(cost.time(0, test::round_device("square"), 4, Precision::fp32)->forward.value == near(20));
  CHECK(cost.time(0, twice, 4, Precision::fp32)->forward.value == near(1));
  // An infinite time means that this device type has no kernel for the operator; the others do.
  CHECK(!cost.time(1, test::round_device("square"), 4, Precision::fp32).has_value());
  CHECK(cost.time(1, reference, 4, Precision::fp32).has_value());
}

TEST_CASE("a model without profiles is refused", "[cost][profiled]") {
  ModelGraph model = profiled_model();
  model.profiles.clear();
  const auto none = make_profiled({.model = model});
  CHECK_THAT(std::get<Infeasible>(none).reason, Catch::Contains("has no profile"));
}

} // namespace
} // namespace stagecraft
