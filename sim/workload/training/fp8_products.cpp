// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/fp8_products.hpp"

#include <algorithm>

#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

constexpr double kStoredBytes = 2; // of the training's precision

// A product of experts reads its router only to know whose rows are whose.
bool is_multiplied(const Operator& read) { return read.type != "router"; }

// Elements of what a product multiplies, for one sample.
double input_elements(const ModelGraph& model, OperatorId op) {
  double elements = model.predecessors[op].empty() ? model.input_elements : 0;
  for (const OperatorId before : model.predecessors[op]) {
    elements += is_multiplied(model.operators[before]) ? model.operators[before].output_elements : 0;
  }
  return elements;
}

// Whether what the product multiplies is needed in 8 bits alone: by nothing that multiplies in more, and not by an
// attention, whose backward reads its own result.
bool reads_for_itself(const ModelGraph& model, OperatorId op) {
  return std::all_of(model.predecessors[op].begin(), model.predecessors[op].end(), [&](OperatorId before) {
    if (!is_multiplied(model.operators[before])) {
      return true;
    }
    const std::vector<OperatorId>& readers = model.successors[before];
    return !mixes_tokens(model.operators[before].kind) &&
           std::all_of(readers.begin(), readers.end(),
                       [&](OperatorId reader) { return has_fp8_products(model.operators[reader]); });
  });
}

// What the copies of an operator's weights take beside the weights. Where they stand alone, the two of a weight that is
// trained take its place; of a frozen one there is one, whose transposed copy is made when it is read.
double bytes_of_copies(const Operator& op, double copy_bytes, bool alone) {
  if (op.frozen > 0) {
    return op.frozen * (alone ? copy_bytes - kStoredBytes : 2 * copy_bytes);
  }
  return op.parameters * std::max(0.0, 2 * copy_bytes - (alone ? kStoredBytes : 0));
}

} // namespace

bool has_fp8_products(const Operator& op) {
  return op.kind == KernelKind::matmul && op.parameters + op.frozen > 0 && op.type != "router" &&
         is_in_numbered_block(op.name);
}

ModelGraph with_fp8_products(ModelGraph model, const Training& training) {
  const Fp8Row& recipe = *training.fp8;
  const double copy_bytes = row_of(*recipe.products).bytes;
  const double part = copy_bytes / kStoredBytes; // of a tensor's elements, counted in the training's precision
  for (OperatorId id = 0; id < model.size(); ++id) {
    Operator& op = model.operators[id];
    if (training.fp8_activations && (op.type == "gated" || op.type == "clamped_gated")) {
      op.stash_elements *= part;
    }
    if (!has_fp8_products(op)) {
      continue;
    }
    const double inputs = input_elements(model, id);
    op.products = recipe.products;
    if (op.forward.kernels > 0) {
      const bool once = recipe.later_bytes == 0;
      op.forward.casts = once ? recipe.casts : recipe.casts / 2;
      op.forward.cast_bytes = (once ? recipe.cast_bytes : recipe.first_bytes) * inputs;
      op.forward.transposed_bytes = recipe.transposed * inputs;
      op.forward.cast_of = CastOf::input;
    }
    if (op.backward_weight.kernels > 0 && op.backward_input.kernels > 0 && recipe.later_bytes > 0) {
      op.backward_weight.casts = recipe.casts / 2;
      op.backward_weight.cast_bytes = recipe.later_bytes * inputs;
      op.backward_weight.cast_of = CastOf::input;
    }
    // The gradient of the output is cast once for both products of backward.
    Pass& backward = op.backward_input.kernels > 0 ? op.backward_input : op.backward_weight;
    if (backward.kernels > 0) {
      backward.casts = recipe.casts;
      backward.cast_bytes = recipe.cast_bytes * op.output_elements;
      backward.transposed_bytes = recipe.transposed * op.output_elements;
      backward.cast_of = CastOf::gradient;
    }
    // The copy for the weights' gradient, in place of the tensor where nothing else needs it. Where something does,
    // most recipes cast it again. Frozen weights have no copy, and an adapter beside them multiplies in the training's
    // precision.
    if (op.parameters > 0 && op.frozen == 0) {
      const bool alone = reads_for_itself(model, id);
      op.stash_elements -= alone && op.stash_elements >= inputs ? inputs : 0;
      op.stash_elements += alone || recipe.keeps_both ? part * inputs : 0;
      op.weight_elements *= op.weight_elements > 0 ? part : 1;
    }
    op.resident_bytes += bytes_of_copies(op, copy_bytes, training.fp8_weights);
  }
  return model;
}

} // namespace stagecraft
