// TorchTitan's configuration: TOML as until February 2026 (torchtitan/config/job_config.py), and the fields of the
// dataclasses that replaced it (torchtitan/config/training.py, parallelism.py), in sections or not.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/config/torchtitan_before.hpp"
#include "sim/workload/model_flops.hpp"
#include "sim/workload/training/every_second_product.hpp"
#include "sim/workload/training/experts.hpp"
#include "sim/workload/training/pipeline_layout.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kTraining = "training", kParallelism = "parallelism", kCheckpoint = "activation_checkpoint";

struct ScheduleName {
  std::string_view name, ours;
  bool several; ///< stages of a rank, two unless the file says how many layers a stage has
};
constexpr std::array kScheduleNames = {
    ScheduleName{"1F1B", "1f1b", false},
    ScheduleName{"GPipe", "gpipe", false},
    ScheduleName{"Interleaved1F1B", "interleaved", true},
    ScheduleName{"LoopedBFS", "breadth-first", true},
    ScheduleName{"ZBVZeroBubble", "zb-v", true},
    ScheduleName{"DualPipeV", "dualpipe-v", true},
    ScheduleName{"InterleavedZeroBubble", "", true},
    ScheduleName{"PipelineScheduleSingle", "", false},
    ScheduleName{"PipelineScheduleMulti", "", true},
    ScheduleName{"_PipelineScheduleRuntime", "", true},
};

// Keys of a section that change neither time nor memory of an iteration, or that the study says itself.
struct NoEffect {
  std::string_view section;
  std::vector<std::string_view> keys;
};
std::vector<NoEffect> without_effect() {
  return {
      {"job",
       {"config_file", "dump_folder", "description", "print_config", "save_config_file", "save_config_folder",
        "print_args", "use_for_integration_test"}},
      {"profiling",
       {"enable_profiling", "save_traces_folder", "profile_freq", "profiler_active", "profiler_warmup",
        "enable_memory_snapshot", "save_memory_snapshot_folder"}},
      {"profiler",
       {"enable_profiling", "save_traces_folder", "profile_freq", "profiler_active", "profiler_warmup",
        "enable_memory_snapshot", "save_memory_snapshot_folder"}},
      {"metrics",
       {"log_freq", "enable_color_printing", "enable_tensorboard", "disable_color_printing", "save_tb_folder",
        "save_for_all_ranks", "enable_wandb"}},
      {"model", {"name", "flavor", "hf_assets_path", "tokenizer_path", "print_after_conversion"}},
      {"model_spec", {"name", "flavor"}},
      {"optimizer", {"lr", "beta1", "beta2", "eps", "weight_decay", "betas", "fused"}},
      {"lr_scheduler", {"warmup_steps", "total_steps", "decay_ratio", "decay_type", "min_lr_factor", "lr_min"}},
      {"dataloader",
       {"dataset", "dataset_path", "num_workers", "persistent_workers", "pin_memory", "prefetch_factor", "seed",
        "shuffle", "repeat", "streaming_shuffle_buffer_size", "num_prefetch_batches"}},
      {"tokenizer", {"path", "image_token", "video_token", "vision_start_token", "vision_end_token", "pad_token"}},
      {"training",
       {"dataset", "dataset_path", "steps", "warmup_steps", "gc_freq", "seed", "name", "hf_assets_path", "flavor",
        "dump_folder", "description", "module", "tokenizer_path", "disable_cuda_graphs"}},
      {"parallelism", {"save_parallelism_file", "spmd_backend", "context_parallel_ptrr_mask_key"}},
      {"activation_checkpoint",
       {"preserve_rng_state", "determinism_check", "debug", "visualize_memory_budget_pareto", "memory_budget",
        "enable"}},
      {"checkpoint",
       {"enable",
        "enable_checkpoint",
        "enable_ft_dataloader_checkpoints",
        "folder",
        "interval",
        "interval_type",
        "initial_load_path",
        "initial_load_model_only",
        "initial_load_model_weights_only",
        "initial_load_in_hf",
        "initial_load_in_hf_quantized",
        "last_save_model_only",
        "last_save_model_weights_only",
        "last_save_in_hf",
        "last_save_in_safetensors_format",
        "model_weights_only",
        "export_dtype",
        "async_mode",
        "keep_latest_k",
        "load_step",
        "exclude_from_loading",
        "enable_first_step_checkpoint",
        "create_seed_checkpoint",
        "load_only"}},
      {"comm",
       {"init_timeout_seconds", "train_timeout_seconds", "trace_buf_size", "save_traces_folder",
        "save_traces_file_prefix"}},
      {"memory_estimation", {"enable", "enabled", "disable_fake_mode"}},
      {"validation", {"enable", "enabled", "dataset", "dataset_path", "local_batch_size", "seq_len", "freq", "steps"}},
      {"validator", {"enable", "freq", "steps"}},
      {"debug",
       {"seed", "spmd_typechecking", "deterministic_warn_only", "print_config", "save_config_file",
        "enable_structured_logging"}},
  };
}

