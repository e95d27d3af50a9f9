// Device types: how peaks, efficiencies, explicit rates and lacking kernels make the rates.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/clocks.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr const char* kType = R"(name: card
vendor: maker
origin: made-up
memory: 2 GiB
memory_bandwidth: 100 GB/s
memory_efficiency: 0.75
launch_overhead: 5 us
power: {idle: 10 W, busy: 90 W}
price: 3.6 USD/h
peak: {fp32: 10 TFLOP/s, fp16: 80 TFLOP/s}
vector: 4 TFLOP/s
efficiency: {matmul: 0.5}
rates: {convolution: {fp32: 12 TFLOP/s}, pooling: {fp16: 1 TFLOP/s}, attention: {bf16: 7 TFLOP/s}}
lacks: [recurrent, embedding]
)";

TEST_CASE("a device type in SI units", "[platform][device]") {
  const DeviceType type = load_device_type(yaml::parse(kType, "card.yaml"));
  CHECK(type.name == "card");
  CHECK(type.vendor == "maker");
  CHECK(type.origin == Origin::made_up);
  CHECK(type.memory.value == near(2147483648.0));
  CHECK(type.memory_bandwidth.value == near(75e9)); // 100 GB/s, of which 0.75 is reached
  CHECK(type.launch_overhead.value == near(5e-6));
  CHECK(type.idle.value == near(10));
  CHECK(type.busy.value == near(90));
  CHECK(type.waiting_power().value == near(10 + 0.35 * (90 - 10))); // the rule, unless it is given
  CHECK(type.price.rate.value == near(0.001));                      // 3.6 USD in 3600 s
  CHECK(type.peak[static_cast<size_t>(Precision::fp16)]->value == near(80e12));
  CHECK_FALSE(type.peak[static_cast<size_t>(Precision::bf16)]);
}

TEST_CASE("the rule for waiting lies within what was measured of blocked GPUs", "[platform][device]") {
  // Least squares over the ranks of measured pipelines (docs/validation/clocks.md), idle power by the device files'
  // rule of 15 % of the board's 300 W: A40 (124 - 45) / (297 - 45), A100 (138.8 - 45) / (306.6 - 45) and, in another
  // model's pipeline, (145.3 - 45) / (299.1 - 45).
  const double a40 = 79.0 / 252, a100 = 93.8 / 261.6, other = 100.3 / 254.1;
  CHECK(a40 == Approx(kLeastWaitingShare).margin(0.005));
  CHECK(other == Approx(kMostWaitingShare).margin(0.006));
  CHECK(kWaitingShare == Approx((a40 + a100 + other) / 3).margin(0.01));
}

TEST_CASE("a device type may say how many multiprocessors it is of", "[platform][device]") {
  CHECK(load_device_type(yaml::parse(kType, "card.yaml")).processors == 0);
  const std::string more = std::string(kType) + "processors: 64\n";
  CHECK(load_device_type(yaml::parse(more, "card.yaml")).processors == 64);
  const std::string none = std::string(kType) + "processors: 0\n";
  CHECK_THROWS_AS(load_device_type(yaml::parse(none, "card.yaml")), InputError);
}

TEST_CASE("a device type may say how much longer computing takes beside an exchange", "[platform][device]") {
  const auto beside = [](const std::string& given) {
    return load_device_type(yaml::parse(std::string(kType) + "beside_exchange: {" + given + "}\n", "card.yaml"))
        .beside_exchange;
  };
  CHECK(load_device_type(yaml::parse(kType, "card.yaml")).beside_exchange == BesideExchange{1, 1});
  CHECK(beside("matrix: 1.33, other: 1.17") == BesideExchange{1.33, 1.17});
  CHECK(beside("other: 10") == BesideExchange{1, 10});
  CHECK_THROWS_WITH(beside("matrix: 0.99"), Catch::StartsWith("card.yaml:15:27: ") && Catch::Contains("1 to 10"));
  CHECK_THROWS_WITH(beside("matrix: 10.1"), Catch::Contains("1 to 10"));
  CHECK_THROWS_WITH(beside("product: 2"), Catch::StartsWith("card.yaml:15:19: unknown key 'product'"));
}

