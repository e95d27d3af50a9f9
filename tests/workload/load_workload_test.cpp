// Workload files: layers, blocks, amounts and profiles.
// SPDX-License-Identifier: Apache-2.0
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::find_operator;
using test::near;
using test::workload;

TEST_CASE("a block is written out with its parameters and names", "[workload]") {
  const ModelGraph graph = workload(R"(
name: t
input: {shape: [8]}
blocks:
  - name: inner
    parameters: [features]
    layers:
      - {name: fc, kind: linear, features: $features}
  - name: residual
    parameters: [width, other]
    layers:
      - {block: inner, name: up, features: $width}
      - {block: inner, name: down, features: 8}
      - {name: add, kind: add, inputs: [down, $input, $other]}
layers:
  - {name: stem, kind: linear, features: 8}
  - {block: residual, name: r, repeat: 2, width: 16, other: stem}
  - {name: head, kind: linear, inputs: [r], features: 2}
)");
  CHECK(names_of(graph.operators) == std::vector<std::string>{"stem", "r.0.up.fc", "r.0.down.fc", "r.0.add",
                                                              "r.1.up.fc", "r.1.down.fc", "r.1.add", "head"});
  CHECK(graph.predecessors[3] == std::vector<OperatorId>{0, 2});    // $input and the parameter are both stem
  CHECK(graph.predecessors[6] == std::vector<OperatorId>{0, 3, 5}); // copies follow each other
  CHECK(graph.predecessors[7] == std::vector<OperatorId>{6});       // the last copy stands for all
  CHECK(find_operator(graph, "r.1.up.fc").parameters == 8 * 16 + 16);
}

TEST_CASE("inside a block its own names come first", "[workload]") {
  const ModelGraph graph = workload(R"(
name: t
input: {shape: [8]}
blocks:
  - name: b
    layers:
      - {name: fc, kind: linear, features: 4}
      - {name: next, kind: linear, inputs: [fc], features: 4}
layers:
  - {name: fc, kind: linear, features: 8}
  - {block: b, name: b}
)");
  CHECK(graph.predecessors[2] == std::vector<OperatorId>{1});
}

TEST_CASE("layers given by numbers need no shapes", "[workload]") {
  const ModelGraph graph = workload(R"(
name: t
layers:
  - {name: a, kind: matmul, forward: 3 GFLOP, parameters: 10, output: 100}
  - {name: b, kind: custom, forward: 1 GFLOP, output: 7, stash: 5}
  - {name: c, kind: softmax, forward: 1 GFLOP, backward_input: 2 GFLOP, backward_weight: 4 GFLOP, output: 3, inputs: [a, b]}
)");
  const Operator& a = find_operator(graph, "a");
  CHECK(a.kind == KernelKind::matmul);
  CHECK(a.backward_input.flops == Flops{3e9}); // backward is twice forward, half of it for the weights
  CHECK(a.backward_weight.flops == Flops{3e9});
  CHECK(a.stash_elements == 0); // its inputs: none
  const Operator& b = find_operator(graph, "b");
  CHECK(b.kind == KernelKind::other);
  CHECK(b.backward_input.flops == Flops{2e9}); // no parameters: all of it
  CHECK(b.stash_elements == 5);
  const Operator& c = find_operator(graph, "c");
  CHECK(c.backward_weight.flops == Flops{4e9});
  CHECK(c.stash_elements == 107);
  CHECK(c.forward.moved_elements == 110);
}

TEST_CASE("a layer given by numbers may move other amounts forward and backward, and some once a micro-batch",
          "[workload]") {
  const ModelGraph graph = workload(R"(
name: t
layers:
  - {name: a, kind: elementwise, forward: 0 FLOP, output: 4, moved: {forward: 8, backward: 40}}
  - {name: b, kind: elementwise, forward: 0 FLOP, output: 4, moved: 0, moved_weights: {forward: 0, backward: 500}}
  - {name: c, kind: matmul, forward: 1 FLOP, output: 4, parameters: 10, moved_weights: 30}
)");
  const Operator& a = find_operator(graph, "a");
  CHECK(a.forward.moved_elements == 8);
  CHECK(a.backward_input.moved_elements == 40);
  CHECK(a.backward_input.moved_parameters == 0);
  const Operator& b = find_operator(graph, "b");
  CHECK(b.forward.moved_parameters == 0);
  CHECK(b.backward_input.moved_parameters == 500);
  CHECK(b.backward_weight.moved_parameters == 0); // it has no weights of its own
  const Operator& c = find_operator(graph, "c");
  for (const Pass& pass : {c.forward, c.backward_input, c.backward_weight}) {
    CHECK(pass.moved_parameters == 30);
  }
  CHECK_THAT(test::error_of([&] {
               workload("name: t\nlayers:\n  - {name: a, kind: matmul, forward: 1 FLOP, output: 1, moved: {up: 3}}\n");
             }),
             Catch::Contains("unknown key 'up'"));
}

TEST_CASE("a file may say what its model is also called", "[workload]") {
  const std::string layers = "layers:\n  - {name: a, kind: matmul, forward: 1 FLOP, output: 1}\n";
  CHECK(workload("name: t\nalso_called: [T-1, the first]\n" + layers).name == "t");
  CHECK_THAT(test::error_of([&] { workload("name: t\nalso_called: {a: b}\n" + layers); }),
             Catch::Contains("'also_called' must be a list"));
  CHECK_THAT(test::error_of([&] { workload("name: t\nalso_called: [[a]]\n" + layers); }),
             Catch::Contains("also_called"));
}

