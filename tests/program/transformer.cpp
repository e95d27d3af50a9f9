// SPDX-License-Identifier: Apache-2.0
#include "tests/program/transformer.hpp"

#include <numeric>
#include <random>
#include <utility>

#include "sim/plan/program/stage_program.hpp"
#include "sim/workload/layer/expert_layers.hpp"
#include "sim/workload/layer/latent_attention.hpp"
#include "sim/workload/layer/layer_signatures.hpp"
#include "sim/workload/layer/sequence_layers.hpp"
#include "tests/program/layer_math.hpp"

namespace stagecraft::testing {
namespace {

class Maker {
public:
  explicit Maker(const TransformerSizes& sizes) : sizes_(sizes) {}

  Transformer make() {
    int x = embedding();
    const int embedded = x;
    for (int block = 0; block < sizes_.blocks; ++block) {
      x = sizes_.state_space ? state_space(x) : sizes_.latent ? latent_attention(x) : attention(x);
      x = sizes_.experts > 0 ? mixture(x) : mlp(x);
    }
    if (sizes_.joins) {
      x = linear(beside(norm(x), norm(embedded)), 2 * sizes_.hidden, sizes_.hidden, false);
    }
    const int head = linear(norm(x), sizes_.hidden, sizes_.words, false);
    if (sizes_.tied) {
      made_.operators[head].parameters.front().tied_to = embedded;
    }
    const Shape logits = {sizes_.tokens, sizes_.words};
    append(cross_entropy_signature(layer(logits, {1}), sizes_.samples), cross_entropy_math(), {head, -1});
    fill_in();
    return std::move(made_);
  }

private:
  static Layer layer(const Shape& input, Shape output) {
    Layer layer;
    layer.inputs = {input};
    layer.output = std::move(output);
    return layer;
  }

  int append(Signature signature, Math math, const std::vector<int>& makers) {
    for (std::size_t i = 0; i < makers.size(); ++i) {
      signature.inputs[i].maker = makers[i];
    }
    made_.operators.push_back(std::move(signature));
    made_.inputs.maths.push_back(std::move(math));
    return static_cast<int>(made_.operators.size()) - 1;
  }

  int embedding() {
    Layer table = layer({sizes_.tokens}, {sizes_.tokens, sizes_.hidden});
    table.vocabulary = sizes_.words;
    table.positions = sizes_.gated ? 0 : sizes_.tokens;
    return append(embedding_signature(table, sizes_.samples), embedding_math(), {-1});
  }

  int linear(int from, int in, int out, bool bias) {
    Layer product = layer({sizes_.tokens, in}, {sizes_.tokens, out});
    product.bias = bias;
    product.lora = out == sizes_.words ? 0 : sizes_.adapters;
    return append(linear_signature(product, sizes_.samples), product.lora > 0 ? adapted_linear_math() : linear_math(),
                  {from});
  }

  int norm(int from) { return norm(from, sizes_.hidden); }
  int norm(int from, int features) {
    const Shape shape = {sizes_.tokens, features};
    return append(normalization_signature(layer(shape, shape), sizes_.samples, 1), rms_norm_math(), {from});
  }

  Layer of_two(int features) {
    const Shape shape = {sizes_.tokens, features};
    Layer both = layer(shape, shape);
    both.inputs.push_back(shape);
    return both;
  }

  int add(int one, int other) {
    return append(add_signature(of_two(sizes_.hidden), sizes_.samples), add_math(), {one, other});
  }

  int attention(int x) {
    const int width = sizes_.hidden / sizes_.heads;
    const int fused = (sizes_.heads + 2 * sizes_.key_value_heads) * width;
    const int product = linear(norm(x), sizes_.hidden, fused, !sizes_.gated);
    Layer core = layer({sizes_.tokens, fused}, {sizes_.tokens, sizes_.hidden});
    core.heads = sizes_.heads;
    core.key_value_heads = sizes_.key_value_heads;
    const int mixed = append(attention_signature(core, sizes_.samples),
                             attention_math(width, sizes_.heads / sizes_.key_value_heads), {product});
    return add(x, linear(mixed, sizes_.hidden, sizes_.hidden, !sizes_.gated));
  }

  int slice(int from, int in, int begin, int end) {
    Layer part = layer({sizes_.tokens, in}, {sizes_.tokens, end - begin});
    part.axis = 1;
    Signature signature = slice_signature(part, sizes_.samples);
    signature.reads_inputs = true; // for its size
    return append(std::move(signature), slice_math(begin, end), {from});
  }

