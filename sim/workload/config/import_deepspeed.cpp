// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/training/sharding.hpp"

namespace stagecraft {
namespace {

// What changes neither time nor memory, or what is so by itself.
constexpr std::array<std::string_view, 16> kHarmless = {"steps_per_print",
                                                        "dump_state",
                                                        "memory_breakdown",
                                                        "zero_allow_untested_optimizer",
                                                        "zero_force_ds_cpu_optimizer",
                                                        "scheduler",
                                                        "tensorboard",
                                                        "wandb",
                                                        "csv_monitor",
                                                        "comms_logger",
                                                        "flops_profiler",
                                                        "prescale_gradients",
                                                        "gradient_predivide_factor",
                                                        "checkpoint",
                                                        "seed",
                                                        "disable_allgather"};
// What is read.
constexpr std::array<std::string_view, 16> kRead = {"train_batch_size",
                                                    "train_micro_batch_size_per_gpu",
                                                    "gradient_accumulation_steps",
                                                    "fp16",
                                                    "bf16",
                                                    "bfloat16",
                                                    "data_types",
                                                    "optimizer",
                                                    "gradient_clipping",
                                                    "zero_optimization",
                                                    "tensor_parallel",
                                                    "sequence_parallel_size",
                                                    "pipeline",
                                                    "expert_parallel",
                                                    "activation_checkpointing",
                                                    "$schema"};
constexpr std::array<std::string_view, 3> kReadOfZero = {"stage", "overlap_comm", "reduce_bucket_size"};
constexpr std::array<std::string_view, 8> kHarmlessOfZero = {
    "allgather_partitions",     "allgather_bucket_size",
    "contiguous_gradients",     "reduce_scatter",
    "round_robin_gradients",    "sub_group_size",
    "ignore_unused_parameters", "stage3_gather_16bit_weights_on_model_save"};

// What DeepSpeed knows beside what is read here, so that none of it is taken for a misspelling.
constexpr std::array<std::string_view, 27> kOthers = {"activation_checkpointing",
                                                      "aio",
                                                      "amp",
                                                      "autotuning",
                                                      "comet",
                                                      "communication_data_type",
                                                      "compile",
                                                      "compression_training",
                                                      "curriculum_learning",
                                                      "data_efficiency",
                                                      "data_parallel_size",
                                                      "eigenvalue",
                                                      "elasticity",
                                                      "graph_harvesting",
                                                      "hybrid_engine",
                                                      "local_rank",
                                                      "moe",
                                                      "nebula",
                                                      "progressive_layer_drop",
                                                      "quantize_training",
                                                      "seq_parallel_communication_data_type",
                                                      "sparse_attention",
                                                      "sparse_gradients",
                                                      "timers",
                                                      "torch_autocast",
                                                      "wall_clock_breakdown",
                                                      "weight_quantization"};
constexpr std::array<std::string_view, 28> kOthersOfZero = {"cpu_offload",
                                                            "cpu_offload_param",
                                                            "cpu_offload_use_pin_memory",
                                                            "elastic_checkpoint",
                                                            "legacy_stage1",
                                                            "load_from_fp32_weights",
                                                            "log_trace_cache_warnings",
                                                            "memory_efficient_linear",
                                                            "mics_hierarchical_params_gather",
                                                            "mics_shard_size",
                                                            "module_granularity_threshold",
                                                            "offload_optimizer",
                                                            "offload_param",
                                                            "override_module_apply",
                                                            "pipeline_loading_checkpoint",
                                                            "stage3_gather_fp16_weights_on_model_save",
                                                            "stage3_max_live_parameters",
                                                            "stage3_max_reuse_distance",
                                                            "stage3_model_persistence_threshold",
                                                            "stage3_param_persistence_threshold",
                                                            "stage3_prefetch_bucket_size",
                                                            "use_all_reduce_for_fetch_params",
                                                            "use_multi_rank_bucket_allreduce",
                                                            "zenflow",
                                                            "zero_hpz_partition_size",
                                                            "zero_quantized_gradients",
                                                            "zero_quantized_nontrainable_weights",
                                                            "zero_quantized_weights"};

// The keys of a mapping of the file, those below one of the harmless ones included, that are read or change nothing.
struct Block {
  std::string_view path;
  std::vector<std::string_view> keys;
};
std::vector<Block> blocks() {
  return {
      {"fp16",
       {"enabled", "auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
        "consecutive_hysteresis", "min_loss_scale"}},
      {"bf16", {"enabled", "check_grad_overflow"}},
      {"bfloat16", {"enabled", "check_grad_overflow"}},
      {"data_types", {"grad_accum_dtype"}},
      {"optimizer", {"type", "params", "legacy_fusion"}},
      {"optimizer.params",
       {"lr", "betas", "eps", "weight_decay", "momentum", "adam_w_mode", "bias_correction", "max_coeff", "min_coeff",
        "nesterov", "dampening", "amsgrad"}},
      {"scheduler", {"type", "params"}},
      {"tensor_parallel", {"autotp_size"}},
      {"pipeline", {"stages", "partition", "activation_checkpoint_interval", "use_reentrant"}},
      {"expert_parallel", // names of modules, and how the model's own router is carried over
       {"enabled", "autoep_size", "preset_model", "moe_layer_pattern", "expert_pattern", "router_pattern", "expert_w1",
        "expert_w2", "expert_w3", "num_experts_attr", "top_k_attr", "route_norm", "route_scale", "score_apply",
        "score_func", "num_expert_groups", "num_limited_groups", "load_balance_coeff"}},
      {"zero_optimization.offload_optimizer",
       {"device", "ratio", "pin_memory", "buffer_count", "fast_init", "nvme_path", "pipeline_read", "pipeline_write",
        "pipeline"}},
      {"zero_optimization.offload_param",
       {"device", "pin_memory", "buffer_count", "buffer_size", "max_in_cpu", "nvme_path"}},
      {"tensorboard", {"enabled", "output_path", "job_name"}},
      {"wandb", {"enabled", "group", "team", "project"}},
      {"csv_monitor", {"enabled", "output_path", "job_name"}},
      {"comms_logger", {"verbose", "prof_all", "prof_ops", "debug"}}, // which waits for each collective where enabled
      {"flops_profiler",
       {"enabled", "profile_step", "module_depth", "top_modules", "detailed", "output_file", "recompute_fwd_factor"}},
      {"checkpoint", {"tag_validation", "load_universal", "use_node_local_storage", "parallel_write", "writer"}},
  };
}

struct OptimizerName {
  std::string_view name, optimizer;
};
constexpr std::array kOptimizerNames = {OptimizerName{"adam", "adam"}, OptimizerName{"adamw", "adam"},
                                        OptimizerName{"fusedadam", "adam"}, OptimizerName{"lamb", "lamb"},
                                        OptimizerName{"sgd", "sgd"}};

constexpr int kMostSamples = kMostConfigSamples;

class DeepSpeed {
public:
  DeepSpeed(const yaml::Node& config, const ConfigContext& context)
      : config_(config), map_(config, "DeepSpeed configuration"), draft_(context, config.where) {}

