// Tensor-parallel stages and selective recompute: times, memory, traffic and replays by hand.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/replay/replay.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/plan/tensor_chain.hpp"

namespace stagecraft {
namespace {

using test::near;

using test::Chain;
using test::grouped;

TaskGraph graph_of(Chain& world, const Plan& plan) {
  const PlanCost cost = cost_plan(world.problem, plan);
  const ScheduleResult made = make_schedule(find_by_name(schedules(), "1f1b", "schedule", {"test", 0, 0}),
                                            {static_cast<int>(plan.stages.size()), world.toy.micro_batches, 1});
  std::vector<char> again;
  for (const Stage& stage : plan.stages) {
    again.push_back(stage.recompute != Recompute::none ? 1 : 0);
  }
  const Schedule schedule = add_recompute(std::get<Schedule>(made), again, {});
  return make_task_graph({.cost = cost, .schedule = schedule, .router = world.router});
}

double replayed(Chain& world, const Plan& plan) {
  const TaskGraph graph = graph_of(world, plan);
  const ReplayRequest request{graph, world.platform};
  const Timeline analytic = replay_analytic({&request, 1}).front();
  const Timeline simgrid = replay_simgrid({&request, 1}).front();
  for (std::size_t task = 0; task < analytic.finish.size(); ++task) {
    CHECK(analytic.finish[task] == near(simgrid.finish[task]));
  }
  return measure(graph, analytic, world.platform).iteration.value;
}

TEST_CASE("two devices do half of a lone product each, gather its output and sum its input's gradient",
          "[plan][tensor]") {
  // Normalization needs whole rows: both devices do it whole, and the products round it are no pair. Of n bytes, a ring
  // of 2 gathers the other half in n/4 + 1 s and adds up all in n/2 + 2 s. Each pass: (6/2 + 3 + 9/2)/3; operator 1
  // gathers 8 B of operator 0 forward, and again backward since each device keeps its own half only; the gradient of
  // operator 2's input, 8 B, is added up. No one reads operator 2's output, so no one gathers it.
  Chain world(KernelKind::normalization, 2);
  const PlanCost cost = cost_plan(world.problem, grouped({{0, 1, 2}}, {{0, 1}}, {2}));
  REQUIRE(cost.stages[0].replicas.size() == 2);
  for (const ReplicaCost& shard : cost.stages[0].replicas) {
    CHECK(shard.share == 1);
    CHECK(shard.forward.value == near(3.5 + (2 + 1)));
    CHECK(shard.backward_input.value == near(3.5 + (2 + 1) + (4 + 2)));
    CHECK(shard.backward_weight.value == near(3.5));
    CHECK(shard.memory.weights.value == near(30 * 4 / 2.0));
    CHECK(shard.memory.per_micro_batch.value == near(40 + 20 / 2.0 + 60)); // what is read whole stays whole
  }
  CHECK(cost.stages[0].gradients.value == near(30 * 4 / 2.0));
}

TEST_CASE("columns then rows halve the collectives and split what stands between", "[plan][tensor]") {
  Chain world(KernelKind::elementwise, 2);
  const PlanCost cost = cost_plan(world.problem, grouped({{0, 1, 2}}, {{0, 1}}, {2}));
  const ReplicaCost& shard = cost.stages[0].replicas[0];
  CHECK(shard.forward.value == near(3 + (2 + 2)));
  CHECK(shard.backward_input.value == near(3)); // the first operator is a source: nobody needs its input's gradient
  CHECK(shard.memory.per_micro_batch.value == near(40 + 20 / 2.0 + 60 / 2.0));
  // A cut between them leaves two operators on their own.
  const PlanCost cut = cost_plan(world.problem, grouped({{0, 1}, {2}}, {{0, 1}, {0, 1}}, {2, 2}));
  CHECK(cut.stages[0].replicas[0].forward.value == near(2 + (2 + 1))); // (6/2 + 3)/3, and operator 1 gathers 8 B
  CHECK(cut.stages[1].replicas[0].forward.value == near(1.5));
  CHECK(cut.stages[1].replicas[0].backward_input.value == near(1.5 + (4 + 2)));
  CHECK(cut.stages[1].replicas[0].memory.per_micro_batch.value == near(60));
}

TEST_CASE("what a group waits for is its share of the bytes round the ring", "[plan][tensor]") {
  // As above: operator 1 gathers 8 B in each pass, operator 2 sums its input's gradient of 8 B.
  Chain world(KernelKind::normalization, 2);
  const TensorSplit split = std::get<TensorSplit>(split_tensors(world.problem, {0, 1, 2}, {.degree = 2}));
  const Group pair = ring_of({0, 1}, world.router);
  const auto forward = [&](int op, double share) {
    return forward_seconds({}, split.operators[op], pair, share).value;
  };
  CHECK(forward(0, 1) == 0);
  CHECK(forward(1, 1) == near(2 + 1)); // 4 B in one step, at 2 B/s
  CHECK(forward(1, 0.5) == near(1 + 1));
  CHECK(forward(2, 1) == 0);
  CHECK(forward_seconds({}, split.operators[1], ring_of({0}, world.router), 1).value == 0); // alone
  const auto backward = [&](int op, const OperatorTime& time, double share) {
    return backward_seconds(time, split.operators[op], pair, share).value;
  };
  CHECK(backward(1, {}, 1) == near(2 + 1));
  CHECK(backward(1, {}, 0.5) == near(1 + 1));
  CHECK(backward(2, {}, 1) == near(4 + 2)); // 4 B in each of two steps
  CHECK(backward(2, {}, 0.5) == near(2 + 2));
}

// Operator 2's gradient of its inputs, 10 s, leaves 8 B, which are added up in 6 s beside the gradient of the weights.
TEST_CASE("what a gradient of inputs leaves is exchanged beside the gradient of the weights", "[plan][tensor]") {
  Chain world(KernelKind::normalization, 2);
  const TensorSplit split = std::get<TensorSplit>(split_tensors(world.problem, {0, 1, 2}, {.degree = 2}));
  const Group pair = ring_of({0, 1}, world.router);
  const auto backward = [&](double weight) {
    const OperatorTime time{Seconds{1}, Seconds{10}, Seconds{weight}};
    return backward_seconds(time, split.operators[2], pair, 1).value;
  };
  CHECK(backward(0) == near(10 + 6));
  CHECK(backward(4) == near(10 + 6));
  CHECK(backward(7) == near(10 + 7));
}

TEST_CASE("two groups of two: half of the samples each, equal shards reduce together", "[plan][tensor]") {
  Chain world(KernelKind::elementwise, 4);
  const Plan plan = grouped({{0, 1, 2}}, {{0, 1, 2, 3}}, {2});
  const PlanCost cost = cost_plan(world.problem, plan);
  CHECK(cost.stages[0].replicas[3].share == 0.5);
  CHECK(cost.stages[0].replicas[3].forward.value == near(1.5 + (1 + 2))); // 2 B of the output
  // Gradients of 15 parameters, 60 B, over rings {0, 2} and {1, 3}: 60/2 + 2 s.
  const double micro_batch = 1.5 + 3 + 1.5 + 1.5;
  CHECK(estimate_iteration(world.problem, plan, cost).value == near(2 * micro_batch + 32));
  CHECK(replayed(world, plan) == near(2 * micro_batch + 32));
  const TaskGraph graph = graph_of(world, plan);
  std::map<DeviceId, double> sent;
  for (const Work& work : graph.works) {
    sent[work.transfers() ? graph.devices[work.device] : -1] += work.transfers() ? work.bytes : 0;
  }
  CHECK((sent[0] == 60 && sent[1] == 60)); // a flow for each ring, sent in the name of its first
}

TEST_CASE("a pipeline of groups sends whole tensors from rank to rank", "[plan][tensor]") {
  // F of a stage waits for both ranks; the cut of 8 B takes 1 + 4 s, and again for its gradient. Operator 1 gathers 8 B
  // in each pass, operator 2 sums its input's gradient of 8 B.
  Chain world(KernelKind::elementwise, 4);
  const Plan plan = grouped({{0, 1}, {2}}, {{0, 1}, {2, 3}}, {2, 2});
  const double f0 = 2 + 3;
  const double b0 = 4 + 3;
  const double f1 = 1.5;
  const double b1 = 1.5 + std::max(6.0, 1.5); // the weights' gradient beside the sum
  // 1F1B of two micro-batches: F0 twice; the second F1 waits for neither; B0 of the second ends it all.
  const double second_forward = std::max(2 * f0 + 5, f0 + 5 + f1 + b1);
  const double end = std::max(second_forward + f1 + b1 + 5, f0 + 5 + f1 + b1 + 5 + b0) + b0;
  CHECK(replayed(world, plan) == near(end));
}

// Which devices send how many bytes of one micro-batch to which stage.
std::map<std::pair<DeviceId, int>, double> sent_by(Chain& world, const Plan& plan) {
  const TaskGraph graph = graph_of(world, plan);
  std::map<std::pair<DeviceId, int>, double> bytes;
  for (const Work& work : graph.works) {
    if (work.transfers() && work.kind == TaskKind::transfer) {
      bytes[{graph.devices[work.device], work.to_stage}] += work.bytes;
    }
  }
  return bytes;
}

TEST_CASE("each rank of an unequal neighbour takes the tensor from its own number, modulo", "[plan][tensor]") {
  using Sent = std::map<std::pair<DeviceId, int>, double>;
  Chain world(KernelKind::elementwise, 4);
  CHECK(sent_by(world, grouped({{0, 1}, {2}}, {{0, 1}, {2}}, {2, 1})) == Sent{{{0, 1}, 8}, {{2, 0}, 16}});
  CHECK(sent_by(world, grouped({{0, 1}, {2}}, {{0}, {1, 2}}, {1, 2})) == Sent{{{0, 1}, 16}, {{1, 0}, 8}});
  CHECK(sent_by(world, grouped({{0, 1}, {2}}, {{0, 1}, {2, 3}}, {2, 1})) ==
        Sent{{{0, 1}, 8}, {{2, 0}, 8}, {{3, 0}, 8}}); // two replicas of half a micro-batch, for both ranks each
}

TEST_CASE("the list order knows groups too", "[plan][tensor]") {
  Chain world(KernelKind::elementwise, 4);
  const Plan plan = grouped({{0}, {1}, {2}}, {{0, 1}, {2, 3}, {0, 1}}, {2, 2, 2});
  const PlanCost cost = cost_plan(world.problem, plan);
  const Schedule schedule = make_list_schedule(world.router, plan, cost, 2);
  const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = world.router});
  const ReplayRequest request{graph, world.platform};
  const Timeline timeline = replay_analytic({&request, 1}).front();
  CHECK(timeline.finish.size() == static_cast<std::size_t>(graph.tasks()));
  CHECK(measure(graph, timeline, world.platform).iteration > Seconds{18});
}

