// What writers of configurations ask of a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/workload/config/config_format.hpp"

namespace stagecraft {

/// Samples of a micro-batch of each replica.
int samples_at_a_time(const ConfigToWrite& what);
/// Stages of each rank of the pipeline.
int chunks(const ConfigToWrite& what);
/// Whether each stage has as many layers, and none predicts further tokens.
bool has_equal_stages(const ConfigToWrite& what);
/// Layers of the first stage.
int layers_of_stage(const ConfigToWrite& what);
/// Ranks of data and context that share states, gradients or weights among themselves.
int sharing(const ConfigToWrite& what);
/// "'zero' 2".
std::string zero_text(const ConfigToWrite& what);
/// The recipe of products in 8 or 4 bits, else the precision of all: "mxfp8", "bf16".
std::string precision_text(const Training& training);
/// How many rows an expert of the model's mixtures takes at most; nothing where they take all.
std::optional<ExpertCapacity> expert_capacity(const ModelGraph& model);
/// Whether weights or gradients are made smaller, or held twice, as ZeRO++ does.
bool has_zero_plus_plus(const Training& training);
/// Why a framework that shares operators as Megatron-LM does cannot have the plan: "a tensor group by the rule …"; "".
std::string refusal_of_rule(const ConfigToWrite& what);

} // namespace stagecraft