  ImportedTraining read() {
    refuse_misspelt();
    read_degrees();
    read_batch();
    read_precision();
    if (const yaml::Node* types = map_.find("data_types")) {
      read_types(*types);
    }
    read_optimizer();
    if (const yaml::Node* clip = given("gradient_clipping")) {
      if (yaml::number(*clip, "gradient_clipping", yaml::kNotNegative) > 0) {
        set("clip_gradients", "true", clip->where);
      }
    }
    read_zero();
    read_pipeline();
    list_others();
    draft_.schedule("1f1b", config_.where); // of its PipelineModule; without a pipeline any is the same
    return draft_.take();
  }

private:
  void set(std::string_view key, std::string text, const Where& where) { draft_.set(key, std::move(text), where); }

  // A value that is there, and is not left to the program that starts DeepSpeed.
  const yaml::Node* given(std::string_view key) {
    const yaml::Node* node = map_.find(key);
    return node != nullptr && node->kind == yaml::Node::Kind::scalar && node->text == "auto" ? nullptr : node;
  }

  // A number below a dotted path, 1 where the file does not say it; 0 counts as 1.
  int degree(const char* path, std::string_view key) {
    const yaml::Node* node = map_.find(path);
    if (node != nullptr && !key.empty()) {
      node = yaml::Map(*node, path).find(key);
    }
    const bool is_given = node != nullptr && node->kind == yaml::Node::Kind::scalar && node->text != "auto";
    const std::string name = path + (key.empty() ? "" : "." + std::string(key));
    const int degree = is_given ? std::max(1, yaml::integer(*node, name, 0, kMostConfigDegree)) : 1;
    degrees_.push_back({name, degree, is_given ? node->where : config_.where});
    return degree;
  }

