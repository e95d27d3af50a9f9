// The executor: laws that any real run obeys, whatever its schedule; failures; what is refused before the start.
// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <set>

#include "tests/catch.hpp"
#include "tests/pipeline/laws.hpp"
#include "tests/schedule/random_pipelines.hpp"

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/work/scale.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr double kTiny = 1e-5; // times of random pipelines are seconds

// A pipeline prepared for a real run: graph, channels and platform.
struct Ready {
  Platform platform;
  TaskGraph graph;
  Channels channels;

  Setting setting() const { return {graph, platform, channels}; }
};

Ready ready(const test::Pipeline& pipeline, const Schedule& schedule, bool barrier = true) {
  const test::PipelineRun run = test::run(pipeline, schedule, {.barrier = barrier});
  const Scale scale{kTiny, 1};
  Ready one{rescaled(run.platform, scale), chain_transfers(rescaled(run.graph, scale)), {}};
  one.channels = channels_of(one.graph);
  return one;
}

TEST_CASE("a real run keeps the laws of timelines under every schedule", "[pipeline]") {
  for (const ScheduleRow& row : schedules()) {
    std::mt19937 random(7);
    for (int trial = 0; trial < 3; ++trial) {
      const test::RandomCase one = test::random_case(row, random);
      const Ready run = ready(one.pipeline, one.schedule, one.barrier);
      const std::unique_ptr<Backend> backend = make_sleeping(run.setting());
      const Execution execution = execute(run.setting(), *backend, {one.iterations, false});
      INFO(row.name << ", trial " << trial);
      CHECK(join(broken_laws(run.graph, execution.timeline, one.iterations), "\n").empty());
      CHECK_FALSE(execution.real_time); // real time was not asked for
    }
  }
}

// The order in which transfers of each channel started is the order in which the sender's program makes their data.
TEST_CASE("ordered transfers go one after the other, first made first", "[pipeline][order]") {
  test::Pipeline pipeline = test::equal_stages(3, 2, {1, 1, 1, 0.5, 0});
  pipeline.bytes.assign(5, 300); // 3 s each at 100 B/s, far more than a computation
  pipeline.bandwidth = 100;
  const Schedule schedule = test::schedule_of("interleaved", 3, 6, 2);
  test::PipelineRun run = test::run(pipeline, schedule);
  const TaskGraph graph = chain_transfers(run.graph);
  const ReplayRequest request{graph, run.platform};
  const Timeline timeline = replay_analytic({&request, 1}).front();
  const Channels channels = channels_of(graph);
  // ranks 0 > 1 > 2 and, from stage 2 to 3, 2 > 0; and all of them backwards
  CHECK(channels.work_of.size() == 6);
  for (std::size_t channel = 0; channel < channels.work_of.size(); ++channel) {
    std::vector<std::pair<double, TaskId>> starts;
    for (TaskId task = 0; task < graph.tasks(); ++task) {
      if (channels.of_work[graph.work[task]] == static_cast<std::int32_t>(channel)) {
        starts.emplace_back(timeline.start[task], task);
      }
    }
    std::sort(starts.begin(), starts.end());
    CHECK(static_cast<std::int32_t>(starts.size()) == channels.transfers[channel]);
    double free = 0, made = 0;
    for (const auto& [start, task] : starts) {
      CHECK(start >= free);
      free = timeline.finish[task];
      double maker = 0;
      for (TaskId before = 0; before < graph.tasks(); ++before) {
        const auto after = graph.successors_of(before);
        if (graph.works[graph.work[before]].computes() && std::find(after.begin(), after.end(), task) != after.end()) {
          maker = timeline.finish[before];
        }
      }
      CHECK(maker >= made);
      made = maker;
    }
  }
  const auto edges = [](const TaskGraph& g) { return g.successors.size(); };
  CHECK(edges(graph) == edges(run.graph) + (graph.executed() - graph.program.size()) - channels.work_of.size());
}

// Fails at the computation or transfer with a given number, and counts calls.
class Failing : public Backend {
public:
  explicit Failing(int at) : left_(at) {}

  void compute(const Job& /*job*/) override { count(); }
  void transfer(const Job& /*job*/, int /*channel*/) override { count(); }

private:
  void count() {
    if (--left_ == 0) {
      throw std::runtime_error("out of paper");
    }
  }
  std::atomic<int> left_;
};

TEST_CASE("a task that fails ends the run, with its name, device and cause", "[pipeline]") {
  const Ready run = ready(test::equal_stages(2, 1, {1, 1, 1}), test::schedule_of("gpipe", 2, 2));
  // F0@0 runs first, and alone
  Failing first(1);
  CHECK_THROWS_WITH(execute(run.setting(), first, {}),
                    "F0@0 of iteration 0 on " + run.platform.devices[0].name + ": out of paper");
  // wherever it fails, all threads end: 8 computations, 4 transfers, 2 steps
  for (int at = 2; at <= 14; ++at) {
    Failing failing(at);
    CHECK_THROWS_AS(execute(run.setting(), failing, {}), ExecutionFailure);
  }
  Failing never(15);
  CHECK_NOTHROW(execute(run.setting(), never, {}));
}

TEST_CASE("tasks that wait for each other in a cycle are refused before anything starts", "[pipeline]") {
  Ready run = ready(test::equal_stages(2, 1, {1, 1, 1}), test::schedule_of("1f1b", 2, 2));
  CHECK(why_not_executable(run.graph, 2).empty());
  std::swap(run.graph.program[0], run.graph.program[run.graph.program_begin[1] - 2]); // F0 after the last B
  Failing backend(1);
  CHECK_THROWS_AS(execute(run.setting(), backend, {}), std::invalid_argument);
  CHECK(why_not_executable(run.graph, 1).find("wait for each other") != std::string::npos);
  run.graph.workers = 1;
  CHECK(why_not_executable(run.graph, 1).find("loader") != std::string::npos);
}

// Every task takes its time, except one computation that is 2 s late.
TEST_CASE("a run that something else disturbed is known by its sleepers", "[pipeline]") {
  test::PipelineRun run = test::run(test::equal_stages(2, 1, {1, 1, 1}), test::schedule_of("gpipe", 2, 2));
  CHECK(latest_sleeper(run.graph, run.timeline).value == Approx(0).margin(1e-12));
  run.timeline.finish[run.graph.program[1]] += 2;
  CHECK(latest_sleeper(run.graph, run.timeline).value == Approx(2));
}

// 10 s of 4 B/s is 40 B; at half the bandwidth and twice the time as many bytes take 20 s.
TEST_CASE("a rescaled graph keeps the proportion of transfers to computations", "[pipeline][scale]") {
  test::Pipeline pipeline = test::equal_stages(2, 1, {1, 2, 3});
  pipeline.bytes = {40};
  pipeline.bandwidth = 4;
  pipeline.latency = 1;
  const test::PipelineRun run = test::run(pipeline, test::schedule_of("gpipe", 2, 1));
  const Scale scale{2, 0.5};
  const TaskGraph graph = rescaled(run.graph, scale);
  const Platform platform = rescaled(run.platform, scale);
  const ReplayRequest request{graph, platform};
  const Timeline slow = replay_simgrid({&request, 1}).front();
  for (std::size_t entry = 0; entry < slow.finish.size(); ++entry) {
    CHECK(slow.finish[entry] == Approx(2 * run.timeline.finish[entry]));
  }
  for (const Work& work : graph.works) {
    CHECK((!work.transfers() || work.bytes == 40));
  }
}

} // namespace
} // namespace stagecraft::pipeline
