// Replicas that share gradients or weights: what is gathered and reduced for each unit, and when.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "sim/plan/stage_cost/unit_waits.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr int kUnits = 4;

struct Shared {
  int replicas = 2;
  int sharing = 2;
  double gather = 0, reduce = 0; // seconds of a unit's
  double recompute = 0;
  std::string schedule = "1f1b";
  int micro_batches = 1;
  int fills = 1; // of so many micro-batches each
  Sharding sharding{.zero = Zero::weights};
  double dequantize = 0;        // seconds after a gather
  double leave = 0;             // seconds of a unit's activations, each way
  std::size_t leaving = kUnits; // units whose activations do
  bool blocking_sends = false;
  double from_host = 0; // seconds of a replica's part of a unit's weights
  double experts = 0;   // seconds of a unit's experts' gather
  double late = 0;      // of these
};

struct SharedRun {
  Platform platform;
  TaskGraph graph;
  Timeline timeline;

  /// Flows of a kind in an iteration.
  int count(TaskKind kind) const {
    return static_cast<int>(std::count_if(graph.work.begin(), graph.work.end(), [&](std::int32_t index) {
      return graph.works[index].transfers() && graph.works[index].kind == kind;
    }));
  }
  double iteration() const { return measure(graph, timeline, platform).iteration.value; }
};

// One stage of four units on replicas whose links carry 1000 B/s, a second each for a unit's forward and its backward,
// gradients of both kinds together. Between two replicas half of a unit's bytes cross each link.
SharedRun run(const Shared& shared) {
  PlanCost cost;
  StageCost& stage = cost.stages.emplace_back();
  stage.zero = shared.sharding.zero;
  stage.sharing = shared.sharing;
  const double bytes = 1000.0 * shared.sharing / (shared.sharing - 1); // that take a second
  for (std::size_t u = 0; u < kUnits; ++u) {
    stage.units.push_back({u, u + 1, Bytes{bytes * shared.gather}, Bytes{bytes * shared.reduce}});
    stage.units.back().stash = Bytes{u < shared.leaving ? 1000 * shared.leave : 0};
    stage.units.back().blocks_that_stay = kUnits - shared.leaving;
    stage.units.back().expert_weights = Bytes{bytes * shared.experts};
    stage.units.back().late_weights = Bytes{bytes * shared.late};
    if (shared.dequantize > 0) {
      stage.kernels.push_back({.after_gather = Seconds{shared.dequantize}});
    }
  }
  stage.expert_gradients = Bytes{shared.experts > 0 ? 1.0 : 0.0};
  const double part = bytes * shared.gather / shared.sharing; // of a unit's weights, from the host
  const BytesPerSecond down{1000}, up{shared.from_host > 0 ? part / shared.from_host : 1000};
  const auto host =
      std::make_shared<const HostCost>(HostCost{.to_host = {{}, {}, down}, .from_host = {{}, {}, up}, .memory = down});
  const std::vector<double> equal(kUnits, 1.0 / kUnits);
  stage.unit_parts = {equal, equal, equal, equal, equal};
  for (int i = 0; i < shared.replicas; ++i) {
    ReplicaCost replica;
    replica.device = i;
    replica.forward = Seconds{kUnits};
    replica.backward_input = replica.backward_weight = Seconds{kUnits / 2.0};
    replica.recompute = Seconds{shared.recompute * kUnits};
    replica.host = host;
    stage.replicas.push_back(replica);
  }
  Schedule schedule = repeat(test::schedule_of(shared.schedule, 1, shared.micro_batches), shared.fills);
  if (shared.recompute > 0) {
    constexpr char kStages[] = {1};
    schedule = add_recompute(std::move(schedule), kStages, {});
  }
  SharedRun result{make_star_platform({}, shared.replicas, BytesPerSecond{1000}, Seconds{0}), {}, {}};
  Router router(result.platform);
  const std::vector<int> rank_of(shared.replicas, 0);
  result.graph = make_task_graph(
      {.cost = cost,
       .schedule = schedule,
       .router = router,
       .blocking_sends = shared.blocking_sends,
       .all_reduce = "ring",
       .sharding = shared.sharding,
       .offload = {.parameters = shared.from_host > 0, .activations = shared.leave > 0 ? kAllBlocks : 0},
       .rank_of = rank_of});
  const ReplayRequest request{result.graph, result.platform, 4};
  result.timeline = replay_analytic({&request, 1}).front();
  return result;
}