  // Ranks are stages x replicas x sequences x tensor. Those of sequences are Ulysses': tokens are exchanged for heads.
  void read_degrees() {
    tensor_ = degree("tensor_parallel", "autotp_size");
    sequence_ = degree("sequence_parallel_size", "");
    pipeline_ = degree("pipeline", "stages");
    replicas_ = draft_.replicas_beside(degrees_);
    if (tensor_ > 1) {
      set("parallel.tensor", std::to_string(tensor_), degrees_[0].where);
    }
    if (sequence_ > 1) {
      set("parallel.context", std::to_string(sequence_), degrees_[1].where);
      set("parallel.context_rule", "all-to-all", degrees_[1].where);
    }
    if (pipeline_ > 1) {
      set("parallel.pipeline", std::to_string(pipeline_), degrees_[2].where);
    }
    if (const yaml::Node* experts = map_.find("expert_parallel")) {
      read_experts(yaml::Map(*experts, "expert_parallel"));
    }
  }

  // AutoEP: whole experts on ranks of their own, to which tokens are sent by all-to-alls.
  void read_experts(yaml::Map experts) {
    const int size = experts.integer("autoep_size", 1, kMostConfigDegree, 1);
    if (!experts.boolean("enabled", false) || size == 1) {
      return;
    }
    const Where where = experts.where("autoep_size");
    if (draft_.share_experts("expert_parallel.autoep_size", size, 1LL * replicas_ * sequence_ * tensor_, where)) {
      set("token_dispatcher", "alltoall", where);
    }
  }

  // Its pipelines share the optimiser's states at most.
  void read_pipeline() {
    const yaml::Node* node = map_.find("pipeline");
    if (node == nullptr) {
      return;
    }
    yaml::Map pipeline(*node, "pipeline");
    if (pipeline_ > 1 && stage_ > static_cast<int>(Zero::states)) {
      throw InputError(pipeline.where("stages"), "'pipeline.stages' " + std::to_string(pipeline_) + " beside stage " +
                                                     std::to_string(stage_) +
                                                     " of ZeRO, which DeepSpeed refuses; allowed: stage 0 or 1");
    }
    if (const int blocks = pipeline.integer("activation_checkpoint_interval", 0, kMostConfigDegree, 0); blocks > 0) {
      draft_.recompute_blocks(blocks, 0, pipeline.where("activation_checkpoint_interval"));
    }
    if (const std::string rule = pipeline.text("partition", "uniform"); pipeline_ > 1 && rule != "uniform") {
      draft_.leave("pipeline.partition " + excerpt(rule) + " (here stages have as many layers, or what " +
                   "training.parallel.layers says)");
    }
  }

