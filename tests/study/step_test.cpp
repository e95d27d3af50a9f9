// The end of an iteration in a study: clipping by the gradient norm. And what devices hold beside tensors.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/communicators.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

Run run_of(const std::string& text) {
  const Comparison comparison = compare_text(text).comparison;
  REQUIRE(comparison.runs.size() == 1);
  return comparison.runs.front();
}

// Two stages of 6 s, whose transfers take 3 s; the optimiser, and reading gradients, no time.
Run gelu_run(const std::string& training, const std::string& platform, const std::string& strategy = "uniform",
             const std::string& schedule = "1f1b") {
  return run_of("model: gelu.yaml\nplatform: " + platform +
                "\ntraining: {global_batch: 4, micro_batches: 4, optimizer: sgd" + training +
                "}\ncompare: {strategies: [" + strategy + "], schedules: [" + schedule + "]}\n");
}

// The sum goes there and back, 3 s each. One device has nobody to ask.
TEST_CASE("stages wait for the norm of all gradients before they step", "[study][clip]") {
  const std::string two = "{devices: 2, latency: 3 s}";
  for (const char* engine : {"\nengine: analytic", "\nengine: simgrid"}) {
    const Run plain = gelu_run("", two + engine), clipped = gelu_run(", clip_gradients: true", two + engine);
    REQUIRE(clipped.feasible);
    CHECK((clipped.metrics.iteration - plain.metrics.iteration).value == near(6));
    CHECK((clipped.estimate - plain.estimate).value == near(0)); // which leaves the sum out
  }
  const std::string one = "{devices: 1, latency: 3 s}";
  CHECK(gelu_run(", clip_gradients: true", one, "single", "gpipe").metrics.iteration ==
        gelu_run("", one, "single", "gpipe").metrics.iteration);
}

// Replicas have all gradients each, so they need not ask each other; where they share the optimiser they have parts.
TEST_CASE("replicas ask each other for the norm where they share the optimiser", "[study][clip]") {
  const auto later = [](const std::string& zero) {
    const std::string parallel = ", parallel: {data: 2, zero: " + zero + "}", two = "{devices: 2, latency: 3 s}";
    const std::string training = "model: chain.yaml\nplatform: " + two +
                                 "\nengine: analytic\n"
                                 "training: {global_batch: 4, micro_batches: 2, optimizer: sgd" +
                                 parallel;
    const std::string compare = "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
    const Run clipped = run_of(training + ", clip_gradients: true" + compare), plain = run_of(training + compare);
    REQUIRE(clipped.feasible);
    return (clipped.metrics.iteration - plain.metrics.iteration).value;
  };
  CHECK(later("0") == near(0));
  CHECK(later("1") == near(6));
}

// What a device computes for it: one launch and the gradients read, another one and these read and written.
TEST_CASE("clipping takes the time to read gradients twice and write them once", "[study][clip]") {
  const auto text = [](const std::string& clip) {
    return "model: products.yaml\nplatform: pcie-v100\nengine: analytic\ntraining: {global_batch: 8, precision: fp16" +
           clip + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n";
  };
  const Study read = study(text(""));
  const Run plain = run_of(text("")), clipped = run_of(text(", clip_gradients: true"));
  const DeviceType& type = read.platform.type_of(0);
  const Bytes gradients{8.0 * 1024 * 1024 * 2};
  CHECK((clipped.metrics.busy[0] - plain.metrics.busy[0]).value ==
        near((2 * type.launch_overhead + 3 * gradients / type.memory_bandwidth).value));
  CHECK((clipped.estimate - plain.estimate).value ==
        near((2 * type.launch_overhead + 3 * gradients / type.memory_bandwidth).value));
}

