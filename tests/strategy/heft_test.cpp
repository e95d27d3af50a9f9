// HEFT: the worked example of its paper, gaps, and what the row makes of a placement.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/strategy/heuristic/heft.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using test::kInfinite;
using test::near;

// Tasks without memory; a transfer takes as long between any two processors.
HeftTasks tasks_of(std::vector<std::vector<double>> seconds, const std::map<std::pair<int, int>, double>& edges) {
  HeftTasks tasks{.seconds = std::move(seconds)};
  tasks.predecessors.resize(tasks.seconds.size());
  tasks.successors.resize(tasks.seconds.size());
  for (const auto& [edge, transfer] : edges) {
    tasks.successors[edge.first].push_back(edge.second);
    tasks.predecessors[edge.second].push_back(edge.first);
  }
  tasks.mean_transfer = [edges](int from, int to) { return edges.at({from, to}); };
  tasks.transfer = [edges](int from, int to, int, int) { return edges.at({from, to}); };
  tasks.bytes.resize(tasks.seconds.size());
  tasks.room.resize(tasks.seconds.front().size());
  return tasks;
}

// Topcuoglu, Hariri, Wu 2002, figures 2 to 4, tables 1 and 2, numbered from 0. Tasks 2 and 3 (3 and 4 there) have equal
// ranks up to rounding: 3 comes first.
HeftTasks worked_example() {
  return tasks_of({{14, 16, 9},
                   {13, 19, 18},
                   {11, 13, 19},
                   {13, 8, 17},
                   {12, 13, 10},
                   {13, 16, 9},
                   {7, 15, 11},
                   {5, 11, 14},
                   {18, 12, 20},
                   {21, 7, 16}},
                  {{{0, 1}, 18},
                   {{0, 2}, 12},
                   {{0, 3}, 9},
                   {{0, 4}, 11},
                   {{0, 5}, 14},
                   {{1, 7}, 19},
                   {{1, 8}, 16},
                   {{2, 6}, 23},
                   {{3, 7}, 27},
                   {{3, 8}, 23},
                   {{4, 8}, 13},
                   {{5, 7}, 15},
                   {{6, 9}, 17},
                   {{7, 9}, 11},
                   {{8, 9}, 13}});
}

TEST_CASE("heft schedules the ten tasks of its paper in 80", "[plan][heft]") {
  const HeftSchedule schedule = heft(worked_example());
  CHECK(schedule.makespan == near(80));
  CHECK(schedule.unplaced == -1);
  CHECK(schedule.processor == std::vector<int>{2, 0, 2, 1, 2, 1, 2, 0, 1, 1});
  const std::vector<double> ranks = {108, 77, 80, 80, 69, 190.0 / 3, 128.0 / 3, 107.0 / 3, 133.0 / 3, 44.0 / 3};
  for (std::size_t task = 0; task < ranks.size(); ++task) {
    CHECK(schedule.ranks[task] == near(ranks[task]));
  }
}

// Ranks 29.5, 24, 16.5, 20. Task 0 is on processor 0 until 2, task 1 on processor 1 until 5; its tensor reaches task 3
// on processor 0 at 6, until 16. Task 2 comes last and finds the gap from 2 to 6 there.
TEST_CASE("heft fills gaps between tasks already placed", "[plan][heft]") {
  const HeftSchedule schedule =
      heft(tasks_of({{2, 9}, {kInfinite, 3}, {3, 30}, {10, 30}}, {{{0, 1}, 0}, {{0, 2}, 0}, {{1, 3}, 1}}));
  CHECK(schedule.processor == std::vector<int>{0, 1, 0, 0});
  CHECK(schedule.finish == std::vector<double>{2, 5, 5, 16});
}

TEST_CASE("a gap just too short is skipped", "[plan][heft]") {
  const HeftSchedule schedule =
      heft(tasks_of({{2, 9}, {kInfinite, 3}, {4.5, 30}, {10, 30}}, {{{0, 1}, 0}, {{0, 2}, 0}, {{1, 3}, 1}}));
  CHECK(schedule.finish == std::vector<double>{2, 5, 20.5, 16});
}

TEST_CASE("a processor without room is passed over, and the first task without any is named", "[plan][heft]") {
  HeftTasks tasks = tasks_of({{1, 2}, {1, 2}, {1, 2}}, {{{0, 1}, 0}, {{1, 2}, 0}});
  tasks.bytes.assign(3, Bytes{4});
  tasks.room = {Bytes{8}, Bytes{4}};
  CHECK(heft(tasks).processor == std::vector<int>{0, 0, 1});
  tasks.room = {Bytes{8}, Bytes{3}};
  CHECK(heft(tasks).unplaced == 2);
}

// Two branches of 10 s between a source and a sink of 1 s. The second branch goes to the other device, where its input
// arrives at 1 + 2 (0.5 + 4/8) = 3, and the sink follows it there: the first branch's tensor arrives at 11 + 2 = 13.
TEST_CASE("heft on a model: forward and backward are one task, a tensor goes there and back", "[plan][heft]") {
  test::Toy toy;
  toy.operators = {{{1}, 4}, {{10}, 4}, {{10}, 4}, {{1}, 4}};
  toy.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  toy.devices = {{0, 8, 0.5}, {0, 8, 0.5}};
  const Plan plan = std::get<Plan>(test::plan_of(test::World(toy), "heft"));
  REQUIRE(plan.objective.has_value());
  CHECK(plan.objective->value.value == near(14));
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].operators == std::vector<OperatorId>{0, 1});
  CHECK(plan.stages[1].devices == std::vector<DeviceId>{1});
  toy.devices = {{0, 1, 1}, {0, 1, 1}}; // arrives at 1 + 2 (1 + 4) = 11, just when device 0 is free
  CHECK(std::get<Plan>(test::plan_of(test::World(toy), "heft")).stages.size() == 1);
}

} // namespace
} // namespace stagecraft
