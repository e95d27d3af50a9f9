// A plan that is written as a framework's configuration, and what writers ask of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "sim/workload/expert_capacity.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// A plan that all stages and replicas share alike, as configurations can say it.
struct ConfigToWrite {
  const ModelGraph& model;
  const Training& training;
  Mesh mesh;
  PipelineLayout layers; ///< of each stage; stage i is on rank i mod mesh.pipeline
  int micro_batches = 1;
  Recompute recompute = Recompute::none; ///< selective: as the training says
  std::string schedule{};                ///< "": not known
};
/// The text of the file, or why it cannot say the plan.
using WrittenConfig = std::variant<std::string, Infeasible>;

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
