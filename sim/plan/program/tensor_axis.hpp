// How the devices of a tensor-parallel group share operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/tensor_rule.hpp"

namespace stagecraft {

struct TensorAxis {
  int degree = 1;
  bool sequence = false; ///< sequence parallelism (Korthikanti et al. 2022): between products, devices share tokens
  TensorRule rule = TensorRule::megatron;
  bool operator==(const TensorAxis&) const = default;
};

} // namespace stagecraft
