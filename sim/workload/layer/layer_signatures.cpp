// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/layer_signatures.hpp"

#include <cmath>

namespace stagecraft {
namespace {

// The letters of samples and, for [sequence, features], of tokens.
Signature leading(const Layer& layer, std::int64_t samples) {
  Signature signature;
  signature.letters.push_back({std::string(kSamples), samples, Along::each});
  if (layer.inputs.front().size() == 2) {
    signature.letters.push_back({std::string(kTokens), layer.inputs.front().front(), Along::each});
  }
  return signature;
}

int add_letter(Signature& signature, std::string name, std::int64_t pieces, Along along, bool any_order = false) {
  signature.letters.push_back({std::move(name), pieces, along, any_order});
  return static_cast<int>(signature.letters.size()) - 1;
}

// The leading dimensions, then `last`.
TensorDimensions with(const Signature& signature, const Layer& layer, std::vector<TensorDimension> last) {
  TensorDimensions dimensions;
  for (int letter = 0; letter < static_cast<int>(layer.inputs.front().size()); ++letter) {
    dimensions.push_back({letter, {signature.letters[letter].pieces}});
  }
  dimensions.insert(dimensions.end(), last.begin(), last.end());
  return dimensions;
}

std::int64_t features_in(const Layer& layer) { return layer.inputs.front().back(); }

} // namespace

Signature linear_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t in = features_in(layer);
  const std::int64_t out = layer.output.back();
  const int inputs = add_letter(signature, "input features", in, Along::sum, true);
  const int outputs = add_letter(signature, "output features", out, Along::each, true);
  signature.inputs = {{-1, with(signature, layer, {{inputs, {in}}})}};
  signature.output = with(signature, layer, {{outputs, {out}}});
  signature.parameters.push_back({{{outputs, {out}}, {inputs, {in}}}});
  if (layer.bias) {
    signature.parameters.push_back({.dimensions = {{outputs, {out}}}, .added_last = true});
  }
  signature.reads_inputs = true;
  return signature;
}

Signature normalization_signature(const Layer& layer, std::int64_t samples, int parameters) {
  Signature signature = leading(layer, samples);
  const std::int64_t size = features_in(layer);
  const int features = add_letter(signature, "features", size, Along::whole);
  signature.inputs = {{-1, with(signature, layer, {{features, {size}}})}};
  signature.output = signature.inputs.front().dimensions;
  signature.parameters.assign(parameters, {{{features, {size}}}});
  signature.reads_inputs = true;
  return signature;
}

Signature elementwise_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t size = features_in(layer);
  const int features = add_letter(signature, "features", size, Along::each, true);
  signature.output = with(signature, layer, {{features, {size}}});
  signature.inputs.assign(layer.inputs.size(), {-1, signature.output});
  signature.reads_inputs = true;
  return signature;
}

Signature gated_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t size = layer.output.back();
  const int features = add_letter(signature, "gated features", size, Along::each);
  signature.inputs = {{-1, with(signature, layer, {{features, {size, size}}})}};
  signature.output = with(signature, layer, {{features, {size}}});
  signature.reads_inputs = true;
  return signature;
}

Signature attention_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  signature.letters[1].along = Along::whole; // keys and values of all tokens
  const std::int64_t groups = layer.key_value_heads;
  const std::int64_t width = features_in(layer) / (layer.heads + 2 * groups);
  const int heads = add_letter(signature, "key-value heads", groups, Along::each);
  const std::int64_t queries = layer.heads * width;
  signature.inputs = {{-1, with(signature, layer, {{heads, {queries, groups * width, groups * width}}})}};
  signature.output = with(signature, layer, {{heads, {queries}}});
  signature.reads_inputs = true;
  return signature;
}

Signature embedding_signature(const Layer& layer, std::int64_t samples) {
  Signature signature;
  const std::int64_t tokens = layer.output.front();
  const std::int64_t size = layer.output.back();
  const auto words = static_cast<std::int64_t>(layer.vocabulary);
  const int sample = add_letter(signature, std::string(kSamples), samples, Along::each);
  const int token = add_letter(signature, std::string(kTokens), tokens, Along::each);
  const int vocabulary = add_letter(signature, "words", words, Along::sum);
  const int features = add_letter(signature, "features", size, Along::each);
  signature.inputs = {{-1, {{sample, {samples}}, {token, {tokens}}}}};
  signature.output = {{sample, {samples}}, {token, {tokens}}, {features, {size}}};
  signature.parameters.push_back({{{vocabulary, {words}}, {features, {size}}}});
  if (layer.positions > 0) {
    signature.parameters.push_back({.dimensions = {{token, {tokens}}, {features, {size}}}, .added_last = true});
  }
  signature.reads_inputs = true;
  return signature;
}

Signature cross_entropy_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t words = features_in(layer);
  signature.letters[1].along = Along::sum; // the loss of a sample is the sum over its tokens
  const int vocabulary = add_letter(signature, "words", words, Along::reduce);
  const TensorDimensions labels = with(signature, layer, {});
  signature.inputs = {{-1, with(signature, layer, {{vocabulary, {words}}})}, {-1, labels}};
  signature.output = {{0, {samples}}};
  signature.reductions = {{true, labels}, {false, labels}, {false, labels}}; // greatest, sum of powers, label's logit
  signature.reads_inputs = true;
  return signature;
}

} // namespace stagecraft
