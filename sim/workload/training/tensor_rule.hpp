// By what rule the devices of a tensor-parallel group share operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace stagecraft {

/// docs/model.md, "Tensor parallelism"; the rules themselves are in sim/plan/program/.
enum class TensorRule { megatron, torchtitan, torchtitan_whole_loss, search };

struct TensorRuleRow {
  std::string_view name, help;
  TensorRule rule;
  bool sequence = false; ///< whether devices share tokens between products unless told otherwise
};
/// In the order of TensorRule.
inline constexpr std::array kTensorRules = {
    TensorRuleRow{"megatron", "as Megatron-LM does", TensorRule::megatron},
    TensorRuleRow{"torchtitan", "as TorchTitan does, with its parallel loss", TensorRule::torchtitan, true},
    TensorRuleRow{"torchtitan-whole-loss", "as TorchTitan does with disable_loss_parallel",
                  TensorRule::torchtitan_whole_loss, true},
    TensorRuleRow{"search", "what takes a micro-batch least time, by closed form", TensorRule::search},
};
constexpr const TensorRuleRow& row_of(TensorRule rule) { return kTensorRules[static_cast<std::size_t>(rule)]; }

} // namespace stagecraft
