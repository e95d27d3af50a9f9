// Costs of stages that are kept: those of plans that differ in one thing each, which must not be taken for each other.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/known_stages.hpp"
#include "tests/catch.hpp"
#include "tests/plan/tensor_chain.hpp"

namespace stagecraft {
namespace {

using test::grouped;

// Figures of a stage's devices, device by device: times, then memory.
std::vector<double> figures_of(const StageCost& stage) {
  std::vector<double> figures = {stage.gradients.value, static_cast<double>(stage.turns), stage.border_part};
  for (const ReplicaCost& one : stage.replicas) {
    const StageMemory& memory = one.memory;
    figures.insert(figures.end(), {static_cast<double>(one.device), one.share, one.forward.value, one.backward().value,
                                   one.recompute.value, one.optimizer.value, memory.weights.value,
                                   memory.gradients.value, memory.optimizer.value, memory.per_micro_batch.value,
                                   memory.workspace.value, memory.buffers.value});
  }
  return figures;
}

void check_same(const PlanCost& known, const PlanCost& expected) {
  REQUIRE(known.stages.size() == expected.stages.size());
  CHECK(known.cut == expected.cut);
  CHECK(known.edges.size() == expected.edges.size());
  for (std::size_t stage = 0; stage < known.stages.size(); ++stage) {
    CAPTURE(stage);
    CHECK(figures_of(known.stages[stage]) == figures_of(expected.stages[stage]));
  }
}

// The first one, and that one with one thing changed. Two of them have stages of the first beside others.
std::vector<Plan> plans() {
  const Plan first = grouped({{0, 1}, {2}}, {{0, 1}, {2}}, {1, 1});
  std::vector<Plan> plans = {first,
                             grouped({{0}, {1}, {2}}, {{0, 1}, {3}, {2}}, {1, 1, 1}), // what enters {2} is the same
                             grouped({{0, 1}, {2}}, {{1, 0}, {3}}, {1, 1}),
                             grouped({{0, 1}, {2}}, {{0, 1}, {2}}, {2, 1}),
                             grouped({{0}, {2}, {1}}, {{0, 1}, {2}, {3}}, {1, 1, 1}), // another border
                             grouped({{0, 1}, {2}}, {{0, 1, 2}, {3}}, {1, 1})};
  const auto changed = [&](const auto& change) { change(plans.emplace_back(first).stages.front()); };
  changed([](Stage& stage) { stage.shares = {0.25, 0.75}; });
  changed([](Stage& stage) { stage.recompute = Recompute::full; });
  changed([](Stage& stage) {
    stage.recompute = Recompute::selective;
    stage.recomputed = {1};
  });
  changed([](Stage& stage) { stage.turns = 2; });
  return plans;
}

TEST_CASE("costs of known stages are those of stages that are not", "[plan][known]") {
  test::Chain world(KernelKind::normalization, 4);
  KnownStages known;
  for (const int time : {1, 2}) {
    for (const Plan& plan : plans()) {
      CAPTURE(time, &plan - plans().data());
      check_same(cost_memory(world.problem, plan, &known), cost_memory(world.problem, plan));
      check_same(cost_plan(world.problem, plan, &known), cost_plan(world.problem, plan));
    }
  }
}

TEST_CASE("stages of one problem are not those of another", "[plan][known]") {
  test::Toy slower = test::Chain::toy_of(4, Bytes{0});
  slower.operators[0].seconds = {12};
  test::World world(test::Chain::toy_of(4, Bytes{0})), other(slower);
  KnownStages known;
  const Plan plan = plans().front();
  cost_plan(world.problem, plan, &known);
  check_same(cost_plan(other.problem, plan, &known), cost_plan(other.problem, plan));
}

TEST_CASE("a stage is worked out once", "[plan][known]") {
  KnownStages known;
  int made = 0;
  const auto make = [&] {
    ++made;
    return StageCost{};
  };
  for (const char* const key : {"one", "other", "one", "other"}) {
    known.find_or_make(key, make);
  }
  CHECK(made == 2);
}

} // namespace
} // namespace stagecraft