  int beside(int one, int other) {
    const Shape shape = {sizes_.tokens, sizes_.hidden};
    Layer both = layer(shape, {sizes_.tokens, 2 * sizes_.hidden});
    both.inputs.push_back(shape);
    both.axis = 1;
    Signature signature = concat_signature(both, sizes_.samples);
    signature.reads_inputs = true; // for their sizes
    return append(std::move(signature), concat_math(), {one, other});
  }

  int latent_attention(int x) {
    const int heads = sizes_.heads, rank = sizes_.intermediate;
    const int width = sizes_.hidden / heads, rotary = width / 2;
    const int normed = norm(x);
    const int query =
        linear(norm(linear(normed, sizes_.hidden, rank, false), rank), rank, heads * (width + rotary), false);
    const int down = linear(normed, sizes_.hidden, rank + rotary, false);
    const int short_vector = norm(slice(down, rank + rotary, 0, rank), rank);
    const int key_value = linear(short_vector, rank, heads * 2 * width, false);
    const int key = slice(down, rank + rotary, rank, rank + rotary);
    Layer core = layer({sizes_.tokens, heads * (width + rotary)}, {sizes_.tokens, sizes_.hidden});
    core.inputs.push_back({sizes_.tokens, heads * 2 * width});
    core.inputs.push_back({sizes_.tokens, rotary});
    core.heads = heads;
    const int mixed = append(latent_attention_signature(core, sizes_.samples),
                             latent_attention_math(width, rotary, width), {query, key_value, key});
    return add(x, linear(mixed, sizes_.hidden, sizes_.hidden, false));
  }

  // As a hybrid's blocks have it: values, what is written and read, and time steps are products of one norm.
  int state_space(int x) {
    constexpr int kState = 2;
    const int heads = sizes_.heads, groups = sizes_.key_value_heads, width = sizes_.hidden / heads;
    const int normed = norm(x);
    const int gate = linear(normed, sizes_.hidden, sizes_.hidden, false);
    const int vectors = linear(normed, sizes_.hidden, 2 * groups * kState, false);
    const int values = linear(normed, sizes_.hidden, sizes_.hidden, false);
    const int steps = linear(normed, sizes_.hidden, heads, false);
    Layer core = layer({sizes_.tokens, sizes_.hidden}, {sizes_.tokens, sizes_.hidden});
    core.inputs.push_back({sizes_.tokens, 2 * groups * kState});
    core.inputs.push_back({sizes_.tokens, heads});
    core.heads = heads;
    core.groups = groups;
    const int mixed = append(state_space_signature(core, sizes_.samples),
                             state_space_math(width, kState, heads / groups), {values, vectors, steps});
    const int gated =
        append(elementwise_signature(of_two(sizes_.hidden), sizes_.samples), multiply_math(), {mixed, gate});
    Layer of_groups = layer({sizes_.tokens, sizes_.hidden}, {sizes_.tokens, sizes_.hidden});
    of_groups.groups = groups;
    const int narrow =
        append(rms_norm_signature(of_groups, sizes_.samples), grouped_rms_norm_math(sizes_.hidden / groups), {gated});
    return add(x, linear(narrow, sizes_.hidden, sizes_.hidden, false));
  }

  // A layer that reads a tensor and the choices of a router.
  Layer routed(std::int64_t rows, int in, std::int64_t rows_out, int out) const {
    Layer layer = this->layer({rows, in}, {rows_out, out});
    layer.inputs.push_back({sizes_.tokens, kTop});
    layer.experts = sizes_.experts;
    layer.top = kTop;
    layer.bias = false;
    return layer;
  }

  int expert_product(std::int64_t rows, int in, int out, const std::vector<int>& makers) {
    Layer product = routed(rows, in, rows, out);
    product.bias = sizes_.expert_bias;
    return append(expert_linear_signature(product, sizes_.samples), expert_linear_math(), makers);
  }

  // Knows of experts only what the maker of its rows tells.
  int plain_activation(std::int64_t rows, int from) {
    const Shape shape = {rows, sizes_.intermediate};
    Signature signature = elementwise_signature(layer(shape, shape), sizes_.samples);
    keep_with_expert(signature, made_.operators[from]);
    return append(std::move(signature), gelu_math(), {from});
  }

