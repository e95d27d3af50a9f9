// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/sequence_layers.hpp"

#include <algorithm>
#include <cmath>

#include "sim/workload/layer/layer_parts.hpp"

namespace stagecraft {
namespace {

void require_tokens(const Layer& layer) {
  for (const Shape& shape : layer.inputs) {
    if (shape.size() != 2) {
      refuse(layer, "an input has shape " + to_text(shape) + "; allowed: [tokens, features]");
    }
  }
}

} // namespace

Shape learned_tokens_shape(Layer& layer) {
  require_tokens(layer);
  const Shape& read = layer.inputs.front();
  layer.features = static_cast<double>(read.back());
  return {read.front() + layer.top, read.back()};
}

LayerCost learned_tokens_cost(const Layer& layer) {
  const double x = elements_of(layer.inputs.front());
  const double y = elements_of(layer.output);
  const double parameters = y + layer.top * layer.features; // positions, and the tokens
  return {.forward = make_pass(y, x + y, parameters),
          .backward_input = make_pass(0, 2 * x),
          .backward_weight = make_pass(y, y, parameters),
          .parameters = parameters};
}

Signature learned_tokens_signature(const Layer& layer, std::int64_t samples) {
  const Shape& read = layer.inputs.front();
  Signature signature = of_sequence(samples, layer.output.front(), Along::whole);
  const int given = add_letter(signature, "tokens given", read.front(), Along::whole);
  const int features = add_letter(signature, "features", read.back(), Along::each, true);
  signature.inputs = {{-1, tensor_of(samples, given, read, features)}};
  signature.output = tensor_of(samples, kTokenLetter, layer.output, features);
  signature.parameters.push_back({{{kTokenLetter, {layer.output.front()}}, {features, {read.back()}}}});
  if (layer.top > 0) {
    const int learned = add_letter(signature, "learned tokens", layer.top, Along::whole);
    signature.parameters.push_back({{{learned, {layer.top}}, {features, {read.back()}}}});
  }
  return signature;
}

Shape short_convolution_shape(Layer& layer) {
  require_tokens(layer);
  layer.features = static_cast<double>(layer.inputs.front().back());
  return layer.inputs.front();
}

// A weight for each feature and tap, and a bias: far too little work to be bound by arithmetic.
LayerCost short_convolution_cost(const Layer& layer) {
  const double y = elements_of(layer.output);
  const double taps = layer.kernel.front();
  const double weights = layer.features * taps;
  const double parameters = weights + (layer.bias ? layer.features : 0);
  return {.forward = make_pass(2 * taps * y, 2 * y, parameters),
          .backward_input = make_pass(2 * taps * y, 2 * y, weights),
          .backward_weight = make_pass(2 * taps * y, 2 * y, parameters),
          .parameters = parameters,
          .kept = {.inputs = true}};
}

Signature short_convolution_signature(const Layer& layer, std::int64_t samples) {
  const Shape& read = layer.inputs.front();
  Signature signature = of_sequence(samples, read.front(), Along::whole); // the tokens before each
  const int features = add_letter(signature, "features", read.back(), Along::each, true);
  const int taps = add_letter(signature, "taps", layer.kernel.front(), Along::whole);
  signature.inputs = {{-1, tensor_of(samples, kTokenLetter, read, features)}};
  signature.output = signature.inputs.front().dimensions;
  signature.parameters.push_back({{{features, {read.back()}}, {taps, {layer.kernel.front()}}}});
  if (layer.bias) {
    signature.parameters.push_back({{{features, {read.back()}}}});
  }
  signature.reads_inputs = true;
  return signature;
}

// Sets features_in to the size of a state, features to the width of a head.
Shape state_space_shape(Layer& layer) {
  require_tokens(layer);
  const Shape &values = layer.inputs[0], &vectors = layer.inputs[1], &steps = layer.inputs[2];
  if (values[0] != vectors[0] || values[0] != steps[0] || values[1] % layer.heads != 0 ||
      vectors[1] % (2 * static_cast<std::int64_t>(layer.groups)) != 0 || steps[1] != layer.heads ||
      layer.heads % layer.groups != 0) {
    refuse(layer, "values " + to_text(values) + ", vectors " + to_text(vectors) + " and time steps " + to_text(steps) +
                      " do not fit " + std::to_string(layer.heads) + " heads in " + std::to_string(layer.groups) +
                      " groups; allowed: [s, heads * p], [s, 2 * groups * n], [s, heads]");
  }
  layer.sequence = static_cast<double>(values[0]);
  layer.features_in = static_cast<double>(vectors[1]) / (2.0 * layer.groups);
  layer.features = static_cast<double>(values[1]) / layer.heads;
  return values;
}

// For each token, in chunks of q: scores C B' within the chunk, 2 q n for each group; scores times values, 2 q p, and
// the chunk's state made and read, 2 n p each, for each head. Backward multiplies each product with the gradient twice,
// and makes the scores again: 2.5 times. A state of n p stays for each chunk and head. How much longer the kernels of
// backward take for each FLOP: docs/model.md, "State spaces".
LayerCost state_space_cost(const Layer& layer) {
  constexpr double kSlowerBackward = 1.8;
  const double tokens = layer.sequence;
  const double chunk = std::min<double>(layer.window, tokens);
  const double n = layer.features_in;
  const double p = layer.features;
  const double products = tokens * (2 * chunk * n * layer.groups + layer.heads * (2 * chunk * p + 4 * n * p));
  const double states = std::ceil(tokens / chunk) * layer.heads * n * p;
  double x = 0;
  for (const Shape& shape : layer.inputs) {
    x += elements_of(shape);
  }
  const double y = elements_of(layer.output);
  const double parameters = 3.0 * layer.heads; // of each head: decay, skip, bias of the time step
  Pass backward = make_pass(2.5 * products, 2 * (x + y + 2 * states), parameters, 8);
  backward.slower = kSlowerBackward;
  return {.forward = make_pass(products, x + y + 2 * states, parameters, 4),
          .backward_input = backward,
          .backward_weight = make_pass(2 * tokens * layer.heads, tokens * layer.heads, parameters),
          .parameters = parameters,
          .kept = {.inputs = true, .extra = states}};
}

// Heads of a group share two vectors, which lie behind one another; a single group's are needed by all heads.
Signature state_space_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = of_sequence(samples, layer.inputs.front().front(), Along::whole);
  const bool grouped = layer.groups > 1;
  const int heads =
      add_letter(signature, grouped ? "groups of heads" : "heads", grouped ? layer.groups : layer.heads, Along::each);
  const std::int64_t both = layer.inputs[1].back();
  TensorDimensions vectors = tensor_of(samples, kTokenLetter, layer.inputs[1], heads);
  if (grouped) {
    vectors.back().sections = {both / 2, both / 2};
  } else {
    vectors.back().letter = add_letter(signature, "vectors", both, Along::whole);
  }
  signature.inputs = {{-1, tensor_of(samples, kTokenLetter, layer.inputs[0], heads)},
                      {-1, std::move(vectors)},
                      {-1, tensor_of(samples, kTokenLetter, layer.inputs[2], heads)}};
  signature.output = tensor_of(samples, kTokenLetter, layer.output, heads);
  signature.parameters.assign(3, {{{heads, {layer.heads}}}});
  signature.reads_inputs = true;
  return signature;
}

} // namespace stagecraft
