// Problems of dnn-partitioning: what is contracted, and what the model brings along.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::find_operator;
using test::near;
using Names = std::vector<std::string>;

// A node that takes as long on either type.
std::string node(int id, double milliseconds, bool backward = false, int color = -1, const std::string& more = "") {
  const std::string time = std::to_string(milliseconds);
  return R"({"id": )" + std::to_string(id) + R"(, "supportedOnFpga": 1, "cpuLatency": )" + time +
         R"(, "fpgaLatency": )" + time + R"(, "size": 4, "isBackwardNode": )" + (backward ? "1" : "0") +
         (color < 0 ? "" : R"(, "colorClass": )" + std::to_string(color)) + more + "}";
}

std::string edge(int from, int to, double cost) {
  return R"({"sourceId": )" + std::to_string(from) + R"(, "destId": )" + std::to_string(to) + R"(, "cost": )" +
         std::to_string(cost) + "}";
}

ModelGraph problem(const Names& nodes, const Names& edges, const ImportOptions& options = {}, int processors = 1) {
  return import_dnn_partitioning(R"({"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": )" + std::to_string(processors) +
                                     R"(, "nodes": [)" + join(nodes) + R"(], "edges": [)" + join(edges) + "]}",
                                 "dir/small.json", options);
}

Names inputs_of(const ModelGraph& graph, const std::string& name) {
  Names names;
  for (const OperatorId from : graph.predecessors[&find_operator(graph, name) - graph.operators.data()]) {
    names.push_back(graph.operators[from].name);
  }
  return names;
}

TEST_CASE("a problem brings devices, times on both types, memory and tensors", "[workload][dnn-partitioning]") {
  const ModelGraph graph = problem({node(1, 1), node(2, 2, false, -1, R"(, "name": "last")")}, {edge(1, 2, 0.5)});
  CHECK(graph.name == "small");
  REQUIRE(names_of(graph.operators) == Names{"node1", "last"});
  CHECK(graph.memory_given);
  CHECK(graph.operators[0].resident_bytes == 4);
  CHECK(graph.operators[0].parameters == 0);
  REQUIRE(graph.profiles.size() == 2);
  CHECK(graph.profiles[0].device == "fpga");
  CHECK(graph.profiles[0].times[1].forward.value == near(2e-3));
  CHECK(graph.profiles[1].device == "cpu");
  CHECK(graph.profiles[1].times[1].forward.value == near(2e-3));
  REQUIRE(graph.devices.size() == 2);
  CHECK(graph.devices[0].type == "fpga");
  CHECK(graph.devices[0].count == 2);
  CHECK(graph.devices[0].memory.value == 100);
  CHECK(graph.devices[1].type == "cpu");
  CHECK(std::isinf(graph.devices[1].memory.value));
  CHECK(std::isinf(graph.devices[1].bandwidth.value));
  // Half a millisecond on the accelerator's link, and the same as the output that a replay sends.
  REQUIRE(graph.tensors.size() == 1);
  CHECK(graph.tensors[0].ends == std::vector<OperatorId>{0, 1});
  CHECK(4 * graph.tensors[0].elements / graph.devices[0].bandwidth.value == near(0.5e-3));
  CHECK(graph.operators[0].output_elements == graph.tensors[0].elements);
  CHECK(problem({node(1, 1)}, {}, {}, 0).devices.size() == 1);
}

TEST_CASE("a cost scale multiplies costs, nothing else", "[workload][dnn-partitioning]") {
  const Names nodes = {node(1, 1), node(2, 2)};
  const ModelGraph graph = problem(nodes, {edge(1, 2, 0.5)}, {.cost_scale = 1000});
  CHECK(4 * graph.tensors[0].elements / graph.devices[0].bandwidth.value == near(0.5));
  CHECK(graph.profiles[0].times[0].forward.value == near(1e-3));
  CHECK_THAT(test::error_of([] { load_model(test::source_dir() / "workloads/vgg16.yaml", {.cost_scale = 2}); }),
             Catch::Contains("have no costs of edges"));
}

