// ONNX operators: which layer kind costs each, and how its attributes follow from the node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "sim/workload/import/onnx_model.hpp"

namespace stagecraft {

/// A node's tensors: what is fed to it, in order, and which of that is constant.
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
  std::string_view kind; ///< layer kind whose equation costs it
  /// Fills in the layer's attributes; returns another layer kind where the node is one ("" otherwise).
  std::string_view (*prepare)(const OnnxOperands&, Layer&);
  int first_weight, last_weight; ///< inputs that hold parameters when they are constant; none where last < first
};

std::span<const OnnxOperator> onnx_operators();

} // namespace stagecraft