  // train_batch_size = train_micro_batch_size_per_gpu · gradient_accumulation_steps · replicas.
  void read_batch() {
    const yaml::Node* batch = given("train_batch_size");
    const yaml::Node* size = given("train_micro_batch_size_per_gpu");
    const yaml::Node* steps = given("gradient_accumulation_steps");
    if (batch == nullptr && size == nullptr) {
      return require_batch();
    }
    if (batch != nullptr) {
      const int samples = yaml::integer(*batch, "train_batch_size", 1, kMostSamples);
      if (size == nullptr && !draft_.context().batch_given) {
        check_batch(samples, steps, batch->where);
      }
      set("global_batch", batch->text, batch->where);
    } else {
      set("global_batch", std::to_string(batch_of(*size, steps)), size->where);
    }
    if (steps != nullptr) {
      yaml::integer(*steps, "gradient_accumulation_steps", 1, kMostSamples);
      set("micro_batches", steps->text, steps->where);
    }
    if (size != nullptr) {
      yaml::integer(*size, "train_micro_batch_size_per_gpu", 1, kMostSamples);
      set("micro_batch_size", size->text, size->where);
    }
    if (steps == nullptr && size == nullptr) {
      set("micro_batches", "1", batch->where);
    }
  }

  // Each replica has as many samples of each step.
  void check_batch(int samples, const yaml::Node* steps, const Where& where) const {
    const int count = steps != nullptr ? yaml::integer(*steps, "gradient_accumulation_steps", 1, kMostSamples) : 1;
    const long long unit = 1LL * count * replicas_;
    if (samples % unit != 0) {
      const long long below = samples / unit * unit;
      throw InputError(where, "'train_batch_size' " + std::to_string(samples) + " is no multiple of " +
                                  (count > 1 ? "gradient_accumulation_steps " + std::to_string(count) + " x " : "") +
                                  count_of(replicas_, "replica") + "; nearest that are: " +
                                  (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit));
    }
  }

  // A file that leaves its batch to the program that starts DeepSpeed needs one from the study.
  void require_batch() {
    if (draft_.context().batch_given) {
      return;
    }
    const yaml::Node* automatic = map_.find("train_batch_size");
    automatic = automatic != nullptr ? automatic : map_.find("train_micro_batch_size_per_gpu");
    if (automatic != nullptr) {
      throw InputError(automatic->where,
                       "auto is for the program that starts DeepSpeed to fill in; allowed: a number, or "
                       "the study's 'training.global_batch', as --set training.global_batch=64");
    }
    throw InputError(config_.where, "'train_batch_size' is missing: the samples of an iteration on all devices");
  }

  // The batch that its other two numbers make on all replicas.
  long long batch_of(const yaml::Node& size, const yaml::Node* steps) const {
    const long long each = yaml::integer(size, "train_micro_batch_size_per_gpu", 1, kMostSamples);
    const int count = steps != nullptr ? yaml::integer(*steps, "gradient_accumulation_steps", 1, kMostSamples) : 1;
    if (each * count > kMostSamples / replicas_) {
      throw InputError(size.where, "more than " + std::to_string(kMostSamples) + " samples in a batch");
    }
    return each * count * replicas_;
  }

  bool is_enabled(const char* key) {
    const yaml::Node* node = map_.find(key);
    if (node == nullptr) {
      return false;
    }
    yaml::Map of_precision(*node, key);
    const yaml::Node* enabled = of_precision.find("enabled");
    if (enabled != nullptr && enabled->text == "auto") {
      draft_.leave(std::string(key) + ".enabled auto (here it is off unless the study's 'precision' says otherwise)");
    }
    return enabled != nullptr && enabled->text != "auto" && of_precision.boolean("enabled", false);
  }

  void read_precision() {
    const bool half = is_enabled("fp16"), brain = is_enabled("bf16") || is_enabled("bfloat16");
    if (half && brain) {
      throw InputError(map_.where("bf16"), "both fp16 and bf16 are enabled; allowed: one of them");
    }
    precision_ = half ? Precision::fp16 : brain ? Precision::bf16 : Precision::fp32;
    set("precision", std::string(row_of(precision_).name), map_.where(half ? "fp16" : "bf16"));
  }