  int mixture(int x) {
    const int hidden = sizes_.hidden, inner = sizes_.intermediate;
    const std::int64_t tokens = sizes_.tokens, rows = tokens * kTop, samples = sizes_.samples;
    const int normed = norm(x);
    Layer choice = layer({tokens, hidden}, {tokens, kTop});
    choice.experts = sizes_.experts;
    choice.top = kTop;
    choice.bias = false;
    const int router = append(router_signature(choice, samples), router_math(kTop), {normed});
    const int sent =
        append(dispatch_signature(routed(tokens, hidden, rows, hidden), samples), dispatch_math(), {normed, router});
    const int expanded = expert_product(rows, hidden, (sizes_.plain_experts ? 1 : 2) * inner, {sent, router});
    const int gate = sizes_.plain_experts ? plain_activation(rows, expanded)
                                          : append(gated_signature(routed(rows, 2 * inner, rows, inner), samples),
                                                   weighted_gated_math(), {expanded, router});
    const int contracted = expert_product(rows, inner, hidden, {gate, router});
    const int back =
        append(combine_signature(routed(rows, hidden, tokens, hidden), samples), combine_math(), {contracted, router});
    return add(mlp_of(normed, x), back);
  }

  int mlp(int x) { return mlp_of(norm(x), x); }

  int mlp_of(int normed, int x) {
    const int inner = sizes_.intermediate;
    int middle = -1;
    if (!sizes_.gated) {
      const Shape shape = {sizes_.tokens, inner};
      middle = append(elementwise_signature(layer(shape, shape), sizes_.samples), gelu_math(),
                      {linear(normed, sizes_.hidden, inner, true)});
    } else if (sizes_.fused) {
      middle = append(gated_signature(layer({sizes_.tokens, 2 * inner}, {sizes_.tokens, inner}), sizes_.samples),
                      gated_math(), {linear(normed, sizes_.hidden, 2 * inner, false)});
    } else {
      const int one = linear(normed, sizes_.hidden, inner, false);
      const int other = linear(normed, sizes_.hidden, inner, false);
      middle = append(elementwise_signature(of_two(inner), sizes_.samples), multiply_math(), {one, other});
    }
    return add(x, linear(middle, inner, sizes_.hidden, !sizes_.gated));
  }

  void fill_in() {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    for (std::size_t op = 0; op < made_.operators.size(); ++op) {
      for (std::size_t i = 0; i < made_.operators[op].parameters.size(); ++i) {
        std::vector<std::int64_t> sizes;
        for (const TensorDimension& dimension : made_.operators[op].parameters[i].dimensions) {
          sizes.push_back(dimension.size());
        }
        Numbers numbers = zeros(sizes);
        for (double& value : numbers.values) {
          value = normal(random) / 2;
        }
        made_.inputs.parameters[{static_cast<int>(op), static_cast<int>(i)}] = std::move(numbers);
      }
    }
    std::uniform_int_distribution<int> word(0, sizes_.words - 1);
    for (const int index : {0, 1}) {
      Numbers numbers = zeros({sizes_.samples, sizes_.tokens});
      for (double& value : numbers.values) {
        value = word(random);
      }
      made_.inputs.data[index] = std::move(numbers);
    }
  }

  static constexpr int kTop = 2; // experts of a token
  const TransformerSizes& sizes_;
  Transformer made_;
};

} // namespace

Transformer make_transformer(const TransformerSizes& sizes) { return Maker(sizes).make(); }

Transformer with_keys_apart(const Transformer& model, const TransformerSizes& sizes) {
  std::vector<OperatorId> all(model.operators.size());
  std::iota(all.begin(), all.end(), 0);
  CutStage cut = cut_stage(model.operators, all, true);
  Transformer made{.operators = std::move(cut.operators), .inputs = {}};
  made.inputs.data = model.inputs.data;
  for (std::size_t op = 0; op < made.operators.size(); ++op) {
    const int position = cut.position[op];
    const bool is_keys = cut.op_of[position] != static_cast<int>(op);
    made.inputs.maths.push_back(is_keys ? keys_math(sizes.hidden / sizes.heads, sizes.heads / sizes.key_value_heads)
                                        : model.inputs.maths[position]);
    for (std::size_t i = 0; i < made.operators[op].parameters.size(); ++i) {
      made.inputs.parameters[{static_cast<int>(op), static_cast<int>(i)}] =
          model.inputs.parameters.at({position, static_cast<int>(i)});
    }
  }
  return made;
}

ModelGraph graph_of(const Transformer& model) {
  ModelGraph graph;
  for (const Signature& signature : model.operators) {
    Operator op;
    op.signature = signature;
    graph.operators.push_back(std::move(op));
  }
  return graph;
}

} // namespace stagecraft::testing