TEST_CASE("a roofline divides FLOPs and parameters, never launches", "[plan][tensor]") {
  Operator op;
  op.name = "op";
  op.kind = KernelKind::matmul;
  op.forward = {Flops{80}, 6, 20, 1};
  op.parameters = 20;
  const ModelGraph model = make_graph("one", {op}, {}, {}, {"test", 0, 0});
  const CostModelResult made = make_roofline({model});
  const CostModel& cost = *std::get<std::unique_ptr<CostModel>>(made);
  DeviceType type;
  for (auto& row : type.rates) {
    row.fill(FlopsPerSecond{1});
  }
  type.memory_bandwidth = BytesPerSecond{4};
  type.launch_overhead = Seconds{3};
  const auto forward = [&](const Shard& shard) {
    return cost.time_of_shard(0, type, 1, Precision::fp32, shard)->forward.value;
  };
  CHECK(forward({1}) == near(3 + 80));
  CHECK(forward({4}) == near(3 + 20));
  CHECK(forward({16}) == near(3 + 6 + 20 / 16.0)); // bound by memory: 4 B an element at 4 B/s, activations whole
  CHECK(forward({16, 1 / 16.0}) == near(3 + 5));   // activations divided too: bound by FLOPs again
}

TEST_CASE("a stage recomputes some of its operators", "[plan][recompute]") {
  Chain world(KernelKind::elementwise, 1);
  Plan plan = grouped({{0, 1, 2}}, {{0}}, {1});
  plan.stages[0].recompute = Recompute::selective;
  plan.stages[0].recomputed = {1, 2};
  const PlanCost cost = cost_plan(world.problem, plan);
  const ReplicaCost& replica = cost.stages[0].replicas[0];
  CHECK(replica.recompute.value == near((3 + 9) / 3.0));
  CHECK(replica.memory.per_micro_batch.value == near(40 + 8)); // what operator 0 keeps, and its output for operator 1
  CHECK(replica.memory.workspace.value == near(20 + 60));
  CHECK(replayed(world, plan) == near(2 * (18 + 4)));
  // All of them is what a full recompute is.
  plan.stages[0].recomputed = {0, 1, 2};
  const PlanCost all = cost_plan(world.problem, plan);
  plan.stages[0].recompute = Recompute::full;
  plan.stages[0].recomputed = {};
  const PlanCost full = cost_plan(world.problem, plan);
  CHECK(all.stages[0].replicas[0].busy() == full.stages[0].replicas[0].busy());
  CHECK(all.stages[0].replicas[0].memory.total(3, 1) == full.stages[0].replicas[0].memory.total(3, 1));
}

} // namespace
} // namespace stagecraft