Sharding weights(Reshard reshard, Reduce reduce = Reduce::each_micro_batch, int prefetch = 1) {
  return {.zero = Zero::weights, .reshard = reshard, .reduce = reduce, .prefetch = prefetch};
}

// FSDP2's fully_shard: reshard_after_forward true or false, and what a pipeline of TorchTitan does. The last unit's
// weights stay from forward to backward, which follows at once.
TEST_CASE("each rule gathers and reduces as often as its framework", "[schedule][units]") {
  constexpr int m = 3;
  const auto counts = [&](const Sharding& sharding) {
    const SharedRun one = run({.gather = 0.5, .reduce = 0.5, .micro_batches = m, .sharding = sharding});
    return std::pair(one.count(TaskKind::all_gather), one.count(TaskKind::reduce_scatter));
  };
  CHECK(counts(weights(Reshard::after_forward)) == std::pair(m * (2 * kUnits - 1), m * kUnits));
  CHECK(counts(weights(Reshard::after_backward)) == std::pair(m * kUnits, m * kUnits));
  CHECK(counts(weights(Reshard::after_step)) == std::pair(kUnits, m * kUnits));
  CHECK(counts(weights(Reshard::after_step, Reduce::last_micro_batch)) == std::pair(kUnits, kUnits));
  // Each fill of a pipeline gathers and reduces anew (PyTorch: `last_backward` of each schedule's step).
  const SharedRun fills = run({.gather = 0.5,
                               .reduce = 0.5,
                               .micro_batches = m,
                               .fills = 2,
                               .sharding = weights(Reshard::after_step, Reduce::last_micro_batch)});
  CHECK(fills.count(TaskKind::all_gather) == 2 * kUnits);
  CHECK(fills.count(TaskKind::reduce_scatter) == 2 * kUnits);
  // DeepSpeed's stage 2 reduces each micro-batch's, and gathers all parameters after the step.
  CHECK(counts({.zero = Zero::gradients}) == std::pair(1, m * kUnits));
}

// Steps 0 … 7 are F0 … F3, B3 … B0; all weights but those of B3 are gathered, one after the other, each as soon as one
// step is left before its own.
TEST_CASE("weights are gathered one unit ahead", "[schedule][units]") {
  const auto iteration = [](double gather, int prefetch) {
    return run({.gather = gather, .sharding = weights(Reshard::after_forward, Reduce::each_micro_batch, prefetch)})
        .iteration();
  };
  CHECK(iteration(0, 1) == near(2 * kUnits));
  CHECK(iteration(0.5, 1) == near(0.5 + 2 * kUnits)); // hidden, but for the first
  // Gathers end at 2, 4, 6, 8; F3 runs from 8 to 9. The next may begin then, with B3, and B2 runs from 11 to 12; the
  // last two end at 13 and 15.
  CHECK(iteration(2, 1) == near(16));
  // Without any prefetch each of seven is waited for.
  CHECK(iteration(0.5, 0) == near(7 * 0.5 + 2 * kUnits));
  CHECK(iteration(2, 0) == near(7 * 2 + 2 * kUnits));
  // All ahead of time: 7 gathers of 2 s in a row, and the last unit's backward.
  CHECK(iteration(2, 100) == near(7 * 2 + 1));
}

// FSDP's BACKWARD_POST: forward hides all but the first, backward waits for each of three.
TEST_CASE("backward may gather weights later than forward", "[schedule][units]") {
  Sharding sharding = weights(Reshard::after_forward);
  sharding.prefetch_backward = 0;
  CHECK(run({.gather = 0.5, .sharding = sharding}).iteration() == near(0.5 + 2 * kUnits + 3 * 0.5));
  sharding.prefetch_backward = 1;
  CHECK(run({.gather = 0.5, .sharding = sharding}).iteration() == near(0.5 + 2 * kUnits));
}

// Gathered once, before their forwards, in a quarter of a second and a half: all but the first unit's are hidden; but
// what is late only begins when the forward before it has ended.
TEST_CASE("weights of experts may be gathered late", "[schedule][units]") {
  const Sharding sharding{.zero = Zero::states,
                          .reshard = Reshard::after_step,
                          .reduce = Reduce::last_micro_batch,
                          .gather = Gather::before_use};
  const auto iteration = [&](double experts, double late) {
    return run({.gather = 0.25, .sharding = sharding, .experts = experts, .late = late}).iteration();
  };
  CHECK(iteration(0, 0) == near(0.25 + 2 * kUnits));
  CHECK(iteration(0.5, 0) == near(0.25 + 0.5 + 2 * kUnits));
  CHECK(iteration(0.5, 0.5) == near(0.25 + kUnits * 0.5 + 2 * kUnits));
  CHECK(iteration(0.5, 0.375) == near(0.25 + 0.125 + kUnits * 0.375 + 2 * kUnits));
}

