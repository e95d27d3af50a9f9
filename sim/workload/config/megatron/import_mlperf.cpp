// MLPerf training's config_*.sh, as NVIDIA's and others' submissions of language models have them: variables for a
// launcher, of Megatron-LM's arguments. The global batch is MINIBS samples of each replica.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "sim/base/count_of.hpp"
#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"
#include "sim/workload/config/megatron/mlperf_variables.hpp"
#include "sim/workload/config/megatron/shell_variables.hpp"

namespace stagecraft {
namespace {

// Variables that an iteration does not depend on: how long a job may take, what it logs, validates and learns.
constexpr std::array<std::string_view, 45> kWithoutEffect = {
    "DGXSYSTEM",
    "DGXSOCKETCORES",
    "DGXNSOCKET",
    "DGXHT",
    "MAX_STEPS",
    "SEED",
    "SEGMENT",
    "NEXP",
    "MODEL_SIZE",
    "CONT",
    "HANG_MONITOR_TIMEOUT",
    "MLPERF_RULESET",
    "MLPERF_SUBMITTER",
    "BINDCMD",
    "LIMIT_VAL_BATCHES",
    "WARMUP_STEPS",
    "TARGET_LOG_PPL",
    "MOE_AUX_LOSS_COEFF",
    "OVERWRITTEN_NUM_LAYERS",
    "LOAD_CHECKPOINT",
    "CHECKPOINT_NAME",
    "USE_DIST_CKPT",
    "SPM",
    "NPY_INDEX_DIR",
    "PREPROC_DATA",
    "DATADIR",
    "LOGDIR",
    "SKIP_EVALS",
    "FP8_HYBRID",
    "FP8_AMAX_HISTORY",
    "FP8_AMAX_ALGO",
    "CUDA_GRAPH_WARMUP_STEPS",
    "GPU_ARCH",
    "MODEL_TFLOP_PER_SAMPLE",
    "TOKENIZERS_PARALLELISM",
    "HYDRA_FULL_ERROR",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_HOME",
    "PYTHONWARNINGS",
    "OPT_LR_DECAY_STEPS",
    "MIN_LR",
    "LEGACY_DATASET",
    "TQDM_DISABLE",
    "DATASET",
};
constexpr std::array<std::string_view, 12> kPrefixesWithoutEffect = {"WALLTIME",   "VAL_",    "LR",      "LOG_",
                                                                     "MLPERF_",    "SLURM_",  "SBATCH_", "EVAL_",
                                                                     "WARMUP_VAL", "TARGET_", "PROFILE", "TORCH_NCCL_"};

// Beside those that are arguments of Megatron-LM by another name.
constexpr std::array<std::string_view, 15> kOtherVariables = {
    "FP8",
    "FP4",
    "MCORE_CUDA_GRAPH",
    "LAYER_CUDA_GRAPH",
    "FULL_CUDA_GRAPH",
    "CUDA_GRAPH_SCOPE",
    "RECOMPUTE_MODULES",
    "GRAD_ACCUM_FUSION",
    "OVERLAP_P2P_COMM",
    "MOE_EP_A2A_OVERLAP",
    "MINIBS",
    "DGXNNODES",
    "DGXNGPU",
    "NNODES",
    "GPUS_PER_NODE",
};
// On unless a file turns them off, as conf/*.yaml of those that call degrees TENSOR_MODEL_PARALLEL have them.
constexpr std::array<std::string_view, 4> kOnByDefault = {"USE_DIST_OPTIMIZER", "OVERLAP_GRAD_REDUCE",
                                                          "OVERLAP_PARAM_GATHER", "SEQ_PARALLEL"};

// Whether a variable says how a job runs, and nothing of an iteration.
bool is_of_job(const std::string& name) {
  return std::find(kWithoutEffect.begin(), kWithoutEffect.end(), name) != kWithoutEffect.end() ||
         std::any_of(kPrefixesWithoutEffect.begin(), kPrefixesWithoutEffect.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

class MlPerf {
public:
  MlPerf(const ConfigSource& source, const ConfigContext& context)
      : set_(read_shell_variables(source.text, source.file)), whole_{source.file, 1, 1}, context_(context) {
    read_again_in_job(source);
  }

  ImportedTraining read() {
    refuse_misspelt();
    for (const MlPerfVariable& row : kMlPerfVariables) {
      take(row);
    }
    if (!has_setting("micro-batch-size")) {
      add("micro-batch-size", "1", whole_, "MICRO_BATCH_SIZE");
    }
    take_defaults();
    if (has_setting("expert-model-parallel-size") && !has_setting("expert-tensor-parallel-size")) {
      add("expert-tensor-parallel-size", "1", whole_, "EXPERT_TENSOR_PARALLEL"); // not as Megatron-LM has it
    }
    read_precision();
    read_recompute();
    read_captured_graphs();
    read_overlap();
    read_batch();
    refuse_unknown_degrees();
    std::vector<std::string> unheeded;
    std::copy_if(set_.not_understood.begin(), set_.not_understood.end(), std::back_inserter(unheeded),
                 [](const std::string& line) { return !is_of_job(line.substr(0, line.find(' '))); });
    list_others(unheeded);
    ImportedTraining read =
        megatron_training(MegatronArguments(settings_, world(), whole_), std::move(unheeded), context_);
    read.framework = "megatron-bridge"; // by which NVIDIA's train
    return read;
  }

private:
  // Slurm, which starts a process for each rank, says in variables of its own how many there are.
  void read_again_in_job(const ConfigSource& source) {
    const int ranks = world() > 0 ? world() : context_.devices;
    std::map<std::string, std::string> job = {{"SLURM_NTASKS", std::to_string(ranks)},
                                              {"SLURM_NPROCS", std::to_string(ranks)}};
    if (has("DGXNNODES")) {
      job["SLURM_NNODES"] = job["SLURM_JOB_NUM_NODES"] = value("DGXNNODES");
    }
    set_ = read_shell_variables(source.text, source.file, job);
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) {
      if (world() == 0 && !set_.values.contains(name) && source.text.find(name) != std::string::npos) {
        set_.not_understood.push_back("'" + std::string(name) + "' is not set (here it is the platform's " +
                                      count_of(ranks, "device") + ")");
      }
    }
  }

  bool has(std::string_view name) const {
    const auto found = set_.values.find(std::string(name));
    return found != set_.values.end() && !found->second.text.empty();
  }
  const std::string& value(std::string_view name) const { return set_.values.at(std::string(name)).text; }
  Where where(std::string_view name) const { return has(name) ? set_.values.at(std::string(name)).where : whole_; }
  int integer(std::string_view name, int low, int high, int otherwise) const {
    return has(name) ? parse_integer(value(name), low, high, where(name)) : otherwise;
  }
  static bool is_off_word(const std::string& text) {
    const std::string lower = lower_case(text);
    return lower == "false" || lower == "0" || lower == "none" || lower == "null" || lower == "off";
  }
  bool is_on(std::string_view name) const {
    if (!has(name) || is_off_word(value(name))) {
      return false;
    }
    const std::string lower = lower_case(value(name));
    if (lower != "true" && lower != "1" && lower != "on") {
      throw InputError(where(name),
                       "'" + std::string(name) + "' is '" + excerpt(value(name)) + "'; allowed: True, False, 1, 0");
    }
    return true;
  }

  // What pretraining does where its file is silent. Those of adapters call degrees TP, PP and CP.
  void take_defaults() {
    if (!has("TENSOR_MODEL_PARALLEL") && !has("PIPELINE_MODEL_PARALLEL") && !has("CONTEXT_PARALLEL")) {
      return;
    }
    for (const std::string_view name : kOnByDefault) {
      const std::string_view flag = find_by_name(kMlPerfVariables, name, "variable", whole_).flag;
      if (!has(name) && !has_setting(flag)) {
        add(flag, "", whole_, name);
      }
    }
  }

  // Gradients are added up in 16 bits (grad_reduce_in_fp32=False in pretrain.py, grad_sync_dtype bf16 before).
  void read_precision() {
    add("bf16", "", whole_, "bf16");
    add("grad-reduce-in-bf16", "", whole_, "bf16");
    if (is_on("FP4")) {
      add("fp4-format", "e2m1", where("FP4"), "FP4");
    }
    if (is_on("FP8")) {
      add("fp8-format", "hybrid", where("FP8"), "FP8");
    }
  }

  void read_recompute() {
    if (!has("RECOMPUTE_MODULES") || is_off_word(value("RECOMPUTE_MODULES"))) {
      return;
    }
    if (!has_setting("recompute-granularity")) {
      add("recompute-granularity", "selective", where("RECOMPUTE_MODULES"), "RECOMPUTE_MODULES");
    }
    add("recompute-modules", words_of("RECOMPUTE_MODULES"), where("RECOMPUTE_MODULES"), "RECOMPUTE_MODULES");
  }

  void read_captured_graphs() {
    if (is_on("FULL_CUDA_GRAPH") && !has_setting("cuda-graph-impl")) {
      add("cuda-graph-impl", "full_iteration", where("FULL_CUDA_GRAPH"), "FULL_CUDA_GRAPH");
    }
    for (const char* name : {"MCORE_CUDA_GRAPH", "LAYER_CUDA_GRAPH"}) { // either captures layer by layer
      if (is_on(name) && !has_setting("enable-cuda-graph") && !has_setting("cuda-graph-impl")) {
        add("enable-cuda-graph", "", where(name), name);
      }
    }
    if (has("CUDA_GRAPH_SCOPE") && (has_setting("cuda-graph-impl") || has_setting("enable-cuda-graph"))) {
      add("cuda-graph-scope", words_of("CUDA_GRAPH_SCOPE"), where("CUDA_GRAPH_SCOPE"), "CUDA_GRAPH_SCOPE");
    }
  }

  bool is_given_off(std::string_view name) const { return has(name) && is_off_word(value(name)); }

  void read_overlap() {
    if (has_setting("use-megatron-fsdp") && !has_setting("data-parallel-sharding-strategy")) {
      add("data-parallel-sharding-strategy", "optim_grads_params", where("USE_MCORE_FSDP"), "USE_MCORE_FSDP");
    }
    if (is_on("MOE_EP_A2A_OVERLAP")) { // which turns on both
      for (const char* flag : {"overlap-moe-expert-parallel-comm", "delay-wgrad-compute"}) {
        if (!has_setting(flag)) {
          add(flag, "", where("MOE_EP_A2A_OVERLAP"), "MOE_EP_A2A_OVERLAP");
        }
      }
    }
    if (is_given_off("OVERLAP_P2P_COMM")) {
      add("no-overlap-p2p-communication", "", where("OVERLAP_P2P_COMM"), "OVERLAP_P2P_COMM");
    }
    if (is_given_off("GRAD_ACCUM_FUSION")) {
      add("no-gradient-accumulation-fusion", "", where("GRAD_ACCUM_FUSION"), "GRAD_ACCUM_FUSION");
    }
  }

  // "attn,moe_router": the names with spaces between.
  std::string words_of(std::string_view name) const {
    std::string words = value(name);
    std::replace(words.begin(), words.end(), ',', ' ');
    return words;
  }

  // What is set, not off, and neither read nor known to have no effect.
  void list_others(std::vector<std::string>& unheeded) const {
    const std::vector<std::string> variables = names_of(kMlPerfVariables);
    const auto is_in = [](const auto& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const auto& [key, variable] : set_.values) {
      const std::string& name = key;
      const bool alone = name == "CUDA_GRAPH_SCOPE" && !has_setting("cuda-graph-scope");
      if (!is_of_job(name) && !variable.text.empty() && !is_off_word(variable.text) &&
          (alone || !is_in(kOtherVariables, name)) && !is_in(variables, name)) {
        unheeded.push_back(name + " " + excerpt(variable.text));
      }
    }
  }

  bool has_setting(std::string_view flag) const {
    return std::any_of(settings_.begin(), settings_.end(),
                       [&](const MegatronSetting& one) { return one.name == flag; });
  }
  void add(std::string_view flag, std::string text, const Where& where, std::string_view written) {
    settings_.push_back({std::string(flag), {std::move(text), where}, std::string(written)});
  }

  void take(const MlPerfVariable& row) {
    if (!has(row.name)) {
      return;
    }
    const bool is_valued = find_megatron_flag(row.flag)->valued;
    const auto known = std::find_if(settings_.begin(), settings_.end(),
                                    [&](const MegatronSetting& one) { return one.name == row.flag; });
    const bool same = known != settings_.end() && (!is_valued || known->value.text == value(row.name));
    // An interleaving of 0 or null is none.
    if (!same && (is_valued ? !is_off_word(value(row.name)) : is_on(row.name))) {
      add(row.flag, is_valued ? value(row.name) : "", where(row.name), row.name);
    }
  }

  // NVIDIA's names, or AMD's.
  int world() const {
    const bool of_amd = has("NNODES") && !has("DGXNNODES");
    return integer(of_amd ? "NNODES" : "DGXNNODES", 1, kMostMegatronRanks, 0) *
           std::min(1024, integer(of_amd ? "GPUS_PER_NODE" : "DGXNGPU", 1, 1024, 8));
  }

  // MINIBS samples of each replica, at the file's own number of ranks.
  void read_batch() {
    if (has_setting("global-batch-size") || !has("MINIBS")) {
      require_batch();
      return;
    }
    long long product = 1;
    for (const char* flag : {"tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"}) {
      for (const MegatronSetting& one : settings_) {
        product *= one.name == flag ? parse_integer(one.value.text, 1, kMostConfigDegree, one.value.where) : 1;
        product = std::min<long long>(product, kMostMegatronRanks);
      }
    }
    const int ranks = world() > 0 ? world() : context_.devices;
    const long long batch = integer("MINIBS", 1, kMostConfigSamples, 1) * std::max(1LL, ranks / product);
    if (batch > kMostConfigSamples) {
      throw InputError(where("MINIBS"), "more than " + std::to_string(kMostConfigSamples) + " samples in a batch");
    }
    add("global-batch-size", std::to_string(batch), where("MINIBS"), "MINIBS");
  }

  // A batch that only a shell can tell must not be another one.
  void require_batch() {
    if (has_setting("global-batch-size") || context_.batch_given) {
      return;
    }
    for (const char* name : {"GLOBAL_BATCH_SIZE", "GBS", "MINIBS"}) {
      if (const auto found = set_.not_told.find(name); found != set_.not_told.end()) {
        throw InputError(found->second.where, "'" + std::string(name) + "' is '" + excerpt(found->second.text) +
                                                  "', which only a shell can tell; allowed: a number of samples, of "
                                                  "variables that lines above set, or the study's "
                                                  "'training.global_batch', as --set training.global_batch=64");
      }
    }
    set_.not_understood.emplace_back("no MINIBS (the batch is one micro-batch of each replica)");
  }

  // A variable as near to one that is read as a misspelling of it.
  void refuse_misspelt() const {
    std::vector<std::string> known = names_of(kMlPerfVariables);
    known.insert(known.end(), kOtherVariables.begin(), kOtherVariables.end());
    for (const auto* variables : {&set_.values, &set_.not_told}) {
      for (const auto& [name, variable] : *variables) {
        if (const std::string meant = misspelt(name, known); !meant.empty() && !is_of_job(name)) {
          throw InputError(variable.where, "unknown variable '" + excerpt(name) + "'; did you mean '" + meant + "'?");
        }
      }
    }
  }

  // A variable that looks like a degree must not be ignored.
  void refuse_unknown_degrees() const {
    const std::vector<std::string> known = names_of(kMlPerfVariables);
    for (const auto& [name, variable] : set_.values) {
      const bool looks =
          name.ends_with("_PARALLEL") || name.ends_with("_PARALLEL_SIZE") || name.ends_with("_BATCH_SIZE");
      if (looks && std::find(known.begin(), known.end(), name) == known.end() && !name.starts_with("VAL") &&
          !name.starts_with("EVAL") && !name.starts_with("TOKENIZERS")) {
        throw InputError(variable.where, unknown_name("variable", name, known));
      }
    }
  }

  ShellVariables set_;
  Where whole_;
  const ConfigContext& context_;
  std::vector<MegatronSetting> settings_;
};

} // namespace

ImportedTraining import_mlperf(const ConfigSource& source, const ConfigContext& context) {
  return MlPerf(source, context).read();
}

} // namespace stagecraft