TEST_CASE("every schedule that waits for all stages can clip, and no other", "[study][clip][conformance]") {
  const auto runs = [](const std::string& clip) {
    return compare_text("model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: "
                        "16, micro_batches: 8, precision: bf16" +
                        clip + "}\ncompare: {strategies: [uniform], schedules: all}\n")
        .comparison;
  };
  const Comparison clipped = runs(", clip_gradients: true"), plain = runs("");
  int waiting = 0;
  for (const Run& run : plain.runs) {
    CAPTURE(run.strategy, run.schedule);
    const Run& other = find_run(clipped, run.strategy, run.schedule, run.micro_batches);
    if (!run.feasible) {
      continue;
    }
    if (run.staleness.empty()) {
      REQUIRE(other.feasible);
      CHECK(other.metrics.iteration > run.metrics.iteration);
      ++waiting;
    } else {
      CHECK(!other.feasible);
      CHECK_THAT(other.why_not, Contains("does not wait for them; allowed: training.clip_gradients false"));
    }
  }
  CHECK(waiting > 5);
}

// 1F1B on two devices: the first holds 1000 parameters of 8 B, 8 MB of buffers and two micro-batches of 20 MB.
constexpr double kTensors = 8000 + 8e6 + 40e6;

TEST_CASE("peak memory has the context, a communicator for each group, and what the allocator wastes",
          "[study][memory]") {
  const auto peak = [](const std::string& more) { return gelu_run(more, "{devices: 2}").metrics.peak_memory[0].value; };
  CHECK(peak("") == near(kTensors));
  CHECK(peak(", memory: {context: 1 GB}") == near(kTensors + 1e9));
  CHECK(peak(", memory: {communicator: 100 MB}") == near(kTensors + 1e8)); // of the pipeline
  CHECK(peak(", clip_gradients: true, memory: {communicator: 100 MB}") == near(kTensors + 2e8));
  CHECK(peak(", memory: {fragmentation: 0.5}") == near(kTensors * 1.5));
  CHECK(peak(", memory: {context: 1 GB, communicator: 100 MB, fragmentation: 0.5}") ==
        near(kTensors * 1.5 + 1e9 + 1e8));
}

TEST_CASE("what is held beside tensors must fit as well, to the byte", "[study][memory]") {
  const auto fits = [](double memory, const std::string& reserve) {
    return gelu_run(", memory: {" + reserve + "}",
                    "{devices: 2, memory: " + std::to_string(static_cast<long long>(memory)) + " B}");
  };
  const std::string both = "context: 1 GB, communicator: 100 MB";
  CHECK(fits(kTensors + 1.1e9, both).feasible);
  CHECK(!fits(kTensors + 1.1e9 - 1, both).feasible);
  CHECK(fits(1.5 * kTensors, "fragmentation: 0.5").feasible);
  CHECK(!fits(1.5 * kTensors - 2, "fragmentation: 0.5").feasible);
  CHECK_THAT(fits(kTensors + 1e9, both).why_not, Contains("more than its"));
  CHECK_THAT(error_of([&] { fits(1e9, both); }), Contains("a context of"));
  CHECK_THAT(error_of([&] { fits(1e9, both); }), Contains("study.yaml:3:11: "));
}

// Two stages of two replicas of two devices: a tensor group, a group that reduces, the pipeline; and the norm of all.
TEST_CASE("a device has a communicator for each group that it exchanges data with", "[study][memory]") {
  const auto held = [](const std::string& more) {
    return run_of("model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: 16, "
                  "micro_batches: 4, precision: bf16, parallel: {tensor: 2, data: 2, pipeline: 2}" +
                  more + "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n")
        .metrics.peak_memory;
  };
  const std::vector<Bytes> plain = held(""), three = held(", memory: {communicator: 1 GB}"),
                           four = held(", clip_gradients: true, memory: {communicator: 1 GB}");
  for (std::size_t device = 0; device < plain.size(); ++device) {
    CHECK((three[device] - plain[device]).value == near(3e9));
    CHECK((four[device] - plain[device]).value == near(4e9));
  }
}

} // namespace
} // namespace stagecraft::test
