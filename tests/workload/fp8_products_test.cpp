// Products in 8 bits: which they are, what is cast, and what is kept, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/fp8_products.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

// One layer of 8 tokens and 4 features, four heads of one feature, an inner width of 16, between a table and a head.
ModelGraph model(const ImportOptions& options = {}) {
  return load_workload(yaml::parse(R"(name: small
input: {shape: [8]}
blocks:
  - name: block
    layers:
      - {name: norm, kind: rms_norm}
      - {name: qkv, kind: linear, features: 12, bias: false}
      - {name: attention, kind: attention, heads: 4}
      - {name: projection, kind: linear, features: 4, bias: false}
      - {name: expand, kind: linear, features: 16, bias: false}
      - {name: gelu, kind: gelu}
      - {name: contract, kind: linear, features: 4, bias: false}
layers:
  - {name: embedding, kind: embedding, vocabulary: 10, features: 4}
  - {block: block, name: layer, repeat: 1}
  - {name: head, kind: linear, features: 10, bias: false}
)",
                                   "small.yaml"),
                       options);
}

const Operator& named(const ModelGraph& graph, const std::string& name) {
  return find_by_name(graph.operators, name, "operator", {});
}

Training recipe(std::string_view name) {
  Training training;
  training.fp8 = &find_by_name(kFp8Recipes, name, "recipe", {});
  return training;
}

TEST_CASE("linear layers of blocks multiply in 8 bits, and nothing else does", "[workload][fp8]") {
  const ModelGraph made = with_fp8_products(model(), recipe("delayed"));
  std::vector<std::string> names;
  for (const Operator& op : made.operators) {
    if (op.products) {
      CHECK(*op.products == Precision::fp8);
      names.push_back(op.name);
    }
  }
  CHECK(names == std::vector<std::string>{"layer.0.qkv", "layer.0.projection", "layer.0.expand", "layer.0.contract"});
  Operator router{.name = "layer.0.router", .type = "router", .kind = KernelKind::matmul, .parameters = 8};
  CHECK(!has_fp8_products(router));
  router.type = "linear";
  CHECK(has_fp8_products(router));
}

// Delayed: 2 B read and two copies of 1 B written for each element, in one kernel. Tensorwise: 2 B more, in two. With
// scales of a byte for 32 numbers 2 + 2 (1 + 1/32), of four for 128 2 + 2 (1 + 4/128); of 4 bits with a scale of a byte
// for 16, and one of the tensor, 4 + 2 (1/2 + 1/16). Forward casts what qkv reads, 8 x 4; backward its gradient, 8
// x 12.
TEST_CASE("what a product reads is cast", "[workload][fp8]") {
  const auto casts = [](const char* name) { return named(with_fp8_products(model(), recipe(name)), "layer.0.qkv"); };
  const Operator delayed = casts("delayed"), tensorwise = casts("tensorwise"), mxfp8 = casts("mxfp8");
  CHECK(delayed.forward.casts == 1);
  CHECK(delayed.forward.cast_bytes == 4 * 32);
  CHECK(delayed.backward_input.casts == 1);
  CHECK(delayed.backward_input.cast_bytes == 4 * 96);
  CHECK(delayed.backward_weight.casts == 0); // the same gradient, and what forward has cast
  CHECK(tensorwise.forward.casts == 2);
  // By rows a kernel reads a tensor for its scales, 2 B, and one casts it, 2 + 1. Forward makes one copy of the input,
  // backward two of the gradient; the input's other copy is made there, too.
  const Operator rowwise = casts("rowwise");
  CHECK(rowwise.forward.casts == 2);
  CHECK(rowwise.forward.cast_bytes == 5 * 32);
  CHECK(rowwise.backward_input.casts == 4);
  CHECK(rowwise.backward_input.cast_bytes == 2 * 5 * 96);
  CHECK(rowwise.backward_weight.casts == 2);
  CHECK(rowwise.backward_weight.cast_bytes == kLaterRowwiseBytes * 32);
  CHECK(tensorwise.forward.cast_bytes == 6 * 32);
  CHECK(mxfp8.forward.casts == 1);
  CHECK(mxfp8.forward.cast_bytes == (2 + 2 * 33.0 / 32) * 32);
  CHECK(*mxfp8.products == Precision::mxfp8);
  CHECK(casts("blockwise").forward.casts == 1);
  CHECK(casts("blockwise").forward.cast_bytes == (2 + 2 * 33.0 / 32) * 32);
  CHECK(*casts("blockwise").products == Precision::fp8_block);
  CHECK(casts("nvfp4").forward.casts == 2);
  CHECK(casts("nvfp4").forward.cast_bytes == (4 + 2 * 9.0 / 16) * 32);
  CHECK(*casts("nvfp4").products == Precision::nvfp4);
}