// Keys of a converter that matter only where it is applied.
constexpr std::array<std::string_view, 11> kOfConverters = {"fqns",
                                                            "filter_fqns",
                                                            "recipe_name",
                                                            "emulate",
                                                            "moe_fqns",
                                                            "moe_fqns_prototype",
                                                            "mxfp8_dim1_cast_kernel_choice",
                                                            "use_fp8_dim1_cast_triton_kernel",
                                                            "precompute_float8_dynamic_scale_for_fsdp",
                                                            "force_recompute_fp8_weight_in_bwd",
                                                            "pad_token_groups_for_grouped_mm"};

class TorchTitan {
public:
  TorchTitan(const yaml::Node& document, const ConfigContext& context)
      : leaves_(document, "TorchTitan's configuration"), draft_(context, document.where) {}

  ImportedTraining read() {
    std::vector<std::string> sections = {"compile",         "float8", "mx",      "experimental",
                                         "fault_tolerance", "loss",   "override"};
    for (const NoEffect& one : without_effect()) {
      sections.emplace_back(one.section);
    }
    leaves_.refuse_misspelt_sections(sections);
    read_degrees();
    read_sharing();
    read_schedule();
    read_batch();
    read_precision();
    read_checkpoint();
    read_optimizer();
    list_others();
    return draft_.take();
  }

private:
  int degree(const char* key) { return leaves_.integer(kParallelism, key, 1, kMostConfigDegree, 1); }
  Where where_of(std::string_view key) { return leaves_.where(kParallelism, key); }

  // Ranks are pipeline x replicate x shard x context x tensor.
  void read_degrees() {
    tensor_ = degree("tensor_parallel_degree");
    pipeline_ = degree("pipeline_parallel_degree");
    context_ = degree("context_parallel_degree");
    replicate_ = degree("data_parallel_replicate_degree");
    draft_.degree("tensor", tensor_, where_of("tensor_parallel_degree"));
    draft_.degree("pipeline", pipeline_, where_of("pipeline_parallel_degree"));
    draft_.degree("context", context_, where_of("context_parallel_degree"));
    const std::string method =
        leaves_.choice(kParallelism, "context_parallel_rotate_method", {"allgather", "alltoall"}, "allgather");
    if (context_ > 1) { // PyTorch's rotation by all-to-alls passes keys and values on, as a ring does
      draft_.set("parallel.context_rule", method == "allgather" ? "all-gather" : "ring",
                 where_of("context_parallel_degree"));
    }
    const bool sequence = leaves_.boolean(kParallelism, "enable_sequence_parallel", true);
    const bool whole_loss = leaves_.boolean(kParallelism, "disable_loss_parallel", false);
    const bool in_pieces = leaves_.boolean(kParallelism, "enable_async_tensor_parallel", false) ||
                           leaves_.boolean("compile", "enable_async_tensor_parallel", false);
    if (tensor_ > 1) {
      draft_.set("parallel.tensor_rule", whole_loss ? "torchtitan-whole-loss" : "torchtitan",
                 where_of(whole_loss ? "disable_loss_parallel" : "tensor_parallel_degree"));
      draft_.set("parallel.sequence", sequence ? "true" : "false", where_of("enable_sequence_parallel"));
      read_async_tensor(in_pieces, sequence);
    }
    const yaml::Node* given = leaves_.find(kParallelism, "data_parallel_shard_degree");
    shard_ = given != nullptr ? yaml::integer(*given, "data_parallel_shard_degree", -1, kMostConfigDegree) : -1;
    if (shard_ == 0) {
      throw InputError(given->where, "'data_parallel_shard_degree' is 0; allowed: 1 or more, or -1 for what is left");
    }
    const bool is_left = shard_ < 0;
    std::vector<NamedDegree> degrees;
    for (const auto& [name, degree] : {std::pair{"tensor_parallel_degree", tensor_},
                                       {"pipeline_parallel_degree", pipeline_},
                                       {"context_parallel_degree", context_},
                                       {"data_parallel_replicate_degree", replicate_},
                                       {"data_parallel_shard_degree", std::max(1, shard_)}}) {
      degrees.push_back({name, degree, where_of(name)});
    }
    const int left = draft_.replicas_beside(degrees);
    if (!is_left && left > 1) { // as its ParallelDims refuses
      const int devices = draft_.context().devices;
      throw InputError(given->where,
                       "'data_parallel_shard_degree' " + std::to_string(shard_) + " and the other degrees take " +
                           std::to_string(devices / left) + " of the platform's " + count_of(devices, "device") +
                           ", and TorchTitan takes all; nearest that does: " + std::to_string(shard_ * left) +
                           ", or -1 for what is left");
    }
    shard_ = is_left ? left : shard_;
    if (!is_left || replicate_ > 1) {
      draft_.set("parallel.data", 1LL * replicate_ * shard_,
                 where_of(is_left ? "data_parallel_replicate_degree" : "data_parallel_shard_degree"));
    }
    read_experts(sequence);
  }

