// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/layer_signatures.hpp"

#include "sim/workload/layer/layer_parts.hpp"

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

// Queries, keys and values side by side, to be cut by heads of keys and values.
TensorDimension heads_of(const Layer& layer, Signature& signature) {
  const std::int64_t groups = layer.key_value_heads;
  const std::int64_t width = features_in(layer) / (layer.heads + 2 * groups);
  const int heads = add_letter(signature, "key-value heads", groups, Along::each);
  return {heads, {layer.heads * width, groups * width, groups * width}};
}

} // namespace

Signature linear_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t in = features_in(layer);
  const std::int64_t out = layer.output.back();
  const int inputs = add_letter(signature, "input features", in, Along::sum, true);
  const int outputs = add_letter(signature, "output features", out, Along::each, true);
  signature.inputs = {{.dimensions = with(signature, layer, {{inputs, {in}}}), .for_weights_alone = true}};
  signature.output = with(signature, layer, {{outputs, {out}}});
  signature.parameters.push_back({{{outputs, {out}}, {inputs, {in}}}});
  if (layer.bias) {
    signature.parameters.push_back({.dimensions = {{outputs, {out}}}, .added_last = true});
  }
  if (layer.lora > 0) {
    for (ParameterSignature& parameter : signature.parameters) {
      parameter.trained = false;
    }
    const int rank = add_letter(signature, "rank", layer.lora, Along::whole);
    signature.parameters.push_back({{{rank, {layer.lora}}, {inputs, {in}}}});
    signature.parameters.push_back({{{outputs, {out}}, {rank, {layer.lora}}}});
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

Signature layer_norm_signature(const Layer& layer, std::int64_t samples) {
  return normalization_signature(layer, samples, layer.bias ? 2 : 1);
}

Signature rms_norm_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = normalization_signature(layer, samples, 1);
  if (layer.groups > 1) {
    Letter& groups = signature.letters.back();
    groups = {"groups of features", layer.groups, Along::each};
  }
  return signature;
}

Signature softmax_signature(const Layer& layer, std::int64_t samples) {
  return normalization_signature(layer, samples, 0);
}

Signature rotary_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const TensorDimension heads = heads_of(layer, signature);
  signature.inputs = {{-1, with(signature, layer, {heads})}};
  signature.output = signature.inputs.front().dimensions;
  return signature;
}

Signature query_key_norm_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = rotary_signature(layer, samples);
  const std::int64_t width = features_in(layer) / (layer.heads + 2 * layer.key_value_heads);
  const int features = add_letter(signature, "features of a head", width, Along::whole);
  signature.parameters.assign(2, {{{features, {width}}}});
  signature.reads_inputs = true;
  return signature;
}

Signature elementwise_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  signature.reads_inputs = true;
  const std::int64_t size = features_in(layer);
  if (layer.output == Shape{1}) { // a loss has no features
    signature.output = {{0, {samples}}};
    signature.inputs.assign(layer.inputs.size(), {-1, signature.output});
    return signature;
  }
  const int features = add_letter(signature, "features", size, Along::each, true);
  signature.output = with(signature, layer, {{features, {size}}});
  signature.inputs.assign(layer.inputs.size(), {-1, signature.output});
  return signature;
}

Signature add_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = elementwise_signature(layer, samples);
  signature.reads_inputs = false;
  return signature;
}

Signature gated_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t size = layer.output.back();
  const int features = add_letter(signature, "gated features", size, Along::each);
  signature.inputs = {{-1, with(signature, layer, {{features, {size, size}}})}};
  signature.output = with(signature, layer, {{features, {size}}});
  if (layer.inputs.size() > 1) { // the weights of rows, several of which belong to a token
    const Shape& weights = layer.inputs[1];
    const int choices = add_letter(signature, "choices", weights.back(), Along::whole);
    signature.letters[1].pieces = weights.front();
    const int experts = add_letter(signature, std::string(kExperts), 0, Along::each);
    signature.inputs.push_back({-1, {{0, {samples}}, {1, {weights.front()}, experts}, {choices, {weights.back()}}}});
    signature.inputs.front().dimensions[1].sorted_by = signature.output[1].sorted_by = experts;
  }
  signature.reads_inputs = true;
  return signature;
}