TEST_CASE("layers given by numbers may stand in any order", "[workload]") {
  const ModelGraph graph = workload(R"(
name: t
layers:
  - {name: last, kind: custom, forward: 1 FLOP, output: 1, inputs: [first]}
  - {name: first, kind: custom, forward: 1 FLOP, output: 1, inputs: [input]}
)");
  CHECK(names_of(graph.operators) == std::vector<std::string>{"first", "last"});
}

TEST_CASE("a measured profile is written by hand", "[workload]") {
  const ModelGraph graph = workload(R"(
name: t
profile: {device: v100, samples: 64, precision: fp16}
layers:
  - {name: a, kind: custom, forward: 0, output: 4, forward_time: 1.5 ms, backward_time: 3 ms}
  - {name: b, kind: custom, forward: 0, output: 4, forward_time: 20 us, backward_time: 0}
)");
  REQUIRE(graph.profiles.size() == 1);
  const Profile& profile = graph.profiles.front();
  CHECK(profile.device == "v100");
  CHECK(profile.samples == 64);
  CHECK(profile.precision == Precision::fp16);
  CHECK(profile.times[0].forward.value == near(1.5e-3));
  CHECK(profile.times[1].forward.value == near(2e-5));
}

constexpr const char* kTwoTypes = R"(
name: t
profile:
  - {device: v100, samples: [1, 4]}
  - {device: t4, samples: 2}
layers:
  - {name: b, kind: custom, forward: 0, output: 4, inputs: a, forward_time: {v100: [1 s, 2 s], t4: 3 s},
     backward_time: {v100: [4 s, 5 s], t4: 6 s}, spread: {v100: [0.1, 0.2], t4: 0.3}}
  - {name: a, kind: custom, forward: 0, output: 4, inputs: input, forward_time: {t4: [9 s], v100: [7 s, 8 s]},
     backward_time: {v100: [10 s, 11 s], t4: 12 s}}
)";

TEST_CASE("a file holds measured times of several device types, each of its own sizes", "[workload]") {
  const ModelGraph graph = workload(kTwoTypes);
  REQUIRE(graph.profiles.size() == 3); // v100 with 1 and with 4 samples, t4 with 2
  const auto is = [&](std::size_t at, const std::string& device, double samples) {
    return graph.profiles[at].device == device && graph.profiles[at].samples == samples;
  };
  CHECK((is(0, "v100", 1) && is(1, "v100", 4) && is(2, "t4", 2)));
  REQUIRE(graph.operators[0].name == "a");               // in topological order, and so are the times
  const double forward[3][2] = {{7, 1}, {8, 2}, {9, 3}}; // [profile][operator]
  const double backward[3][2] = {{10, 4}, {11, 5}, {12, 6}};
  const double spread[3][2] = {{0, 0.1}, {0, 0.2}, {0, 0.3}};
  for (std::size_t profile = 0; profile < 3; ++profile) {
    for (std::size_t op = 0; op < 2; ++op) {
      const MeasuredTime& time = graph.profiles[profile].times[op];
      CHECK(time.forward.value == forward[profile][op]);
      CHECK(time.backward.value == backward[profile][op]);
      CHECK(time.spread == spread[profile][op]);
    }
  }
}

TEST_CASE("a list of one device type says the same as that type alone", "[workload]") {
  const auto text = [](const std::string& profile, const std::string& time) {
    return "name: t\nprofile: " + profile + "\nlayers:\n  - {name: a, kind: custom, forward: 0, output: 4, " +
           "forward_time: " + time + ", backward_time: " + time + "}\n";
  };
  const ModelGraph list = workload(text("[{device: t4, samples: 2}]", "{t4: 3 s}"));
  const ModelGraph alone = workload(text("{device: t4, samples: 2}", "3 s"));
  REQUIRE(list.profiles.size() == 1);
  CHECK(list.profiles[0].device == alone.profiles[0].device);
  CHECK(list.profiles[0].samples == alone.profiles[0].samples);
  CHECK(list.profiles[0].times[0].forward == alone.profiles[0].times[0].forward);
}

TEST_CASE("repeats of repeats are stopped before they fill the memory", "[workload]") {
  const std::string error = test::error_of([] {
    workload("name: t\ninput: {shape: [8]}\nblocks:\n"
             "  - {name: a, layers: [{name: x, kind: relu}]}\n"
             "  - {name: b, layers: [{block: a, name: x, repeat: 10000}]}\n"
             "layers: [{block: b, name: y, repeat: 10000}]\n");
  });
  CHECK_THAT(error, Catch::Contains("more than 100000 layers"));
}

TEST_CASE("a model file is read by its suffix", "[workload]") {
  CHECK(load_model(test::source_dir() / "workloads/alexnet.yaml").name == "alexnet");
  CHECK_THAT(test::error_of([] { load_model("model.pt"); }),
             Catch::Contains("known suffixes: .yaml, .onnx, .txt, .json"));
  CHECK_THAT(test::error_of([] { load_model("absent.yaml"); }), Catch::Contains("no such file"));
}

} // namespace
} // namespace stagecraft
