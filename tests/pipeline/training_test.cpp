// Training through a pipeline: a schedule changes when things happen, never what is learnt.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/training.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr int kRanks = 4, kMicroBatches = 8;

struct Trained {
  Schedule schedule;
  TrainingSetup setup;
  TrainingResult result;
};

// Uneven parts of a perceptron: stage s has 1 + s % 2 layers.
TrainingSetup setup_of(int stages) {
  TrainingSetup setup;
  for (int s = 0; s < stages; ++s) {
    setup.layers.push_back(1 + s % 2);
  }
  return setup;
}

Trained train(const Schedule& schedule, StagePlacement placement, TrainingSetup setup) {
  test::Pipeline pipeline = test::equal_stages(static_cast<int>(schedule.orders.size()),
                                               schedule.stages / static_cast<int>(schedule.orders.size()), {1, 1, 1});
  pipeline.stage_placement = placement;
  const test::PipelineRun run = test::run(pipeline, schedule);
  const Channels channels = channels_of(run.graph);
  const Setting setting{run.graph, run.platform, channels};
  Training training(setting, schedule, setup);
  execute(setting, training, {setup.iterations, false});
  return {schedule, setup, training.result()};
}

TEST_CASE("every synchronous schedule learns what gradient accumulation on one device learns", "[pipeline][training]") {
  int schedules_tried = 0;
  for (const ScheduleRow& row : schedules()) {
    const int chunks = chunks_of(row, 2);
    const ScheduleResult made = make_schedule(row, {.ranks = kRanks, .micro_batches = kMicroBatches, .chunks = chunks});
    if (!std::holds_alternative<Schedule>(made) || !std::get<Schedule>(made).flushes) {
      continue; // accumulate has one stage, and asynchronous ones are below
    }
    const Schedule& schedule = std::get<Schedule>(made);
    INFO(row.name);
    const Trained trained = train(schedule, row.stage_placement, setup_of(schedule.stages));
    const TrainingResult alone = train_sequentially(trained.setup, kMicroBatches);
    CHECK(largest_difference(trained.result.layers, alone.layers) < 1e-10);
    CHECK(trained.result.replicas_differ == 0);
    for (int i = 0; i < trained.setup.iterations; ++i) {
      CHECK(trained.result.losses[i] == Approx(alone.losses[i]).epsilon(1e-10));
    }
    CHECK(alone.losses.back() < 0.9 * alone.losses.front()); // it does learn
    for (int s = 0; s < schedule.stages; ++s) {
      CHECK(trained.result.staleness[s] == 0);
      CHECK(trained.result.versions[s] == 1);
    }
    ++schedules_tried;
  }
  CHECK(schedules_tried >= 15);
}

TEST_CASE("asynchronous schedules train with weights as old as they say, from as many versions",
          "[pipeline][training]") {
  for (const ScheduleRow& row : schedules()) {
    const ScheduleResult made = make_schedule(row, {.ranks = kRanks, .micro_batches = kMicroBatches});
    if (!std::holds_alternative<Schedule>(made) || std::get<Schedule>(made).flushes) {
      continue;
    }
    const Schedule& schedule = std::get<Schedule>(made);
    TrainingSetup setup = setup_of(schedule.stages);
    setup.iterations = 40;
    const Trained trained = train(schedule, row.stage_placement, setup);
    INFO(row.name);
    for (int s = 0; s < schedule.stages; ++s) {
      INFO("stage " << s);
      // the first micro-batches see no older weights than the initial ones, so the mean is a little less
      const double whole = schedule.staleness[s];
      CHECK(trained.result.staleness[s] <= whole);
      CHECK(trained.result.staleness[s] >= whole * 0.9);
      CHECK(trained.result.versions[s] <= (schedule.versions.empty() ? 1 : schedule.versions[s]));
    }
    CHECK(trained.result.losses.back() < 0.9 * trained.result.losses.front());
  }
}

// Stage 0 on two devices that share every micro-batch unevenly, stage 1 on a third and stage 2 on a fourth.
TEST_CASE("replicas that share micro-batches learn the same, and stay the same", "[pipeline][training]") {
  TrainingSetup setup = setup_of(3);
  setup.shares = {{{1, 0.25}, {0, 0.75}}, {{2, 1}}, {{3, 1}}};
  PlanCost cost;
  cost.stages.resize(3);
  for (std::size_t s = 0; s < 3; ++s) {
    for (const ReplicaShare& share : setup.shares[s]) {
      ReplicaCost replica;
      replica.device = share.device;
      replica.share = share.share;
      cost.stages[s].replicas.push_back(replica);
    }
  }
  cost.edges = {{0, 1, Bytes{100}}, {1, 2, Bytes{100}}};
  cost.cut = {Bytes{100}, Bytes{100}};
  const Platform platform = make_star_platform({}, 4, BytesPerSecond{1e9}, Seconds{0});
  Router router(platform);
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    const Schedule schedule = test::schedule_of(name, 3, kMicroBatches);
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    const Channels channels = channels_of(graph);
    const Setting setting{graph, platform, channels};
    Training training(setting, schedule, setup);
    execute(setting, training, {setup.iterations, false});
    const TrainingResult result = training.result();
    INFO(name);
    CHECK(largest_difference(result.layers, train_sequentially(setup, kMicroBatches).layers) < 1e-10);
    CHECK(result.replicas_differ == 0);
  }
  const Schedule schedule = test::schedule_of("gpipe", 3, kMicroBatches);
  const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
  const Channels channels = channels_of(graph);
  setup.samples = 1; // a quarter of it is no sample
  CHECK_THROWS_WITH(Training({graph, platform, channels}, schedule, setup), Catch::Contains("has no sample"));
}

TEST_CASE("training with recompute learns the same weights", "[pipeline][training]") {
  const std::vector<char> all(4, 1);
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    for (const bool except_last : {false, true}) {
      const Schedule schedule =
          add_recompute(test::schedule_of(name, 4, kMicroBatches), all, {.except_last_micro_batch = except_last});
      const Trained trained = train(schedule, StagePlacement::interleaved, setup_of(4));
      INFO(name);
      CHECK(largest_difference(trained.result.layers, train_sequentially(trained.setup, kMicroBatches).layers) < 1e-10);
    }
  }
}

// A backend that loses what stage 0 sends of micro-batch 1.
class Lossy : public Backend {
public:
  explicit Lossy(Training& training, const TaskGraph& graph) : training_(training), graph_(graph) {}

  void compute(const Job& job) override { training_.compute(job); }
  void transfer(const Job& job, int channel) override {
    if (job.work.stage != 0 || graph_.micro_batch[job.task] != 1) {
      training_.transfer(job, channel);
    }
  }

private:
  Training& training_;
  const TaskGraph& graph_;
};

TEST_CASE("data that does not arrive is an error that names it", "[pipeline][training]") {
  const Schedule schedule = test::schedule_of("gpipe", 2, 2);
  const test::PipelineRun run = test::run(test::equal_stages(2, 1, {1, 1, 1}), schedule);
  const Channels channels = channels_of(run.graph);
  const Setting setting{run.graph, run.platform, channels};
  Training training(setting, schedule, {.layers = {1, 1}, .shares = {}, .iterations = 1});
  Lossy lossy(training, run.graph);
  CHECK_THROWS_WITH(execute(setting, lossy, {1, false}),
                    Catch::Contains("F1@1") && Catch::Contains("not all of micro-batch 1 has arrived from stage 0"));
}

} // namespace
} // namespace stagecraft::pipeline
