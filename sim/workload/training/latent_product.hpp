// What a host launches for the product that widens keys and values of a latent attention.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Of HostLaunches::types, no type of an operator: the last product before a latent attention, which widens keys and
/// values, with what turns and joins them behind it. That runs again where the product does.
inline constexpr std::string_view kLatentProduct = "latent_product";

/// The same where one kernel turns and joins queries, and one keys, in each pass (Megatron-Core's
/// fused_apply_mla_rope_for_q and …_kv): 7.4 launches each beside the product's 14 and 28, as of a mixture's kernels
/// (docs/validation/constants.md, "Launches of Megatron Core").
inline constexpr HostKernels kFusedLatentProduct{.forward = 29, .backward = 43};

} // namespace stagecraft
