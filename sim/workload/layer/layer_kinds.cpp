// The table of layer kinds. A new kind needs one row here, its cost, its shape, and a paragraph in
// docs/formats/workload.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "sim/workload/layer/expert_layers.hpp"
#include "sim/workload/layer/latent_attention.hpp"
#include "sim/workload/layer/layer_costs.hpp"
#include "sim/workload/layer/layer_kernels.hpp"
#include "sim/workload/layer/layer_shapes.hpp"
#include "sim/workload/layer/layer_signatures.hpp"
#include "sim/workload/layer/layers.hpp"
#include "sim/workload/layer/sequence_layers.hpp"
#include "sim/workload/training/experts.hpp"

namespace stagecraft {
namespace {

constexpr int kLargestSize = 1'000'000'000;
constexpr int kMostRank = 1 << 16;

// One number for both directions, or [vertical, horizontal].
std::vector<int> read_pair(yaml::Map& map, std::string_view key, int low, std::vector<int> otherwise) {
  constexpr int kLargestWindow = 1'000'000;
  const std::vector<const yaml::Node*> items = map.list(key);
  if (items.empty()) {
    return otherwise;
  }
  if (items.size() > 2) {
    throw InputError(map.where(key), "'" + std::string(key) + "' has " + std::to_string(items.size()) +
                                         " numbers; allowed: one, or [vertical, horizontal]");
  }
  return {yaml::integer(*items.front(), key, low, kLargestWindow),
          yaml::integer(*items.back(), key, low, kLargestWindow)};
}

Shape read_sizes(yaml::Map& map, std::string_view key, int low) {
  Shape shape;
  map.node(key);
  for (const yaml::Node* item : map.list(key)) {
    shape.push_back(yaml::integer(*item, key, low, kLargestSize));
  }
  if (shape.empty()) {
    throw InputError(map.where(key), "'" + std::string(key) + "' is empty; allowed: a list of sizes");
  }
  return shape;
}

void read_nothing(yaml::Map&, Layer&) {}

void read_bias(yaml::Map& map, Layer& layer) { layer.bias = map.boolean("bias", true); }

void read_convolution(yaml::Map& map, Layer& layer) {
  layer.features = map.integer("channels", 1, kLargestSize);
  map.node("kernel");
  layer.kernel = read_pair(map, "kernel", 1, {});
  layer.stride = read_pair(map, "stride", 1, {1, 1});
  layer.padding = read_pair(map, "padding", 0, {0, 0});
  layer.dilation = read_pair(map, "dilation", 1, {1, 1});
  layer.groups = map.integer("groups", 1, kLargestSize, 1);
  layer.bias = map.boolean("bias", true);
}

void read_transposed_convolution(yaml::Map& map, Layer& layer) {
  layer.features = map.integer("channels", 1, kLargestSize);
  map.node("kernel");
  layer.kernel = read_pair(map, "kernel", 1, {});
  layer.stride = read_pair(map, "stride", 1, {1, 1});
  layer.padding = read_pair(map, "padding", 0, {0, 0});
  layer.groups = map.integer("groups", 1, kLargestSize, 1);
  layer.bias = map.boolean("bias", true);
  for (const int size : read_pair(map, "output", 1, {})) {
    layer.target.push_back(size);
  }
}

void read_rms_norm(yaml::Map& map, Layer& layer) { layer.groups = map.integer("groups", 1, kLargestSize, 1); }

void read_affine(yaml::Map& map, Layer& layer) { layer.bias = map.boolean("affine", true); }

void read_scale(yaml::Map& map, Layer& layer) {
  map.node("scale");
  layer.stride = read_pair(map, "scale", 1, {});
}

void read_linear(yaml::Map& map, Layer& layer) {
  layer.features = map.integer("features", 1, kLargestSize);
  layer.bias = map.boolean("bias", true);
  layer.tied = map.boolean("tied", false);
  layer.lora = map.integer("lora", 0, kMostRank, 0);
}

void read_pool(yaml::Map& map, Layer& layer) {
  map.node("kernel");
  layer.kernel = read_pair(map, "kernel", 1, {});
  layer.stride = read_pair(map, "stride", 1, layer.kernel);
  layer.padding = read_pair(map, "padding", 0, {0, 0});
  layer.ceil = map.boolean("ceil", false);
}

void read_adaptive_pool(yaml::Map& map, Layer& layer) {
  map.node("output");
  for (const int size : read_pair(map, "output", 1, {})) {
    layer.target.push_back(size);
  }
}

void read_response_norm(yaml::Map& map, Layer& layer) { layer.kernel = {map.integer("size", 1, kLargestSize)}; }

void read_axis(yaml::Map& map, Layer& layer) { layer.axis = map.integer("axis", 0, kLargestSize, 0); }

void read_slice(yaml::Map& map, Layer& layer) {
  read_axis(map, layer);
  layer.start = map.integer("start", 0, kLargestSize, 0);
  layer.end = map.integer("end", 1, kLargestSize);
}

void read_reshape(yaml::Map& map, Layer& layer) { layer.target = read_sizes(map, "shape", 1); }

void read_transpose(yaml::Map& map, Layer& layer) { layer.target = read_sizes(map, "axes", 0); }

void read_embedding(yaml::Map& map, Layer& layer) {
  layer.vocabulary = map.integer("vocabulary", 1, kLargestSize);
  layer.features = map.integer("features", 1, kLargestSize);
  layer.positions = map.integer("positions", 0, kLargestSize, 0);
  layer.types = map.integer("types", 0, kLargestSize, 0);
  layer.tied = map.boolean("tied", false);
}

void read_heads(yaml::Map& map, Layer& layer) {
  layer.heads = map.integer("heads", 1, kLargestSize);
  layer.key_value_heads = map.integer("key_value_heads", 1, layer.heads, layer.heads);
}

// One length of all documents, or that of each.
void read_documents(yaml::Map& map, Layer& layer) {
  for (const yaml::Node* item : map.list("documents")) {
    layer.documents.push_back(yaml::integer(*item, "documents", 1, kLargestSize));
  }
}

void read_attention(yaml::Map& map, Layer& layer) {
  read_heads(map, layer);
  layer.causal = map.boolean("causal", false);
  read_documents(map, layer);
  if (map.has("window")) {
    layer.window = map.integer("window", 1, kLargestSize);
    if (!layer.causal) {
      throw InputError(map.where("window"), "a window of attention that is not causal; allowed: with causal: true");
    }
  }
  layer.sinks = map.boolean("sinks", false);
  layer.buckets = map.integer("buckets", 0, kLargestSize, 0);
  layer.biased = map.boolean("biased", layer.buckets > 0);
  if (layer.buckets > 0 && !layer.biased) {
    throw InputError(map.where("biased"),
                     "attention with a table of biases that it does not add; allowed: biased: true");
  }
}

void read_latent_attention(yaml::Map& map, Layer& layer) {
  layer.heads = map.integer("heads", 1, kLargestSize);
  layer.causal = map.boolean("causal", false);
  read_documents(map, layer);
}

void read_rotary(yaml::Map& map, Layer& layer) {
  read_heads(map, layer);
  layer.part = map.number("part", yaml::kFraction, 1);
}

struct Gate {
  std::string_view name;
};
constexpr std::array kGates = {Gate{"silu"}, Gate{"gelu"}}; // of equal cost

void read_gated(yaml::Map& map, Layer&) { map.choice("activation", kGates, "silu"); }

void read_learned_tokens(yaml::Map& map, Layer& layer) { layer.top = map.integer("tokens", 0, kLargestSize, 0); }

void read_short_convolution(yaml::Map& map, Layer& layer) {
  constexpr int kMostTaps = 1024;
  layer.kernel = {map.integer("taps", 1, kMostTaps)};
  layer.bias = map.boolean("bias", true);
}

void read_state_space(yaml::Map& map, Layer& layer) {
  constexpr int kChunk = 256;
  layer.heads = map.integer("heads", 1, kLargestSize);
  layer.groups = map.integer("groups", 1, layer.heads, 1);
  layer.window = map.integer("chunk", 1, kLargestSize, kChunk);
}

constexpr int kMostExperts = 100'000;

void read_router(yaml::Map& map, Layer& layer) {
  layer.experts = map.integer("experts", 1, kMostExperts);
  layer.top = map.integer("top", 1, layer.experts);
  layer.bias = map.boolean("bias", false);
  layer.groups = map.integer("groups", 1, kMostExpertGroups, 1);
  if (layer.experts % layer.groups != 0) {
    throw InputError(map.where("groups"), std::to_string(layer.experts) + " experts do not divide into " +
                                              std::to_string(layer.groups) + " groups; allowed: groups that do");
  }
  layer.top_groups = map.integer("top_groups", 1, layer.groups, layer.groups);
  if (layer.experts / layer.groups * layer.top_groups < layer.top) {
    throw InputError(map.where("top_groups"), std::to_string(layer.top_groups) + " of " + std::to_string(layer.groups) +
                                                  " groups have fewer experts than the " + std::to_string(layer.top) +
                                                  " that a token goes to; allowed: more");
  }
}

void read_dispatch(yaml::Map& map, Layer& layer) {
  layer.skew = map.number("skew", kExpertSkew, 0);
  if (!map.has("capacity") && !map.has("rows")) {
    return;
  }
  if (map.has("capacity") && map.has("rows")) {
    throw InputError(map.where("rows"), "rows beside a capacity; allowed: one of them");
  }
  constexpr yaml::Range kCapacity{1e-3, 1e5, true, "0.001 to 100000"};
  if (map.has("rows")) {
    layer.rows = map.integer("rows", 1, kLargestSize);
  } else {
    layer.capacity = map.number("capacity", kCapacity);
  }
  layer.experts = map.integer("experts", 1, kMostExperts);
  layer.padded = map.boolean("padded", false);
}

void read_expert_linear(yaml::Map& map, Layer& layer) {
  layer.experts = map.integer("experts", 1, kMostExperts);
  layer.features = map.integer("features", 1, kLargestSize);
  layer.bias = map.boolean("bias", true);
}

void read_lstm(yaml::Map& map, Layer& layer) {
  constexpr int kMostStacked = 1000;
  layer.features = map.integer("hidden", 1, kLargestSize);
  layer.layers = map.integer("layers", 1, kMostStacked, 1);
  layer.bidirectional = map.boolean("bidirectional", false);
  layer.bias = map.boolean("bias", true);
  if (const yaml::Node* node = map.find("packed")) {
    constexpr yaml::Range kLongest{1, 1000, true, "1 to 1000"};
    yaml::Map packed(*node, "packed");
    layer.packed_lengths = packed.integer("lengths", 1, kLargestSize);
    layer.longest = packed.number("longest", kLongest);
    packed.finish();
  }
}

void read_matmul(yaml::Map& map, Layer& layer) { layer.transpose = map.boolean("transpose", false); }

constexpr int kMany = 10'000;
using K = KernelKind;

constexpr std::array kKinds = {
    LayerKind{"conv2d", "convolution: channels, kernel, stride, padding, dilation, groups, bias", K::convolution, 1, 1,
              read_convolution, convolution_shape, dense_cost, convolution_kernels},
    LayerKind{"conv_transpose2d", "transposed convolution: channels, kernel, stride, padding, groups, bias, output",
              K::convolution, 1, 1, read_transposed_convolution, transposed_convolution_shape,
              transposed_convolution_cost},
    LayerKind{"linear", "fully connected over the last dimension: features, bias, tied, lora", K::matmul, 1, 1,
              read_linear, linear_shape, linear_cost, linear_kernels, linear_signature},
    LayerKind{"matmul", "product of two activations: transpose (of the second)", K::matmul, 2, 2, read_matmul,
              matmul_shape, matmul_cost, matmul_kernels},
    LayerKind{"batch_norm", "batch normalization over channels", K::normalization, 1, 1, read_nothing, image_shape,
              batch_norm_cost, batch_norm_kernels},
    LayerKind{"instance_norm", "normalization over each channel of each sample: affine", K::normalization, 1, 1,
              read_affine, image_shape, instance_norm_cost, batch_norm_kernels},
    LayerKind{"layer_norm", "layer normalization over features: bias", K::normalization, 1, 1, read_bias, same_shape,
              layer_norm_cost, layer_norm_kernels, layer_norm_signature},
    LayerKind{"rms_norm", "root mean square normalization over the features of each group: groups", K::normalization, 1,
              1, read_rms_norm, rms_norm_shape, rms_norm_cost, rms_norm_kernels, rms_norm_signature},
    LayerKind{"query_key_norm",
              "root mean square normalization of each query and key before attention: heads, key_value_heads",
              K::normalization, 1, 1, read_heads, query_key_norm_shape, query_key_norm_cost, query_key_norm_kernels,
              query_key_norm_signature},
    LayerKind{"lrn", "local response normalization across channels: size", K::normalization, 1, 1, read_response_norm,
              image_shape, response_norm_cost},
    LayerKind{"relu", "rectified linear unit, in place", K::elementwise, 1, 1, read_nothing, same_shape, in_place_cost,
              relu_kernels, elementwise_signature},
    LayerKind{"sigmoid", "logistic function, in place", K::elementwise, 1, 1, read_nothing, same_shape, in_place_cost,
              relu_kernels, elementwise_signature},
    LayerKind{"tanh", "hyperbolic tangent, in place", K::elementwise, 1, 1, read_nothing, same_shape, in_place_cost,
              relu_kernels, elementwise_signature},
    LayerKind{"leaky_relu", "rectified linear unit that lets a part of what is below 0 through", K::elementwise, 1, 1,
              read_nothing, same_shape, leaky_relu_cost, relu_kernels, elementwise_signature},
    LayerKind{"gelu", "Gaussian error linear unit", K::elementwise, 1, 1, read_nothing, same_shape, activation_cost,
              gelu_kernels, elementwise_signature},
    LayerKind{"gelu_tanh",
              "the same by a hyperbolic tangent, as GPT-2 has it; some frameworks compose it of several kernels",
              K::elementwise, 1, 1, read_nothing, same_shape, activation_cost, gelu_kernels, elementwise_signature},
    LayerKind{"silu", "sigmoid linear unit", K::elementwise, 1, 1, read_nothing, same_shape, activation_cost,
              gelu_kernels, elementwise_signature},
    LayerKind{
        "gated",
        "an activation of the first half of the features times the second half, and the weights of rows: activation",
        K::elementwise, 1, 2, read_gated, gated_shape, gated_cost, gated_kernels, gated_signature},
    LayerKind{"clamped_gated",
              "the same of halves that are clamped first, as gpt-oss has it; some frameworks compose it of several "
              "kernels: activation",
              K::elementwise, 1, 2, read_gated, gated_shape, gated_cost, gated_kernels, gated_signature},
    LayerKind{"rotary", "rotary embedding of queries and keys before attention: heads, key_value_heads, part",
              K::elementwise, 1, 1, read_rotary, rotary_shape, rotary_cost, rotary_kernels, rotary_signature},
    LayerKind{"scaled_rotary",
              "the same times a factor, as YaRN has it; some frameworks compose it of several kernels: heads, "
              "key_value_heads, part",
              K::elementwise, 1, 1, read_rotary, rotary_shape, rotary_cost, rotary_kernels, rotary_signature},
    LayerKind{"dropout", "dropout", K::elementwise, 1, 1, read_nothing, same_shape, dropout_cost, dropout_kernels,
              elementwise_signature},
    LayerKind{"channel_dropout", "dropout of whole channels", K::elementwise, 1, 1, read_nothing, image_shape,
              channel_dropout_cost},
    LayerKind{"add", "sum of its inputs, broadcast", K::elementwise, 2, kMany, read_nothing, broadcast_shape, add_cost,
              add_kernels, add_signature},
    LayerKind{"mul", "product of its inputs' elements, broadcast", K::elementwise, 2, kMany, read_nothing,
              broadcast_shape, product_cost, nullptr, elementwise_signature},
    LayerKind{"max_pool", "maximum over windows: kernel, stride, padding, ceil", K::pooling, 1, 1, read_pool,
              pool_shape, max_pool_cost},
    LayerKind{"avg_pool", "mean over windows: kernel, stride, padding, ceil", K::pooling, 1, 1, read_pool, pool_shape,
              average_pool_cost},
    LayerKind{"adaptive_avg_pool", "mean over windows that make the output's size: output", K::pooling, 1, 1,
              read_adaptive_pool, adaptive_pool_shape, average_cost},
    LayerKind{"global_avg_pool", "mean over the whole image", K::pooling, 1, 1, read_nothing, global_pool_shape,
              average_cost},
    LayerKind{"upsample", "each pixel several times: scale", K::pooling, 1, 1, read_scale, upsample_shape,
              upsample_cost},
    LayerKind{"concat", "its inputs side by side: axis", K::reshape, 1, kMany, read_axis, concat_shape, copy_cost,
              copy_kernels, concat_signature},
    LayerKind{"slice", "part of a tensor: axis, start, end", K::reshape, 1, 1, read_slice, slice_shape, copy_cost,
              copy_kernels, slice_signature},
    LayerKind{"transpose", "dimensions in another order: axes", K::reshape, 1, 1, read_transpose, transpose_shape,
              copy_cost, copy_kernels},
    LayerKind{"flatten", "view as one dimension", K::reshape, 1, 1, read_nothing, flatten_shape, view_cost},
    LayerKind{"reshape", "view in another shape: shape", K::reshape, 1, 1, read_reshape, reshape_shape, view_cost},
    LayerKind{"softmax", "softmax over the last dimension", K::softmax, 1, 1, read_nothing, same_shape, softmax_cost,
              softmax_kernels, softmax_signature},
    LayerKind{"cross_entropy", "softmax and negative log-likelihood: the loss", K::softmax, 1, 1, read_nothing,
              scalar_shape, cross_entropy_cost, loss_kernels, cross_entropy_signature},
    LayerKind{"embedding", "table look-up: vocabulary, features, positions, types, tied", K::embedding, 1, 1,
              read_embedding, embedding_shape, embedding_cost, embedding_kernels, embedding_signature},
    LayerKind{"latent_attention",
              "attention whose keys and values come of one short vector a token: heads, causal, documents",
              K::attention, 3, 3, read_latent_attention, latent_attention_shape, latent_attention_cost,
              latent_attention_kernels, latent_attention_signature},
    LayerKind{"attention",
              "scaled dot-product attention, fused: heads, key_value_heads, causal, window, documents, sinks, biased, "
              "buckets",
              K::attention, 1, 3, read_attention, attention_shape, attention_cost, attention_kernels,
              attention_signature},
    LayerKind{"learned_tokens", "learned tokens before the others, and a learned position added to each: tokens",
              K::elementwise, 1, 1, read_learned_tokens, learned_tokens_shape, learned_tokens_cost, nullptr,
              learned_tokens_signature},
    LayerKind{"short_convolution", "each feature convolved over the last tokens: taps, bias", K::elementwise, 1, 1,
              read_short_convolution, short_convolution_shape, short_convolution_cost, nullptr,
              short_convolution_signature},
    LayerKind{"state_space", "selective state space, in chunks (Mamba-2): heads, groups, chunk", K::state_space, 3, 3,
              read_state_space, state_space_shape, state_space_cost, nullptr, state_space_signature},
    LayerKind{"router", "chooses experts for each token: experts, top, bias, groups, top_groups", K::matmul, 1, 1,
              read_router, router_shape, router_cost, router_kernels, router_signature},
    LayerKind{"dispatch", "a row for each token and expert chosen: capacity, experts, skew, padded", K::reshape, 2, 2,
              read_dispatch, dispatch_shape, dispatch_cost, dispatch_kernels, dispatch_signature},
    LayerKind{"expert_linear", "fully connected, with weights of each expert: experts, features, bias", K::matmul, 2, 2,
              read_expert_linear, expert_linear_shape, expert_linear_cost, expert_linear_kernels,
              expert_linear_signature},
    LayerKind{"combine", "sum of each token's rows", K::reshape, 2, 2, read_nothing, combine_shape, combine_cost,
              combine_kernels, combine_signature},
    LayerKind{"lstm", "long short-term memory: hidden, layers, bidirectional, bias, packed", K::recurrent, 1, 1,
              read_lstm, lstm_shape, lstm_cost},
};

} // namespace

std::span<const LayerKind> layer_kinds() { return kKinds; }

LayerCost cost_of(const LayerKind& kind, const Layer& layer) {
  LayerCost cost = kind.cost(layer);
  if (kind.kernels != nullptr) {
    LayerKernels kernels = kind.kernels(layer);
    cost.forward.calls = std::move(kernels.forward);
    cost.backward_input.calls = std::move(kernels.backward_input);
    cost.backward_weight.calls = std::move(kernels.backward_weight);
  }
  return cost;
}

LayerCost freeze(LayerCost cost) {
  cost.frozen += std::exchange(cost.parameters, 0);
  cost.backward_weight = {};
  cost.kept.inputs = cost.kept.inputs && !cost.kept.for_weights_alone;
  return cost;
}

namespace {

// Whether a signature for one sample is of these shapes: it does not say what is broadcast, for instance.
bool describes(const Signature& signature, const Layer& layer) {
  bool same = elements_of(signature.output) == elements_of(layer.output);
  for (std::size_t i = 0; i < std::min(layer.inputs.size(), signature.inputs.size()); ++i) {
    same = same && elements_of(signature.inputs[i].dimensions) == elements_of(layer.inputs[i]);
  }
  return same;
}

} // namespace

std::optional<Signature> signature_of(const LayerKind& kind, const Layer& layer, const std::vector<int>& makers) {
  // Shapes are [features] or [tokens, features]; those of images have no letters yet.
  const Shape& read = layer.inputs.front();
  if (kind.signature == nullptr || read.empty() || read.size() > 2 || layer.output.size() > 2) {
    return std::nullopt;
  }
  Signature signature = kind.signature(layer, 1);
  if (!describes(signature, layer)) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < std::min(makers.size(), signature.inputs.size()); ++i) {
    signature.inputs[i].maker = makers[i];
  }
  return signature;
}

} // namespace stagecraft
