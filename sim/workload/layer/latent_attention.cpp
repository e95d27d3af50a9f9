// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/latent_attention.hpp"

#include <optional>

#include "sim/workload/layer/layer_parts.hpp"

namespace stagecraft {
namespace {

[[noreturn]] void refuse_widths(const Layer& layer) {
  refuse(layer, "queries " + to_text(layer.inputs[0]) + ", keys and values " + to_text(layer.inputs[1]) +
                    " and rotary keys " + to_text(layer.inputs[2]) + " do not fit " + std::to_string(layer.heads) +
                    " heads; allowed: [s, heads * (d + r)], [s, heads * (d + e)], [s, r]");
}

} // namespace

// Sets features_in and features to the widths of queries and output over all heads, sequence and positions to the
// number of tokens.
Shape latent_attention_shape(Layer& layer) {
  const Shape &query = layer.inputs[0], &key_value = layer.inputs[1], &rotary = layer.inputs[2];
  const bool sequences = query.size() == 2 && key_value.size() == 2 && rotary.size() == 2;
  if (!sequences || query[0] != key_value[0] || query[0] != rotary[0] || query[1] % layer.heads != 0 ||
      key_value[1] % layer.heads != 0) {
    refuse_widths(layer);
  }
  const std::int64_t without_rotary = query[1] / layer.heads - rotary[1];
  const std::int64_t value_width = key_value[1] / layer.heads - without_rotary;
  if (without_rotary < 0 || value_width <= 0) {
    refuse_widths(layer);
  }
  layer.sequence = layer.positions = static_cast<double>(query[0]);
  layer.features_in = static_cast<double>(query[1]);
  layer.features = static_cast<double>(value_width * layer.heads);
  complete_documents(layer, query[0]);
  return {query[0], value_width * layer.heads};
}

// One kernel turns the rotary parts and writes keys of full width, the next is attention (attention_cost()). The first
// one's gradient goes the same way back: 3 operations for each element that turns, and each key is read and written.
// Backward keeps keys of full width in place of those that came, of which the values stay.
LayerCost latent_attention_cost(const Layer& layer) {
  const double tokens = layer.sequence;
  const double keys = tokens * layer.features_in;
  const double turned = 2 * tokens * layer.heads * static_cast<double>(layer.inputs[2].back());
  const double values = tokens * layer.features;
  const double pairs = attended_pairs(layer);
  const double products = 2 * pairs * (layer.features_in + layer.features);
  const double attended = 2 * keys + 2 * values; // queries, keys, values and the output
  const double prepared = 2 * (keys + turned);
  return {.forward = make_pass(products + 3 * turned, attended + prepared, 0, 2),
          .backward_input = make_pass(2.5 * products + 3 * turned, 2 * attended + prepared, 0, 2),
          .kept = {.inputs = true,
                   .output = true,
                   .extra = tokens * layer.heads,
                   .with_input = tokens * layer.heads * static_cast<double>(layer.inputs[2].back()),
                   .with = 1},
          .seen = pairs / (tokens * tokens),
          .mask = mask_of(layer)};
}

LayerKernels latent_attention_kernels(const Layer& layer) {
  const std::optional<double> length = length_of_documents(layer);
  if (!length) {
    return {};
  }
  const double heads = layer.heads;
  const KernelCall attention{KernelOp::attention,
                             {layer.sequence / *length, *length, heads, heads,
                              (layer.features_in + layer.features) / (2 * heads), layer.causal ? 1.0 : 0.0},
                             0,
                             kLatentAttention};
  const KernelCall turn{KernelOp::rotary, {2 * layer.sequence * heads, static_cast<double>(layer.inputs[2].back())}, 0};
  const KernelCall widen{KernelOp::copy, {layer.sequence, layer.features_in}, 0};
  return {.forward = {attention, turn, widen}, .backward_input = {attention, turn, widen}};
}

Signature latent_attention_signature(const Layer& layer, std::int64_t samples) {
  const std::int64_t tokens = layer.inputs.front().front();
  Signature signature = of_sequence(samples, tokens, Along::whole); // keys and values of all tokens
  const int heads = add_letter(signature, "heads", layer.heads, Along::each);
  const int rotary = add_letter(signature, "features of the rotary key", layer.inputs[2].back(), Along::whole);
  signature.inputs = {{-1, tensor_of(samples, kTokenLetter, layer.inputs[0], heads)},
                      {-1, tensor_of(samples, kTokenLetter, layer.inputs[1], heads)},
                      {-1, tensor_of(samples, kTokenLetter, layer.inputs[2], rotary)}};
  signature.output = tensor_of(samples, kTokenLetter, layer.output, heads);
  signature.reads_inputs = true;
  signature.queries = 0;
  return signature;
}

} // namespace stagecraft
