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

// 64 values of which 9 windows of 3 x 3 read some: forward 9 outputs find their place and look at 9 values each,
// backward 64 inputs find the windows that have them, 81 in all.
TEST_CASE("kernels over windows are counted instruction by instruction", "[workload]") {
  const Operator maximum = layer("[1, 8, 8]", "kind: max_pool, kernel: 3, stride: 2");
  CHECK(maximum.forward.instructions == 9 * 20 + 81 * 12);
  CHECK(maximum.backward_input.instructions == 64 * 10 + 81 * 10);
  CHECK(maximum.forward.instructions_channels_first == 9 * 120 + 81 * 9);
  CHECK(maximum.backward_input.instructions_channels_first == 64 * 150 + 81 * 10);
  const Operator mean = layer("[1, 8, 8]", "kind: avg_pool, kernel: 3, stride: 2");
  CHECK(mean.forward.instructions == 9 * 120 + 81 * 6);
  CHECK(mean.backward_input.instructions == 64 * 220 + 81 * 35);
  CHECK(mean.backward_input.instructions_channels_first == mean.backward_input.instructions);
  CHECK(layer("[1, 8, 8]", "kind: global_avg_pool").forward.instructions == 0); // a sum by a kernel of its own
}

TEST_CASE("a transposed convolution multiplies each element read with the windows that it writes", "[workload]") {
  // 4 channels of 8 x 8 into 6, window 3, stride 2, padding 1: (8 - 1) * 2 + 3 - 2 = 15. F = 2 * 256 * 6 * 9 = 27648;
  // P = 4 * 6 * 9 + 6 = 222; y = 6 * 15 * 15 = 1350.
  const std::string text = "kind: conv_transpose2d, channels: 6, kernel: 3, stride: 2, padding: 1";
  const Operator op = layer("[4, 8, 8]", text);
  CHECK(op.kind == KernelKind::convolution);
  CHECK(op.output_elements == 1350);
  CHECK(op.parameters == 222);
  for (const Pass& pass : {op.forward, op.backward_input, op.backward_weight}) {
    CHECK(pass.flops == Flops{27648});
    CHECK(pass.moved_elements == 256 + 1350);
  }
  CHECK(op.stash_elements == 256);
  // Of 16 x 16 that convolution makes 8 x 8, too; of 17 x 17 it makes 9 x 9.
  CHECK(layer("[4, 8, 8]", text + ", output: 16").output_elements == 6 * 16 * 16);
  CHECK_THAT(test::error_of([&] { layer("[4, 8, 8]", text + ", output: 17"); }), Catch::Contains("allowed: 15 to 16"));
  CHECK(layer("[4, 8, 8]", text + ", groups: 2, bias: false").parameters == 4 * 3 * 9);
  CHECK_THAT(test::error_of([&] { layer("[4, 1, 1]", "kind: conv_transpose2d, channels: 6, kernel: 1, padding: 1"); }),
             Catch::Contains("leaves nothing"));
}

TEST_CASE("an upsampled image repeats its pixels, whose gradients add up", "[workload]") {
  const Operator op = layer("[4, 8, 8]", "kind: upsample, scale: [2, 3]");
  CHECK(op.output_elements == 4 * 16 * 24);
  CHECK(op.forward.moved_elements == 256 + 1536);
  CHECK(op.backward_input.flops == Flops{1536});
  // Twice by a million: the first is just countable.
  CHECK_THAT(test::error_of([] {
               test::workload("name: t\ninput: {shape: [1, 1, 1000000000]}\nlayers:\n"
                              "  - {name: a, kind: upsample, scale: [1, 1000000]}\n"
                              "  - {name: b, kind: upsample, scale: [1, 1000000]}\n");
             }),
             Catch::Contains("to more than 1e15"));
  CHECK(op.stash_elements == 0);
}

TEST_CASE("an instance normalization is a batch normalization of one sample, with or without weights", "[workload]") {
  const Operator batch = layer("[4, 8, 8]", "kind: batch_norm");
  const Operator op = layer("[4, 8, 8]", "kind: instance_norm");
  CHECK(op.parameters == 8);
  CHECK(op.forward.moved_elements == batch.forward.moved_elements);
  CHECK(op.stash_elements == 256);
  const Operator bare = layer("[4, 8, 8]", "kind: instance_norm, affine: false");
  CHECK(bare.parameters == 0);
  CHECK(bare.backward_weight.kernels == 0);
  // Backward reads as much as both gradients of the other do.
  CHECK(bare.backward_input.moved_elements == op.backward_input.moved_elements + op.backward_weight.moved_elements);
  CHECK(bare.stash_elements == 256);
}

