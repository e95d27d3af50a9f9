// Our plans as MLPerf's config_*.sh: Megatron-LM's arguments as variables of NVIDIA's launchers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <sstream>
#include <tuple>

#include "sim/workload/config/common/plan_in_config.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"
#include "sim/workload/config/megatron/mlperf_variables.hpp"

namespace stagecraft {
namespace {

std::string refusal_of_mlperf(const ConfigToWrite& what) {
  const Training& training = what.training;
  if (training.precision != Precision::bf16 || (training.fp8->products && !training.fp8->gathers)) {
    return "precision " + precision_text(training) +
           ", and config_*.sh have bf16, with products in 8 or 4 bits by Transformer Engine's recipes";
  }
  if (training.optimizer->name != "adam") {
    return "optimizer " + std::string(training.optimizer->name) + ", and config_*.sh train with Adam";
  }
  if (what.mesh.context.rule == ContextRule::both) {
    return "context ranks that exchange tokens for heads and pass keys and values on, and config_*.sh have no variable "
           "for how many do which";
  }
  return refusal_of_rule(what);
}

// Whether all stages have as many letters of these kinds.
bool have_as_many(const PipelineLayout& layers, std::string_view kinds) {
  const auto count = [&](const std::string& stage) {
    return std::count_if(stage.begin(), stage.end(), [&](char c) { return kinds.find(c) != std::string_view::npos; });
  };
  return layers.count('m') == 0 && std::all_of(layers.stages.begin(), layers.stages.end(), [&](const auto& stage) {
           return count(stage) == count(layers.stages.front());
         });
}

class MlPerfLines {
public:
  void add(std::string_view name, const std::string& value) {
    const bool quoted = value.find_first_of(" ,|*\"()") != std::string::npos;
    text_ += "export " + std::string(name) + "=" + (quoted ? "\"" + value + "\"" : value) + "\n";
  }
  void add(std::string_view name, int value) { add(name, std::to_string(value)); }

  // Embedding and loss count as layers, or the layout stands as it is.
  void add_layers(const ConfigToWrite& what) {
    if (chunks(what) > 1) {
      add("INTERLEAVED_PIPELINE", chunks(what));
    }
    for (const auto& [kinds, embedding, loss] :
         {std::tuple{"t", false, false}, {"tEL", true, true}, {"tE", true, false}, {"tL", false, true}}) {
      if (have_as_many(what.layers, kinds)) {
        if (embedding) {
          add("ASYM_PP_EMBED", "True");
        }
        if (loss) {
          add("ASYM_PP_LOSS", "True");
        }
        return;
      }
    }
    add("PIPELINE_LAYOUT", to_text(what.layers));
  }

  // "--recompute-modules core_attn mlp", a flag alone, or a comment, which stays one.
  void add_argument(const std::string& line) {
    if (line.empty() || line.front() == '#') {
      text_ += line.empty() ? "" : line + "\n";
      return;
    }
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string flag = line.substr(2, blank - 2);
    std::string value = line.substr(std::min(blank + 1, line.size()));
    if (flag == "bf16" || flag == "grad-reduce-in-bf16" || flag == "optimizer" ||
        (flag == "recompute-granularity" && value == "selective")) {
      return; // as they are in any case, or as RECOMPUTE_MODULES says
    }
    if (flag == "recompute-modules" || flag == "cuda-graph-modules") {
      std::replace(value.begin(), value.end(), ' ', ',');
    }
    const std::string_view name = variable_of(flag);
    if (name.empty()) {
      text_ += "# config_*.sh have no variable for " + line + "\n";
    } else if (name == "OVERLAP_P2P_COMM") {
      add(name, "False");
    } else {
      add(name, value.empty() || name == "FP8" || name == "FP4" ? "True" : value);
    }
  }

  // What is on by default.
  void turn_off_the_rest() {
    for (const char* name : {"SEQ_PARALLEL", "USE_DIST_OPTIMIZER", "OVERLAP_GRAD_REDUCE", "OVERLAP_PARAM_GATHER"}) {
      if (text_.find(std::string("export ") + name + "=") == std::string::npos) {
        add(name, "False");
      }
    }
  }

  std::string take() { return std::move(text_); }

private:
  static std::string_view variable_of(std::string_view flag) {
    static constexpr std::array kSwitches = {
        MlPerfVariable{"FP8", "fp8-format"},
        MlPerfVariable{"FP4", "fp4-format"},
        MlPerfVariable{"RECOMPUTE_MODULES", "recompute-modules"},
        MlPerfVariable{"CUDA_GRAPH_SCOPE", "cuda-graph-modules"},
        MlPerfVariable{"OVERLAP_P2P_COMM", "no-overlap-p2p-communication"},
    };
    for (const std::span<const MlPerfVariable> rows :
         {std::span<const MlPerfVariable>(kSwitches), {kMlPerfVariables}}) {
      for (const MlPerfVariable& row : rows) {
        if (row.flag == flag) {
          return row.name;
        }
      }
    }
    return "";
  }

  std::string text_;
};

} // namespace

WrittenConfig write_mlperf(const ConfigToWrite& what) {
  if (std::string why = refusal_of_mlperf(what); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  const Mesh& mesh = what.mesh;
  const int devices = mesh.devices_before(mesh.pipeline) * mesh.data;
  constexpr int kOfNode = 8;
  const int of_node = std::gcd(devices, kOfNode);
  MlPerfLines lines;
  lines.add("DGXNNODES", devices / of_node);
  lines.add("DGXNGPU", of_node);
  lines.add("MINIBS", what.training.global_batch / mesh.data);
  lines.add("MICRO_BATCH_SIZE", samples_at_a_time(what));
  lines.add("TENSOR_MODEL_PARALLEL", mesh.tensor);
  lines.add("PIPELINE_MODEL_PARALLEL", mesh.pipeline);
  lines.add_layers(what);
  lines.add("CONTEXT_PARALLEL", mesh.context.ranks);
  if (mesh.context.ranks > 1) {
    const ContextRule rule = mesh.context.rule;
    lines.add("CP_COMM_TYPE", rule == ContextRule::ring         ? "p2p"
                              : rule == ContextRule::all_gather ? "all_gather"
                                                                : "a2a");
  }
  if (mesh.experts.ranks > 1) {
    lines.add("EXPERT_PARALLEL", mesh.experts.ranks);
    lines.add("EXPERT_TENSOR_PARALLEL", mesh.experts.tensor);
  }
  if (mesh.sequence) {
    lines.add("SEQ_PARALLEL", "True");
  }
  std::istringstream arguments(write_megatron_training(what));
  for (std::string line; std::getline(arguments, line);) {
    lines.add_argument(line);
  }
  lines.turn_off_the_rest();
  return lines.take();
}

} // namespace stagecraft
