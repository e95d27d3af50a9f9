// Layers of vision transformers, T5 and Mamba-2, and documents packed into a sequence, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/model_flops.hpp"
#include "tests/catch.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

// The layer after a product that makes `features` of each of 10 tokens.
Operator after_product(int features, const std::string& text) {
  return test::find_operator(test::workload("name: t\ninput: {shape: [10, 4]}\nlayers:\n  - {name: in, kind: linear, "
                                            "features: " +
                                            std::to_string(features) + "}\n  - {name: x, " + text + "}\n"),
                             "x");
}

// FLOPs of attention with two heads of 3, for each pair 2 * (6 + 6).
double pairs(const std::string& attributes) {
  return after_product(18, "kind: attention, heads: 2" + attributes).forward.flops.value / 24;
}

TEST_CASE("documents of a sequence do not see each other", "[workload][sequence]") {
  CHECK(pairs(", documents: [4, 6]") == 16 + 36);
  CHECK(pairs(", documents: [4, 6], causal: true") == 10 + 21);
  CHECK(pairs(", documents: 4, causal: true") == 10 + 10 + 3); // the last is shorter
  CHECK(pairs(", documents: 5") == 2 * 25);
  CHECK(pairs(", documents: 10") == pairs(""));
  CHECK(pairs(", documents: [4, 6], causal: true, window: 2") == (1 + 2 * 3) + (1 + 2 * 5));
}

// PaLM's count of an attention: every pair of a query and a key of its document, or of its window.
TEST_CASE("model FLOPs count the pairs within documents, whatever a causal mask leaves out", "[workload][sequence]") {
  const auto flops = [](const std::string& mask) {
    return product_flops(after_product(18, "kind: attention, heads: 2" + mask)).value;
  };
  const double all = flops("");
  CHECK(flops(", causal: true") == test::near(all));
  CHECK(flops(", documents: [4, 6]") == test::near(all * (16 + 36) / 100));
  CHECK(flops(", documents: [4, 6], causal: true") == test::near(all * (16 + 36) / 100));
  CHECK(flops(", documents: [4, 6], causal: true, window: 5") == test::near(all * (4 * 4 + 6 * 5) / 100));
  CHECK(flops(", causal: true, window: 5") == test::near(all * 5 / 10));
}

TEST_CASE("documents of one length are as many sequences to a kernel", "[workload][sequence]") {
  const Operator equal = after_product(18, "kind: attention, heads: 2, documents: 5");
  REQUIRE(equal.forward.calls.size() == 1);
  CHECK(equal.forward.calls[0] == KernelCall{KernelOp::attention, {2, 5, 2, 2, 3, 0}, 0});
  CHECK(after_product(18, "kind: attention, heads: 2, documents: 4").forward.calls.empty());
}

TEST_CASE("biases of positions are read for each pair, and one layer owns their table", "[workload][sequence]") {
  const Operator plain = after_product(18, "kind: attention, heads: 2");
  const Operator biased = after_product(18, "kind: attention, heads: 2, biased: true");
  const Operator owner = after_product(18, "kind: attention, heads: 2, buckets: 8");
  CHECK((biased.forward.flops - plain.forward.flops).value == 2 * 100);
  CHECK(biased.forward.moved_elements - plain.forward.moved_elements == 2 * 100);
  CHECK(biased.parameters == 0);
  CHECK(owner.forward.flops == biased.forward.flops);
  CHECK(owner.parameters == 8 * 2);
  CHECK(owner.backward_weight.flops == Flops{2 * 100});
}

TEST_CASE("learned tokens stand before the others, and each has a position", "[workload][sequence]") {
  const Operator op = after_product(6, "kind: learned_tokens, tokens: 2");
  CHECK(op.output_elements == 12 * 6);
  CHECK(op.parameters == 12 * 6 + 2 * 6);
  CHECK(op.forward.flops == Flops{12 * 6});
  CHECK(op.stash_elements == 0);
  CHECK(after_product(6, "kind: learned_tokens").parameters == 10 * 6);
}

TEST_CASE("a short convolution has taps for each feature", "[workload][sequence]") {
  const Operator op = after_product(6, "kind: short_convolution, taps: 4");
  CHECK(op.parameters == 6 * 4 + 6);
  CHECK(op.forward.flops == Flops{2 * 4 * 60});
  CHECK(op.output_elements == 60);
}

TEST_CASE("a state space works in chunks", "[workload][sequence]") {
  // 10 tokens, 2 heads of 3, one group of states of 4; chunks of 5: two states of 2 * 4 * 3.
  const ModelGraph model = test::workload("name: t\ninput: {shape: [10, 4]}\nlayers:\n"
                                          "  - {name: values, kind: linear, features: 6}\n"
                                          "  - {name: vectors, kind: linear, inputs: [input], features: 8}\n"
                                          "  - {name: steps, kind: linear, inputs: [input], features: 2}\n"
                                          "  - {name: x, kind: state_space, inputs: [values, vectors, steps], heads: "
                                          "2, chunk: 5}\n");
  const Operator op = test::find_operator(model, "x");
  // Scores 2 * 5 * 4 for each token; values 2 * 5 * 3 and states 4 * 4 * 3 for each head.
  const double products = 10 * (2 * 5 * 4 + 2 * (2 * 5 * 3 + 4 * 4 * 3));
  CHECK(op.forward.flops == Flops{products});
  CHECK(op.backward_input.flops == Flops{2.5 * products});
  CHECK(op.kind == KernelKind::state_space);
  CHECK(op.forward.slower == 1);
  CHECK(op.backward_input.slower == 1.8);
  const double states = 2 * 2 * 4 * 3;
  CHECK(op.forward.moved_elements == 60 + 80 + 20 + 60 + 2 * states);
  CHECK(op.stash_elements == 60 + 80 + 20 + states);
  CHECK(op.parameters == 3 * 2);
}

TEST_CASE("a tied embedding has no table of its own", "[workload][sequence]") {
  const auto embedding = [](const std::string& more) {
    return test::find_operator(test::workload("name: t\ninput: {shape: [10]}\nlayers:\n  - {name: x, kind: embedding, "
                                              "vocabulary: 100, features: 4, positions: 16" +
                                              more + "}\n"),
                               "x");
  };
  CHECK(embedding("").parameters == 400 + 64);
  CHECK(embedding(", tied: true").parameters == 64);
  CHECK(embedding(", tied: true").backward_weight.moved_parameters == 400 + 64);
}

} // namespace
} // namespace stagecraft