  // Experts divide the ranks of shard, context and tensor anew, and those of a replica alone. A tensor group shares
  // each expert, or its ranks have experts of their own, as they all do since April 2026.
  void read_experts(bool sequence) {
    const Where where = where_of("expert_parallel_degree");
    expert_ = degree("expert_parallel_degree");
    const int of_each = degree("expert_tensor_parallel_degree");
    const std::string backend =
        leaves_.choice(kParallelism, "expert_parallel_comm_backend", {"standard", "deepep", "hybridep"}, "standard");
    const bool overlap = leaves_.boolean(kParallelism, "pipeline_parallel_expert_parallel_overlap", true);
    const bool in_turn = leaves_.boolean("debug", "moe_force_load_balance", false) ||
                         leaves_.boolean(kTraining, "debug_moe_force_load_balance", false); // its name until 2026
    if (expert_ == 1) {
      return; // of which TorchTitan says that nothing else has an effect
    }
    const std::vector<Operator>& operators = draft_.context().model.operators;
    if (std::none_of(operators.begin(), operators.end(), [](const Operator& op) { return op.routing.has_value(); })) {
      draft_.leave("parallelism.expert_parallel_degree " + std::to_string(expert_) + " ('" +
                   draft_.context().model.name + "' has no experts)");
      expert_ = 1;
      return;
    }
    const long long ranks = 1LL * shard_ * context_ * tensor_;
    if (ranks % expert_ != 0) {
      throw InputError(where, "'expert_parallel_degree' " + std::to_string(expert_) +
                                  " does not divide data_parallel_shard_degree " + std::to_string(shard_) +
                                  " x context_parallel_degree " + std::to_string(context_) +
                                  " x tensor_parallel_degree " + std::to_string(tensor_) + " = " +
                                  std::to_string(ranks) +
                                  "; nearest that do: " + nearest_divisors(static_cast<int>(ranks), expert_));
    }
    draft_.check_experts("expert_parallel_degree", expert_, where);
    if (of_each != 1 && of_each != tensor_) {
      throw InputError(where_of("expert_tensor_parallel_degree"),
                       "'expert_tensor_parallel_degree' is " + std::to_string(of_each) +
                           "; allowed: 1, or 'tensor_parallel_degree', which is " + std::to_string(tensor_));
    }
    if (backend != "standard" && of_each > 1) {
      throw InputError(where_of("expert_parallel_comm_backend"),
                       "DeepEP sends whole tokens, and 'expert_tensor_parallel_degree' is " + std::to_string(of_each) +
                           "; allowed: expert_tensor_parallel_degree 1, or 'standard'");
    }
    draft_.degree("expert", expert_, where);
    draft_.degree("expert_tensor", of_each, where_of("expert_tensor_parallel_degree"));
    draft_.set("token_dispatcher", backend == "standard" ? "alltoall" : backend,
               where_of("expert_parallel_comm_backend"));
    if (in_turn) { // token after token takes the next experts (torchtitan/models/common/moe)
      draft_.set("expert_choice", std::string(row_of(ExpertChoice::round_robin).name), where);
    }
    if (tensor_ > 1 && of_each == 1 && sequence &&
        leaves_.find(kParallelism, "expert_tensor_parallel_degree") != nullptr) {
      draft_.leave("parallelism.expert_tensor_parallel_degree 1, where each rank of a tensor group routed all tokens "
                   "(here its own, as since April 2026)");
    }
    if (!overlap) {
      draft_.leave("parallelism.pipeline_parallel_expert_parallel_overlap false");
    }
  }

  // apply_fsdp() is for experts that ranks share, too.
  bool is_sharded() const { return shard_ > 1 || context_ > 1 || expert_ > 1; }