  void read_types(const yaml::Node& node) {
    yaml::Map types(node, "data_types");
    const yaml::Node* given = types.find("grad_accum_dtype");
    if (given == nullptr || given->text == "auto" || given->kind == yaml::Node::Kind::null) {
      return;
    }
    struct Type {
      std::string_view name;
      Precision precision;
    };
    static constexpr std::array kTypes = {Type{"fp32", Precision::fp32},    Type{"float32", Precision::fp32},
                                          Type{"float", Precision::fp32},   Type{"fp16", Precision::fp16},
                                          Type{"float16", Precision::fp16}, Type{"half", Precision::fp16},
                                          Type{"bf16", Precision::bf16},    Type{"bfloat16", Precision::bf16}};
    const Precision type =
        find_by_name(kTypes, types.text("grad_accum_dtype"), "grad_accum_dtype", given->where).precision;
    if (type == Precision::fp32 || type == precision_) {
      set("gradient_precision", std::string(row_of(type).name), given->where);
    } else {
      draft_.leave("data_types.grad_accum_dtype " + given->text + " (here " + std::string(row_of(precision_).name) +
                   ", or fp32)");
    }
  }

  void read_optimizer() {
    const yaml::Node* node = map_.find("optimizer");
    if (node == nullptr) {
      return;
    }
    yaml::Map optimizer(*node, "optimizer");
    std::string name = optimizer.text("type");
    const std::string lower = lower_case(name);
    const auto row = std::find_if(kOptimizerNames.begin(), kOptimizerNames.end(),
                                  [&](const OptimizerName& known) { return known.name == lower; });
    if (row == kOptimizerNames.end()) {
      draft_.other_optimizer("optimizer", name, names_of(kOptimizerNames), optimizer.where("type"));
      return;
    }
    std::string known(row->optimizer);
    if (const yaml::Node* params = optimizer.find("params"); known == "sgd" && params != nullptr) {
      const yaml::Node* momentum = params->find("momentum");
      known = momentum != nullptr && yaml::number(*momentum, "momentum", yaml::kNotNegative) > 0 ? "momentum" : known;
    }
    set("optimizer", known, optimizer.where("type"));
  }

  void read_zero() {
    const yaml::Node* node = map_.find("zero_optimization");
    if (node == nullptr) {
      set("parallel.zero", "0", config_.where);
      return;
    }
    yaml::Map zero(*node, "zero_optimization");
    const int stage = zero.integer("stage", 0, static_cast<int>(Zero::weights), 0);
    stage_ = stage;
    set("parallel.zero", std::to_string(stage), zero.where("stage"));
    const bool overlaps = zero.boolean("overlap_comm", stage == static_cast<int>(Zero::weights));
    constexpr double kBucket = 5e8; // elements
    const yaml::Node* size = zero.find("reduce_bucket_size");
    const double elements =
        size == nullptr || size->text == "auto" ? kBucket : yaml::number(*size, "reduce_bucket_size", yaml::kPositive);
    if (overlaps) {
      set("gradient_bucket", to_text(elements * row_of(precision_).bytes, 0) + " B",
          zero.where(size != nullptr ? "reduce_bucket_size" : "stage"));
    } else {
      set("gradient_bucket", "none", zero.where("stage"));
    }
    check_devices(zero);
    if (stage > 0) {
      read_offload(zero);
    }
    if (stage == static_cast<int>(Zero::weights)) {
      read_zero_plus_plus(zero);
    }
    for (const yaml::Node::Entry& entry : node->entries) {
      const yaml::Node* device = entry.value.find("device");
      const bool is_off = device != nullptr && device->text == "none"; // nothing is put elsewhere
      if (!is_off && taken_.count(entry.key) == 0 &&
          std::find(kHarmlessOfZero.begin(), kHarmlessOfZero.end(), entry.key) == kHarmlessOfZero.end()) {
        draft_.leave("zero_optimization." + excerpt(entry.key));
      }
    }
  }

  // Where states and weights are left.
  static void check_devices(yaml::Map& zero) {
    for (const char* key : {"offload_optimizer", "offload_param"}) {
      const yaml::Node* device = zero.has(key) ? zero.node(key).find("device") : nullptr;
      const std::vector<std::string> known = {"none", "cpu", "nvme"};
      if (device != nullptr && std::find(known.begin(), known.end(), device->text) == known.end()) {
        throw InputError(device->where, unknown_name("device of " + std::string(key), device->text, known));
      }
    }
  }

