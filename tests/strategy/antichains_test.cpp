// Antichain states: counts and sets of known graphs; states and ideals one to one on random ones.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <set>

#include "sim/strategy/dynamic_programming/antichains.hpp"
#include "sim/strategy/dynamic_programming/contract_branches.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using Set = std::vector<OperatorId>;

ModelGraph graph_of(int operators, const std::vector<std::pair<int, int>>& edges) {
  test::Toy toy;
  toy.operators.assign(operators, {{1}});
  toy.edges = edges;
  return test::model_of(toy);
}

std::set<Set> augmented_sets(const ModelGraph& model) {
  const AntichainStates states = antichain_states(model, 1000);
  std::set<Set> sets;
  for (int state = 1; state < states.count(); ++state) { // state 0 is empty
    sets.insert(augmented_antichain(model, states.ideals.row(state)));
  }
  return sets;
}

TEST_CASE("a diamond has five states", "[plan][antichain]") {
  const ModelGraph model = graph_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  // a feeds c beside b, so it belongs to b's state, and likewise to c's and to that of b and c.
  CHECK(augmented_sets(model) == std::set<Set>{{0}, {0, 1}, {0, 2}, {0, 1, 2}, {3}});
}

TEST_CASE("a skip connection has four states", "[plan][antichain]") {
  const ModelGraph model = graph_of(4, {{0, 1}, {1, 2}, {0, 2}, {2, 3}});
  CHECK(augmented_sets(model) == std::set<Set>{{0}, {0, 1}, {2}, {3}});
}

TEST_CASE("two branches of two have ten states", "[plan][antichain]") {
  // The source, 3 x 3 ways to have gone along each branch (that includes having gone nowhere), the sink; less the
  // source counted twice.
  const ModelGraph model = graph_of(6, {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {2, 5}, {4, 5}});
  CHECK(antichain_states(model, 1000).count() == 1 + 10);
  CHECK(augmented_sets(model).size() == 10);
}

TEST_CASE("k branches of m operators have (m + 1)^k + 1 states beside the empty one", "[plan][antichain]") {
  for (int k = 1; k <= 3; ++k) {
    for (int m = 1; m <= 4; ++m) {
      std::vector<std::pair<int, int>> edges;
      const int sink = k * m + 1;
      for (int branch = 0; branch < k; ++branch) {
        for (int i = 0; i < m; ++i) {
          const int op = 1 + branch * m + i;
          edges.emplace_back(i == 0 ? 0 : op - 1, op);
        }
        edges.emplace_back(branch * m + m, sink);
      }
      int expected = 1;
      for (int branch = 0; branch < k; ++branch) {
        expected *= m + 1;
      }
      CHECK(antichain_states(graph_of(sink + 1, edges), 1000).count() == 1 + expected + 1);
    }
  }
}

TEST_CASE("states are all ideals, each once, in topological order", "[plan][antichain]") {
  std::mt19937 random(8);
  for (int n = 0; n < 200; ++n) {
    const int operators = 1 + static_cast<int>(random() % 8);
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; to < operators; ++to) {
      for (int from = 0; from < to; ++from) {
        if (random() % 3 == 0) {
          edges.emplace_back(from, to);
        }
      }
    }
    const ModelGraph model = graph_of(operators, edges);
    std::set<unsigned> ideals;
    for (unsigned mask = 0; mask < (1U << operators); ++mask) {
      const bool closed = std::all_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return ((mask >> edge.second) & 1) == 0 || ((mask >> edge.first) & 1) != 0;
      });
      if (closed) {
        ideals.insert(mask);
      }
    }
    const AntichainStates states = antichain_states(model, 1000);
    CHECK(!states.contracted);
    std::set<unsigned> found;
    int last_size = -1;
    for (int state = 0; state < states.count(); ++state) {
      const auto mask = static_cast<unsigned>(states.ideals.row(state)[0]);
      found.insert(mask);
      CHECK(__builtin_popcount(mask) >= last_size);
      last_size = __builtin_popcount(mask);
    }
    CHECK(found == ideals);
    CHECK(found.size() == static_cast<std::size_t>(states.count()));
  }
}

std::vector<std::uint64_t> bits_of(const AntichainStates& states) {
  std::vector<std::uint64_t> bits;
  for (int state = 0; state < states.count(); ++state) {
    bits.push_back(states.ideals.row(state)[0]);
  }
  return bits;
}