  // FSDP shards over the ranks of shard and context; without it replicas are those of DistributedDataParallel.
  void read_sharing() {
    const bool shards = is_sharded();
    draft_.set("parallel.zero", shards ? 3 : 0, where_of("data_parallel_shard_degree"));
    if (shards && replicate_ > 1) {
      draft_.set("parallel.shard", 1LL * shard_ * context_, where_of("data_parallel_shard_degree"));
    }
    const std::string policy =
        leaves_.choice(kParallelism, "fsdp_reshard_after_forward", {"default", "always", "never"}, "default");
    if (shards && policy != "default") { // by default always, but never in a pipeline
      draft_.set("parallel.reshard",
                 policy == "always" ? "after-forward"
                 : pipeline_ > 1    ? "after-step"
                                    : "after-backward",
                 where_of("fsdp_reshard_after_forward"));
    }
    if (leaves_.boolean(kParallelism, "fsdp_defer_gradient_reduction", false) && shards) {
      draft_.set("parallel.reduce", "last-micro-batch", where_of("fsdp_defer_gradient_reduction"));
    }
    if (!shards && replicate_ > 1) {
      draft_.set("gradient_bucket", "100 MiB", where_of("data_parallel_replicate_degree")); // its bucket_cap_mb
    }
    read_offload(shards);
  }

  // FSDP's CPUOffloadPolicy: weights, gradients and states rest with the host, which steps them.
  void read_offload(bool shards) {
    if (!leaves_.boolean(kTraining, "enable_cpu_offload", false)) {
      return;
    }
    if (!shards) {
      draft_.leave("training.enable_cpu_offload (which TorchTitan applies only where data_parallel_shard_degree or "
                   "context_parallel_degree is above 1)");
      return;
    }
    const Where where = leaves_.where(kTraining, "enable_cpu_offload");
    draft_.set("offload.optimizer", 1, where);
    draft_.set("offload.gradients", "true", where);
    draft_.set("offload.parameters", "true", where);
  }

  void read_schedule() {
    const std::string name =
        leaves_.choice(kParallelism, "pipeline_parallel_schedule", names_of(kScheduleNames), "1F1B");
    const ScheduleName& row = find_by_name(kScheduleNames, name, "schedule", where_of("pipeline_parallel_schedule"));
    const std::string csv = leaves_.text(kParallelism, "pipeline_parallel_schedule_csv", "");
    if (pipeline_ == 1) {
      draft_.schedule("1f1b", where_of("pipeline_parallel_degree"));
      read_stages(false);
      return;
    }
    if (!csv.empty()) {
      draft_.schedule(csv, where_of("pipeline_parallel_schedule_csv"));
    } else if (row.ours.empty()) {
      draft_.leave("parallelism.pipeline_parallel_schedule " + name);
    } else {
      draft_.schedule(row.ours, where_of("pipeline_parallel_schedule"));
    }
    read_stages(row.several);
  }

  // Which layers each stage has: as listed, or so that embedding and output count as some layers.
  void read_stages(bool several) {
    const yaml::Node* modules = leaves_.find(kParallelism, "module_fqns_per_model_part");
    if (const yaml::Node* today = leaves_.find(kParallelism, "pipeline_parallel_module_fqns_per_model_part")) {
      modules = today;
    }
    const yaml::Node* splits = leaves_.find(kParallelism, "pipeline_parallel_split_points");
    const int first =
        leaves_.integer(kParallelism, "pipeline_parallel_first_stage_less_layers", 0, kMostConfigDegree, 1);
    const int last = leaves_.integer(kParallelism, "pipeline_parallel_last_stage_less_layers", 0, kMostConfigDegree, 1);
    const int each = leaves_.integer(kParallelism, "pipeline_parallel_layers_per_stage", 1, kMostConfigDegree, 0);
    stages_ = pipeline_ * (several ? 2 : 1);
    if (pipeline_ == 1) {
      return;
    }
    const long long slots = 1LL * draft_.layers() + first + last;
    if (modules != nullptr && !modules->items.empty()) {
      set_layers(modules_layout(*modules), modules->where);
    } else if (splits != nullptr && !splits->items.empty()) {
      set_layers(splits_layout(*splits), splits->where);
    } else if (draft_.layers() > 0) {
      const Where where = where_of(each > 0 ? "pipeline_parallel_layers_per_stage" : "pipeline_parallel_degree");
      stages_ = each > 0 ? static_cast<int>((slots + each - 1) / each) : stages_;
      set_layers(spread(where, first, last), where);
    } else if (several) {
      draft_.set("parallel.interleave", 2, where_of("pipeline_parallel_schedule"));
    }
  }

  void set_layers(const PipelineLayout& layout, const Where& where) {
    stages_ = static_cast<int>(layout.stages.size());
    if (stages_ % pipeline_ != 0) {
      throw InputError(where, count_of(stages_, "stage") + " do not divide among " + count_of(pipeline_, "rank") +
                                  "; allowed: a multiple of 'pipeline_parallel_degree'");
    }
    draft_.set("parallel.layers", to_text(layout), where);
  }

