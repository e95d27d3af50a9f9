// Turns layers with their costs into operators: finds which gradients are needed, and counts each kept tensor once.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {
namespace {

// Tensors are numbered by the layer that writes them; the model's input comes last.
class Tensors {
public:
  Tensors(const std::vector<CostedLayer>& layers, double input_elements)
      : elements_(layers.size() + 1), memory_(layers.size() + 1), claimed_(layers.size() + 1, false) {
    elements_.back() = input_elements;
    memory_.back() = layers.size();
    for (size_t v = 0; v < layers.size(); ++v) {
      elements_[v] = layers[v].op.output_elements;
      memory_[v] = layers[v].cost.kept.view ? memory(layers[v].inputs.front()) : v;
    }
  }

  /// Elements of a tensor when it is claimed for the first time; 0 afterwards.
  double claim(int tensor) {
    const size_t which = memory(tensor);
    if (claimed_[which]) {
      return 0;
    }
    claimed_[which] = true;
    return elements_[which];
  }

  /// The layer that writes a tensor, or whose output it is a view of; kModelInput for the model's input.
  int maker(int tensor) const {
    const size_t which = memory(tensor);
    return which + 1 < memory_.size() ? static_cast<int>(which) : kModelInput;
  }

private:
  // The tensor whose memory this one shares: a view is its input.
  size_t memory(int tensor) const {
    return tensor == kModelInput ? memory_.size() - 1 : memory_[static_cast<size_t>(tensor)];
  }

  std::vector<double> elements_;
  std::vector<size_t> memory_;
  std::vector<bool> claimed_;
};

// A tensor has a gradient if a layer with parameters stands before it. For a layer given by numbers, which may read
// later layers, its own numbers decide.
std::vector<bool> find_gradients(const std::vector<CostedLayer>& layers) {
  std::vector<bool> gradient(layers.size(), false);
  for (size_t v = 0; v < layers.size(); ++v) {
    const CostedLayer& layer = layers[v];
    gradient[v] = layer.measured || layer.cost.backward_weight.kernels > 0 ||
                  std::any_of(layer.inputs.begin(), layer.inputs.end(),
                              [&](int input) { return input != kModelInput && gradient[input]; });
  }
  return gradient;
}

// A normalization, and an attention with sinks, compute the gradient of their few parameters together with that of the
// input; nothing is kept for it.
bool waits_for_weights(const CostedLayer& layer) {
  return layer.cost.backward_weight.kernels > 0 && layer.op.kind != KernelKind::normalization &&
         !mixes_tokens(layer.op.kind);
}

// Counts what the layer keeps of its own and the inputs that it is the first to keep. `part` is in elements until
// make_operators() knows all of the stash.
void keep_inputs(CostedLayer& layer, Tensors& tensors) {
  const Kept& kept = layer.cost.kept;
  layer.op.stash_elements = kept.extra;
  for (std::size_t at = 0; at < (kept.inputs ? layer.inputs.size() : 0); ++at) {
    const int input = layer.inputs[at];
    const double beside = at == static_cast<std::size_t>(kept.with) ? kept.with_input : 0;
    const double elements = tensors.claim(input) + beside;
    layer.op.stash_elements += elements;
    if (elements > 0 && tensors.maker(input) != kModelInput) {
      layer.op.kept_inputs.push_back({tensors.maker(input), elements});
    }
  }
}

} // namespace

std::vector<Operator> make_operators(std::vector<CostedLayer> layers, double input_elements) {
  const std::vector<bool> gradient = find_gradients(layers);
  Tensors tensors(layers, input_elements);
  Tensors of_weights(layers, input_elements); // claims for what weight gradients read
  for (size_t v = 0; v < layers.size(); ++v) {
    CostedLayer& layer = layers[v];
    if (layer.measured) {
      continue;
    }
    layer.op.parameters = layer.cost.parameters;
    layer.op.seen = layer.cost.seen;
    layer.op.mask = layer.cost.mask;
    layer.op.routing = layer.cost.routing;
    layer.op.active = layer.cost.active;
    layer.op.frozen = layer.cost.frozen;
    layer.op.forward = layer.cost.forward;
    layer.op.backward_weight = layer.cost.backward_weight;
    layer.op.weight_elements = 0;
    for (const int input : waits_for_weights(layer) ? layer.inputs : std::vector<int>()) {
      layer.op.weight_elements += of_weights.claim(input);
    }
    layer.op.weight_elements += waits_for_weights(layer) ? layer.op.output_elements : 0; // the gradient of the output
    const bool passes_on = std::any_of(layer.inputs.begin(), layer.inputs.end(),
                                       [&](int input) { return input != kModelInput && gradient[input]; });
    layer.op.backward_input = passes_on ? layer.cost.backward_input : Pass();
    if (gradient[v]) {
      keep_inputs(layer, tensors);
    }
  }
  for (size_t v = 0; v < layers.size(); ++v) { // outputs that a later layer keeps have been claimed by it
    if (!layers[v].measured && gradient[v] && layers[v].cost.kept.output) {
      layers[v].op.stash_elements += tensors.claim(static_cast<int>(v));
    }
  }
  std::vector<Operator> operators;
  for (CostedLayer& layer : layers) {
    for (KeptInput& kept : layer.op.kept_inputs) {
      kept.part /= layer.op.stash_elements;
    }
    operators.push_back(std::move(layer.op));
  }
  return operators;
}

} // namespace stagecraft