TEST_CASE("the closed form of late gathers is their replay", "[schedule][units]") {
  for (const ReshardRow& reshard : kReshards) {
    for (const int prefetch : {0, 1, 3}) {
      for (const double late : {0.0, 0.2, 0.3}) {
        for (const auto& [gather, experts] : {std::pair(0.2, 0.3), {0.7, 0.4}, {0.1, 1.5}}) {
          CAPTURE(reshard.name, prefetch, late, gather, experts);
          const Sharding sharding = weights(reshard.reshard, Reduce::each_micro_batch, prefetch);
          const double replayed =
              run({.gather = gather, .micro_batches = 2, .sharding = sharding, .experts = experts, .late = late})
                  .iteration();
          const std::vector<UnitSeconds> units(kUnits, {.forward = Seconds{1},
                                                        .recompute = Seconds{0},
                                                        .backward = Seconds{1},
                                                        .gather = Seconds{gather + experts},
                                                        .reduce = Seconds{0},
                                                        .gather_late = Seconds{late}});
          CHECK(seconds_of_units(sharding, units, 2, sharding.parts_weights()).value == near(replayed));
        }
      }
    }
  }
}

// B3 … B0 end at 5, 6, 7, 8 where nothing holds them up.
TEST_CASE("gradients are reduced beside the next unit's backward, at most two units' at a time", "[schedule][units]") {
  const auto iteration = [](double reduce) {
    return run({.reduce = reduce, .sharding = weights(Reshard::after_backward)}).iteration();
  };
  CHECK(iteration(0.5) == near(2 * kUnits + 0.5));
  // The first is reduced from 5 to 7, and B1 waits for that; the second to 9, and B0 waits; the others to 11 and 13.
  CHECK(iteration(2) == near(13));
}

// HSDP: two groups of two; each has reduced its parts before they are added up over the groups, by a ring over two
// ranks of half of the bytes, which takes as long as the reduction.
TEST_CASE("groups that hold the same add up their parts", "[schedule][units]") {
  Shared shared{.replicas = 4, .sharing = 2, .gather = 0.25, .reduce = 0.25};
  shared.sharding.group = 2;
  const SharedRun two = run(shared);
  CHECK(two.count(TaskKind::all_gather) == 2 * (2 * kUnits - 1)); // in each group
  CHECK(two.count(TaskKind::reduce_scatter) == 2 * kUnits);
  CHECK(two.count(TaskKind::all_reduce) == 2 * kUnits); // for each of a group's two parts
  CHECK(two.iteration() == near(0.25 + 2 * kUnits + 2 * 0.25));
}

// A unit that runs forward again does so directly before its backward, and is gathered once for both.
TEST_CASE("recompute of a unit stands before its backward where weights are given up", "[schedule][units]") {
  constexpr int m = 2;
  for (const Reshard reshard : {Reshard::after_forward, Reshard::after_backward}) {
    const SharedRun one = run({.gather = 0.25, .recompute = 1, .micro_batches = m, .sharding = weights(reshard)});
    std::string order;
    for (const TaskId task : one.graph.program_of(0)) {
      const Work& work = one.graph.works[one.graph.work[task]];
      const bool runs_again = work.kind == TaskKind::recompute;
      order += one.graph.micro_batch[task] == 1 ? "" : runs_again ? "R" : work.kind == TaskKind::forward ? "F" : "B";
    }
    const bool woven = reshard == Reshard::after_forward;
    CHECK(order.substr(0, 3 * kUnits) == (woven ? "FFFFRBRBRBRB" : "FFFFRRRRBBBB"));
    CHECK(one.count(TaskKind::all_gather) == m * (woven ? 2 * kUnits - 1 : kUnits));
    CHECK(one.iteration() == near(0.25 + m * 3 * kUnits)); // everything but the first gather is hidden
  }
}

// Where backward is split, the gradient of the inputs needs weights, and that of the weights completes what is reduced.
TEST_CASE("split backwards gather for inputs and reduce after weights", "[schedule][units]") {
  const SharedRun one = run({.gather = 0.1, .reduce = 0.1, .schedule = "zb-h1", .micro_batches = 3});
  for (std::size_t task = 0; task < one.graph.work.size(); ++task) {
    const Work& work = one.graph.works[one.graph.work[task]];
    for (const TaskId next : one.graph.successors_of(static_cast<TaskId>(task))) {
      const Work& to = one.graph.works[one.graph.work[next]];
      if (to.kind == TaskKind::reduce_scatter && work.computes()) {
        CHECK(work.kind == TaskKind::weight);
      }
      if (work.kind == TaskKind::all_gather && to.computes()) {
        CHECK((to.kind == TaskKind::forward || to.kind == TaskKind::backward));
      }
    }
  }
  CHECK(one.count(TaskKind::reduce_scatter) == 3 * kUnits);
}