  // The host steps parameters, or with stage 3 a part of them, and their gradients go there as soon as they are
  // reduced. With stage 3 it may keep weights too. What goes to disks ("nvme") is not taken over.
  void read_offload(yaml::Map& zero) {
    const yaml::Node* optimizer = zero.find("offload_optimizer");
    const yaml::Node* device = optimizer != nullptr ? optimizer->find("device") : nullptr;
    if (device == nullptr || device->text != "cpu") {
      return;
    }
    taken_.insert("offload_optimizer");
    constexpr yaml::Range kPart{0, 1, true, "0 to 1"};
    const yaml::Node* ratio = optimizer->find("ratio");
    const double part = ratio != nullptr ? yaml::number(*ratio, "ratio", kPart) : 1;
    if (part == 0) {
      return;
    }
    set("offload.optimizer", ratio != nullptr ? ratio->text : "1", ratio != nullptr ? ratio->where : device->where);
    set("offload.gradients", "true", device->where);
    const yaml::Node* weights = zero.find("offload_param");
    const yaml::Node* place = weights != nullptr ? weights->find("device") : nullptr;
    if (place != nullptr && place->text == "cpu" && part == 1 && stage_ == static_cast<int>(Zero::weights)) {
      set("offload.parameters", "true", place->where);
      taken_.insert("offload_param");
    }
  }

  // Its group of one keeps no second copy.
  void read_zero_plus_plus(yaml::Map& zero) {
    for (const char* key : {"zero_quantized_weights", "zero_quantized_gradients", "zero_hpz_partition_size"}) {
      taken_.insert(key);
    }
    if (zero.boolean("zero_quantized_weights", false)) {
      set("parallel.quantized_weights", "int8", zero.where("zero_quantized_weights"));
    }
    if (zero.boolean("zero_quantized_gradients", false)) {
      set("parallel.quantized_gradients", "true", zero.where("zero_quantized_gradients"));
    }
    if (const int size = zero.integer("zero_hpz_partition_size", 1, kMostConfigDegree, 1); size > 1) {
      divide_replicas("zero_hpz_partition_size", size, zero.where("zero_hpz_partition_size"));
      set("parallel.hpz_partition_size", std::to_string(size), zero.where("zero_hpz_partition_size"));
    }
    // Groups that share states, and hold the same as others (MiCS); of one replica they would share nothing.
    if (const int size = zero.integer("mics_shard_size", -1, kMostConfigDegree, -1); size == -1 || size > 1) {
      taken_.insert("mics_shard_size");
      if (size > 1) {
        divide_replicas("mics_shard_size", size, zero.where("mics_shard_size"));
        set("parallel.shard", std::to_string(size), zero.where("mics_shard_size"));
      }
    }
  }

  // Ranks of replicas and of sequences share states.
  void divide_replicas(const std::string& key, int size, const Where& where) const {
    const int sharing = replicas_ * sequence_;
    if (sharing % size != 0) {
      throw InputError(where, "'" + key + "' " + std::to_string(size) + " does not divide the " +
                                  std::to_string(sharing) +
                                  " replicas; nearest that do: " + nearest_divisors(sharing, size));
    }
  }

  // The mapping under a dotted path; null where there is none.
  const yaml::Node* block_at(std::string_view path) const {
    const yaml::Node* node = &config_;
    for (std::size_t begin = 0; node != nullptr && begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      node = node->kind == yaml::Node::Kind::map ? node->find(path.substr(begin, end - begin)) : nullptr;
      begin = end + 1;
    }
    return node != nullptr && node->kind == yaml::Node::Kind::map ? node : nullptr;
  }

