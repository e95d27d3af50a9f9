// Costs of single layers, by hand. Letters as in docs/formats/workload.md.
// SPDX-License-Identifier: Apache-2.0
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

// The last operator of a model made of one first layer with a parameter, so that gradients flow, and one more.
Operator layer(const std::string& input, const std::string& text, const std::string& before = "") {
  const ModelGraph graph =
      test::workload("name: t\ninput: {shape: " + input + "}\nlayers:\n  - {name: first, kind: " +
                     (before.empty() ? "layer_norm" : before) + "}\n  - {name: x, " + text + "}\n");
  return test::find_operator(graph, "x");
}

TEST_CASE("convolution: 2 FLOPs for each of k k C/groups weights at every output element", "[workload]") {
  // 4 channels of 8 x 8 into 6 channels, window 3, stride 2, padding 1: (8 + 2 - 3) / 2 + 1 = 4, so y = 6 * 4 * 4 = 96.
  // fan-in 4 / 2 groups * 9 = 18; F = 2 * 96 * 18 = 3456; P = 6 * 18 + 6 = 114; x = 256.
  const Operator op = layer("[4, 8, 8]", "kind: conv2d, channels: 6, kernel: 3, stride: 2, padding: 1, groups: 2");
  CHECK(op.kind == KernelKind::convolution);
  CHECK(op.output_elements == 96);
  CHECK(op.parameters == 114);
  for (const Pass& pass : {op.forward, op.backward_input, op.backward_weight}) {
    CHECK(pass.flops == Flops{3456});
    CHECK(pass.moved_elements == 256 + 96);
    CHECK(pass.kernels == 1);
  }
  CHECK(op.stash_elements == 256);
}

TEST_CASE("windows: dilation, rectangles, and rounding up", "[workload]") {
  // Dilation 2 makes a window of 3 reach over 5: 8 - 5 + 1 = 4.
  CHECK(layer("[1, 8, 8]", "kind: conv2d, channels: 1, kernel: 3, dilation: 2").output_elements == 16);
  // [1, 7] with padding [0, 3] keeps 8 x 8.
  CHECK(layer("[1, 8, 8]", "kind: conv2d, channels: 1, kernel: [1, 7], padding: [0, 3]").output_elements == 64);
  // (8 - 3) / 2 = 2.5: 3 windows, or 4 rounded up.
  CHECK(layer("[1, 8, 8]", "kind: max_pool, kernel: 3, stride: 2").output_elements == 9);
  CHECK(layer("[1, 8, 8]", "kind: max_pool, kernel: 3, stride: 2, ceil: true").output_elements == 16);
  // Rounded up (5 + 2 - 2) / 2 + 1 = 4 windows of which the last would start at 6 >= 5 + 1, in the padding: 3.
  CHECK(layer("[1, 5, 5]", "kind: avg_pool, kernel: 2, padding: 1, ceil: true").output_elements == 9);
}

TEST_CASE("linear works on the last dimension, and a tied one has only its bias", "[workload]") {
  // 10 positions, 8 -> 3: F = 2 * 10 * 3 * 8 = 480, P = 3 * 8 + 3 = 27.
  const Operator op = layer("[10, 8]", "kind: linear, features: 3");
  CHECK(op.forward.flops == Flops{480});
  CHECK(op.parameters == 27);
  const Operator tied = layer("[10, 8]", "kind: linear, features: 3, tied: true");
  CHECK(tied.parameters == 3);
  CHECK(tied.forward.moved_parameters == 27);
}

TEST_CASE("a weight gradient needs the layer's input and the gradient of its output", "[workload]") {
  CHECK(layer("[10, 8]", "kind: linear, features: 3").weight_elements == 80 + 30);
  CHECK(layer("[4, 8, 8]", "kind: conv2d, channels: 6, kernel: 3, stride: 2, padding: 1").weight_elements == 256 + 96);
  CHECK(layer("[10, 8]", "kind: gelu").weight_elements == 0);
  CHECK(layer("[10, 8]", "kind: layer_norm").weight_elements == 0); // with the input's gradient
  CHECK(layer("[4, 18]", "kind: attention, heads: 2").weight_elements == 0);
}

