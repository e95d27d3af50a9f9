// Parts of a model whose kernels are captured as CUDA graphs, by Megatron-LM's names for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/workload/training/module_row.hpp"

namespace stagecraft {

std::vector<OperatorId> captured_attention(const ModelGraph& model);
std::vector<OperatorId> captured_mlp(const ModelGraph& model);
std::vector<OperatorId> captured_mixture(const ModelGraph& model);
std::vector<OperatorId> captured_router(const ModelGraph& model);
std::vector<OperatorId> captured_dispatch(const ModelGraph& model);
std::vector<OperatorId> captured_state_space(const ModelGraph& model);
std::vector<OperatorId> captured_layers(const ModelGraph& model);
std::vector<OperatorId> captured_iteration(const ModelGraph& model);

/// As `--cuda-graph-modules` of Megatron-LM names them (megatron/core/transformer/transformer_config.py), and the two
/// that other arguments capture.
inline constexpr std::array kCapturedModules = {
    ModuleRow{"attn", "attention, from its norm to the sum after it", captured_attention},
    ModuleRow{"mlp", "the MLP of dense layers, with its norm and the sum after it", captured_mlp},
    ModuleRow{"moe", "mixtures as a whole", captured_mixture},
    ModuleRow{"moe_router", "routers, with the norm before and the experts that every token meets", captured_router},
    ModuleRow{"moe_preprocess", "what counts the tokens of each expert before they are sorted and sent",
              captured_dispatch},
    ModuleRow{"mamba", "state space layers, from their norm to the sum after them", captured_state_space},
    ModuleRow{"layer", "whole layers", captured_layers},
    ModuleRow{"full_iteration", "all of an iteration", captured_iteration},
};

/// The model with its captured operators marked, and with those for whose counts the host waits: what sends tokens to
/// experts, unless each expert's rows are padded to its capacity or a graph goes on into the experts.
ModelGraph with_captured_graphs(ModelGraph model, const std::vector<std::string>& modules);

} // namespace stagecraft
