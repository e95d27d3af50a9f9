// How the ranks of a stage share operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "sim/workload/training/context.hpp"
#include "sim/workload/training/experts.hpp"
#include "sim/workload/training/tensor_rule.hpp"

namespace stagecraft {

struct StageAxes {
  int degree = 1;        ///< of the tensor axis
  bool sequence = false; ///< sequence parallelism (Korthikanti et al. 2022): between products, its ranks share tokens
  TensorRule rule = TensorRule::megatron;
  Context context{};
  Experts experts{};
  bool gathers_tokens = false; ///< ranks that share experts, or parts of them, gather tokens and make rows of these
  bool operator==(const StageAxes&) const = default;

  /// Ranks of a tensor group have parts of every expert.
  bool shares_each_expert() const { return experts.ranks == 1 || experts.tensor > 1; }
  /// Whether no rank shares an operator with another.
  bool alone() const { return degree == 1 && context.ranks == 1 && experts.ranks == 1; }
  /// Replicas, context ranks counted as such, whose ranks share experts.
  int expert_replicas() const { return std::max(1, experts.ranks * experts.tensor / degree); }
};

} // namespace stagecraft