// qkv and expand keep what they read in 8 bits, half as much; the attention keeps its result for itself as well, so the
// projection reads that, but for delayed scales, whose copy comes on top. Weights have two copies of a byte.
TEST_CASE("backward keeps 8 bits where nothing needs more", "[workload][fp8]") {
  const ModelGraph before = model(), after = with_fp8_products(model(), recipe("tensorwise"));
  const auto kept = [](const ModelGraph& graph, const char* name) { return named(graph, name).stash_elements; };
  CHECK(kept(before, "layer.0.qkv") == 32);
  CHECK(kept(after, "layer.0.qkv") == 16);
  CHECK(kept(before, "layer.0.contract") == 8 * 16);
  CHECK(kept(after, "layer.0.contract") == 4 * 16);
  CHECK(kept(before, "layer.0.projection") == 32);
  CHECK(kept(after, "layer.0.projection") == 32);
  CHECK(kept(with_fp8_products(model(), recipe("delayed")), "layer.0.projection") == 32 + 16);
  CHECK(kept(after, "layer.0.gelu") == kept(before, "layer.0.gelu"));
  CHECK(kept(after, "head") == kept(before, "head"));
  CHECK(named(after, "layer.0.qkv").resident_bytes == 2 * 4 * 12);
  CHECK(named(after, "head").resident_bytes == 0);
  CHECK(named(after, "layer.0.qkv").weight_elements == named(before, "layer.0.qkv").weight_elements / 2);
  const ModelGraph mx = with_fp8_products(model(), recipe("mxfp8"));
  CHECK(kept(mx, "layer.0.qkv") == 32 * 33.0 / 64);
  CHECK(named(mx, "layer.0.qkv").resident_bytes == 2 * 4 * 12 * 33.0 / 32);
}

// Tokens go to two of four experts: 16 rows of 4 features. What a product of experts multiplies are the rows, and not
// the choices of the router, which it reads to know whose they are: nothing else needs the rows.
TEST_CASE("products of experts keep their rows in 8 bits alone", "[workload][fp8][experts]") {
  const ModelGraph before = load_workload(yaml::parse(R"(name: mixture
input: {shape: [8, 4]}
blocks:
  - name: block
    layers:
      - {name: norm, kind: rms_norm}
      - {name: router, kind: router, experts: 4, top: 2}
      - {name: dispatch, kind: dispatch, inputs: [norm, router]}
      - {name: expand, kind: expert_linear, inputs: [dispatch, router], experts: 4, features: 6}
      - {name: gate, kind: gated, inputs: [expand, router]}
      - {name: contract, kind: expert_linear, inputs: [gate, router], experts: 4, features: 4}
      - {name: combine, kind: combine, inputs: [contract, router]}
layers:
  - {block: block, name: layer, repeat: 1}
)",
                                                      "mixture.yaml"));
  const ModelGraph after = with_fp8_products(before, recipe("mxfp8"));
  const auto kept = [](const ModelGraph& graph, const char* name) { return named(graph, name).stash_elements; };
  const double other = kept(before, "layer.0.expand") - 16 * 4; // not of the rows
  CHECK(kept(after, "layer.0.expand") == Approx(16 * 4 * 33.0 / 64 + other));
  CHECK(kept(before, "layer.0.contract") == 16 * 3);
  CHECK(kept(after, "layer.0.contract") == Approx(16 * 3 * 33.0 / 64));
  CHECK(named(after, "layer.0.expand").forward.cast_bytes == Approx((2 + 2 * 33.0 / 32) * 16 * 4));
}

