// Communication by axis: exposed, hidden, and waiting for peers, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/communication.hpp"
#include "tests/catch.hpp"
#include "tests/plan/tensor_chain.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::Chain;
using test::grouped;
using test::near;

std::vector<Communication> communication(Chain& world, const Plan& plan, ExchangeTasks exchanges,
                                         const std::vector<SpeedChange>& speeds = {}) {
  const PlanCost cost = cost_plan(world.problem, plan);
  const Schedule schedule = test::schedule_of("1f1b", static_cast<int>(plan.stages.size()), 1);
  const TaskGraph graph =
      make_task_graph({.cost = cost, .schedule = schedule, .router = world.router, .exchanges = exchanges});
  const ReplayRequest request{graph, world.platform, 1, speeds};
  return communication_of(graph, replay_analytic({&request, 1}).front());
}

void check(const std::vector<Communication>& all, const std::string& axis, double exposed, double hidden,
           double for_peers) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Communication& one) { return one.axis == axis; });
  REQUIRE(found != all.end());
  CAPTURE(axis);
  CHECK(found->exposed.value == near(exposed));
  CHECK(found->hidden.value == near(hidden));
  CHECK(found->for_peers.value == near(for_peers));
}

// As in tests/schedule/exchange_tasks_test.cpp: exchanges of 3, 6 and 3 s, the second one beside 1.5 s of computing.
TEST_CASE("exchanges of a group are exposed but for what runs beside them", "[explain][communication]") {
  Chain world(KernelKind::normalization, 2);
  const Plan plan = grouped({{0, 1, 2}}, {{0, 1}}, {2});
  for (const ExchangeTasks exchanges : {ExchangeTasks::none, ExchangeTasks::all}) {
    const std::vector<Communication> all = communication(world, plan, exchanges);
    CHECK(all.size() == 1);
    check(all, "tensor", 3 + 4.5 + 3, 1.5, 0);
  }
}

// Device 1 computes at half speed. Device 0 waits for it 1 s before the first exchange and 2.5 s before the second, of
// which it has nothing to run beside it any more; device 1 has 3 s.
TEST_CASE("a device waits for its slower peer", "[explain][communication]") {
  Chain world(KernelKind::normalization, 2);
  const std::vector<Communication> all =
      communication(world, grouped({{0, 1, 2}}, {{0, 1}}, {2}), ExchangeTasks::all, {{1, Seconds{0}, 0.5}});
  check(all, "tensor", ((3 + 6 + 3) + (3 + 3 + 3)) / 2.0, 3 / 2.0, (1 + 2.5) / 2);
}

// Stage 0 computes and gathers for 5 s, and sends for 5; stage 1 has it at 10, and its gradient is back at 24, sent
// from 19 on.
TEST_CASE("a stage waits for what is sent, and before for who sends it", "[explain][communication]") {
  Chain world(KernelKind::elementwise, 4);
  const std::vector<Communication> all =
      communication(world, grouped({{0, 1}, {2}}, {{0, 1}, {2, 3}}, {2, 2}), ExchangeTasks::none);
  check(all, "pipeline", (5 + 5) / 2.0, 0, (5 + 14) / 2.0);
}

// Each pair of equal shards reduces 60 B in 60/2 + 2 s after all of backward.
TEST_CASE("replicas wait for their gradients", "[explain][communication]") {
  Chain world(KernelKind::elementwise, 4);
  check(communication(world, grouped({{0, 1, 2}}, {{0, 1, 2, 3}}, {2}), ExchangeTasks::none), "data", 32, 0, 0);
}

} // namespace
} // namespace stagecraft
