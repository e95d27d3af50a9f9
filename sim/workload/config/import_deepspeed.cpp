// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/training_draft.hpp"

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
constexpr std::array<std::string_view, 8> kHarmlessOfZero = {
    "allgather_partitions",     "allgather_bucket_size",
    "contiguous_gradients",     "reduce_scatter",
    "round_robin_gradients",    "sub_group_size",
    "ignore_unused_parameters", "stage3_gather_16bit_weights_on_model_save"};

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
    read_tensor();
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
    if (tensor_ > 1) {
      set("parallel.tensor", std::to_string(tensor_), tensor_where_);
    }
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

  void read_tensor() {
    if (const yaml::Node* tensor = map_.find("tensor_parallel")) {
      yaml::Map of_tensor(*tensor, "tensor_parallel");
      tensor_ = std::max(1, of_tensor.integer("autotp_size", 0, kMostConfigDegree, 0));
      tensor_where_ = of_tensor.where("autotp_size");
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
      yaml::integer(*batch, "train_batch_size", 1, kMostSamples);
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
    const int replicas = draft_.replicas_beside({{"tensor_parallel.autotp_size", tensor_, tensor_where_}});
    const long long each = yaml::integer(size, "train_micro_batch_size_per_gpu", 1, kMostSamples);
    const int count = steps != nullptr ? yaml::integer(*steps, "gradient_accumulation_steps", 1, kMostSamples) : 1;
    if (each * count > kMostSamples / replicas) {
      throw InputError(size.where, "more than " + std::to_string(kMostSamples) + " samples in a batch");
    }
    return each * count * replicas;
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
    if (const std::string type = types.text("grad_accum_dtype", ""); type == "fp32" || type == "float32") {
      set("gradient_precision", "fp32", types.where("grad_accum_dtype"));
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
      set("parallel.hpz_partition_size", std::to_string(size), zero.where("zero_hpz_partition_size"));
    }
    // Groups that share states, and hold the same as others (MiCS); of one replica they would share nothing.
    if (const int size = zero.integer("mics_shard_size", -1, kMostConfigDegree, -1); size == -1 || size > 1) {
      taken_.insert("mics_shard_size");
      if (size > 1) {
        set("parallel.shard", std::to_string(size), zero.where("mics_shard_size"));
      }
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

  void list_others() {
    list_in_blocks();
    constexpr std::array<std::string_view, 12> kRead = {"train_batch_size",
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
                                                        "$schema"};
    for (const yaml::Node::Entry& entry : config_.entries) {
      if (std::find(kRead.begin(), kRead.end(), entry.key) == kRead.end() &&
          std::find(kHarmless.begin(), kHarmless.end(), entry.key) == kHarmless.end() &&
          (entry.value.kind == yaml::Node::Kind::map || !is_off(entry.value))) {
        draft_.leave(entry.key == "activation_checkpointing"
                         ? "activation_checkpointing (what runs again is said by training.recompute)"
                         : excerpt(entry.key));
      }
    }
  }

  const yaml::Node& config_;
  yaml::Map map_;
  Precision precision_ = Precision::fp32;
  TrainingDraft draft_;
  int tensor_ = 1, stage_ = 0;
  Where tensor_where_;
  std::set<std::string, std::less<>> taken_ = {"stage", "overlap_comm", "reduce_bucket_size"}; // of zero_optimization
};

} // namespace

ImportedTraining import_deepspeed(const ConfigSource& source, const ConfigContext& context) {
  return DeepSpeed(source.document(), context).read();
}

} // namespace stagecraft