  // Layers and weights in as equal parts as can be, the first stages one more: generate_llm_fqn_per_model_part().
  PipelineLayout spread(const Where& where, int first, int last) const {
    const int slots = draft_.layers() + first + last;
    const int least = slots / stages_;
    if (least < std::max({1, first, last})) {
      throw InputError(where, std::to_string(draft_.layers()) + " layers do not fill " + count_of(stages_, "stage") +
                                  ", of which the first has " + std::to_string(first) + " less and the last " +
                                  std::to_string(last) + " less; allowed: fewer stages");
    }
    PipelineLayout layout{.stages = {}, .where = where};
    for (int s = 0; s < stages_; ++s) {
      int count = least + (s < slots % stages_ ? 1 : 0);
      count -= s == 0 ? first : 0;
      count -= s == stages_ - 1 ? last : 0;
      layout.stages.push_back((s == 0 ? "E" : "") + std::string(static_cast<std::size_t>(std::max(0, count)), 't') +
                              (s == stages_ - 1 ? "L" : ""));
    }
    return layout;
  }

  // "layers.3" is a layer, what stands before all layers the embedding, what stands behind them the output.
  PipelineLayout modules_layout(const yaml::Node& modules) const {
    PipelineLayout layout{.stages = {}, .where = modules.where};
    for (const yaml::Node& part : modules.items) {
      if (part.kind != yaml::Node::Kind::sequence) {
        throw InputError(part.where, "a part is no list of modules; allowed: [\"tok_embeddings\", \"layers.0\", …]");
      }
      std::string& stage = layout.stages.emplace_back();
      for (const yaml::Node& module : part.items) {
        const std::string& name = yaml::scalar(module, "module");
        stage += name.starts_with("layers.") ? 't' : name.find("embed") != std::string::npos ? 'E' : 'L';
      }
      stage.erase(std::unique(stage.begin(), stage.end(), [](char a, char b) { return a == b && a != 't'; }),
                  stage.end()); // norm and output are one
    }
    return layout;
  }

  // "layers.8" begins a stage.
  PipelineLayout splits_layout(const yaml::Node& splits) const {
    PipelineLayout layout{.stages = {"E"}, .where = splits.where};
    int next = 0;
    constexpr std::string_view kLayers = "layers.";
    const int all = std::max(draft_.layers(), 1);
    for (const yaml::Node& split : splits.items) {
      const std::string& name = yaml::scalar(split, "split point");
      const bool is_output = !name.starts_with(kLayers);
      const int at = is_output ? all : parse_integer(name.substr(kLayers.size()), next, all, split.where);
      layout.stages.back() += std::string(static_cast<std::size_t>(at - next), 't');
      layout.stages.emplace_back();
      next = at;
    }
    layout.stages.back() += std::string(static_cast<std::size_t>(all - next), 't') + "L";
    return layout;
  }

  // Samples, or tokens as today. Under a pipeline a pass has several micro-batches.
  void read_batch() {
    const int sequence = std::max(1, static_cast<int>(tokens_of(draft_.context().model)));
    const bool by_tokens = leaves_.find(kTraining, "num_tokens_per_microbatch_per_dp_rank") != nullptr ||
                           leaves_.find(kTraining, "num_tokens_per_train_step") != nullptr;
    const char* length = by_tokens ? "max_context_length" : "seq_len";
    constexpr int kUsualLength = 2048;
    const int tokens = leaves_.integer(kTraining, length, 1, kMostConfigSamples, kUsualLength);
    if (leaves_.find(kTraining, length) != nullptr) {
      draft_.sequence_length(length, tokens, leaves_.where(kTraining, length));
    }
    const long long replicas = 1LL * replicate_ * shard_;
    if (by_tokens) {
      read_tokens(leaves_.find(kTraining, length) != nullptr ? tokens : sequence, replicas);
      return;
    }
    constexpr int kUsualSize = 8;
    const bool today = leaves_.find(kTraining, "local_batch_size") != nullptr;
    const bool before = !today && leaves_.find(kTraining, "batch_size") != nullptr;
    local_batch_ = before ? "batch_size" : "local_batch_size"; // its name until 2025
    const int local = leaves_.integer(kTraining, local_batch_, 1, kMostConfigSamples, kUsualSize);
    const int part = leaves_.integer(kParallelism, "pipeline_parallel_microbatch_size", 1, kMostConfigSamples, 1);
    const Where where = leaves_.where(kTraining, local_batch_);
    if (pipeline_ > 1 && local % part != 0) {
      throw InputError(where_of("pipeline_parallel_microbatch_size"),
                       "'pipeline_parallel_microbatch_size' " + std::to_string(part) + " does not divide " +
                           local_batch_ + " " + std::to_string(local) + "; allowed: a divisor");
    }
    draft_.set("micro_batch_size", pipeline_ > 1 ? part : local,
               pipeline_ > 1 ? where_of("pipeline_parallel_microbatch_size") : where);
    set_batch("global_batch_size", local * replicas, 1);
  }