// Four replicas, two of which share each second copy.
TEST_CASE("backwards gather from a second copy among those that share it", "[schedule][units][zero++]") {
  constexpr int m = 3;
  Shared shared{.replicas = 4, .sharing = 4, .gather = 0.75, .micro_batches = m};
  shared.sharding.secondary = 2;
  const SharedRun two = run(shared);
  CHECK(two.count(TaskKind::all_gather) == m * (kUnits + 2 * (kUnits - 1)));
  // Without prefetch each gather is waited for: 3/4 of a unit over each link takes 0.75 s, half of it 0.5.
  shared.sharding.prefetch = 0;
  CHECK(run(shared).iteration() == near(m * (2 * kUnits + kUnits * 0.75 + (kUnits - 1) * 0.5)));
}

// Seven gathers; what makes weights into numbers to compute with is the device's own time.
TEST_CASE("gathered weights are dequantized before they are used", "[schedule][units][zero++]") {
  const SharedRun one = run({.gather = 0.25, .dequantize = 0.125});
  std::string order;
  for (const TaskId task : one.graph.program_of(0)) {
    const TaskKind kind = one.graph.works[one.graph.work[task]].kind;
    order += kind == TaskKind::optimizer ? "" : std::string(1, kTaskLetters[static_cast<std::size_t>(kind)]);
  }
  CHECK(order == "QFQFQFQFBQBQBQB");
  CHECK(one.iteration() == near(0.25 + 2 * kUnits + 7 * 0.125)); // gathers but the first are hidden
}

// F0 … F3 and B3 … B0 take a second each. Activations of F3 are needed at once and stay.
TEST_CASE("activations leave after their forward and are back before their backward", "[schedule][units][offload]") {
  const auto iteration = [](double leave) { return run({.leave = leave}).iteration(); };
  const SharedRun one = run({.leave = 0.5});
  CHECK(one.count(TaskKind::to_host) == 2 * (kUnits - 1)); // of two replicas
  CHECK(one.count(TaskKind::from_host) == 2 * (kUnits - 1));
  CHECK(iteration(0.5) == near(2 * kUnits)); // hidden
  // Those of F0 are away at 3, when F2 starts, one second late; those of F1 at 5, when F3 starts; those of F2 at 7, and
  // B3, which starts at 6, waits. They are back at 9; B2 runs until 10, when those of F1, which may come from the end
  // of B3 at 8 on, have been coming since 9 and are back at 11; B1 runs until 12, and those of F0 are back at 13.
  CHECK(iteration(2) == near(14));
}

// Transformer Engine's DefaultOffloadSynchronizer, of six layers of which two leave: layer i is away before the forward
// of layer 6 - 2 + i, and comes back when the backward of layer 6 - 1 - 2 + i begins.
TEST_CASE("activations have as many steps to leave as there are blocks whose activations stay",
          "[schedule][units][offload]") {
  std::vector<UnitStep> steps; // F0 … F5, B5 … B0
  for (int n = 0; n < 12; ++n) {
    steps.push_back(n < 6 ? UnitStep{UnitPass::forward, n} : UnitStep{UnitPass::backward, 11 - n});
  }
  const std::vector<UnitTrip> trips = trips_of(steps, std::vector<std::int32_t>(12, 0), {4, 4, 0, 0, 0, 0});
  REQUIRE(trips.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(trips[i].from == i);
    CHECK(trips[i].gone_by == 4 + i);
    CHECK(trips[i].to == 11 - i);
    CHECK(steps[trips[i].back_after + 1].unit == 3 + static_cast<int>(i));
  }
  ShardUnit leaving{.stash = Bytes{1}};
  CHECK(leaving.steps_away() == 2); // two buffers
  leaving.blocks_that_stay = 4;
  CHECK(leaving.steps_away() == 4);
  CHECK(ShardUnit{.blocks_that_stay = 4}.steps_away() == 0);
}

