// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/derive_signatures.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

// Whether the operator can work on any part of its inputs' features alone.
bool works_on_parts(const Operator& op) {
  return op.parameters == 0 && (op.kind == KernelKind::elementwise || op.kind == KernelKind::attention ||
                                op.kind == KernelKind::pooling || op.kind == KernelKind::reshape);
}

// The features of a sample, as one dimension.
TensorDimensions features_of(int letter, double elements) {
  const auto features = static_cast<std::int64_t>(std::llround(std::max(1.0, elements)));
  return {{0, {1}}, {letter, {features}}};
}

Signature derive_signature(const ModelGraph& model, OperatorId op) {
  const Operator& what = model.operators[op];
  const std::vector<OperatorId>& before = model.predecessors[op];
  const bool product = has_weights(what);
  // Parts of several inputs lie together in an output only if each element is made from those at its own place.
  const bool parts = works_on_parts(what) && (before.size() == 1 || what.kind == KernelKind::elementwise);
  Signature signature;
  signature.letters = {{std::string(kSamples), 0, Along::each}};
  const int in = product ? 1 : 0;
  if (product) {
    signature.letters.push_back({"input features", 0, Along::sum, true});
  }
  signature.letters.push_back({"features", 0, product || parts ? Along::each : Along::whole, true});
  const int out = in + 1;
  const int read = product ? 1 : out;
  for (const OperatorId maker : before) {
    signature.inputs.push_back({maker, features_of(read, model.operators[maker].output_elements)});
  }
  if (before.empty()) {
    signature.inputs.push_back({-1, features_of(read, model.input_elements)});
  }
  signature.output = features_of(out, what.output_elements);
  if (product) {
    for (InputSignature& input : signature.inputs) {
      input.for_weights_alone = true;
    }
    const TensorDimension inputs = signature.inputs.front().dimensions.back();
    const TensorDimension outputs = signature.output.back();
    signature.parameters.push_back({{outputs, inputs}});
  } else if (what.parameters > 0) {
    const auto count = static_cast<std::int64_t>(std::llround(std::max(1.0, what.parameters)));
    signature.parameters.push_back({{{out, {count}}}});
  }
  signature.reads_inputs = true;
  return signature;
}

} // namespace

bool has_weights(const Operator& op) {
  const bool dense = multiplies(op.kind) || op.kind == KernelKind::embedding || op.kind == KernelKind::other;
  return dense && (op.parameters > 0 || op.forward.moved_parameters > 0);
}

std::vector<Signature> signatures_of(const ModelGraph& model) {
  const bool known = std::all_of(model.operators.begin(), model.operators.end(),
                                 [](const Operator& op) { return op.signature.has_value(); });
  std::vector<Signature> signatures;
  for (OperatorId op = 0; op < model.size(); ++op) {
    signatures.push_back(known ? *model.operators[op].signature : derive_signature(model, op));
  }
  return signatures;
}

} // namespace stagecraft