  void list_in_blocks() {
    for (const Block& block : blocks()) {
      const yaml::Node* node = block_at(block.path);
      for (const yaml::Node::Entry& entry : node != nullptr ? node->entries : std::vector<yaml::Node::Entry>{}) {
        if (std::find(block.keys.begin(), block.keys.end(), entry.key) == block.keys.end() && !is_off(entry.value)) {
          draft_.leave(std::string(block.path) + "." + excerpt(entry.key));
        }
      }
    }
  }

  // A key as near to a known one of its mapping as a misspelling.
  template <class Names>
  static void refuse_misspelt_in(const yaml::Node* node, const Names& names, const std::string& path) {
    const std::vector<std::string> known(names.begin(), names.end());
    for (const yaml::Node::Entry& entry : node != nullptr ? node->entries : std::vector<yaml::Node::Entry>{}) {
      if (const std::string meant = misspelt(entry.key, known); !meant.empty()) {
        throw InputError(entry.where,
                         "unknown key of DeepSpeed '" + path + excerpt(entry.key) + "'; did you mean '" + meant + "'?");
      }
    }
  }

  void refuse_misspelt() const {
    std::vector<std::string_view> names(kRead.begin(), kRead.end());
    names.insert(names.end(), kHarmless.begin(), kHarmless.end());
    names.insert(names.end(), kOthers.begin(), kOthers.end());
    refuse_misspelt_in(&config_, names, "");
    names.assign(kReadOfZero.begin(), kReadOfZero.end());
    names.insert(names.end(), kHarmlessOfZero.begin(), kHarmlessOfZero.end());
    names.insert(names.end(), kOthersOfZero.begin(), kOthersOfZero.end());
    refuse_misspelt_in(block_at("zero_optimization"), names, "zero_optimization.");
    for (const Block& block : blocks()) {
      refuse_misspelt_in(block_at(block.path), block.keys, std::string(block.path) + ".");
    }
  }

  // How the model's code checkpoints activations, which says what of it runs again.
  void list_checkpointing() {
    const yaml::Node* node = block_at("activation_checkpointing");
    for (const yaml::Node::Entry& entry : node != nullptr ? node->entries : std::vector<yaml::Node::Entry>{}) {
      if (!is_off(entry.value) && entry.key != "profile") {
        draft_.leave("activation_checkpointing." + excerpt(entry.key) +
                     (entry.key == "cpu_checkpointing" ? " (training.offload.activations leaves to hosts what "
                                                         "training.recompute keeps)"
                                                       : " (what runs again is said by training.recompute)"));
      }
    }
  }

  void list_others() {
    list_in_blocks();
    list_checkpointing();
    for (const yaml::Node::Entry& entry : config_.entries) {
      if (std::find(kRead.begin(), kRead.end(), entry.key) == kRead.end() &&
          std::find(kHarmless.begin(), kHarmless.end(), entry.key) == kHarmless.end() &&
          (entry.value.kind == yaml::Node::Kind::map || !is_off(entry.value))) {
        if (entry.key.ends_with("parallel_size")) { // GPT-NeoX has such beside DeepSpeed's keys
          throw InputError(entry.where,
                           "'" + excerpt(entry.key) +
                               "' is no key of DeepSpeed's JSON, and a degree must not "
                               "be ignored; allowed: 'tensor_parallel', 'pipeline', 'sequence_parallel_size', "
                               "'expert_parallel', or 'parallel' of the study");
        }
        draft_.leave(excerpt(entry.key));
      }
    }
  }

  const yaml::Node& config_;
  yaml::Map map_;
  Precision precision_ = Precision::fp32;
  TrainingDraft draft_;
  int tensor_ = 1, sequence_ = 1, pipeline_ = 1, replicas_ = 1, stage_ = 0;
  std::vector<NamedDegree> degrees_;
  std::set<std::string, std::less<>> taken_{kReadOfZero.begin(), kReadOfZero.end()}; // of zero_optimization
};

} // namespace

ImportedTraining import_deepspeed(const ConfigSource& source, const ConfigContext& context) {
  return DeepSpeed(source.document(), context).read();
}

} // namespace stagecraft
