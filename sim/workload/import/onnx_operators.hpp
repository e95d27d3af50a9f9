// ONNX operators: the layer kind that costs each, and how its attributes follow from the node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "sim/workload/import/onnx_model.hpp"

namespace stagecraft {

/// A node with the shapes of its inputs, in order, and which of them are constant.
struct OnnxOperands {
  const OnnxNode& node;
  std::vector<Shape> shapes;  ///< per input; empty for one left out
  std::vector<bool> constant; ///< per input
  Where where;

  bool is_constant(size_t input) const { return input < constant.size() && constant[input]; }
  bool is_data(size_t input) const {
    return input < constant.size() && !constant[input] && !node.inputs[input].empty();
  }
};

struct OnnxOperator {
  std::string_view name;
  std::string_view kind; ///< the layer kind whose equation gives the cost
  /// Fills in the layer's attributes. Returns the layer kind where the node needs another than `kind`, else "".
  std::string_view (*prepare)(const OnnxOperands&, Layer&);
  int first_weight, last_weight; ///< inputs that hold parameters when they are constant; none where last < first
};

std::span<const OnnxOperator> onnx_operators();

} // namespace stagecraft