using Sets = std::vector<Set>;

TEST_CASE("the antichain DAG of a diamond", "[plan][antichain]") {
  const AntichainDag dag = antichain_dag(graph_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}).predecessors, 1000).value();
  // The virtual source, a, then b or c, then both or, in one step, d.
  CHECK(dag.antichains == Sets{{}, {0}, {1}, {2}, {1, 2}, {3}});
  CHECK(dag.augmented == Sets{{}, {0}, {0, 1}, {0, 2}, {0, 1, 2}, {3}});
  CHECK(dag.next == Sets{{1}, {2, 3}, {4, 5}, {4, 5}, {5}, {}});
  CHECK(topological_order(dag) == std::vector<int>{0, 1, 3, 2, 4, 5});
}

TEST_CASE("several sources follow the virtual one, in every order", "[plan][antichain]") {
  const AntichainDag dag = antichain_dag(graph_of(3, {{0, 2}, {1, 2}}).predecessors, 1000).value();
  CHECK(dag.antichains == Sets{{}, {0}, {1}, {2}, {0, 1}}); // 0 leads to 2, too: its ideal has 1
}

TEST_CASE("more antichains than the cap are refused, as many are not", "[plan][antichain]") {
  const Predecessors alone(10); // 1023 antichains beside the empty one
  CHECK(antichain_dag(alone, 1023).has_value());
  CHECK(!antichain_dag(alone, 1022).has_value());
}

// A random graph, and of each of its operators the set of ancestors, by the definition.
struct RandomGraph {
  ModelGraph model;
  std::vector<unsigned> ancestors; // without the operator itself

  explicit RandomGraph(std::mt19937& random) {
    const int operators = 1 + static_cast<int>(random() % 8);
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; to < operators; ++to) {
      for (int from = 0; from < to; ++from) {
        if (random() % 3 == 0) {
          edges.emplace_back(from, to);
        }
      }
    }
    model = graph_of(operators, edges);
    ancestors.assign(operators, 0);
    for (int op = 0; op < operators; ++op) {
      for (const int maker : model.predecessors[op]) {
        ancestors[op] |= ancestors[maker] | 1U << maker;
      }
    }
  }

  unsigned ideal_of(const Set& antichain) const {
    unsigned ideal = 0;
    for (const int op : antichain) {
      ideal |= ancestors[op] | 1U << op;
    }
    return ideal;
  }

  Set augmented(const Set& antichain) const {
    std::set<int> members(antichain.begin(), antichain.end());
    for (const int x : antichain) {
      for (int u = 0; u < x; ++u) {
        const auto& users = model.successors[u];
        const bool past = std::any_of(users.begin(), users.end(),
                                      [&](int user) { return user != x && ((ancestors[x] >> user) & 1) == 0; });
        if (((ancestors[x] >> u) & 1) != 0 && past) {
          members.insert(u);
        }
      }
    }
    return {members.begin(), members.end()};
  }

  // All sets of operators of which none is an ancestor of another.
  std::set<Set> antichains() const {
    std::set<Set> all;
    for (unsigned mask = 0; mask < (1U << model.size()); ++mask) {
      Set set;
      unsigned above = 0;
      for (int op = 0; op < model.size(); ++op) {
        if (((mask >> op) & 1) != 0) {
          set.push_back(op);
          above |= ancestors[op];
        }
      }
      if ((above & mask) == 0) {
        all.insert(set);
      }
    }
    return all;
  }
};