  void read_tokens(int length, long long replicas) {
    constexpr int kUsualTokens = 16384;
    const int tokens =
        leaves_.integer(kTraining, "num_tokens_per_microbatch_per_dp_rank", 1, kMostConfigSamples, kUsualTokens);
    const Where where = leaves_.where(kTraining, "num_tokens_per_microbatch_per_dp_rank");
    if (tokens % length != 0) {
      throw InputError(where, std::to_string(tokens) + " tokens are no whole number of sequences of " +
                                  std::to_string(length) + "; allowed: a multiple of it");
    }
    const int parts = leaves_.integer(kParallelism, "num_pp_microbatches", 1, kMostConfigSamples, 1);
    draft_.set("micro_batch_size", tokens / length, where);
    set_batch("num_tokens_per_train_step", (pipeline_ > 1 ? parts : 1) * replicas * (tokens / length), length);
  }

  // The batch that a key gives in units of `unit`; -1, or none, means that of one pass.
  void set_batch(const char* key, long long of_pass, int unit) {
    const yaml::Node* given = leaves_.find(kTraining, key);
    const int value = given != nullptr ? yaml::integer(*given, key, -1, kMostConfigSamples) : -1;
    const Where where = leaves_.where(kTraining, given != nullptr ? key : local_batch_);
    const long long batch = value > 0 ? value / unit : of_pass;
    if (value == 0 || of_pass > kMostConfigSamples || (value > 0 && (value % unit != 0 || batch % of_pass != 0))) {
      throw InputError(where, "'" + std::string(key) + "' " + std::to_string(value) +
                                  " is no multiple of what all replicas take at a time, " +
                                  std::to_string(of_pass * unit) + "; allowed: a multiple, or -1");
    }
    draft_.set("global_batch", batch, where);
    if (batch > of_pass && pipeline_ > 1) { // a schedule is of one local batch
      draft_.set("pipeline_fills", batch / of_pass, where);
    }
  }

  // Mixed precision takes effect under FSDP, or where nothing but replicas share the model.
  void read_precision() {
    const std::string type = leaves_.choice(kTraining, "dtype", {"float32", "bfloat16"}, "float32");
    const std::string param = leaves_.choice(kTraining, "mixed_precision_param", {"bfloat16", "float32"}, "bfloat16");
    const std::string reduce = leaves_.choice(kTraining, "mixed_precision_reduce", {"float32", "bfloat16"}, "float32");
    const Where where = leaves_.where(kTraining, "mixed_precision_param");
    const bool shards = is_sharded();
    const bool mixes = shards || (tensor_ == 1 && pipeline_ == 1);
    const bool half = type == "bfloat16" || (mixes && param == "bfloat16");
    draft_.set("precision", half ? "bf16" : "fp32", where);
    if (type == "bfloat16") {
      draft_.leave(
          "training.dtype bfloat16 for weights and states of the optimiser (here they are of single precision)");
    } else if (!half && param == "bfloat16") {
      draft_.leave(
          "training.mixed_precision_param bfloat16 (which TorchTitan applies only where data_parallel_shard_degree "
          "or context_parallel_degree is above 1)");
    }
    if (half) {
      const bool single = type != "bfloat16" && shards && reduce == "float32";
      draft_.set("gradient_precision", single ? "fp32" : "bf16", leaves_.where(kTraining, "mixed_precision_reduce"));
    }
    read_fp8(half);
  }

  // Of the model and the loss both, unless the file names one of them.
  bool compiles() {
    const yaml::Node* compile = leaves_.find("compile", "enable");
    const yaml::Node* before = leaves_.find(kTraining, "compile"); // until August 2025
    const yaml::Node* components = leaves_.find("compile", "components");
    const bool model = components == nullptr || std::any_of(components->items.begin(), components->items.end(),
                                                            [](const yaml::Node& one) { return one.text == "model"; });
    return ((compile != nullptr && !is_off(*compile)) || (before != nullptr && !is_off(*before))) && model;
  }

