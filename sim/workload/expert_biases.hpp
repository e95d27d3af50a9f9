// How biases of experts' products are added (docs/model.md, "Biases of experts").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

struct ExpertBiasRow {
  std::string_view name, help;
  /// Bytes read and written beside a product whose rows are combined next, for each value that it writes: by forward,
  /// and by the backward that makes the gradient of its input.
  double forward = 0, backward = 0;
  int forward_kernels = 0, backward_kernels = 0; ///< that move these, for each expert
};
/// `weighed`: Megatron-Core's transformer/moe/experts.py, `_apply_bias`, whose weights of rows are in fp32, and NeMo
/// Automodel's moe/experts.py. Moved by forward: product of bias and weight (4), sum (2 + 4 + 4), rows of all experts
/// put together (4 + 4), cast (4 + 2); by backward: cast (2 + 4), gradients of the bias (4 + 4, then 4 for its sum), of
/// the weight (4 + 4, then 4) and of the rows (4 + 2), these put together (2 + 2).
inline constexpr std::array kExpertBiases = {
    ExpertBiasRow{"fused", "the products add them"},
    ExpertBiasRow{
        "weighed",
        "those of products whose rows are combined next are multiplied with the weights of these and added in "
        "fp32, a kernel for each step",
        28, 40, 2, 6},
};

/// The model with biases of experts as the row says.
ModelGraph with_expert_biases(ModelGraph model, const ExpertBiasRow& row);

} // namespace stagecraft