// Those of F0 alone leave, from 1 on. Copies of 2 s are there at 3, when F3 starts, and back from the end of B3 at 5 on
// until 7, when B0 starts. Copies of 3 s make F3 wait until 4; B3 ends at 6, and B0 waits until 9. Devices that wait
// for their sends to others compute meanwhile, too.
TEST_CASE("activations of few blocks hide behind the others", "[schedule][units][offload]") {
  for (const bool blocking : {false, true}) {
    CAPTURE(blocking);
    CHECK(run({.leave = 2, .leaving = 1, .blocking_sends = blocking}).iteration() == near(2 * kUnits));
    CHECK(run({.leave = 3, .leaving = 1, .blocking_sends = blocking}).iteration() == near(10));
  }
}

// A replica's half of a unit's weights comes before it is gathered, with one unit's start ahead.
TEST_CASE("weights that rest with hosts come before they are gathered", "[schedule][units][offload]") {
  const SharedRun one = run({.gather = 0.25, .from_host = 0.5});
  CHECK(one.count(TaskKind::from_host) == 2 * (2 * kUnits - 1));
  CHECK(one.iteration() == near(0.5 + 0.25 + 2 * kUnits));
  CHECK(
      run({.gather = 0.25, .sharding = weights(Reshard::after_forward, Reduce::each_micro_batch, 0), .from_host = 0.5})
          .iteration() == near(7 * 0.75 + 2 * kUnits));
}

// The estimate of planners follows the same rules without a graph.
TEST_CASE("the closed form of units is their replay", "[schedule][units]") {
  for (const ReshardRow& reshard : kReshards) {
    for (const ReduceRow& reduce : kReduces) {
      for (const int prefetch : {0, 1, 3}) {
        for (const auto& [gather, reducing] : {std::pair(0.0, 0.3), {0.7, 0.0}, {0.4, 0.3}, {1.5, 0.25}, {0.5, 3.0}}) {
          for (const double recompute : {0.0, 1.0}) {
            for (const int m : {1, 2, 5}) {
              CAPTURE(reshard.name, reduce.name, prefetch, gather, reducing, recompute, m);
              Sharding sharding = weights(reshard.reshard, reduce.reduce, prefetch);
              sharding.prefetch_backward = m == 2 ? std::optional(3 - prefetch) : std::nullopt;
              const double replayed = run({.gather = gather,
                                           .reduce = reducing,
                                           .recompute = recompute,
                                           .micro_batches = m,
                                           .sharding = sharding})
                                          .iteration();
              const std::vector<UnitSeconds> units(
                  kUnits, {Seconds{1}, Seconds{recompute}, Seconds{1}, Seconds{gather}, Seconds{reducing}});
              CHECK(seconds_of_units(sharding, units, m, sharding.parts_weights()).value == near(replayed));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the closed form of what is dequantized and leaves is its replay", "[schedule][units][offload][zero++]") {
  for (const double dequantize : {0.0, 0.2}) {
    for (const double leave : {0.0, 0.4, 1.7, 3.0}) {
      for (const double recompute : {0.0, 1.0}) {
        for (const int m : {1, 2, 4}) {
          CAPTURE(dequantize, leave, recompute, m);
          const Sharding sharding = weights(Reshard::after_forward);
          const double replayed = run({.gather = 0.6,
                                       .reduce = 0.3,
                                       .recompute = recompute,
                                       .micro_batches = m,
                                       .sharding = sharding,
                                       .dequantize = dequantize,
                                       .leave = leave})
                                      .iteration();
          const std::vector<UnitSeconds> units(kUnits, {.forward = Seconds{1},
                                                        .recompute = Seconds{recompute},
                                                        .backward = Seconds{1},
                                                        .gather = Seconds{0.6},
                                                        .reduce = Seconds{0.3},
                                                        .dequantize = Seconds{dequantize},
                                                        .leave = Seconds{leave},
                                                        .arrive = Seconds{leave}});
          CHECK(seconds_of_units(sharding, units, m, true).value == near(replayed));
        }
      }
    }
  }
}

TEST_CASE("a pass takes and gives back as much memory as before, and as long", "[schedule][units]") {
  const SharedRun one = run({.micro_batches = 3});
  for (const TaskKind kind : {TaskKind::forward, TaskKind::backward}) {
    double seconds = 0, parts = 0;
    for (const TaskId task : one.graph.program_of(0)) {
      const Work& work = one.graph.works[one.graph.work[task]];
      seconds += work.kind == kind ? work.seconds.value : 0;
      parts += work.kind == kind ? work.part_end - work.part_begin : 0;
    }
    CHECK(seconds == near(3 * kUnits));
    CHECK(parts == near(3));
  }
}

} // namespace
} // namespace stagecraft