  // The pass that splits products is the compiler's, and works on what is gathered under sequence parallelism.
  void read_async_tensor(bool asked, bool sequence) {
    if (!asked) {
      return;
    }
    if (sequence && compiles()) {
      draft_.set("pipelined_exchange", "true", where_of("enable_async_tensor_parallel"));
    } else {
      draft_.leave("parallelism.enable_async_tensor_parallel (which TorchTitan does only with compile.enable and "
                   "enable_sequence_parallel)");
    }
  }

  void read_fp8(bool half) {
    const yaml::Node* converters = leaves_.find("model", "converters");
    const auto converts = [&](std::string_view name) {
      return converters != nullptr &&
             std::any_of(converters->items.begin(), converters->items.end(), [&](const yaml::Node& one) {
               return one.text == name || one.text.ends_with("." + std::string(name));
             });
    };
    const bool float8 = converts("float8"), mx = converts("mx");
    check_converters(converters);
    const std::string recipe = leaves_.text("float8", "recipe_name", "");
    const std::string of_mx = leaves_.text("mx", "recipe_name", "");
    const bool gathers_fp8 = leaves_.boolean("float8", "enable_fsdp_float8_all_gather", false);
    const Where where = converters != nullptr ? converters->where : Where{};
    for (const auto& [section, applied] : {std::pair{"float8", float8}, {"mx", mx}}) {
      if (applied) {
        leave_outputs_alone(section);
      } else { // then nothing in it has an effect
        leaves_.ignore(section, kOfConverters);
      }
    }
    if (float8 && mx) {
      throw InputError(where, "both float8 and mx convert the model; allowed: one of them");
    }
    if (float8 && (recipe.empty() || recipe == "tensorwise") && half) {
      draft_.set("fp8", "tensorwise", where);
      if (gathers_fp8 && is_sharded()) {
        draft_.set("parallel.quantized_weights", "fp8", leaves_.where("float8", "enable_fsdp_float8_all_gather"));
      }
    } else if (float8 && recipe == "rowwise" && half) {
      draft_.set("fp8", recipe, leaves_.where("float8", "recipe_name"));
    } else if (mx && half && (of_mx.empty() || of_mx.starts_with("mxfp8"))) {
      draft_.set("fp8", "mxfp8", where);
    } else if (float8 || mx) {
      draft_.leave((float8 ? "float8.recipe_name " + excerpt(recipe) : "mx.recipe_name " + excerpt(of_mx)));
    }
  }