TEST_CASE("types made from another keep what it says of exchanges", "[platform][device]") {
  const std::string whole = std::string(kType) + "beside_exchange: {matrix: 1.33, other: 1.17}\n";
  const DeviceTypeSource source = [&](const std::string&, const Where&) { return yaml::parse(whole, "card.yaml"); };
  const std::string derived =
      "name: faster\nvendor: maker\norigin: made-up\nderived: {from: card, scale: {flops: 2}}\n";
  const auto beside = [&](const std::string& text) {
    return load_device_type(yaml::parse(text, "faster.yaml"), source).beside_exchange;
  };
  CHECK(beside(derived) == BesideExchange{1.33, 1.17});
  CHECK(beside(derived + "beside_exchange: {matrix: 1.5}\n") == BesideExchange{1.5, 1.17});
  const DeviceType card = load_device_type(yaml::parse(whole, "card.yaml"));
  CHECK(capped(card, Watts{60}).beside_exchange == BesideExchange{1.33, 1.17});
}

TEST_CASE("a rate is given, or a share of the peak, or the vector rate, or lacking", "[platform][device]") {
  const DeviceType type = load_device_type(yaml::parse(kType, "card.yaml"));
  CHECK(type.rate(KernelKind::matmul, Precision::fp32)->value == near(5e12));
  CHECK(type.rate(KernelKind::matmul, Precision::fp16)->value == near(40e12));
  CHECK_FALSE(type.rate(KernelKind::matmul, Precision::bf16));                      // no such peak
  CHECK(type.rate(KernelKind::convolution, Precision::fp32)->value == near(12e12)); // given, above the peak
  CHECK(type.rate(KernelKind::convolution, Precision::fp16)->value == near(80e12)); // efficiency 1 by default
  CHECK(type.rate(KernelKind::attention, Precision::bf16)->value == near(7e12));    // given without a peak
  CHECK(type.rate(KernelKind::elementwise, Precision::bf16)->value == near(4e12));
  CHECK(type.rate(KernelKind::state_space, Precision::bf16)->value == near(0.95 * 4e12)); // by default
  const std::string more =
      std::string(kType).replace(std::string(kType).find("{matmul: 0.5}"), 13, "{state_space: 0.5}");
  CHECK(load_device_type(yaml::parse(more, "card.yaml")).rate(KernelKind::state_space, Precision::bf16)->value ==
        near(0.5 * 4e12));
  CHECK(type.rate(KernelKind::pooling, Precision::fp16)->value == near(1e12));
  CHECK(type.rate(KernelKind::pooling, Precision::fp32)->value == near(4e12));
  CHECK_FALSE(type.rate(KernelKind::recurrent, Precision::fp32));
  CHECK_FALSE(type.rate(KernelKind::embedding, Precision::fp32));
}

TEST_CASE("an unknown device type names the nearest and blames who asked", "[platform][device]") {
  const Where where{"study.yaml", 3, 9};
  CHECK_THROWS_WITH(test::shipped_types()("v100-sxm2-16bg", where),
                    Catch::StartsWith("study.yaml:3:9: unknown device type 'v100-sxm2-16bg'; did you mean "
                                      "'v100-sxm2-16gb'?"));
}

TEST_CASE("an error in a device type's file names that file", "[platform][device]") {
  const DeviceTypeSource source = [](const std::string&, const Where&) {
    return yaml::parse("name: a\nvendor: b\norigin: measured\nmemory: 3\n", "devices/a.yaml");
  };
  const std::string text = "name: test\nnodes:\n" + test::node_text("n", "devices: [{type: a}]");
  CHECK_THROWS_WITH(load_platform(yaml::parse(text, "test.yaml"), source), Catch::StartsWith("devices/a.yaml:4:9: "));
}

TEST_CASE("a device type's file must call itself by its name", "[platform][device]") {
  const DeviceTypeSource source = [](const std::string&, const Where&) { return yaml::parse(kType, "a.yaml"); };
  const std::string text = "name: test\nnodes:\n" + test::node_text("n", "devices: [{type: a}]");
  CHECK_THROWS_WITH(load_platform(yaml::parse(text, "test.yaml"), source),
                    Catch::StartsWith("a.yaml:1:7: the device type 'a' calls itself 'card'"));
}

} // namespace
} // namespace stagecraft