TEST_CASE("what weight gradients of a transformer layer need is 16 s b h elements", "[workload]") {
  // Qi et al. 2023, Table 1: 32 s b h bytes in half precision. s = 4, h = 8: inputs of 1 + 1 + 1 + 4, gradients of
  // 3 + 1 + 4 + 1 times s h.
  const ModelGraph graph = test::workload("name: t\ninput: {shape: [4, 8]}\nlayers:\n"
                                          "  - {name: n1, kind: layer_norm}\n"
                                          "  - {name: qkv, kind: linear, features: 24}\n"
                                          "  - {name: core, kind: attention, heads: 2}\n"
                                          "  - {name: out, kind: linear, features: 8}\n"
                                          "  - {name: n2, kind: layer_norm}\n"
                                          "  - {name: up, kind: linear, features: 32}\n"
                                          "  - {name: act, kind: gelu}\n"
                                          "  - {name: down, kind: linear, features: 8}\n");
  double sum = 0;
  for (const Operator& op : graph.operators) {
    sum += op.weight_elements;
  }
  CHECK(sum == 16 * 4 * 8);
}

TEST_CASE("a tensor that several weight gradients read counts once", "[workload]") {
  const ModelGraph graph = test::workload("name: t\ninput: {shape: [10, 8]}\nlayers:\n"
                                          "  - {name: n, kind: layer_norm}\n"
                                          "  - {name: q, kind: linear, features: 3, inputs: [n]}\n"
                                          "  - {name: k, kind: linear, features: 5, inputs: [n]}\n");
  CHECK(test::find_operator(graph, "q").weight_elements == 80 + 30);
  CHECK(test::find_operator(graph, "k").weight_elements == 50);
}

TEST_CASE("attention multiplies queries with keys and scores with values", "[workload]") {
  // n = 4 tokens, 2 heads of 3: forward 2 * n^2 * (6 + 6) = 384; backward 2.5 times as much. Causal: n(n+1)/2 = 10 of
  // 16 pairs, 240. Kept: q, k, v = 4 * 18, the output 4 * 6, statistics 4 * 2.
  const Operator op = layer("[4, 18]", "kind: attention, heads: 2");
  CHECK(op.forward.flops == Flops{384});
  CHECK(op.backward_input.flops == Flops{960});
  CHECK(op.backward_weight.flops == Flops{0});
  CHECK(op.output_elements == 24);
  CHECK(op.stash_elements == 72 + 24 + 8);
  CHECK(layer("[4, 18]", "kind: attention, heads: 2, causal: true").forward.flops == Flops{240});
  // 4 query heads share 1 key and 1 value head: 18 = (4 + 2) * 3, output 4 * 3.
  CHECK(layer("[4, 18]", "kind: attention, heads: 4, key_value_heads: 1").output_elements == 48);
}

TEST_CASE("lstm has four gates per direction and layer", "[workload]") {
  // I = 3, H = 2, 5 steps: one direction has 4 * 2 * (3 + 2) = 40 weights and 16 biases. The second layer of a
  // bidirectional stack reads 4 features: 4 * 2 * (4 + 2) = 48.
  const Operator one = layer("[5, 3]", "kind: lstm, hidden: 2");
  CHECK(one.parameters == 56);
  CHECK(one.forward.flops == Flops{2 * 5 * 40});
  CHECK(one.output_elements == 10);
  CHECK(one.forward.kernels == 6);
  const Operator stack = layer("[5, 3]", "kind: lstm, hidden: 2, layers: 2, bidirectional: true");
  CHECK(stack.parameters == 2 * (40 + 48) + 4 * 16);
  CHECK(stack.output_elements == 20);
}

