// Parts of a transformer's blocks that may run again, by Megatron-LM's names for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "sim/workload/training/module_row.hpp"

namespace stagecraft {

std::vector<OperatorId> core_attention(const ModelGraph& model);
std::vector<OperatorId> layer_norms(const ModelGraph& model);
std::vector<OperatorId> latent_up_projections(const ModelGraph& model);
std::vector<OperatorId> expert_activations(const ModelGraph& model);
std::vector<OperatorId> dense_mlps(const ModelGraph& model);
std::vector<OperatorId> shared_experts(const ModelGraph& model);
std::vector<OperatorId> mixtures(const ModelGraph& model);

/// As `--recompute-modules` of Megatron-LM names them (megatron/core/transformer/transformer_config.py); their
/// operators are those in the model's numbered blocks.
inline constexpr std::array kRecomputeModules = {
    ModuleRow{"core_attn", "attention between its products", core_attention},
    ModuleRow{"layernorm", "norms before attention and before the MLP", layer_norms},
    ModuleRow{"mla_up_proj", "norms and products that widen latent queries, keys and values", latent_up_projections},
    ModuleRow{"moe_act", "activations between the products of experts", expert_activations},
    ModuleRow{"mlp", "the MLP of dense layers", dense_mlps},
    ModuleRow{"shared_experts", "the experts that every token meets", shared_experts},
    ModuleRow{"moe", "router, dispatch, experts, shared ones too, and what adds them up", mixtures},
};

} // namespace stagecraft
