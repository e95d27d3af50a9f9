// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/model_flops.hpp"

#include <algorithm>

namespace stagecraft {

double tokens_of(const ModelGraph& model) {
  double most = 0;
  for (const Operator& op : model.operators) {
    if (op.kind == KernelKind::embedding && op.signature) {
      most = std::max(most, op.output_elements / static_cast<double>(op.signature->output.back().size()));
    }
  }
  return most;
}

Flops model_flops(const ModelGraph& model) {
  Flops sum;
  for (const Operator& op : model.operators) {
    const Flops forward = product_flops(op);
    const bool is_frozen = op.frozen > 0 && multiplies(op.kind); // gradients of frozen ones are not needed
    sum += 2 * forward + (is_frozen ? op.backward_weight.flops / op.seen : forward);
  }
  return sum;
}

namespace {

// Of T keys a query of an attention in a window looks at as many as this has, and in a sample of several documents at
// those of its own.
double part_seen(const AttentionMask& mask) {
  const auto tokens = static_cast<double>(mask.tokens);
  const double window = mask.window > 0 ? mask.window : tokens;
  double pairs = mask.documents.empty() ? tokens * std::min(tokens, window) : 0;
  for (const int document : mask.documents) {
    pairs += document * std::min<double>(document, window);
  }
  return tokens > 0 ? pairs / (tokens * tokens) : 1;
}

} // namespace

Flops product_flops(const Operator& op) {
  if (!multiplies(op.kind)) {
    return {};
  }
  return op.forward.flops / op.seen * (op.mask ? part_seen(*op.mask) : 1);
}

} // namespace stagecraft
