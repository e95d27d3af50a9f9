// Scripts that launched whole tables of runs, and what they say of each run that the tables do not.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/utf8.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"

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

// Section 6 of the paper: three stages of each rank for the models of 175 and 530 billion parameters. Its figure 1 says
// nothing of it.
bool is_interleaved_by_korthikanti(const TruthRow& row) {
  return row.mentions("Korthikanti") && row.mentions("Figure 1 ") &&
         (row.model.find("175B") != std::string::npos || row.model.find("530B") != std::string::npos);
}

bool is_by_automodel(const TruthRow& row) { return row.mentions("NVIDIA-NeMo/Automodel"); }

bool is_adapters_by_automodel(const TruthRow& row) { return is_by_automodel(row) && trains_adapters(row); }

// Of Llama with tensor groups; a pipeline's ranks do not share tokens.
bool is_adapters_of_llama_by_automodel(const TruthRow& row) {
  return is_adapters_by_automodel(row) && row.degrees.tensor > 1 && row.degrees.pipeline <= 1 &&
         lower_case(row.model).find("llama") != std::string::npos;
}

bool is_gpt_oss_120b_by_automodel(const TruthRow& row) {
  return is_by_automodel(row) && lower_case(row.model).find("gpt-oss 120b") != std::string::npos;
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
    Launcher{is_interleaved_by_korthikanti, {Flag{"vp", "3"}}},
    // NVIDIA-NeMo/Automodel (Apache-2.0), configurations that docs/performance-summary names, each as it was when its
    // figure was published. Adapters (507bfb751, 2013a4dd6; examples/llm_finetune): on one rank
    // llama3_1_8b_peft_benchmark.yaml and its like leave `activation_checkpointing` out, which is false; all others set
    // it; custom_llama3_3_70b_instruct_peft_benchmark.yaml sets `sequence_parallel` and `enable_async_tensor_parallel`,
    // custom_qwen2_5_32b_peft_benchmark.yaml neither.
    Launcher{is_adapters_of_llama_by_automodel,
             {Flag{"recompute", "full"}, Flag{"sequence_parallel", "true"}, Flag{"tp_comm_overlap", "true"}}},
    Launcher{[](const TruthRow& row) {
               return is_adapters_by_automodel(row) && row.degrees.tensor <= 1 && row.degrees.pipeline <= 1;
             },
             {Flag{"recompute", "none"}}},
    Launcher{is_adapters_by_automodel, {Flag{"recompute", "full"}, Flag{"sequence_parallel", "false"}}},
    // Pre-training (89e3a9fdd, examples/benchmark/configs, and later ones of that folder; 2013a4dd6, llm_pretrain): all
    // set it but gptoss_120b_te_deepep.yaml, whose ranks share experts by 16. Tokens take experts in turn
    // (`fake_balanced_gate`, FakeBalancedGate of components/moe/layers.py).
    Launcher{is_gpt_oss_120b_by_automodel,
             {Flag{"recompute", "none"}, Flag{"expert_choice", "round-robin"}, Flag{"expert_parallel", "16"}}},
    Launcher{is_by_automodel, {Flag{"recompute", "full"}, Flag{"expert_choice", "round-robin"}}},
    // mlcommons/training_results_v5.0 (Apache-2.0), Oracle/benchmarks/llama2_70b_lora/implementations/8xBM.GPU.B200.8/
    // config_DGXB200_8x8x1xtp1pp1cp8.sh: `MCORE_CUDA_GRAPH=1`; the rest as below.
    Launcher{is_adapters_by_oracle, {Flag{"cp_comm_type", "a2a"}, Flag{"cuda_graphs", "mcore: per layer"}}},
    // mlcommons/training_results_v5.1 (Apache-2.0), NVIDIA/benchmarks/llama2_70b_lora/implementations/nemo/conf/
    // megatron_gpt_peft_tuning_config.yaml: `cp_comm_type: ${oc.decode:${oc.env:CP_COMM_TYPE,'a2a'}}`, which no
    // configuration of it changes.
    Launcher{is_adapters_by_nvidia, {Flag{"cp_comm_type", "a2a"}}},
};

// The runs of Narayanan et al. 2021, table 1: NVIDIA/Megatron-LM, examples/academic_paper_scripts/sc21/run_table_1.sh.
struct RunOfTable {
  int layers, hidden;
  std::string_view micro_batch, interleave;
};
constexpr std::array kNarayanan = {
    RunOfTable{24, 2304, "16", "1"},  RunOfTable{30, 3072, "16", "1"}, RunOfTable{36, 4096, "16", "1"},
    RunOfTable{40, 6144, "8", "1"},   RunOfTable{48, 8192, "4", "1"},  RunOfTable{60, 10240, "2", "3"},
    RunOfTable{80, 12288, "2", "2"},  RunOfTable{96, 16384, "1", "2"}, RunOfTable{105, 20480, "1", "3"},
    RunOfTable{128, 25600, "1", "1"},
};

void add_narayanan(const TruthRow& row, std::map<std::string, std::string>& flags) {
  const auto run = std::find_if(kNarayanan.begin(), kNarayanan.end(), [&](const RunOfTable& one) {
    return one.layers == row.sizes.layers && one.hidden == row.sizes.hidden;
  });
  if (run != kNarayanan.end() && row.mentions("Narayanan et al. 2021") && row.mentions("Table 1")) {
    flags.emplace("micro_batch_size", run->micro_batch);
    flags.emplace("vp", run->interleave);
  }
}

} // namespace

std::map<std::string, std::string> launcher_flags(const TruthRow& row) {
  std::map<std::string, std::string> flags;
  add_narayanan(row, flags);
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
