// Backend `cpu`: the kernels it runs, the laws that any run obeys, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "tests/catch.hpp"
#include "tests/pipeline/laws.hpp"
#include "tests/schedule/pipelines.hpp"

#include "calibrate/pipeline/cores.hpp"
#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/measure_cores.hpp"
#include "calibrate/pipeline/work/stage_kernels.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr double kFeatures = 32, kSamples = 8;

Pass product(double m, double n, double k, int grows) {
  return {.kernels = 1, .calls = {{KernelOp::gemm, {1, m, n, k}, grows}}};
}

// Layers of kFeatures to kFeatures; the first needs no gradient of its input.
ModelGraph layers(int count) {
  ModelGraph model;
  for (int i = 0; i < count; ++i) {
    Operator op{.name = "fc" + std::to_string(i), .kind = KernelKind::matmul};
    op.parameters = kFeatures * kFeatures;
    op.forward = product(1, kFeatures, kFeatures, 1);
    op.backward_input = i > 0 ? product(1, kFeatures, kFeatures, 1) : Pass{};
    op.backward_weight = product(kFeatures, kFeatures, 1, 3);
    model.operators.push_back(op);
  }
  return model;
}

// One layer after another on each rank.
struct Case {
  ModelGraph model;
  Plan plan;
  test::PipelineRun run;
  Channels channels;
  std::vector<std::vector<cpu::KernelRun>> kernels;
  std::vector<double> speeds;

  Case(int ranks, const char* schedule, int chunks = 1) : model(layers(ranks * chunks)) {
    test::Pipeline pipeline = test::equal_stages(ranks, chunks, {1, 1, 1, 1});
    pipeline.bytes.assign(static_cast<std::size_t>(ranks * chunks - 1), kSamples * kFeatures * sizeof(float));
    plan = test::plan_of(pipeline);
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
      plan.stages[stage].operators = {static_cast<OperatorId>(stage)};
    }
    run = test::run(pipeline, test::schedule_of(schedule, ranks, 4, chunks));
    run.graph = chain_transfers(run.graph);
    channels = channels_of(run.graph);
    kernels = kernels_of_works(run.graph, plan, model, Training{}, kSamples);
  }
  Setting setting() const { return {run.graph, run.platform, channels, kernels, speeds}; }
};

// The backend, or nullptr, after a line that says why, if there are too few cores.
std::unique_ptr<Backend> processor(const Setting& setting) {
  try {
    return make_cpu(setting);
  } catch (const Unavailable& reason) {
    std::cout << "SKIPPED: " << reason.what() << "\n";
    return nullptr;
  }
}

Flops flops_of(const std::vector<cpu::KernelRun>& runs) {
  Flops all;
  for (const cpu::KernelRun& run : runs) {
    all += flops_of(run.kernel) * run.times;
  }
  return all;
}

// 2 x 8 x 32 x 32 operations a product; the first layer makes no gradient of its input.
TEST_CASE("works run the kernels of their stages", "[pipeline][cores]") {
  const double one = 2 * kSamples * kFeatures * kFeatures;
  for (const bool splits : {false, true}) {
    const Case two(2, splits ? "zb-h1" : "1f1b");
    for (std::size_t index = 0; index < two.kernels.size(); ++index) {
      const Work& work = two.run.graph.works[index];
      const double input = work.stage > 0 ? one : 0;
      const double expected = work.kind == TaskKind::forward    ? one
                              : work.kind == TaskKind::weight   ? one
                              : work.kind == TaskKind::backward ? input + (splits ? 0 : one)
                                                                : 0;
      if (work.kind == TaskKind::optimizer && work.computes()) { // momentum: two additions of 32 x 32 elements
        REQUIRE(two.kernels[index].size() == 1);
        CHECK(to_text(two.kernels[index].front().kernel) == "add forward fp32 rows=1 columns=1024");
        CHECK(two.kernels[index].front().times == 2);
      } else {
        INFO(kTaskLetters[static_cast<std::size_t>(work.kind)] << work.stage);
        CHECK(flops_of(two.kernels[index]).value == expected);
      }
    }
  }
}