TEST_CASE("a colour class is one operator, with its backward nodes", "[workload][dnn-partitioning]") {
  // Forward 1 -> 2 -> 3, backward 6 -> 5 -> 4; 2 and 3 share a class, as do their mates.
  const ModelGraph graph = problem({node(1, 1, false, 10), node(2, 2, false, 20), node(3, 4, false, 20),
                                    node(4, 8, true, 10), node(5, 16, true, 20), node(6, 32, true, 20)},
                                   {edge(1, 2, 1), edge(2, 3, 2), edge(6, 5, 4), edge(5, 4, 8), edge(3, 6, 16)});
  REQUIRE(names_of(graph.operators) == Names{"node1", "node3"}); // after the slowest forward node
  CHECK(graph.profiles[0].times[1].forward.value == near(6e-3));
  CHECK(graph.profiles[0].times[1].backward.value == near(48e-3));
  CHECK(graph.operators[1].resident_bytes == 16);
  // The outputs of 1 and of 5 cross; those of 2, 3 and 6 stay inside. They have the same ends: one of 9 ms.
  REQUIRE(graph.tensors.size() == 1);
  CHECK(4 * graph.tensors[0].elements / graph.devices[0].bandwidth.value == near(9e-3));
}

TEST_CASE("an operator with an unsupported node has no kernel on the accelerator", "[workload][dnn-partitioning]") {
  std::string lacking = node(2, 1, true, 10);
  lacking.replace(lacking.find("Fpga\": 1"), 8, "Fpga\": 0");
  const ModelGraph graph = problem({node(1, 1, false, 10), lacking, node(3, 1)}, {edge(1, 3, 0)});
  CHECK(std::isinf(graph.profiles[0].times[0].forward.value));
  CHECK(graph.profiles[1].times[0].forward.value == near(1e-3));
  CHECK(graph.profiles[0].times[1].forward.value == near(1e-3));
}

TEST_CASE("a class of backward nodes alone gets a forward node and its edges turned round",
          "[workload][dnn-partitioning]") {
  // Forward 1 -> 2; backward 4 (of 2) -> 5 (alone) -> 3 (of 1): forward 1 -> [5] -> 2.
  const ModelGraph graph = problem(
      {node(1, 1, false, 10), node(2, 1, false, 20), node(3, 1, true, 10), node(4, 1, true, 20), node(5, 7, true)},
      {edge(1, 2, 0), edge(4, 5, 0), edge(5, 3, 0)});
  REQUIRE(graph.size() == 3);
  CHECK(inputs_of(graph, "node5") == Names{"node1"});
  CHECK(inputs_of(graph, "node2") == Names{"node1", "node5"});
  CHECK(graph.profiles[0].times[1].forward.value == 0);
  CHECK(graph.profiles[0].times[1].backward.value == near(7e-3));
}

TEST_CASE("classes on a cycle become one", "[workload][dnn-partitioning]") {
  // 1 -> 2 -> 3 -> 4 with 1 and 3 of one class: 2 must be there too.
  const ModelGraph graph = problem({node(1, 1, false, 10), node(2, 2), node(3, 4, false, 10), node(4, 8)},
                                   {edge(1, 2, 1), edge(2, 3, 1), edge(3, 4, 1)});
  CHECK(names_of(graph.operators) == Names{"node3", "node4"});
  CHECK(graph.profiles[0].times[0].forward.value == near(7e-3));
  CHECK(graph.tensors.size() == 1);
}

TEST_CASE("leaves that take no time merge into their only neighbour, one after the other",
          "[workload][dnn-partitioning]") {
  // 1 and 2 take no time: 1 -> 2 -> 3. 4 takes no time but has two neighbours; 6 feeds a backward node.
  const ModelGraph graph = problem(
      {node(1, 0), node(2, 0), node(3, 1), node(4, 0), node(5, 1), node(6, 0), node(7, 1, true, 3),
       node(8, 1, false, 3)},
      {edge(1, 2, 1), edge(2, 3, 1), edge(3, 4, 1), edge(4, 5, 1), edge(6, 5, 1), edge(6, 7, 1), edge(5, 8, 1)});
  CHECK(names_of(graph.operators) == Names{"node3", "node4", "node6", "node5", "node8"});
  CHECK(find_operator(graph, "node3").resident_bytes == 12);
}

TEST_CASE("JSON is told from other JSON by its keys", "[workload][dnn-partitioning]") {
  if (!test::has_shared_data()) {
    return;
  }
  const auto file = test::shared_data() / "dnn-partitioning/throughput-inputs/LayerGraphs/bert24_training.json";
  CHECK(load_model(file).size() == 28);
}

} // namespace
} // namespace stagecraft
