// The critical path of small pipelines, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/engines.hpp"
#include "sim/timeline/critical_path.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

/// "F0@1 3-4": what a step does, on which stage, and when.
std::string text_of(const TaskGraph& graph, const PathStep& step) {
  const auto task = static_cast<TaskId>(step.entry % graph.tasks());
  const Work& work = graph.works[graph.work[task]];
  return std::string(1, kTaskLetters[static_cast<std::size_t>(work.kind)]) + std::to_string(graph.micro_batch[task]) +
         "@" + std::to_string(work.stage) + " " + to_text(step.start, 0) + "-" + to_text(step.finish, 0);
}

std::vector<std::string> path_of(const test::PipelineRun& run) {
  std::vector<std::string> texts;
  for (const PathStep& step : critical_path(run.graph, run.timeline)) {
    if (step.finish > step.start) {
      texts.push_back(text_of(run.graph, step));
    }
  }
  return texts;
}

TEST_CASE("the critical path is the chain of what each task waited for last", "[critical-path]") {
  // F = B = 1, hops of 2: 0: F0 0-1 F1 1-2 B0 7-8 B1 9-10; 1: F0 3-4 B0 4-5 F1 5-6 B1 6-7. The second stage is busy
  // from its first input to its last output.
  const test::Pipeline pipeline{{{1, 1, 0}, {1, 1, 0}}, 2, {}, 1, 2};
  CHECK(path_of(test::run(pipeline, test::schedule_of("1f1b", 2, 2))) ==
        std::vector<std::string>{"F0@0 0-1", "T0@0 1-3", "F0@1 3-4", "B0@1 4-5", "F1@1 5-6", "B1@1 6-7", "T1@1 7-9",
                                 "B1@0 9-10"});
}

TEST_CASE("a slow first stage is the whole path", "[critical-path]") {
  // F = B = 3 and 1, no hops: 0: F0 0-3 F1 3-6 B0 6-9 B1 9-12; 1: F0 3-4 B0 4-5 F1 6-7 B1 7-8.
  const test::Pipeline pipeline{{{3, 3, 0}, {1, 1, 0}}, 2, {}, 1, 0};
  CHECK(path_of(test::run(pipeline, test::schedule_of("1f1b", 2, 2))) ==
        std::vector<std::string>{"F0@0 0-3", "F1@0 3-6", "B0@0 6-9", "B1@0 9-12"});
}

TEST_CASE("the transfer before on a channel is a cause until its last byte has entered", "[critical-path][order]") {
  // F = 1, wire 4, latency 3: F0@0 0-1, F1@0 1-2; T0 enters the channel from 1 to 5 and arrives at 8; T1 is ready at 2,
  // enters from 5 on and arrives at 12. F0@1 8-9, F1@1 12-13. B takes no time, the last micro-batch goes first,
  // and what it sends back takes 4 + 3 s too: T1@1 enters at 13, T0@1 at 17 and arrives at 24.
  const test::Pipeline pipeline{{{1, 0, 0}, {1, 0, 0}}, 2, {8}, 2, 3};
  for (const EngineRow& engine : kEngines) {
    INFO(engine.name);
    CHECK(path_of(test::run(pipeline, test::schedule_of("gpipe", 2, 2),
                            {.ordered_sends = true, .engine = engine.replay})) ==
          std::vector<std::string>{"F0@0 0-1", "T0@0 1-5", "T1@0 5-12", "F1@1 12-13", "T1@1 13-17", "T0@1 17-24"});
  }
}

TEST_CASE("in a steady state the path covers one period, whatever the schedule and the engine", "[critical-path]") {
  const test::Pipeline uneven{{{1, 2, 1, 0.5}, {3, 1, 2, 0.25}, {2, 2, 2, 1}, {1, 1, 1, 0.5}}, 4, {2, 5, 1}, 1, 0.5};
  for (const ScheduleRow& row : schedules()) {
    const ScheduleResult made = make_schedule(row, {4, 8, 1});
    if (std::holds_alternative<Infeasible>(made)) {
      continue;
    }
    const Schedule schedule = std::get<Schedule>(made);
    if (schedule.stages != 4) {
      continue;
    }
    for (const EngineRow& engine : kEngines) {
      for (const auto& [barrier, ordered] : {std::pair{true, false}, {false, false}, {false, true}}) {
        INFO(row.name << " " << engine.name << (barrier ? " barrier" : " local") << (ordered ? " ordered" : ""));
        test::PipelineRun run = test::run(
            uneven, schedule, {.iterations = 4, .barrier = barrier, .ordered_sends = ordered, .engine = engine.replay});
        run.timeline.window = 2;
        const std::vector<PathStep> path = critical_path(run.graph, run.timeline);
        double at = end_of_iteration(run.graph, run.timeline, 1);
        for (const PathStep& step : path) {
          CHECK(step.start == Approx(at).margin(1e-6));
          at = step.finish;
        }
        CHECK(at == Approx(end_of_iteration(run.graph, run.timeline, 3)));
      }
    }
  }
}

} // namespace
} // namespace stagecraft
