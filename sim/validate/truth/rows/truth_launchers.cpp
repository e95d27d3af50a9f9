// Scripts that launched whole tables of runs, and what they say of each run that the tables do not.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/validate/truth/rows/truth_study.hpp"

namespace stagecraft {
namespace {

struct Flag {
  std::string_view column, text;
};

struct Launcher {
  bool (*launched)(const TruthRow& row);
  std::array<Flag, 4> flags; ///< up to the first without a column
};

// NVIDIA's adapters in MLPerf 5.0 and 5.1, and on B200 in 4.1. Before, and for pre-training, nothing is said; AMD has
// an implementation of its own.
bool is_adapters_by_nvidia(const TruthRow& row) {
  const bool since = row.mentions("MLPerf Training v5") || row.mentions("b200_preview");
  return since && trains_adapters(row) && !plain_words(row.gpu).starts_with("mi3");
}

// Oracle's with eight contexts, in MLPerf 5.0.
bool is_adapters_by_oracle(const TruthRow& row) {
  return is_adapters_by_nvidia(row) && row.mentions("(Oracle/results") && row.mentions("tp1pp1cp8");
}

bool is_pipeline_by_neusight(const TruthRow& row) {
  return row.mentions("NeuSight") && row.mentions("-pp") && row.mentions("_1.json");
}

constexpr std::array kLaunchers = {
    // MooreThreads/SimuMax v1.2 (Apache-2.0), simu_tools/megatron_scripts/scripts/run_pretrain_llama3.sh and its like
    // for DeepSeek: `--recompute-num-layers 0`, `CP_COMM_TYPE` a2a, and no overlap of any kind, as docs/b200 says.
    Launcher{[](const TruthRow& row) { return row.mentions("SimuMax"); },
             {Flag{"recompute", "none"}, Flag{"overlap_grad_reduce", "false"}, Flag{"overlap_param_gather", "false"},
              Flag{"cp_comm_type", "a2a"}}},
    // sitar-lab/NeuSight (MIT), scripts/asplos/collect_label_distributed.py: results of pipelines are called
    // `pp{degree}_{micro-batches}`, and all are of one.
    Launcher{is_pipeline_by_neusight, {Flag{"micro_batches", "1"}}},
    // mlcommons/training_results_v5.0 (Apache-2.0), Oracle/benchmarks/llama2_70b_lora/implementations/8xBM.GPU.B200.8/
    // config_DGXB200_8x8x1xtp1pp1cp8.sh: `MCORE_CUDA_GRAPH=1`; the rest as below.
    Launcher{is_adapters_by_oracle, {Flag{"cp_comm_type", "a2a"}, Flag{"cuda_graphs", "mcore: per layer"}}},
    // mlcommons/training_results_v5.1 (Apache-2.0), NVIDIA/benchmarks/llama2_70b_lora/implementations/nemo/conf/
    // megatron_gpt_peft_tuning_config.yaml: `cp_comm_type: ${oc.decode:${oc.env:CP_COMM_TYPE,'a2a'}}`, which no
    // configuration of it changes.
    Launcher{is_adapters_by_nvidia, {Flag{"cp_comm_type", "a2a"}}},
};

} // namespace

std::map<std::string, std::string> launcher_flags(const TruthRow& row) {
  std::map<std::string, std::string> flags;
  const auto launcher =
      std::find_if(kLaunchers.begin(), kLaunchers.end(), [&](const Launcher& one) { return one.launched(row); });
  if (launcher != kLaunchers.end()) {
    for (const Flag& flag : launcher->flags) {
      if (!flag.column.empty()) {
        flags.emplace(flag.column, flag.text);
      }
    }
  }
  return flags;
}

} // namespace stagecraft
