// Mixtures of experts and latent attention, layer by layer, by hand. Letters as in docs/formats/workload.md.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/kernel_list.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

// 6 tokens of 8 features; each goes to 2 of 4 experts, whose gated inner part has 3 features.
ModelGraph mixture(const std::string& dispatch = "") {
  return test::workload("name: t\ninput: {shape: [6, 8]}\nlayers:\n"
                        "  - {name: norm, kind: rms_norm}\n"
                        "  - {name: router, kind: router, experts: 4, top: 2}\n"
                        "  - {name: dispatch, kind: dispatch, inputs: [norm, router]" +
                        dispatch +
                        "}\n"
                        "  - {name: expand, kind: expert_linear, inputs: [dispatch, router], experts: 4, features: 6}\n"
                        "  - {name: gate, kind: gated, inputs: [expand, router]}\n"
                        "  - {name: contract, kind: expert_linear, inputs: [gate, router], experts: 4, features: 8, "
                        "bias: false}\n"
                        "  - {name: combine, kind: combine, inputs: [contract, router]}\n");
}

TEST_CASE("a router multiplies tokens with a weight for each expert", "[workload][experts]") {
  const Operator op = test::find_operator(mixture(), "router");
  CHECK(op.parameters == 8 * 4);
  CHECK(op.forward.flops == Flops{2 * 6 * 4 * 8 + 5 * 6 * 4}); // and a softmax over the logits
  CHECK(op.backward_weight.flops == Flops{2 * 6 * 4 * 8});
  CHECK(op.forward.moved_elements == 6 * 8 + 2 * 6 * 4 + 6 * 2); // tokens, logits twice, choices
  CHECK(op.output_elements == 6 * 2);
  CHECK(op.stash_elements == 6 * 8 + 6 * 4); // tokens, which the norm wrote, and probabilities
  CHECK(op.active == 1);
}

TEST_CASE("a token has a row for each expert that it goes to", "[workload][experts]") {
  const ModelGraph model = mixture();
  const Operator dispatch = test::find_operator(model, "dispatch");
  CHECK(dispatch.output_elements == 6 * 2 * 8);
  CHECK(dispatch.forward.flops == Flops{0});
  CHECK(dispatch.backward_input.flops == Flops{12 * 8}); // the rows' gradients add up
  CHECK(dispatch.stash_elements == 0);
  const Operator combine = test::find_operator(model, "combine");
  CHECK(combine.output_elements == 6 * 8);
  CHECK(combine.forward.flops == Flops{12 * 8});
  CHECK(combine.stash_elements == 0);
}

TEST_CASE("experts have their weights each, and a token meets those that it goes to", "[workload][experts]") {
  const ModelGraph model = mixture();
  const Operator expand = test::find_operator(model, "expand");
  CHECK(expand.parameters == 4 * (8 * 6 + 6));
  CHECK(expand.active == 0.5); // 2 of 4
  for (const Pass& pass : {expand.forward, expand.backward_input, expand.backward_weight}) {
    CHECK(pass.flops == Flops{2 * 12 * 8 * 6}); // 12 rows
    CHECK(pass.kernels == 1);
  }
  // One product for each expert of ceil(12 / 4) rows; the weight gradient sums over them.
  REQUIRE(expand.forward.calls.size() == 1);
  CHECK(expand.forward.calls[0] == KernelCall{KernelOp::gemm, {4, 3, 6, 8}, 1});
  CHECK(expand.backward_input.calls[0] == KernelCall{KernelOp::gemm, {4, 3, 8, 6}, 1});
  CHECK(expand.backward_weight.calls[0] == KernelCall{KernelOp::gemm, {4, 8, 6, 3}, 3});
  CHECK(test::find_operator(model, "contract").parameters == 4 * 3 * 8);
  // 4 experts of (48 + 6) + 24 weights, of which a token meets half; the router and the norm are met by all.
  CHECK(totals_of(model).parameters == 8 + 32 + 4 * (54 + 24));
  CHECK(totals_of(model).active == 8 + 32 + 2 * (54 + 24));
}

TEST_CASE("a gated activation weighs the rows of experts", "[workload][experts]") {
  const Operator gate = test::find_operator(mixture(), "gate");
  CHECK(gate.output_elements == 12 * 3);
  CHECK(gate.forward.flops == Flops{10 * 36}); // 9 an element, and the weight
  CHECK(gate.forward.moved_elements == 72 + 12 + 36);
  CHECK(gate.stash_elements == 72); // the choices are kept by the product before it
}

double rows(const std::string& dispatch) {
  return test::find_operator(mixture(dispatch), "dispatch").output_elements / 8;
}

