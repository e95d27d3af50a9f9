// Parts of a transformer's blocks that may run again, by Megatron-LM's names for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// A module as `--recompute-modules` of Megatron-LM names it (megatron/core/transformer/transformer_config.py).
struct RecomputeModuleRow {
  std::string_view name, help;
  /// Its operators in the model's numbered blocks, ascending; none where the model has no such module.
  std::vector<OperatorId> (*operators)(const ModelGraph& model);
};

std::vector<OperatorId> core_attention(const ModelGraph& model);
std::vector<OperatorId> layer_norms(const ModelGraph& model);
std::vector<OperatorId> latent_up_projections(const ModelGraph& model);
std::vector<OperatorId> expert_activations(const ModelGraph& model);
std::vector<OperatorId> dense_mlps(const ModelGraph& model);
std::vector<OperatorId> shared_experts(const ModelGraph& model);
std::vector<OperatorId> mixtures(const ModelGraph& model);

inline constexpr std::array kRecomputeModules = {
    RecomputeModuleRow{"core_attn", "attention between its products", core_attention},
    RecomputeModuleRow{"layernorm", "norms before attention and before the MLP", layer_norms},
    RecomputeModuleRow{"mla_up_proj", "norms and products that widen latent queries, keys and values",
                       latent_up_projections},
    RecomputeModuleRow{"moe_act", "activations between the products of experts", expert_activations},
    RecomputeModuleRow{"mlp", "the MLP of dense layers", dense_mlps},
    RecomputeModuleRow{"shared_experts", "the experts that every token meets", shared_experts},
    RecomputeModuleRow{"moe", "router, dispatch, experts, shared ones too, and what adds them up", mixtures},
};

} // namespace stagecraft