TEST_CASE("the antichain DAG has every antichain once, and paths where ideals grow", "[plan][antichain]") {
  std::mt19937 random(16);
  for (int n = 0; n < 200; ++n) {
    const RandomGraph graph(random);
    const AntichainDag dag = antichain_dag(graph.model.predecessors, 1000).value();
    const auto nodes = static_cast<int>(dag.antichains.size());
    const std::set<Set> found(dag.antichains.begin(), dag.antichains.end());
    CHECK(found == graph.antichains());
    CHECK(static_cast<int>(found.size()) == nodes);
    const std::vector<int> order = topological_order(dag);
    CHECK(order.front() == 0);
    CHECK(std::set<int>(order.begin(), order.end()).size() == dag.antichains.size());
    std::vector<int> place(nodes);
    for (int at = 0; at < nodes; ++at) {
      place[order[at]] = at;
    }
    std::vector<std::set<int>> reached(nodes); // by one edge or more
    for (int at = nodes; at-- > 0;) {
      const int node = order[at];
      for (const int next : dag.next[node]) {
        CHECK(place[next] > at);
        reached[node].insert(next);
        reached[node].insert(reached[next].begin(), reached[next].end());
      }
    }
    int wrong = 0;
    for (int one = 0; one < nodes; ++one) {
      const unsigned ideal = graph.ideal_of(dag.antichains[one]);
      wrong += dag.ideals.row(one)[0] == ideal && dag.augmented[one] == graph.augmented(dag.antichains[one]) ? 0 : 1;
      for (int other = 0; other < nodes; ++other) {
        const unsigned larger = graph.ideal_of(dag.antichains[other]);
        wrong += reached[one].contains(other) == (ideal != larger && (ideal & ~larger) == 0) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the sequence of states ends with the whole graph and is contracted beyond the cap", "[plan][antichain]") {
  const ModelGraph model = graph_of(10, {});
  const AntichainStates all = antichain_sequence(model, 1023);
  CHECK(all.count() == 1024);
  CHECK(!all.contracted);
  CHECK(all.ideals.row(0)[0] == 0);
  CHECK(all.ideals.row(1023)[0] == 1023);
  const AntichainStates capped = antichain_sequence(model, 1022);
  CHECK(capped.contracted);
  CHECK(capped.count() == 512); // nine blocks; `optimal` also has the prefix that parts the last two operators
}

TEST_CASE("antichain counts a tensor that a branch has used up, optimal does not", "[plan][antichain]") {
  // a 10 B -> b, c of 1 B each -> d: 1, 1, 1 and 3 s on two devices at 1 B/s. Cut before d: b and c cross, 2 x 2 s, and
  // both stages take 3 s: 4 s. The antichain {b, c} is augmented by a, which has the successor c beside b: 2 x 12 s.
  // The other cuts are crossed by a, 2 x 10 s or more; one device takes 6 s.
  test::Toy toy;
  toy.operators = {{{1}, 10}, {{1}, 1}, {{1}, 1}, {{3}, 0}};
  toy.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  toy.devices = {{0, 1, 0}, {0, 1, 0}};
  const test::World world(toy);
  CHECK(augmented_cut_bytes(world.problem, antichain_sequence(world.model, 1000)) ==
        std::vector<double>{0, 10, 11, 11, 12, 0});
  const Plan antichain = std::get<Plan>(test::plan_of(world, "antichain"));
  CHECK(antichain.stages.size() == 1);
  CHECK(antichain.objective->value.value == test::near(6));
  const Plan optimal = std::get<Plan>(test::plan_of(world, "optimal"));
  CHECK(optimal.stages.size() == 2);
  CHECK(optimal.objective->value.value == test::near(4));
}

TEST_CASE("antichain matches stages with devices in their order, optimal in any", "[plan][antichain]") {
  // 4 and 2 s of work; the second device is twice as fast. In order: 4 s, then 1 s; the second device alone takes 3 s.
  // The other way round both take 2 s.
  test::Toy toy;
  toy.operators = {{{4, 2}}, {{2, 1}}};
  toy.edges = {{0, 1}};
  toy.types = {{}, {}};
  toy.devices = {{0}, {1}};
  const test::World world(toy);
  const Plan antichain = std::get<Plan>(test::plan_of(world, "antichain"));
  CHECK(antichain.stages.size() == 1);
  CHECK(antichain.stages.front().devices == std::vector<DeviceId>{1});
  CHECK(antichain.objective->value.value == test::near(3));
  CHECK(std::get<Plan>(test::plan_of(world, "optimal")).objective->value.value == test::near(2));
}

TEST_CASE("beyond the cap the parallel branches are contracted", "[plan][antichain]") {
  // 2^10 ideals, the empty one among them, are 1023 states beside it.
  const ModelGraph model = graph_of(10, {});
  CHECK(antichain_states(model, 1023).count() == 1024);
  CHECK(!antichain_states(model, 1023).contracted);
  const AntichainStates capped = antichain_states(model, 1022);
  CHECK(capped.contracted);
  // The two lightest become one: nine blocks of 2^9 ideals, those in which operators 8 and 9 go together; and the one
  // prefix that parts them.
  const std::vector<std::uint64_t> bits = bits_of(capped);
  REQUIRE(bits.size() == 512 + 1);
  for (const std::uint64_t ideal : bits) {
    CHECK((((ideal >> 8) & 1) == ((ideal >> 9) & 1) || ideal == 0x1ff));
  }
  // With no room for any freedom the prefixes remain.
  const std::vector<std::uint64_t> prefixes = bits_of(antichain_states(model, 5));
  REQUIRE(prefixes.size() == 11);
  for (int k = 0; k <= 10; ++k) {
    CHECK(prefixes[k] == (1ULL << k) - 1);
  }
}

TEST_CASE("contraction leaves the trunk alone and halves the longest branch", "[plan][antichain]") {
  // 0 -> two branches of four, 1…4 and 5…8 -> 9 -> 10: 1 + 5 * 5 + 1 + 1 = 28 states with the empty one.
  const ModelGraph model =
      graph_of(11, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 5}, {5, 6}, {6, 7}, {7, 8}, {4, 9}, {8, 9}, {9, 10}});
  CHECK(antichain_states(model, 1000).count() == 28);
  // At most 16: the first branch becomes two blocks, 3 * 5 - 1 ideals and three on the trunk are 17, then the second,
  // 3 * 3 - 1 + 3 = 11.
  const Blocks blocks = contract_branches(model, 16);
  CHECK(blocks.of == std::vector<int>{0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6});
  CHECK(blocks.predecessors == Predecessors{{}, {0}, {1}, {0}, {3}, {2, 4}, {5}});
  CHECK(ideals_of(blocks.predecessors, 16).size() == 12); // with the empty one
  CHECK(contract_branches(model, 17).of == std::vector<int>{0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("contracted states are ideals within the cap, whatever the graph", "[plan][antichain]") {
  std::mt19937 random(9);
  for (int n = 0; n < 100; ++n) {
    const int operators = 6 + static_cast<int>(random() % 20);
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; to < operators; ++to) {
      for (int from = std::max(0, to - 6); from < to; ++from) {
        if (random() % 4 == 0) {
          edges.emplace_back(from, to);
        }
      }
    }
    const ModelGraph model = graph_of(operators, edges);
    const int cap = operators + 1 + static_cast<int>(random() % 40);
    const AntichainStates states = antichain_states(model, cap);
    const std::vector<std::uint64_t> bits = bits_of(states);
    CHECK(states.count() <= cap + 1);
    CHECK(bits.front() == 0);
    CHECK(bits.back() == (1ULL << operators) - 1);
    CHECK(std::set<std::uint64_t>(bits.begin(), bits.end()).size() == bits.size());
    for (const std::uint64_t ideal : bits) {
      CHECK(std::all_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return ((ideal >> edge.second) & 1) == 0 || ((ideal >> edge.first) & 1) != 0;
      }));
    }
  }
}

TEST_CASE("more than 64 operators fill several words", "[plan][antichain]") {
  const ModelGraph model = graph_of(130, test::chain_edges(130));
  const AntichainStates states = antichain_states(model, 1000);
  REQUIRE(states.count() == 131);
  CHECK(has_bit(states.ideals.row(130), 129));
  CHECK(!has_bit(states.ideals.row(129), 129));
  CHECK(augmented_antichain(model, states.ideals.row(100)) == Set{99});
  CHECK(is_subset(states.ideals.row(64), states.ideals.row(65)));
  CHECK(!is_subset(states.ideals.row(65), states.ideals.row(64)));
}

TEST_CASE("the bytes that cross an ideal's border count each tensor once", "[plan][antichain]") {
  test::Toy toy;
  toy.operators = {{{1}, 40}, {{1}, 8}, {{1}, 4}, {{1}, 100}};
  toy.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  const test::World world(toy);
  const auto cut = [&](std::vector<char> inside) { return world.problem.cut_bytes(inside).value; };
  CHECK(cut({0, 0, 0, 0}) == 0);
  CHECK(cut({1, 0, 0, 0}) == 40); // to both branches, once
  CHECK(cut({1, 1, 0, 0}) == 48);
  CHECK(cut({1, 0, 1, 0}) == 44);
  CHECK(cut({1, 1, 1, 0}) == 12); // the source is used up
  CHECK(cut({1, 1, 1, 1}) == 0);
}

} // namespace
} // namespace stagecraft