TEST_CASE("a capacity drops what is above it", "[workload][experts]") {
  CHECK(rows("") == 12); // dropless
  // Equal shares of 12 / 4 = 3 rows: a capacity of 1 holds them all, one of 1/2 two of each (ceil(1.5)).
  CHECK(rows(", capacity: 1, experts: 4") == 12);
  CHECK(rows(", capacity: 0.5, experts: 4") == 4 * 2);
  CHECK(rows(", capacity: 1.2, experts: 4") == 12);
  // Padded, each expert processes ceil(1.2 * 3) = 4 rows, whatever it got.
  CHECK(rows(", capacity: 1.2, experts: 4, padded: true") == 16);
  // The same as a number of rows, whatever the sequence.
  CHECK(rows(", rows: 2, experts: 4") == 4 * 2);
  CHECK(rows(", rows: 4, experts: 4") == 12);
  CHECK(rows(", rows: 4, experts: 4, padded: true") == 16);
  CHECK_THAT(test::error_of([&] { rows(", rows: 2, capacity: 1, experts: 4"); }),
             Catch::Contains("rows beside a capacity; allowed: one of them"));
  // Skew 1: shares 1, 1/2, 1/3, 1/4 of 25/12, so 5.76, 2.88, 1.92 and 1.44 rows. With 3 at most 3 + 6.24 are left.
  CHECK(rows(", capacity: 1, experts: 4, skew: 1") == 10); // ceil(9.24)
  CHECK(rows(", capacity: 10, experts: 4, skew: 1") == 12);
}

TEST_CASE("rows grow with the samples of a micro-batch, weights do not", "[workload][experts]") {
  const Operator expand = test::find_operator(mixture(), "expand");
  CHECK(kernel_of(expand.forward.calls[0], KernelPass::forward, Precision::bf16, 5).shape[1] == 15);
  CHECK(expand.forward.moved_parameters == 4 * 54);
}

TEST_CASE("latent attention has keys of two parts, one of which all heads share", "[workload][experts]") {
  // 4 tokens, 2 heads; d = 3, r = 2, e = 5: queries 2 * 5, keys and values 2 * 8, rotary keys 2.
  const ModelGraph model = test::latent_attention_model();
  const Operator op = test::find_operator(model, "x");
  const double pairs = 4 * 5 / 2, values = 4 * 2 * 5, turned = 2 * 4 * 2 * 2;
  CHECK(op.output_elements == values);
  CHECK(op.forward.flops == Flops{2 * pairs * (10 + 10) + 3 * turned});
  CHECK(op.backward_input.flops == Flops{2.5 * 2 * pairs * (10 + 10) + 3 * turned});
  CHECK(op.forward.kernels == 2);
  // Inputs of 40 + 64 + 8, what makes keys of the second one full, a sum for each head and query, and the output.
  CHECK(op.stash_elements == 112 + 4 * 2 * 2 + 8 + values);
  const OperatorId maker = 1; // kv: its keys come back when it runs again, and what is joined to them
  CHECK(model.operators[maker].name == "kv");
  CHECK(std::any_of(op.kept_inputs.begin(), op.kept_inputs.end(), [&](const KeptInput& kept) {
    return kept.maker == maker && kept.part == Approx((64 + 4 * 2 * 2) / op.stash_elements);
  }));
  CHECK(op.seen == pairs / 16);
}

TEST_CASE("a sink is a parameter of each head", "[workload][experts]") {
  const auto attention = [](const char* sinks) {
    return test::find_operator(test::workload(std::string("name: t\ninput: {shape: [4, 8]}\nlayers:\n"
                                                          "  - {name: qkv, kind: linear, features: 24}\n"
                                                          "  - {name: x, kind: attention, heads: 2, causal: true") +
                                              sinks + "}\n"),
                               "x");
  };
  CHECK(attention("").parameters == 0);
  const Operator op = attention(", sinks: true");
  CHECK(op.parameters == 2);
  CHECK(op.backward_weight.flops == Flops{2 * 4 * 2});
  CHECK(op.weight_elements == 0);
  CHECK(op.forward.flops == attention("").forward.flops);
}

TEST_CASE("a row of layers may go on with another block", "[workload][experts]") {
  const ModelGraph model = test::workload("name: t\ninput: {shape: [8]}\nblocks:\n"
                                          "  - name: one\n    layers: [{name: fc, kind: linear, features: 8}]\n"
                                          "  - name: two\n    layers: [{name: norm, kind: layer_norm}]\n"
                                          "layers:\n"
                                          "  - {block: one, name: layer, repeat: 2}\n"
                                          "  - {block: two, name: layer, repeat: 2, first: 2}\n"
                                          "  - {name: sum, kind: add, inputs: [layer, layer.1]}\n");
  std::vector<std::string> names;
  for (const Operator& op : model.operators) {
    names.push_back(op.name);
  }
  CHECK(names == std::vector<std::string>{"layer.0.fc", "layer.1.fc", "layer.2.norm", "layer.3.norm", "sum"});
  CHECK(model.predecessors[4] == std::vector<OperatorId>{1, 3}); // the last of all, and the last of the first block
  CHECK_THAT(test::error_of([] {
               test::workload("name: t\ninput: {shape: [8]}\nblocks:\n"
                              "  - name: one\n    layers: [{name: fc, kind: linear, features: 8}]\n"
                              "layers:\n"
                              "  - {block: one, name: layer, repeat: 2}\n"
                              "  - {block: one, name: layer, repeat: 2, first: 1}\n");
             }),
             Catch::Contains("duplicate name 'layer.1'"));
}

} // namespace
} // namespace stagecraft
