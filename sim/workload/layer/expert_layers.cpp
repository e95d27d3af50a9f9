// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/expert_layers.hpp"

#include <algorithm>
#include <cmath>

#include "sim/workload/layer/layer_parts.hpp"

namespace stagecraft {
namespace {

void require_sequence(const Layer& layer) {
  const Shape& shape = layer.inputs.front();
  if (shape.size() != 2) {
    refuse(layer, "the input has shape " + to_text(shape) + "; allowed: [tokens, features]");
  }
}

// Reads a tensor and what a router wrote.
void require_choices(const Layer& layer) {
  require_sequence(layer);
  const Shape& choices = layer.inputs[1];
  if (choices.size() != 2) {
    refuse(layer, "the second input has shape " + to_text(choices) +
                      "; allowed: [tokens, experts of a token], the output of a router");
  }
}

TensorDimension of(int letter, std::int64_t size) { return {letter, {size}}; }

// Rows belong to tokens, of which each may have several.
TensorDimensions rows_of(std::int64_t samples, const Shape& shape, int last) {
  return tensor_of(samples, kTokenLetter, shape, last);
}

// Where ranks share experts, a row goes to the rank of its expert, and what it weighs with it.
void sort_rows(Signature& signature, int experts) {
  signature.output[kTokenLetter].sorted_by = experts;
  for (InputSignature& input : signature.inputs) {
    input.dimensions[kTokenLetter].sorted_by = experts;
  }
}

// The choices of a router, which layers read as numbers of experts: no gradient goes that way.
InputSignature choices_of(Signature& signature, const Layer& layer, std::int64_t samples) {
  const Shape& choices = layer.inputs[1];
  const int letter = add_letter(signature, "choices", choices.back(), Along::whole);
  return {.dimensions = rows_of(samples, choices, letter), .passes_gradient = false};
}

KernelCall copy_of(const Shape& shape) {
  return {KernelOp::copy, {static_cast<double>(shape.front()), static_cast<double>(shape.back())}, 0};
}

} // namespace

std::int64_t expert_rows(const Layer& layer, std::int64_t tokens, std::int64_t top) {
  const double all = static_cast<double>(tokens) * static_cast<double>(top);
  if (layer.capacity <= 0) {
    return tokens * top;
  }
  const double most = std::ceil(layer.capacity * all / layer.experts * (1 - 1e-12));
  if (layer.padded) {
    return static_cast<std::int64_t>(most * layer.experts);
  }
  double weights = 0;
  for (int i = 1; i <= layer.experts; ++i) {
    weights += std::pow(i, -layer.skew);
  }
  double kept = 0;
  for (int i = 1; i <= layer.experts; ++i) {
    kept += std::min(most, all * std::pow(i, -layer.skew) / weights);
  }
  return static_cast<std::int64_t>(std::ceil(kept * (1 - 1e-12))); // sums of equal parts are whole numbers again
}

Shape router_shape(Layer& layer) {
  require_sequence(layer);
  layer.features_in = static_cast<double>(layer.inputs.front().back());
  return {layer.inputs.front().front(), layer.top};
}

// Logits are x W, one for each expert, then a softmax and the choice of the largest, which one kernel does.
LayerCost router_cost(const Layer& layer) {
  const double x = elements_of(layer.inputs.front());
  const double y = elements_of(layer.output);
  const double logits = static_cast<double>(layer.output.front()) * layer.experts;
  const double weights = layer.features_in * layer.experts;
  const double parameters = weights + (layer.bias ? layer.experts : 0);
  const double product = 2 * logits * layer.features_in;
  const double softmax = 5 * logits;
  return {.forward = make_pass(product + softmax, x + 2 * logits + y, parameters, 2),
          .backward_input = make_pass(product + softmax, x + 3 * logits + y, weights, 2),
          .backward_weight = make_pass(product, x + logits, parameters),
          .parameters = parameters,
          .kept = {.inputs = true, .extra = logits},
          .routing = Routing{
              .experts = layer.experts, .top = layer.top, .groups = layer.groups, .top_groups = layer.top_groups}};
}

LayerKernels router_kernels(const Layer& layer) {
  const auto tokens = static_cast<double>(layer.output.front());
  const double experts = layer.experts;
  const KernelCall softmax{KernelOp::softmax, {tokens, experts}, 0};
  return {{make_gemm(1, tokens, experts, layer.features_in, kM), softmax},
          {make_gemm(1, tokens, layer.features_in, experts, kM), softmax},
          {make_gemm(1, layer.features_in, experts, tokens, kK)}};
}

Signature router_signature(const Layer& layer, std::int64_t samples) {
  const Shape& read = layer.inputs.front();
  Signature signature = of_sequence(samples, read.front(), Along::each);
  const int features = add_letter(signature, "features", read.back(), Along::whole);
  const int experts = add_letter(signature, "experts", layer.experts, Along::whole);
  const int choices = add_letter(signature, "choices", layer.top, Along::whole);
  signature.inputs = {{-1, rows_of(samples, read, features)}};
  signature.output = rows_of(samples, layer.output, choices);
  signature.parameters.push_back({{of(experts, layer.experts), of(features, read.back())}});
  if (layer.bias) {
    signature.parameters.push_back({{of(experts, layer.experts)}});
  }
  signature.reads_inputs = true;
  return signature;
}

Shape dispatch_shape(Layer& layer) {
  require_choices(layer);
  const Shape& choices = layer.inputs[1];
  if (choices.front() != layer.inputs.front().front()) {
    refuse(layer, "the inputs have " + std::to_string(layer.inputs.front().front()) + " tokens and choices for " +
                      std::to_string(choices.front()) + "; allowed: as many");
  }
  if (layer.rows > 0) {
    const double share = static_cast<double>(choices.front() * choices.back()) / layer.experts;
    layer.capacity = layer.rows / share;
  }
  if (layer.capacity > 0 && choices.back() > layer.experts) {
    refuse(layer, "each token goes to " + std::to_string(choices.back()) + " of " + std::to_string(layer.experts) +
                      " experts; allowed: at most to all of them");
  }
  return {expert_rows(layer, choices.front(), choices.back()), layer.inputs.front().back()};
}

// Each row is a copy of its token; backward adds the rows' gradients up.
LayerCost dispatch_cost(const Layer& layer) {
  const double x = elements_of(layer.inputs.front());
  const double y = elements_of(layer.output);
  return {.forward = make_pass(0, 2 * y),
          .backward_input = make_pass(y, x + y),
          .routing =
              Routing{.experts = layer.experts, .skew = layer.skew, .most = layer.capacity, .padded = layer.padded}};
}

LayerKernels dispatch_kernels(const Layer& layer) {
  return {.forward = {copy_of(layer.output)}, .backward_input = {copy_of(layer.output)}};
}

Signature dispatch_signature(const Layer& layer, std::int64_t samples) {
  const Shape& read = layer.inputs.front();
  Signature signature = of_sequence(samples, read.front(), Along::each);
  const int features = add_letter(signature, "features", read.back(), Along::each, true);
  signature.inputs = {{.dimensions = rows_of(samples, read, features), .takes_terms = true},
                      choices_of(signature, layer, samples)};
  signature.output = rows_of(samples, layer.output, features);
  signature.reads_inputs = true; // whose row is which follows from the choices
  return signature;
}

Shape expert_linear_shape(Layer& layer) {
  require_choices(layer);
  layer.features_in = static_cast<double>(layer.inputs.front().back());
  return {layer.inputs.front().front(), static_cast<std::int64_t>(layer.features)};
}

// A linear layer of each expert over its rows; all weights are read.
LayerCost expert_linear_cost(const Layer& layer) {
  const double x = elements_of(layer.inputs.front());
  const double y = elements_of(layer.output);
  const double weights = layer.experts * layer.features_in * layer.features;
  const double parameters = weights + (layer.bias ? layer.experts * layer.features : 0);
  const double flops = 2 * y * layer.features_in;
  return {.forward = make_pass(flops, x + y, parameters),
          .backward_input = make_pass(flops, x + y, weights),
          .backward_weight = make_pass(flops, x + y, parameters),
          .parameters = parameters,
          .kept = {.inputs = true, .for_weights_alone = true},
          .active = std::min(1.0, static_cast<double>(layer.inputs[1].back()) / layer.experts)};
}

// A grouped product takes as long as a batched one of as many rows for each expert.
LayerKernels expert_linear_kernels(const Layer& layer) {
  const double in = layer.features_in;
  const double out = layer.features;
  const double rows = std::ceil(static_cast<double>(layer.output.front()) / layer.experts);
  return {{make_gemm(layer.experts, rows, out, in, kM)},
          {make_gemm(layer.experts, rows, in, out, kM)},
          {make_gemm(layer.experts, in, out, rows, kK)}};
}

Signature expert_linear_signature(const Layer& layer, std::int64_t samples) {
  const Shape& read = layer.inputs.front();
  Signature signature = of_sequence(samples, layer.inputs[1].front(), Along::each);
  const int inputs = add_letter(signature, "input features", read.back(), Along::sum, true);
  const int outputs = add_letter(signature, "output features", layer.output.back(), Along::each, true);
  const int experts = add_letter(signature, std::string(kExperts), layer.experts, Along::each);
  signature.inputs = {{-1, rows_of(samples, read, inputs)}, choices_of(signature, layer, samples)};
  signature.output = rows_of(samples, layer.output, outputs);
  sort_rows(signature, experts);
  signature.parameters.push_back(
      {{of(experts, layer.experts), of(outputs, layer.output.back()), of(inputs, read.back())}});
  if (layer.bias) {
    signature.parameters.push_back(
        {.dimensions = {of(experts, layer.experts), of(outputs, layer.output.back())}, .added_last = true});
  }
  signature.reads_inputs = true;
  return signature;
}

Shape combine_shape(Layer& layer) {
  require_choices(layer);
  return {layer.inputs[1].front(), layer.inputs.front().back()};
}

LayerCost combine_cost(const Layer& layer) {
  const double x = elements_of(layer.inputs.front());
  const double y = elements_of(layer.output);
  return {.forward = make_pass(x, x + y), .backward_input = make_pass(0, 2 * x)};
}

LayerKernels combine_kernels(const Layer& layer) {
  return {.forward = {copy_of(layer.inputs.front())}, .backward_input = {copy_of(layer.inputs.front())}};
}

Signature combine_signature(const Layer& layer, std::int64_t samples) {
  const Shape& read = layer.inputs.front();
  Signature signature = of_sequence(samples, layer.output.front(), Along::each);
  const int features = add_letter(signature, "features", read.back(), Along::each, true);
  signature.inputs = {{.dimensions = rows_of(samples, read, features), .takes_terms = true},
                      choices_of(signature, layer, samples)};
  signature.output = rows_of(samples, layer.output, features);
  signature.reads_inputs = true; // whose row is which follows from the choices
  return signature;
}

namespace {

// Whether it reads rows, writes as many, and treats each by itself, whoever chose its expert.
bool works_on_rows(const Signature& signature, std::int64_t rows) {
  const auto are_rows = [&](const TensorDimensions& dimensions) {
    return dimensions.size() == 3 && dimensions[kTokenLetter].letter == kTokenLetter &&
           dimensions[kTokenLetter].size() == rows;
  };
  return signature.parameters.empty() && are_rows(signature.output) &&
         signature.letters[kTokenLetter].along == Along::each &&
         std::all_of(signature.inputs.begin(), signature.inputs.end(),
                     [&](const InputSignature& input) { return input.passes_gradient && are_rows(input.dimensions); });
}

} // namespace

void keep_with_expert(Signature& signature, const Signature& maker) {
  const auto choices = std::find_if(maker.inputs.begin(), maker.inputs.end(), [](const InputSignature& input) {
    return !input.passes_gradient && input.dimensions.size() == 3;
  });
  const bool makes_rows =
      choices != maker.inputs.end() && maker.output.size() == 3 && maker.output[kTokenLetter].sorted_by >= 0;
  if (!makes_rows || !works_on_rows(signature, maker.output[kTokenLetter].size())) {
    return;
  }
  signature.letters[kTokenLetter].pieces = choices->dimensions[kTokenLetter].size();
  InputSignature read = *choices;
  read.dimensions.back().letter = add_letter(signature, "choices", read.dimensions.back().size(), Along::whole);
  signature.inputs.push_back(std::move(read));
  sort_rows(signature, add_letter(signature, std::string(kExperts), 0, Along::each));
}

} // namespace stagecraft
