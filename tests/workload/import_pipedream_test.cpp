// PipeDream's profiles: small ones written here, and published ones.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::find_operator;
using test::near;

std::string node(const std::string& id, const std::string& description, const std::string& activation = "8.0",
                 const std::string& parameters = "0.0") {
  return id + " -- " + description +
         " -- forward_compute_time=1.5, backward_compute_time=2.5, activation_size=" + activation +
         ", parameter_size=" + parameters + "\n";
}

TEST_CASE("a PipeDream profile: bytes become elements, milliseconds times", "[workload][pipedream]") {
  const ModelGraph graph =
      import_pipedream(node("node1", "Input0", "40.0") + node("node2", "Conv2d(3, 64)", "[8.0; 4.0]", "16.0") +
                           node("node10", "ReLU(inplace)") + "\tnode1 -- node2\n\tnode2 -- node10\n",
                       "dir/small.graph.txt");
  CHECK(graph.name == "small");
  CHECK(graph.input_elements == 10);
  REQUIRE(names_of(graph.operators) == std::vector<std::string>{"node2", "node10"});
  const Operator& conv = graph.operators[0];
  CHECK(conv.type == "Conv2d");
  CHECK(conv.kind == KernelKind::convolution);
  CHECK(conv.parameters == 4);
  CHECK(conv.output_elements == 3);
  CHECK(conv.stash_elements == 10); // its input, also where that was a placeholder
  CHECK(graph.operators[1].stash_elements == 3);
  REQUIRE(graph.profiles.size() == 1);
  CHECK(graph.profiles[0].samples == 0);
  CHECK(graph.profiles[0].times[0].forward.value == near(1.5e-3));
  CHECK(graph.profiles[0].times[1].backward.value == near(2.5e-3));
}

TEST_CASE("a profile is called after its file, or its folder", "[workload][pipedream]") {
  CHECK(import_pipedream(node("1", "Add"), "vgg16.graph.txt").name == "vgg16");
  CHECK(import_pipedream(node("1", "Add"), "profiles/vgg16/graph.txt").name == "vgg16");
  CHECK(import_pipedream(node("1", "Add"), "graph.txt").name == "graph");
}

TEST_CASE("ids are taken in natural order, lines in any", "[workload][pipedream]") {
  const ModelGraph graph = import_pipedream(
      "\tn1 -- n3\n" + node("n10", "Add") + node("n2", "Add") + node("n3", "Add") + node("n1", "Add"), "g.txt");
  CHECK(names_of(graph.operators) == std::vector<std::string>{"n1", "n2", "n3", "n10"});
}

TEST_CASE("tuple parts that nothing reads are dropped, others stay", "[workload][pipedream]") {
  const ModelGraph graph =
      import_pipedream(node("1", "LSTM(4, 4)") + node("2", "__getitem__(0)") + node("3", "__getitem__(1)") +
                           node("4", "Linear(4, 4)") + "\t1 -- 2\n\t1 -- 3\n\t2 -- 4\n",
                       "g.txt");
  CHECK(names_of(graph.operators) == std::vector<std::string>{"1", "2", "4"});
}

TEST_CASE("a stage is accepted and ignored, carriage returns and blank lines too", "[workload][pipedream]") {
  std::string line = node("1", "Add");
  line.insert(line.size() - 1, " -- stage_id=3\r");
  CHECK(import_pipedream(line + "\r\n\n", "g.txt").size() == 1);
}

TEST_CASE("the profiles that PipeDream ships import whole", "[workload][pipedream]") {
  if (!test::has_shared_data()) {
    return;
  }
  struct Expected {
    const char* file;
    int operators;
    double parameters;
  };
  // Operators: lines without a tab, less Input nodes and unread __getitem__ sinks (gnmt: 48 - 3 - 8). Parameters: what
  // torchvision publishes; those of gnmt are the sum of its parameter_size over 4.
  const Expected expected[] = {{"vgg16", 40, 138357544},       {"resnet50", 176, 25557032},   {"alexnet", 22, 61100840},
                               {"squeezenet1_0", 67, 1248424}, {"densenet121", 428, 7978856}, {"gnmt", 37, 193765952}};
  for (const Expected& row : expected) {
    INFO(row.file);
    const ModelGraph graph =
        load_model(test::shared_data() / "pipedream/profiles" / (std::string(row.file) + ".graph.txt"));
    CHECK(graph.size() == row.operators);
    CHECK(totals_of(graph).parameters == row.parameters);
  }
  // conv1 of VGG-16 writes 128 images of 64 x 224 x 224.
  const ModelGraph vgg = load_model(test::shared_data() / "pipedream/profiles/vgg16.graph.txt");
  CHECK(vgg.operators.front().output_elements == 128.0 * 64 * 224 * 224);
}

} // namespace
} // namespace stagecraft
