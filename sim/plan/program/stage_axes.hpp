// How the ranks of a stage share operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/context.hpp"
#include "sim/workload/tensor_rule.hpp"

namespace stagecraft {

struct StageAxes {
  int degree = 1;        ///< of the tensor axis
  bool sequence = false; ///< sequence parallelism (Korthikanti et al. 2022): between products, its ranks share tokens
  TensorRule rule = TensorRule::megatron;
  Context context{};
  bool operator==(const StageAxes&) const = default;

  /// Whether no rank shares an operator with another.
  bool alone() const { return degree == 1 && context.ranks == 1; }
};

} // namespace stagecraft
