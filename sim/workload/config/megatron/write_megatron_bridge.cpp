// A training as sections of Megatron-Bridge's ConfigContainer: Megatron-LM's arguments with underscores, each where
// Megatron-Bridge has it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <sstream>

#include "sim/base/named_table.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"

namespace stagecraft {
namespace {

struct BridgeField {
  std::string_view argument, section, name, value = {}; ///< value: what a flag without a value becomes
};
// Arguments that are not fields of `model` by the same name.
constexpr std::array kBridgeFields = {
    BridgeField{"use-tp-pp-dp-mapping", "dist", "use_tp_pp_dp_mapping"},
    BridgeField{"bf16", "mixed_precision", "bf16"},
    BridgeField{"fp16", "mixed_precision", "fp16"},
    BridgeField{"grad-reduce-in-bf16", "mixed_precision", "grad_reduce_in_fp32", "false"},
    BridgeField{"accumulate-allreduce-grads-in-fp32", "mixed_precision", "grad_reduce_in_fp32"},
    BridgeField{"fp8-format", "mixed_precision", "fp8"},
    BridgeField{"fp8-recipe", "mixed_precision", "fp8_recipe"},
    BridgeField{"fp8-param-gather", "mixed_precision", "fp8_param_gather"},
    BridgeField{"fp4-format", "mixed_precision", "fp4"},
    BridgeField{"fp4-recipe", "mixed_precision", "fp4_recipe"},
    BridgeField{"use-distributed-optimizer", "ddp", "use_distributed_optimizer"},
    BridgeField{"use-megatron-fsdp", "ddp", "use_megatron_fsdp"},
    BridgeField{"data-parallel-sharding-strategy", "ddp", "data_parallel_sharding_strategy"},
    BridgeField{"overlap-grad-reduce", "ddp", "overlap_grad_reduce"},
    BridgeField{"overlap-param-gather", "ddp", "overlap_param_gather"},
    BridgeField{"num-distributed-optimizer-instances", "ddp", "num_distributed_optimizer_instances"},
    BridgeField{"ddp-bucket-size", "ddp", "bucket_size"},
    BridgeField{"optimizer", "optimizer", "optimizer"},
    BridgeField{"sgd-momentum", "optimizer", "sgd_momentum"},
    BridgeField{"clip-grad", "optimizer", "clip_grad"},
    BridgeField{"optimizer-cpu-offload", "optimizer", "optimizer_cpu_offload"},
    BridgeField{"optimizer-offload-fraction", "optimizer", "optimizer_offload_fraction"},
    BridgeField{"tp-comm-overlap", "comm_overlap", "tp_comm_overlap"},
    BridgeField{"defer-embedding-wgrad-compute", "comm_overlap", "defer_embedding_wgrad_compute"},
    BridgeField{"overlap-moe-expert-parallel-comm", "comm_overlap", "overlap_moe_expert_parallel_comm"},
    BridgeField{"delay-wgrad-compute", "comm_overlap", "delay_wgrad_compute"},
};

class BridgeSections {
public:
  void add(std::string_view section, const std::string& name, const std::string& value) {
    sections_[std::string(section)] += "  " + name + ": " + value + "\n";
  }
  void add(std::string_view section, const std::string& name, int value) { add(section, name, std::to_string(value)); }

  // "--recompute-modules core_attn mlp", a flag alone, or a comment, which stays one.
  void add_argument(const std::string& line) {
    if (line.empty() || line.front() == '#') {
      comments_ += line.empty() ? "" : line + "\n";
      return;
    }
    const std::size_t blank = std::min(line.find(' '), line.size());
    std::string argument = line.substr(2, blank - 2), value = line.substr(std::min(blank + 1, line.size()));
    if (argument == "no-overlap-p2p-communication") {
      comments_ += "# Megatron-Bridge's overlap_p2p_comm is not read back\n";
      return;
    }
    if (argument == "recompute-modules" || argument == "cuda-graph-modules") {
      std::replace(value.begin(), value.end(), ' ', ',');
      value = "[" + value + "]";
    }
    const auto row = std::find_if(kBridgeFields.begin(), kBridgeFields.end(),
                                  [&](const BridgeField& one) { return one.argument == argument; });
    if (row != kBridgeFields.end()) {
      add(row->section, std::string(row->name),
          !value.empty()       ? value
          : row->value.empty() ? "true"
                               : std::string(row->value));
      return;
    }
    std::replace(argument.begin(), argument.end(), '-', '_');
    add("model", argument, value.empty() ? "true" : value);
  }

  std::string text() const {
    std::string text = comments_;
    for (const auto& [section, fields] : sections_) {
      text += section + ":\n" + fields;
    }
    return text;
  }

private:
  std::map<std::string, std::string> sections_;
  std::string comments_;
};

void add_context(const Context& context, BridgeSections& sections) {
  if (context.ranks == 1) {
    return;
  }
  const ContextRule rule = context.rule;
  sections.add("model", "context_parallel_size", context.ranks);
  sections.add("model", "cp_comm_type",
               rule == ContextRule::ring         ? "p2p"
               : rule == ContextRule::all_gather ? "all_gather"
               : rule == ContextRule::all_to_all ? "a2a"
                                                 : "a2a+p2p");
  if (rule == ContextRule::both) {
    sections.add("model", "hierarchical_context_parallel_sizes",
                 "[" + std::to_string(context.heads) + ", " + std::to_string(context.ranks / context.heads) + "]");
  }
}

} // namespace

WrittenConfig write_megatron_bridge(const ConfigToWrite& what) {
  const Mesh& mesh = what.mesh;
  if (mesh.tensor > 1 && mesh.tensor_rule != TensorRule::megatron) {
    return Infeasible{"a tensor group by the rule '" + std::string(row_of(mesh.tensor_rule).name) + "'"};
  }
  BridgeSections sections;
  sections.add("model", "tensor_model_parallel_size", mesh.tensor);
  sections.add("model", "pipeline_model_parallel_size", mesh.pipeline);
  if (mesh.pipeline > 1) {
    sections.add("model", "pipeline_model_parallel_layout", "\"" + to_text(what.layers) + "\"");
  }
  add_context(mesh.context, sections);
  if (mesh.experts.ranks > 1) {
    sections.add("model", "expert_model_parallel_size", mesh.experts.ranks);
    sections.add("model", "expert_tensor_parallel_size", mesh.experts.tensor);
  }
  if (mesh.sequence) {
    sections.add("model", "sequence_parallel", "true");
  }
  sections.add("train", "micro_batch_size", samples_at_a_time(what));
  sections.add("train", "global_batch_size", what.training.global_batch);
  if (what.training.precision == Precision::fp32) {
    sections.add("mixed_precision", "bf16", "false"); // which its recipes set
  }
  std::istringstream arguments(write_megatron_training(what));
  for (std::string line; std::getline(arguments, line);) {
    sections.add_argument(line);
  }
  return sections.text();
}

} // namespace stagecraft