namespace {

void add_head_parameters(Signature& signature, const Layer& layer, int heads) {
  if (layer.sinks) {
    signature.parameters.push_back({{{heads, {layer.heads}}}});
  }
  if (layer.buckets > 0) {
    const int buckets = add_letter(signature, "buckets", layer.buckets, Along::whole);
    signature.parameters.push_back({{{buckets, {layer.buckets}}, {heads, {layer.heads}}}});
  }
}

} // namespace

Signature attention_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  signature.letters[1].along = Along::whole; // keys and values of all tokens
  signature.reads_inputs = true;
  if (layer.inputs.size() == 1) {
    const TensorDimension heads = heads_of(layer, signature);
    signature.inputs = {{-1, with(signature, layer, {heads})}};
    signature.output = with(signature, layer, {{heads.letter, {heads.sections.front()}}});
    signature.queries = 1;
    add_head_parameters(signature, layer, heads.letter);
    return signature;
  }
  const int heads = add_letter(signature, "key-value heads", layer.key_value_heads, Along::each);
  signature.queries = 0;
  const int others = add_letter(signature, "tokens of keys", layer.inputs[1].front(), Along::whole);
  signature.inputs = {{-1, with(signature, layer, {{heads, {features_in(layer)}}})}};
  signature.output = with(signature, layer, {{heads, {layer.output.back()}}});
  for (std::size_t i = 1; i < layer.inputs.size(); ++i) {
    signature.inputs.push_back(
        {-1, {{0, {samples}}, {others, {layer.inputs[i].front()}}, {heads, {layer.inputs[i].back()}}}});
  }
  add_head_parameters(signature, layer, heads);
  return signature;
}

Signature slice_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const bool of_tokens = layer.axis == 0 && signature.letters.size() == 2;
  const std::int64_t size = features_in(layer);
  const int features = add_letter(signature, "features", size, of_tokens ? Along::each : Along::whole, of_tokens);
  signature.inputs = {{-1, with(signature, layer, {{features, {size}}})}};
  signature.output = signature.inputs.front().dimensions;
  const int part = add_letter(signature, "features or tokens left", 1, Along::whole);
  if (of_tokens) {
    signature.letters[1].along = Along::whole;
    signature.output[1] = {part, {layer.output.front()}};
  } else {
    signature.output.back() = {part, {layer.output.back()}};
  }
  return signature;
}

// Where features lie side by side each of a token's are needed at once, and any token by itself; where tokens do, the
// other way round.
Signature concat_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const bool of_tokens = layer.axis == 0 && signature.letters.size() == 2;
  const int features = of_tokens ? add_letter(signature, "features", features_in(layer), Along::each, true) : -1;
  const auto part = [&](const Shape& shape) {
    const std::int64_t size = of_tokens ? shape.front() : shape.back();
    const int letter = add_letter(signature, of_tokens ? "tokens of a part" : "features of a part", size, Along::whole);
    TensorDimensions dimensions = with(signature, layer, {{of_tokens ? features : letter, {shape.back()}}});
    if (of_tokens) {
      dimensions[1] = {letter, {size}};
    }
    return dimensions;
  };
  for (const Shape& shape : layer.inputs) {
    signature.inputs.push_back({-1, part(shape)});
  }
  signature.output = part(layer.output);
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
  if (layer.types > 0) {
    const auto types = static_cast<std::int64_t>(layer.types);
    const int type = add_letter(signature, "types", types, Along::whole);
    signature.parameters.push_back({.dimensions = {{type, {types}}, {features, {size}}}, .added_last = true});
  }
  signature.reads_inputs = true;
  return signature;
}

Signature cross_entropy_signature(const Layer& layer, std::int64_t samples) {
  Signature signature = leading(layer, samples);
  const std::int64_t words = features_in(layer);
  if (signature.letters.size() > 1) {
    signature.letters[1].along = Along::sum; // the loss of a sample is the sum over its tokens
  }
  const int vocabulary = add_letter(signature, "words", words, Along::reduce);
  const TensorDimensions labels = with(signature, layer, {});
  signature.inputs = {{-1, with(signature, layer, {{vocabulary, {words}}})}, {-1, labels}};
  signature.output = {{0, {samples}}};
  signature.reductions = {{true, labels}, {false, labels}, {false, labels}}; // greatest, sum of powers, label's logit
  signature.reads_inputs = true;
  return signature;
}

} // namespace stagecraft
