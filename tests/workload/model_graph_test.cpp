// Model graphs: topological order, cycles, totals.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/model_graph.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using Edges = std::vector<std::pair<int, int>>;

std::vector<Operator> named(const std::vector<std::string>& names) {
  std::vector<Operator> operators(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    operators[i].name = names[i];
  }
  return operators;
}

std::vector<std::string> order_of(const ModelGraph& graph) { return names_of(graph.operators); }

TEST_CASE("operators are sorted topologically, ties by the order given", "[workload]") {
  // c -> a, c -> b: c must come first; a and b are free then and keep their order; d is free from the start but given
  // last, so it comes after c, a and b, which are all free before it.
  const ModelGraph graph = make_graph("g", named({"a", "b", "c", "d"}), Edges{{2, 0}, {2, 1}}, {}, {});
  CHECK(order_of(graph) == std::vector<std::string>{"c", "a", "b", "d"});
  CHECK(graph.successors == std::vector<std::vector<OperatorId>>{{1, 2}, {}, {}, {}});
  CHECK(graph.predecessors == std::vector<std::vector<OperatorId>>{{}, {0}, {0}, {}});
}

TEST_CASE("adjacency is sorted and without duplicates", "[workload]") {
  const ModelGraph graph = make_graph("g", named({"a", "b", "c"}), Edges{{0, 2}, {0, 1}, {0, 2}, {1, 2}}, {}, {});
  CHECK(graph.successors == std::vector<std::vector<OperatorId>>{{1, 2}, {2}, {}});
  CHECK(graph.predecessors == std::vector<std::vector<OperatorId>>{{}, {0}, {0, 1}});
}

TEST_CASE("a profile's times follow their operators", "[workload]") {
  Profile profile;
  profile.times = {{Seconds{1}, Seconds{10}}, {Seconds{2}, Seconds{20}}};
  const ModelGraph graph = make_graph("g", named({"late", "early"}), Edges{{1, 0}}, {profile}, {});
  REQUIRE(order_of(graph) == std::vector<std::string>{"early", "late"});
  CHECK(graph.profiles.front().times[0].forward == Seconds{2});
  CHECK(graph.profiles.front().times[1].backward == Seconds{10});
}

TEST_CASE("an invalid graph is refused with its place", "[workload]") {
  const Where where{"m.txt", 3, 4};
  CHECK(test::error_of([&] { make_graph("g", {}, {}, {}, where); }) ==
        "m.txt:3:4: the model has no operators; allowed: at least one");
  CHECK_THAT(test::error_of([&] {
               make_graph("g", named({"a", "b"}), Edges{{0, 2}}, {}, where);
             }),
             Catch::StartsWith("m.txt:3:4: an edge leads to operator 2; allowed: 0 to 1"));
  CHECK_THAT(test::error_of([&] {
               make_graph("g", named({"a", "a"}), {}, {}, where);
             }),
             Catch::StartsWith("m.txt:3:4: two operators are called 'a'"));
}

TEST_CASE("a cycle is named in the direction of its edges", "[workload]") {
  // a -> b -> c -> b: the cycle is b, c; a stands before it and d behind it.
  const auto make = [] {
    make_graph("g", named({"a", "b", "c", "d"}), Edges{{0, 1}, {1, 2}, {2, 1}, {2, 3}}, {}, {"m.txt", 1, 1});
  };
  CHECK(test::error_of(make) == "m.txt:1:1: the operators form a cycle: b -> c -> b; allowed: an acyclic graph");
  CHECK_THAT(test::error_of([] {
               make_graph("g", named({"a"}), Edges{{0, 0}}, {}, {"m.txt", 1, 1});
             }),
             Catch::Contains("cycle: a -> a"));
  CHECK_THAT(test::error_of([] {
               make_graph("g", named({"a", "b", "c"}), Edges{{0, 1}, {1, 2}, {2, 1}}, {}, {"m.txt", 1, 1},
                          [](int position) {
                            return Where{"m.txt", 10 + position, 3};
                          });
             }),
             Catch::StartsWith("m.txt:11:3: the operators form a cycle: b -> c -> b"));
}

TEST_CASE("totals are sums over operators", "[workload]") {
  std::vector<Operator> operators = named({"a", "b"});
  operators[0].parameters = 3;
  operators[0].forward.flops = Flops{5};
  operators[1].backward_input.flops = Flops{7};
  operators[1].backward_weight.flops = Flops{11};
  operators[1].stash_elements = 13;
  operators[1].output_elements = 17;
  const ModelTotals totals = totals_of(make_graph("g", operators, {}, {}, {}));
  CHECK(totals.parameters == 3);
  CHECK(totals.forward == Flops{5});
  CHECK(totals.backward == Flops{18});
  CHECK(totals.stash_elements == 13);
  CHECK(totals.output_elements == 17);
}

} // namespace
} // namespace stagecraft
