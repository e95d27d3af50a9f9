// A model's operators become a profile. Kernels take made-up times, so that every number is known.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <set>

#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"

#include "calibrate/cpu/profile.hpp"

namespace stagecraft::cpu {
namespace {

constexpr const char* kTiny = R"(
name: tiny
input: {shape: [3, 8, 8]}
layers:
  - {name: conv, kind: conv2d, channels: 4, kernel: 3, padding: 1}
  - {name: norm, kind: batch_norm}
  - {name: relu, kind: relu}
  - {name: again, kind: relu}
  - {name: pool, kind: max_pool, kernel: 2}
  - {name: flatten, kind: flatten}
  - {name: fc, kind: linear, features: 10}
)";

ModelGraph load(const std::string& text) { return load_workload(yaml::parse(text, "tiny.yaml")); }

// Each kernel takes a nanosecond per operation and byte, and varies by 1 %.
KernelTiming by_size(const stagecraft::Kernel& kernel) {
  return {Seconds{(flops_of(kernel).value + bytes_of(kernel).value) * 1e-9}, 0.01};
}

TEST_CASE("each kernel of a model is measured once", "[cpu]") {
  const ModelGraph model = load(kTiny);
  std::vector<std::string> asked;
  std::size_t last = 0, all = 0;
  const auto measure = [&](const stagecraft::Kernel& kernel) {
    asked.push_back(to_text(kernel));
    return by_size(kernel);
  };
  const MeasuredModel measured =
      measure_model(model, {2}, measure, [&](std::size_t done, std::size_t of) { last = done, all = of; });
  // conv 2 (no gradient of the image), norm 2, relu 2 for both, pool one copy for both passes, fc 3.
  CHECK(asked.size() == 10);
  CHECK(std::set<std::string>(asked.begin(), asked.end()).size() == asked.size());
  CHECK(last == asked.size());
  CHECK(all == asked.size());
  CHECK(measured.stand_ins == std::vector<std::string>{"pool: a copy of as many bytes"});
}

TEST_CASE("times of operators are sums of their kernels", "[cpu]") {
  const ModelGraph model = load(kTiny);
  const MeasuredModel measured = measure_model(model, {1, 4}, by_size, {});
  REQUIRE(measured.profiles.size() == 2);
  const std::vector<MeasuredTime>& times = measured.profiles[1].times;
  const auto time_of = [](const std::string& text) { return by_size(parse_kernel(text, {"test", 0, 0})).time.value; };
  CHECK(times[0].forward.value ==
        Approx(time_of("convolution forward fp32 n=4 c=3 h=8 w=8 k=4 r=3 s=3 stride=1 padding=1 groups=1")));
  CHECK(times[5].forward.value == 0); // a view
  const double forward = time_of("gemm forward fp32 batch=1 m=4 n=10 k=64");
  const double input = time_of("gemm backward-input fp32 batch=1 m=4 n=64 k=10");
  const double weight = time_of("gemm backward-weight fp32 batch=1 m=64 n=10 k=4");
  CHECK(times[6].forward.value == Approx(forward));
  CHECK(times[6].backward.value == Approx(input + weight));
  // Independent kernels: variances add.
  CHECK(times[6].spread ==
        Approx(0.01 * std::sqrt(forward * forward + input * input + weight * weight) / (forward + input + weight)));
  CHECK(times[4].spread ==
        Approx(kStandInSpread / std::sqrt(2)).epsilon(0.02)); // two copies, whose errors are independent
}

TEST_CASE("a profile is read back as it was measured", "[cpu]") {
  const ModelGraph model = load(kTiny);
  MeasuredModel measured = measure_model(model, {1, 2, 8}, by_size, {});
  for (Profile& profile : measured.profiles) {
    profile.device = "cpu-test";
  }
  const ModelGraph read = load(profile_text(model, measured, "a test"));
  REQUIRE(read.profiles.size() == 3);
  REQUIRE(read.size() == model.size());
  CHECK(read.successors == model.successors);
  for (std::size_t size = 0; size < 3; ++size) {
    CHECK(read.profiles[size].device == "cpu-test");
    CHECK(read.profiles[size].samples == measured.profiles[size].samples);
    for (std::size_t op = 0; op < read.operators.size(); ++op) {
      const MeasuredTime &got = read.profiles[size].times[op], &want = measured.profiles[size].times[op];
      CHECK(got.forward.value == Approx(want.forward.value).epsilon(1e-5));
      CHECK(got.backward.value == Approx(want.backward.value).epsilon(1e-5));
      CHECK(got.spread == Approx(want.spread).epsilon(1e-2));
      CHECK(read.operators[op].parameters == model.operators[op].parameters);
      CHECK(read.operators[op].output_elements == model.operators[op].output_elements);
      CHECK(read.operators[op].stash_elements == model.operators[op].stash_elements);
      CHECK(read.operators[op].kind == model.operators[op].kind);
    }
  }
}

TEST_CASE("profiles of several device types are read back beside each other", "[cpu]") {
  for (const std::string other : {"cpu-other", "a: b", "[x]", "\"\\", "null", "x,y z$", "two\nlines"}) {
    CAPTURE(other);
    const ModelGraph model = load(kTiny);
    MeasuredModel measured = measure_model(model, {1, 2}, by_size, {});
    measured.profiles.push_back(measure_model(model, {4}, by_size, {}).profiles.front());
    for (std::size_t i = 0; i < 3; ++i) {
      measured.profiles[i].device = i < 2 ? other : "cpu-test";
    }
    const ModelGraph read = load(profile_text(model, measured, "a test"));
    REQUIRE(read.profiles.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(read.profiles[i].device == measured.profiles[i].device);
      CHECK(read.profiles[i].samples == measured.profiles[i].samples);
      for (std::size_t op = 0; op < read.operators.size(); ++op) {
        const MeasuredTime &got = read.profiles[i].times[op], &want = measured.profiles[i].times[op];
        CHECK(got.forward.value == Approx(want.forward.value).epsilon(1e-5));
        CHECK(got.backward.value == Approx(want.backward.value).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("times stay beside new ones if a file can hold both", "[cpu]") {
  const Profile here{.device = "here", .samples = 1, .times = {{Seconds{1}, Seconds{1}}}};
  const auto stays = [&](const std::function<void(Profile&)>& change) {
    Profile other = here;
    other.device = "other";
    change(other);
    return can_stay_beside(other, here);
  };
  CHECK(stays([](Profile&) {}));
  CHECK(stays([](Profile& one) { one.samples = 7; }));
  CHECK_FALSE(stays([](Profile& one) { one.device = "here"; })); // measured again
  CHECK_FALSE(stays([](Profile& one) { one.device = ""; }));
  CHECK_FALSE(stays([](Profile& one) { one.samples = 0; }));
  CHECK_FALSE(stays([](Profile& one) { one.precision = Precision::fp16; }));
  CHECK_FALSE(stays([](Profile& one) { one.tensor_parallel = 2; }));
  CHECK_FALSE(stays([](Profile& one) { one.times[0].forward = Seconds{std::numeric_limits<double>::infinity()}; }));
}

TEST_CASE("a profile is read back whatever its operators are called", "[cpu]") {
  for (const std::string name : {"two\nlines", " a: b #c", "'", "\"\\", "[x]", "{", "null", "- item", "~", "x,y z$",
                                 "input", "na\xc3\xafve", "\x01\x7f", "\xe2\x80\xae", "\xc2\x85"}) {
    CAPTURE(name);
    ModelGraph model = load(kTiny);
    model.name = name;
    model.description = name;
    for (std::size_t op = 0; op < model.operators.size(); ++op) {
      model.operators[op].name = op == 0 ? name : op == 1 ? name + "_" : name + std::to_string(op);
    }
    MeasuredModel measured = measure_model(model, {1}, by_size, {});
    measured.profiles.front().device = name;
    const ModelGraph read = load(profile_text(model, measured, name));
    CHECK(read.name == name);
    CHECK(read.successors == model.successors);
    CHECK(read.profiles.front().device == name);
  }
}

TEST_CASE("what stands in for a pass without a kernel", "[cpu]") {
  Operator op;
  op.kind = KernelKind::recurrent;
  // 5 steps, each 2 samples x 64 x 64 multiplications: as many products.
  const StandIn steps = stand_in(op, {.flops = Flops{2 * 5 * 64 * 64}, .kernels = 5}, 2);
  CHECK(steps.times == 5);
  CHECK(to_text(steps.kernel) == "gemm forward fp32 batch=1 m=2 n=64 k=64");
  op.kind = KernelKind::convolution;
  CHECK(to_text(stand_in(op, {.flops = Flops{1000}, .kernels = 1}, 2).kernel) ==
        "gemm forward fp32 batch=1 m=10 n=10 k=10");
  op.kind = KernelKind::pooling; // 2 x 4096 elements read and written: a copy of 4096
  CHECK(to_text(stand_in(op, {.moved_elements = 4096, .kernels = 1}, 2).kernel) ==
        "copy forward fp32 rows=4 columns=1024");
}

TEST_CASE("profiles of several sizes are checked", "[cpu]") {
  const auto text = [](const std::string& samples, const std::string& times, const std::string& more = "") {
    return "name: x\nprofile: {samples: " + samples +
           "}\nlayers:\n  - {name: a, kind: matmul, forward: 1 FLOP, output: 1, " +
           "inputs: [input], forward_time: " + times + ", backward_time: " + times + more + "}\n";
  };
  CHECK(load(text("[1, 2]", "[1 ms, 2 ms]")).profiles[1].times[0].backward == Seconds{2e-3});
  CHECK(load(text("4", "1 ms")).profiles[0].samples == 4);
  CHECK(load(text("[1, 2]", "[1 ms, 2 ms]", ", spread: [0.1, 0.2]")).profiles[1].times[0].spread == 0.2);
  CHECK_THROWS_WITH(load(text("[1, 2]", "[1 ms]")),
                    Catch::Contains("'forward_time' has 1 values; allowed: one for each"));
  CHECK_THROWS_WITH(load(text("[2, 1]", "[1 ms, 1 ms]")), Catch::Contains("do not ascend"));
  CHECK_THROWS_WITH(load(text("[1, 1]", "[1 ms, 1 ms]")), Catch::Contains("do not ascend"));
  CHECK_THROWS_WITH(load(text("1", "1 ms", ", spread: -1")), Catch::Contains("spread"));
}

} // namespace
} // namespace stagecraft::cpu