// Layers of a block: qkv 4 -> 12 and projection 4 -> 4 adapted with rank 2, expand 4 -> 16 and contract 16 -> 4 frozen.
ModelGraph adapted() {
  ModelGraph made = model({.lora = 2, .lora_layers = {"qkv", "projection"}});
  for (Operator& op : made.operators) {
    op.resident_bytes += 2 * op.frozen; // as of precision bf16
  }
  return made;
}

TEST_CASE("frozen weights have no copy of what they multiply, and adapters read 16 bits", "[workload][fp8][lora]") {
  const ModelGraph before = adapted(), after = with_fp8_products(adapted(), recipe("delayed"));
  for (const char* name : {"layer.0.qkv", "layer.0.projection", "layer.0.expand", "layer.0.contract"}) {
    CAPTURE(name);
    CHECK(named(after, name).stash_elements == named(before, name).stash_elements);
  }
  CHECK(named(before, "layer.0.expand").stash_elements == 0);
  CHECK(named(before, "layer.0.qkv").parameters == 2 * (4 + 12));
  CHECK(named(before, "layer.0.expand").parameters == 0);
  CHECK(named(after, "layer.0.expand").resident_bytes == (2 + 2 * 1) * 4 * 16);
}

// One byte of a frozen weight in place of 2 and two copies; two of a trained one, as many as the weight that they
// replace had. Scales of mxfp8: a byte for 32 numbers.
TEST_CASE("weights may be held in 8 bits alone", "[workload][fp8][lora]") {
  Training alone = recipe("delayed");
  alone.fp8_weights = true;
  CHECK(named(with_fp8_products(adapted(), alone), "layer.0.expand").resident_bytes == 1 * 4 * 16);
  CHECK(named(with_fp8_products(adapted(), alone), "head").resident_bytes == 2 * 4 * 10); // in no block
  CHECK(named(with_fp8_products(model(), alone), "layer.0.expand").resident_bytes == 0);
  alone.fp8 = recipe("mxfp8").fp8;
  CHECK(named(with_fp8_products(model(), alone), "layer.0.expand").resident_bytes == Approx(4 * 16 * 2.0 / 32));
}

TEST_CASE("what gated layers keep may be held in 8 bits", "[workload][fp8]") {
  const auto gated = [](bool stored) {
    Training training = recipe("delayed");
    training.fp8_activations = stored;
    const ModelGraph made = with_fp8_products(load_model(test::source_dir() / "workloads/llama3-8b.yaml"), training);
    return named(made, "layer.3.gate").stash_elements;
  };
  CHECK(gated(false) == 8192.0 * 2 * 14336);
  CHECK(gated(true) == gated(false) / 2);
}

TEST_CASE("products that get adapters are named, and a name that none has is an error", "[workload][lora]") {
  CHECK(totals_of(model({.lora = 2, .lora_layers = {"contract"}})).parameters == 2 * (16 + 4));
  CHECK_THAT(test::error_of([] { model({.lora = 2, .lora_layers = {"contrct"}}); }),
             Catch::Contains("did you mean 'contract'"));
  CHECK_THAT(test::error_of([] { model({.lora = 2, .lora_layers = {"head"}}); }), // in no block
             Catch::Contains("unknown product of a numbered block 'head'"));
}

} // namespace
} // namespace stagecraft