TEST_CASE("embedding adds tables and needs no input gradient", "[workload]") {
  const ModelGraph graph =
      test::workload("name: t\ninput: {shape: [4]}\nlayers:\n"
                     "  - {name: e, kind: embedding, vocabulary: 10, positions: 4, types: 2, features: 3}\n");
  const Operator& op = graph.operators.front();
  CHECK(op.parameters == (10 + 4 + 2) * 3);
  CHECK(op.output_elements == 12);
  CHECK(op.backward_input.kernels == 0);
  CHECK(op.backward_weight.kernels == 1);
}

TEST_CASE("matmul of two activations has two input gradients", "[workload]") {
  // [2, 3, 4] x [2, 4, 5]: y = 30, F = 2 * 30 * 4.
  const ModelGraph graph = test::workload(R"(
name: t
input: {shape: [2, 3, 4]}
layers:
  - {name: a, kind: layer_norm}
  - {name: b, kind: linear, features: 10}
  - {name: c, kind: reshape, shape: [2, 5, 6]}
  - {name: d, kind: slice, axis: 2, start: 2, end: 6}
  - {name: x, kind: matmul, inputs: [a, d], transpose: true}
)");
  const Operator& op = test::find_operator(graph, "x");
  CHECK(op.output_elements == 30);
  CHECK(op.forward.flops == Flops{240});
  CHECK(op.backward_input.flops == Flops{480});
}

TEST_CASE("views cost nothing, concatenation adds up, sums broadcast", "[workload]") {
  CHECK(layer("[2, 3, 4]", "kind: flatten").forward.kernels == 0);
  CHECK(layer("[2, 3, 4]", "kind: concat, inputs: [first, first, first], axis: 1").output_elements == 72);
  CHECK(layer("[2, 3, 4]", "kind: transpose, axes: [2, 0, 1]").forward.moved_elements == 48);
  const ModelGraph graph = test::workload("name: t\ninput: {shape: [2, 3, 4]}\nlayers:\n"
                                          "  - {name: p, kind: global_avg_pool}\n"
                                          "  - {name: x, kind: mul, inputs: [input, p]}\n");
  CHECK(test::find_operator(graph, "x").output_elements == 24);
}

TEST_CASE("a layer without a parameter before it has no backward and keeps nothing", "[workload]") {
  const ModelGraph graph = test::workload(R"(
name: t
input: {shape: [8]}
layers:
  - {name: gelu, kind: gelu}
  - {name: fc1, kind: linear, features: 4}
  - {name: fc2, kind: linear, features: 2}
)");
  const Operator& gelu = test::find_operator(graph, "gelu");
  CHECK(gelu.backward_input.kernels == 0);
  CHECK(gelu.stash_elements == 0);
  CHECK(test::find_operator(graph, "fc1").backward_input.flops == Flops{0});
  CHECK(test::find_operator(graph, "fc1").backward_weight.flops == Flops{64});
  CHECK(test::find_operator(graph, "fc2").backward_input.flops == Flops{16});
}

TEST_CASE("a tensor that several layers keep is counted once, for its first reader", "[workload]") {
  // relu keeps its output of 4; fc1 and, through a view, fc2 keep the same tensor. fc1 reads it first.
  const ModelGraph graph = test::workload(R"(
name: t
input: {shape: [8]}
layers:
  - {name: fc0, kind: linear, features: 4}
  - {name: relu, kind: relu}
  - {name: view, kind: reshape, shape: [2, 2]}
  - {name: fc1, kind: linear, inputs: [relu], features: 3}
  - {name: fc2, kind: linear, inputs: [view], features: 3}
)");
  CHECK(test::find_operator(graph, "fc0").stash_elements == 8);
  CHECK(test::find_operator(graph, "relu").stash_elements == 0);
  CHECK(test::find_operator(graph, "fc1").stash_elements == 4);
  CHECK(test::find_operator(graph, "fc2").stash_elements == 0);
}

} // namespace
} // namespace stagecraft