  // Layers that a converter leaves in 16 bits: the last product is none that we convert either.
  void leave_outputs_alone(std::string_view section) {
    const yaml::Node* names = leaves_.find(section, "filter_fqns");
    const std::size_t count = names != nullptr ? names->items.size() : 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (names->items[i].text != "output") {
        draft_.leave(std::string(section) + ".filter_fqns " + excerpt(names->items[i].text));
      }
    }
  }

  // Others than those of float8 and mx are listed, and their misspellings refused.
  void check_converters(const yaml::Node* converters) {
    const std::size_t count = converters != nullptr ? converters->items.size() : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const yaml::Node& one = converters->items[i];
      const std::string name = one.text.substr(one.text.rfind('.') + 1);
      if (const std::string meant = misspelt(name, {"float8"}); !meant.empty()) {
        throw InputError(one.where, "unknown converter '" + excerpt(one.text) + "'; did you mean '" + meant + "'?");
      }
      if (name != "float8" && name != "mx") {
        draft_.leave("model.converters " + excerpt(one.text));
      }
    }
  }

  // Selective by default: every second layer, or, with the fields of today, by operators.
  void read_checkpoint() {
    const bool today = leaves_.find(kTraining, "num_tokens_per_microbatch_per_dp_rank") != nullptr;
    const std::string mode =
        leaves_.choice(kCheckpoint, "mode", {"none", "full", "selective", "memory_budget"}, "selective");
    const std::string option = leaves_.text(kCheckpoint, "selective_ac_option", today ? "op" : "2");
    const Where where = leaves_.where(kCheckpoint, mode == "selective" ? "selective_ac_option" : "mode");
    if (mode == "full") {
      draft_.recompute_blocks(1, 0, where);
    } else if (mode == "selective" && option == "op") {
      draft_.recompute_kinds({KernelKind::normalization, KernelKind::elementwise}, where);
      draft_.recompute_operators(every_second_product(draft_.layers()), where);
    } else if (mode == "selective") {
      read_every_nth(parse_integer(option, 1, kMostConfigDegree, where), where);
    } else {
      draft_.set("recompute", "none", where);
      if (mode == "memory_budget") {
        draft_.leave("activation_checkpoint.mode memory_budget");
      }
    }
  }

  // Of every n layers one runs again: as many of a stage, the first ones.
  void read_every_nth(int n, const Where& where) {
    const int of_stage = std::max(1, draft_.layers() / std::max(1, stages_));
    const int again = (of_stage + n - 1) / n;
    if (n == 1 || draft_.layers() == 0) {
      draft_.recompute_blocks(1, 0, where);
      return;
    }
    draft_.recompute_blocks(1, again, where);
    draft_.leave("activation_checkpoint.selective_ac_option " + std::to_string(n) + ", one layer of every " +
                 std::to_string(n) + " (here the first " + std::to_string(again) + " of each stage run again)");
  }

  void read_optimizer() {
    const std::string name = leaves_.text("optimizer", "name", "AdamW");
    leave_unless("optimizer", "implementation", {"fused"});
    if (lower_case(name) == "adam" || lower_case(name) == "adamw") {
      draft_.set("optimizer", "adam", leaves_.where("optimizer", "name"));
    } else {
      draft_.other_optimizer("optimizer.name", name, {"Adam", "AdamW"}, leaves_.where("optimizer", "name"));
    }
    const bool in_backward = leaves_.boolean("optimizer", "early_step_in_backward", false);
    if (in_backward) {
      draft_.leave("optimizer.early_step_in_backward");
    }
    draft_.set("clip_gradients", !in_backward && leaves_.number(kTraining, "max_norm", 1) > 0 ? "true" : "false",
               leaves_.where(kTraining, "max_norm"));
  }

  // A line where a key has another value than those that we model.
  void leave_unless(std::string_view section, std::string_view key, std::initializer_list<std::string_view> modelled) {
    const yaml::Node* value = leaves_.find(section, key);
    if (value != nullptr && std::find(modelled.begin(), modelled.end(), value->text) == modelled.end()) {
      draft_.leave(std::string(section) + "." + std::string(key) + " " + excerpt(value->text));
    }
  }

  // Of replicas that train on while others fail, TorchTitan's section matters only where it is on.
  void read_fault_tolerance() {
    const yaml::Node* enable = leaves_.find("fault_tolerance", "enable");
    if (enable == nullptr || is_off(*enable)) {
      constexpr std::array<std::string_view, 11> kKeys = {
          "process_group",       "process_group_timeout_ms", "replica_id",   "group_size",
          "min_replica_size",    "semi_sync_method",         "sync_steps",   "should_quantize",
          "fragment_sync_delay", "fragment_update_alpha",    "num_fragments"};
      leaves_.ignore("fault_tolerance", kKeys);
    } else {
      draft_.leave("fault_tolerance.enable");
    }
  }

  void list_others() {
    leave_unless("comm", "mode", {"default"});
    leave_unless("compile", "backend", {"inductor"});
    leave_unless("loss", "num_chunks", {"1"});
    read_fault_tolerance();
    for (const NoEffect& one : without_effect()) {
      leaves_.ignore(one.section, one.keys);
    }
    constexpr std::array<std::string_view, 8> kListedParallelism = {"context_parallel_load_balancer",
                                                                    "fsdp_symm_mem_scope",
                                                                    "enable_fsdp_symm_mem",
                                                                    "pp_max_unsharded_active_stages",
                                                                    "enable_compiled_autograd",
                                                                    "full_dtensor",
                                                                    "pipeline_parallel_max_outstanding_sends",
                                                                    "hybridep_non_blocking_expert_capacity_factor"};
    for (const std::string_view name : kListedParallelism) {
      if (const yaml::Node* value = leaves_.find(kParallelism, name); value != nullptr && !is_off(*value)) {
        draft_.leave(std::string(kParallelism) + "." + std::string(name));
      }
    }
    draft_.framework(compiles() ? "torchtitan" : "torchtitan-eager"); // the recipe is what compiling changes
    leaves_.refuse_unknown("key of [parallelism]", [](const ConfigLeaf& leaf) {
      return leaf.section == kParallelism || leaf.name.ends_with("_degree") || leaf.name.ends_with("batch_size");
    });
    leaves_.refuse_misspelt("key of TorchTitan");
    for (const ConfigLeaf* leaf : leaves_.left()) {
      if (!is_off(*leaf->value)) {
        draft_.leave(path_of(*leaf));
      }
    }
  }

  ConfigLeaves leaves_;
  TrainingDraft draft_;
  int tensor_ = 1, pipeline_ = 1, context_ = 1, replicate_ = 1, shard_ = 1, expert_ = 1, stages_ = 1;
  std::string local_batch_ = "local_batch_size"; // or what it was called before
};

} // namespace

ImportedTraining import_torchtitan(const ConfigSource& source, const ConfigContext& context) {
  const yaml::Node document = with_sections_of_today(source.document());
  return TorchTitan(document, context).read();
}

} // namespace stagecraft