TEST_CASE("a leaky ReLU keeps its input, and a dropout of channels a number for each", "[workload]") {
  // A convolution that reads what a ReLU writes keeps that tensor alone; behind a leaky ReLU both are kept.
  const auto kept = [](const std::string& kind) {
    return totals_of(test::workload("name: t\ninput: {shape: [4, 8, 8]}\nlayers:\n"
                                    "  - {name: conv, kind: conv2d, channels: 4, kernel: 1}\n"
                                    "  - {name: x, kind: " +
                                    kind + "}\n  - {name: next, kind: conv2d, channels: 4, kernel: 1}\n"))
        .stash_elements;
  };
  CHECK(kept("leaky_relu") == kept("relu") + 256);
  CHECK(kept("channel_dropout") == kept("relu") + 4);
  const Operator op = layer("[4, 8, 8]", "kind: channel_dropout");
  CHECK(op.forward.moved_elements == 2 * 256);
  CHECK(op.backward_input.moved_elements == 2 * 256);
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

TEST_CASE("an adapter of low rank is trained beside frozen weights", "[workload][lora]") {
  // 10 positions, 8 -> 3, rank 2: A 2 x 8 and B 3 x 2, over 10 * 2 values between them.
  const Operator plain = layer("[10, 8]", "kind: linear, features: 3");
  const Operator op = layer("[10, 8]", "kind: linear, features: 3, lora: 2");
  CHECK(op.parameters == 2 * 8 + 3 * 2);
  CHECK(op.frozen == 8 * 3 + 3);
  const double both = 2 * 10 * 2 * (8 + 3); // through A and B
  CHECK((op.forward.flops - plain.forward.flops).value == both);
  CHECK((op.backward_input.flops - plain.backward_input.flops).value == both);
  CHECK(op.backward_weight.flops == Flops{both}); // none of the weights'
  CHECK(op.forward.kernels == 4);                 // W, A, B and the sum
  CHECK(op.stash_elements == 80 + 20);            // x for A, A x for B
}

TEST_CASE("frozen weights have no gradient, and nothing is kept for one", "[workload][lora]") {
  const Operator op = layer("[10, 8]", "kind: linear, features: 3, frozen: true");
  CHECK(op.parameters == 0);
  CHECK(op.frozen == 27);
  CHECK(op.backward_weight.flops == Flops{0});
  CHECK(op.backward_weight.kernels == 0);
  CHECK(op.backward_input.flops == layer("[10, 8]", "kind: linear, features: 3").backward_input.flops);
  CHECK(op.stash_elements == 0);
  CHECK(layer("[10, 8]", "kind: rms_norm, frozen: true").stash_elements == 80); // the input's gradient needs it
}

TEST_CASE("adapters of a model stand beside the products of its blocks, and all else is frozen", "[workload][lora]") {
  const ModelGraph model = load_model(test::source_dir() / "workloads/llama3-8b.yaml", {.lora = 16});
  // Each layer: queries, keys and values 4096 -> 6144, projection 4096 -> 4096, 4096 -> 28672, 14336 -> 4096.
  CHECK(totals_of(model).parameters == 32 * 16 * ((4096 + 6144) + (4096 + 4096) + (4096 + 28672) + (14336 + 4096)));
  CHECK(totals_of(model).frozen == 8030261248);
  CHECK(test::find_operator(model, "head").parameters == 0);
  CHECK(test::find_operator(model, "embedding").backward_weight.kernels == 0);
  CHECK(test::find_operator(model, "layer.0.norm1").backward_input.kernels == 0); // nothing before it is trained
  CHECK(test::find_operator(model, "layer.1.norm1").backward_input.kernels > 0);
  CHECK_THAT(test::error_of([] { load_model(test::source_dir() / "workloads/vgg16.yaml", {.lora = 4}); }),
             Catch::Contains("no product of numbered blocks"));
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

TEST_CASE("a window limits the keys that a causal query sees", "[workload]") {
  // 5 queries see 1, 2, 3, 3, 3 keys: 12 pairs; 2 heads of 3, so 2 * 12 * (6 + 6) = 288 FLOPs.
  const auto windowed = [](const std::string& window) {
    return layer("[5, 18]", "kind: attention, heads: 2, causal: true, window: " + window);
  };
  CHECK(windowed("3").forward.flops == Flops{288});
  CHECK(windowed("3").backward_input.flops == Flops{720});
  CHECK(windowed("3").forward.calls.empty());              // no fit is of such attention
  CHECK(windowed("1").forward.flops == Flops{2 * 5 * 12}); // each sees itself
  // A window of the whole sequence hides nothing: 15 pairs; one less hides one.
  const Operator whole = layer("[5, 18]", "kind: attention, heads: 2, causal: true");
  CHECK(whole.forward.flops == Flops{360});
  CHECK(windowed("5").forward.flops == whole.forward.flops);
  CHECK(windowed("4").forward.flops == Flops{360 - 24});
  CHECK(windowed("3").stash_elements == whole.stash_elements);
  CHECK_THAT(test::error_of([] { layer("[5, 18]", "kind: attention, heads: 2, window: 3"); }),
             Catch::Contains("not causal; allowed: with causal: true"));
  CHECK_THAT(test::error_of([&] { windowed("0"); }), Catch::Contains("'window'"));
}

TEST_CASE("root mean square normalization has one weight per feature", "[workload]") {
  // y = 10 * 8 elements; two operations each (by 1 / rms, by the weight). Backward reads x and dy and writes dx; the
  // weight's gradient reads x and dy.
  const Operator op = layer("[10, 8]", "kind: rms_norm");
  REQUIRE(op.forward.calls.size() == 1);
  CHECK(op.forward.calls[0] == KernelCall{KernelOp::rms_norm, {10, 8}, 0});
  CHECK(op.kind == KernelKind::normalization);
  CHECK(op.parameters == 8);
  CHECK(op.output_elements == 80);
  CHECK(op.forward.flops == Flops{160});
  CHECK(op.backward_input.flops == Flops{160});
  CHECK(op.backward_weight.flops == Flops{160});
  CHECK(op.forward.moved_elements == 160);
  CHECK(op.backward_input.moved_elements == 240);
  CHECK(op.backward_weight.moved_elements == 160);
  CHECK(op.forward.moved_parameters == 8);
  CHECK(op.stash_elements == 80);
  CHECK(op.weight_elements == 0); // with the input's gradient
}

TEST_CASE("queries and keys are normalized in each head, values are not", "[workload]") {
  // 4 query heads and 1 key and 1 value head of 3: [5, 18]. z = 5 * (4 + 1) * 3 = 75; weights of 3 for queries and
  // keys.
  const Operator op = layer("[5, 18]", "kind: query_key_norm, heads: 4, key_value_heads: 1");
  CHECK(op.kind == KernelKind::normalization);
  CHECK(op.parameters == 6);
  CHECK(op.output_elements == 90);
  CHECK(op.forward.flops == Flops{150});
  CHECK(op.backward_input.flops == Flops{150});
  CHECK(op.backward_weight.flops == Flops{150});
  CHECK(op.forward.moved_elements == 150);
  CHECK(op.backward_input.moved_elements == 225);
  CHECK(op.forward.kernels == 2);
  CHECK(op.stash_elements == 75);
  REQUIRE(op.forward.calls.size() == 2); // rows of 3: 5 * 4 queries, 5 * 1 keys
  CHECK(op.forward.calls[0].op == KernelOp::rms_norm);
  CHECK((op.forward.calls[0].shape[0] == 20 && op.forward.calls[0].shape[1] == 3));
  CHECK((op.forward.calls[1].shape[0] == 5 && op.forward.calls[1].shape[1] == 3));
  CHECK_THAT(test::error_of([] { layer("[5, 18]", "kind: query_key_norm, heads: 4"); }),
             Catch::Contains("features 18 do not split into heads 4 and key_value_heads 4"));
}

TEST_CASE("a rotary embedding turns pairs of features of queries and keys, and keeps nothing", "[workload]") {
  // 4 query heads and 1 key and 1 value head of 4: [5, 24]. z = 5 * (4 + 1) * 4 = 100; a pair takes 4 products and 2
  // sums, 3 operations an element; each element is read and written.
  const Operator op = layer("[5, 24]", "kind: rotary, heads: 4, key_value_heads: 1");
  CHECK(op.kind == KernelKind::elementwise);
  CHECK(op.parameters == 0);
  CHECK(op.output_elements == 120);
  CHECK(op.forward.flops == Flops{300});
  CHECK(op.backward_input.flops == Flops{300});
  CHECK(op.backward_weight.kernels == 0);
  CHECK(op.forward.moved_elements == 200);
  CHECK(op.backward_input.moved_elements == 200);
  CHECK(op.stash_elements == 0);
  REQUIRE(op.forward.calls.size() == 1); // a row for each of 5 heads of 5 positions
  CHECK(op.forward.calls[0] == KernelCall{KernelOp::rotary, {25, 4}, 0});
  CHECK(layer("[5, 24]", "kind: rotary, heads: 4, key_value_heads: 1, part: 0.5").forward.flops == Flops{150});
  // 0.7 of 4 is 2.8: 2 whole features. 0.75 of 4 is 3: no pairs.
  CHECK(layer("[5, 24]", "kind: rotary, heads: 4, key_value_heads: 1, part: 0.7").forward.flops == Flops{150});
  for (const char* part : {"0.75", "0.1"}) {
    CHECK_THAT(test::error_of(
                   [&] { layer("[5, 24]", "kind: rotary, heads: 4, key_value_heads: 1, part: " + std::string(part)); }),
               Catch::Contains("allowed: pairs of features"));
  }
  CHECK_THAT(test::error_of([] { layer("[24]", "kind: rotary, heads: 4, key_value_heads: 1"); }),
             Catch::Contains("allowed: [sequence, features]"));
}

TEST_CASE("a gated activation halves the features and keeps both halves", "[workload]") {
  // [10, 8] -> [10, 4]: y = 40, x = 80. Forward: 8 for the activation, 1 product. Backward: the activation again, two
  // products, its derivative: 8 + 2 + 8; it reads x and dy and writes dx.
  for (const char* attribute : {"", ", activation: silu", ", activation: gelu"}) {
    const Operator op = layer("[10, 8]", "kind: gated" + std::string(attribute));
    CHECK(op.kind == KernelKind::elementwise);
    CHECK(op.parameters == 0);
    CHECK(op.output_elements == 40);
    REQUIRE(op.backward_input.calls.size() == 1);
    CHECK(op.backward_input.calls[0] == KernelCall{KernelOp::swiglu, {10, 4}, 0});
    CHECK(op.forward.flops == Flops{360});
    CHECK(op.backward_input.flops == Flops{720});
    CHECK(op.forward.moved_elements == 120);
    CHECK(op.backward_input.moved_elements == 200);
    CHECK(op.stash_elements == 80);
  }
  CHECK_THAT(test::error_of([] { layer("[10, 8]", "kind: gated, activation: relu"); }), Catch::Contains("silu, gelu"));
  CHECK_THAT(test::error_of([] { layer("[10, 7]", "kind: gated"); }),
             Catch::Contains("does not split into two halves"));
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

// For each length that a batch has, two passes over the padded output, here 1.5 times as long as the mean, and four
// over the packed one, of 10 elements.
TEST_CASE("a packed lstm's backward takes its output apart length by length", "[workload]") {
  const Operator packed = layer("[5, 3]", "kind: lstm, hidden: 2, packed: {lengths: 3, longest: 1.5}");
  CHECK(packed.backward_input.lengths == 3);
  CHECK(packed.backward_input.unpacked_elements == (2 * 1.5 + 4) * 10);
  CHECK(packed.forward.unpacked_elements == 0);
  CHECK(layer("[5, 3]", "kind: lstm, hidden: 2").backward_input.unpacked_elements == 0);
  CHECK_THAT(test::error_of([] { layer("[5, 3]", "kind: lstm, hidden: 2, packed: {lengths: 3, longest: 0.5}"); }),
             Catch::Contains("1 to 1000"));
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

// y = a b of 24 elements each: backward reads a, b and dy and writes da and db, two of which the sums of all kernels
// here count, 2 x 48 + 24. A gate of two for y has a gradient that is a sum of 24 products: these are written and read,
// with dy and what is gated read for them, and the gradients of what is gated are added: 9 x 24, and the gate twice.
TEST_CASE("the gradient of a factor that is broadcast is a sum of products", "[workload]") {
  const ModelGraph graph = test::workload("name: t\ninput: {shape: [2, 3, 4]}\nlayers:\n"
                                          "  - {name: a, kind: conv2d, channels: 2, kernel: 1}\n"
                                          "  - {name: p, kind: global_avg_pool}\n"
                                          "  - {name: whole, kind: mul, inputs: [a, a]}\n"
                                          "  - {name: gated, kind: mul, inputs: [a, p]}\n"
                                          "  - {name: y, kind: add, inputs: [whole, gated]}\n");
  CHECK(test::find_operator(graph, "whole").backward_input.moved_elements == 2 * 48 + 24);
  CHECK(test::find_operator(graph, "gated").backward_input.moved_elements == 9 * 24 + 2 * 2);
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
