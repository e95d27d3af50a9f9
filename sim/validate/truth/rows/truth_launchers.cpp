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

constexpr std::array kLaunchers = {
    // MooreThreads/SimuMax v1.2 (Apache-2.0), simu_tools/megatron_scripts/scripts/run_pretrain_llama3.sh and its like
    // for DeepSeek: `--recompute-num-layers 0`, `CP_COMM_TYPE` a2a, and no overlap of any kind, as docs/b200 says.
    Launcher{[](const TruthRow& row) { return row.mentions("SimuMax"); },
             {Flag{"recompute", "none"}, Flag{"overlap_grad_reduce", "false"}, Flag{"overlap_param_gather", "false"},
              Flag{"cp_comm_type", "a2a"}}},
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
