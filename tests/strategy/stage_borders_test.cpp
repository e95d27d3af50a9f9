// What crosses stages that are differences of two ideals: the figures of the problem itself, which looks at every
// operator.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/strategy/dynamic_programming/stage_borders.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

std::vector<char> between(const BitRows& ideals, int before, int ideal, int operators) {
  std::vector<char> inside;
  for (OperatorId op = 0; op < operators; ++op) {
    inside.push_back(has_bit(ideals.row(ideal), op) && !has_bit(ideals.row(before), op) ? 1 : 0);
  }
  return inside;
}

TEST_CASE("borders of random stages are those of the problem", "[plan][antichain]") {
  std::mt19937 random(5);
  for (int n = 0; n < 60; ++n) {
    test::Toy toy;
    toy.input = 0.3;
    const int operators = 1 + static_cast<int>(random() % 9);
    for (int op = 0; op < operators; ++op) {
      toy.operators.push_back({{1}, static_cast<double>(random() % 50)});
      for (int from = 0; from < op; ++from) {
        if (random() % 3 == 0) {
          toy.edges.emplace_back(from, op);
        }
      }
    }
    const test::World world(toy);
    const AntichainStates states = antichain_states(world.model, 1000);
    const StageBorders borders(world.problem, states.ideals);
    for (int ideal = 0; ideal < states.count(); ++ideal) {
      const std::vector<char> whole = between(states.ideals, 0, ideal, operators);
      CHECK(borders.cut_bytes(ideal).value == world.problem.cut_bytes(whole).value);
      for (int before = 0; before < ideal; ++before) {
        if (is_subset(states.ideals.row(before), states.ideals.row(ideal))) {
          const auto expected = world.problem.border(between(states.ideals, before, ideal, operators));
          const auto found = borders.of_stage(before, ideal);
          CHECK(found.incoming.value == expected.incoming.value);
          CHECK(found.outgoing.value == expected.outgoing.value);
        }
      }
    }
  }
}

TEST_CASE("a row continues the one before if it only adds later operators", "[plan][antichain]") {
  constexpr int kOperators = 70; // two words
  const auto continued = [&](const std::vector<int>& before, const std::vector<int>& here) {
    BitRows rows(2, kOperators);
    for (const int op : before) {
      set_bit(rows.row(0), op);
    }
    for (const int op : here) {
      set_bit(rows.row(1), op);
    }
    std::vector<int> added;
    for_each_added(rows, 1, continues(rows, 1), [&](OperatorId op) { added.push_back(op); });
    CHECK(!continues(rows, 0));
    return added;
  };
  CHECK(continued({}, {0, 2, 69}) == std::vector{0, 2, 69});
  CHECK(continued({0, 2}, {0, 2, 3, 64}) == std::vector{3, 64});
  CHECK(continued({0, 2, 65}, {0, 2, 65, 66}) == std::vector{66});
  CHECK(continued({0, 2}, {0, 1, 2}) == std::vector{0, 1, 2});      // 1 comes before 2
  CHECK(continued({0, 65}, {0, 63, 65}) == std::vector{0, 63, 65}); // and 63 before 65
  CHECK(continued({0, 2}, {0, 3}) == std::vector{0, 3});            // 2 is lost
}

} // namespace
} // namespace stagecraft