// A quarter of 8 samples is 2, three quarters are 6.
TEST_CASE("replicas run their shares, and groups that compute together are refused", "[pipeline][cores]") {
  Case both(2, "1f1b");
  both.plan.stages = {{.operators = {0, 1}, .devices = {0, 1}, .shares = {0.25, 0.75}}};
  TaskGraph graph = both.run.graph;
  graph.works = {{.kind = TaskKind::forward, .device = 0}, {.kind = TaskKind::forward, .device = 1}};
  const auto kernels = kernels_of_works(graph, both.plan, both.model, Training{}, kSamples);
  const double layer = 2 * kFeatures * kFeatures;
  CHECK(flops_of(kernels[0]).value == 2 * layer * 2);
  CHECK(flops_of(kernels[1]).value == 2 * layer * 6);
  both.plan.stages.front().tensor_parallel = 2;
  CHECK_THROWS_AS(kernels_of_works(graph, both.plan, both.model, Training{}, kSamples), std::invalid_argument);
}

TEST_CASE("runs on cores keep the laws of timelines", "[pipeline][cores]") {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved"}) {
    Case two(2, schedule, std::string_view(schedule) == "interleaved" ? 2 : 1);
    for (Work& work : two.run.graph.works) {
      work.seconds = Seconds{0}; // the time of a kernel depends on this machine
    }
    const std::unique_ptr<Backend> backend = processor(two.setting());
    if (!backend) {
      return;
    }
    const Execution execution = execute(two.setting(), *backend, {2, true, true});
    INFO(schedule);
    CHECK(join(broken_laws(two.run.graph, execution.timeline, 2), "\n").empty());
  }
}

// At half speed each computation takes at least twice the time that it uses of its core, so at least as long as before.
TEST_CASE("parts of runs on cores are all measured", "[pipeline][cores]") {
  Case two(2, "1f1b");
  two.speeds = {1, 0.5};
  const std::unique_ptr<Backend> backend = processor(two.setting());
  if (!backend) {
    return;
  }
  const PartTimes parts = measure_on_cores(two.setting(), *backend, true);
  REQUIRE(parts.works.size() == two.run.graph.works.size());
  REQUIRE(parts.slowdowns.size() == 2);
  REQUIRE(parts.contention.size() == parts.works.size() * parts.works.size());
  for (const double slowdown : parts.contention) {
    CHECK(slowdown > 0);
  }
  REQUIRE(parts.legs.size() == two.run.graph.legs.size());
  for (std::size_t work = 0; work < parts.works.size(); ++work) {
    CHECK((two.kernels[work].empty() || parts.works[work].value > 0));
  }
  for (const PathCost& leg : parts.legs) {
    CHECK(leg.latency.value > 0);
  }
}

TEST_CASE("more devices than cores are refused, and so is a model without kernels", "[pipeline][cores]") {
  const Case large(1100, "gpipe"); // more than a set of cores has
  CHECK_THROWS_AS(make_cpu(large.setting()), Unavailable);
  Case one(1, "gpipe");
  CHECK_NOTHROW(make_cpu(one.setting()));
  one.kernels.clear();
  CHECK_THROWS_AS(make_cpu(one.setting()), Unavailable);
}

// The platform's fastest type counts, used or not; types without a peak in fp32 are as fast as any.
TEST_CASE("cores are as unequal as the platform's devices", "[pipeline][cores]") {
  Platform platform;
  platform.types.resize(3);
  platform.types[0].peak[static_cast<std::size_t>(Precision::fp32)] = FlopsPerSecond{10e12};
  platform.types[1].peak[static_cast<std::size_t>(Precision::fp32)] = FlopsPerSecond{4e12};
  platform.devices = {{"a", 0, 0}, {"b", 1, 0}, {"c", 2, 0}};
  TaskGraph graph;
  graph.devices = {2, 1};
  CHECK(speeds_of(graph, platform) == std::vector<double>{1, 0.4});
}

} // namespace
} // namespace stagecraft::pipeline
