// MaxText's base.yml and overrides of it (src/maxtext/configs/base.yml has the defaults). A degree is that inside a
// slice, ici_, times that between slices, dcn_; -1 is what the others leave.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/model_sizes.hpp"
#include "sim/workload/config/common/names_without_effect.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/config/maxtext_policy.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 13> kAxes = {"data",
                                                    "fsdp",
                                                    "fsdp_transpose",
                                                    "sequence",
                                                    "context",
                                                    "context_usp_ulysses",
                                                    "context_autoregressive",
                                                    "tensor",
                                                    "tensor_sequence",
                                                    "tensor_transpose",
                                                    "pipeline",
                                                    "expert",
                                                    "autoregressive"};

struct Quantization {
  std::string_view name, fp8;
};
constexpr std::array kQuantizations = {
    Quantization{"fp8", "delayed"},
    Quantization{"nanoo_fp8", "delayed"},
    Quantization{"te_fp8_delayedscaling", "delayed"},
    Quantization{"te_fp8_currentscaling", "tensorwise"},
    Quantization{"te_mxfp8", "mxfp8"},
};

// Which the model says, and that read_sizes() does not hold against it.
constexpr std::array<std::string_view, 3> kOtherDimensions = {"shared_experts", "first_num_dense_layers",
                                                              "mlp_activations"};

// What changes time or memory, and is listed where it is on.
constexpr std::array<std::string_view, 62> kListedKeys = {"optimizer_memory_host_offload",
                                                          "parameter_memory_host_offload",
                                                          "pipeline_delay_activation_forwarding",
                                                          "pipeline_fsdp_ag_once",
                                                          "pipeline_fsdp_ag_per_repeat",
                                                          "use_ring_of_experts",
                                                          "use_batch_split_schedule",
                                                          "use_2d_fsdp_sharding",
                                                          "enable_diloco",
                                                          "enable_rampup_batch_size",
                                                          "custom_mesh",
                                                          "custom_mesh_and_rule",
                                                          "compile_topology",
                                                          "pipeline_parallel_layers",
                                                          "ici_diloco_parallelism",
                                                          "dcn_diloco_parallelism",
                                                          "quantize_kvcache",
                                                          "expert_shard_attention_option",
                                                          "te_comm_gemm_overlap",
                                                          "dense_fsdp_use_two_stage_all_gather",
                                                          "moe_fsdp_use_two_stage_all_gather",
                                                          "fused_mlp",
                                                          "fused_qkv",
                                                          "moe_chunk_barrier",
                                                          "batch_split_factor",
                                                          "num_communication_overlapping_steps",
                                                          "communication_overlapping_alpha",
                                                          "set_remat_policy_on_layers_per_stage",
                                                          "tensors_on_device",
                                                          "tensors_to_offload",
                                                          "compile_xla_flags",
                                                          "use_ragged_attention",
                                                          "use_ragged_sort",
                                                          "use_tokamax_gmm",
                                                          "merge_gating_gmm",
                                                          "moe_dispatch_no_expert_sharding",
                                                          "shard_exp_on_fsdp",
                                                          "override_logical_axis_rules",
                                                          "enable_lora",
                                                          "lora",
                                                          "use_qwix_quantization",
                                                          "use_manual_quantization",
                                                          "weight_sparsity_n",
                                                          "weight_sparsity_m",
                                                          "use_dpo",
                                                          "use_grpo",
                                                          "enable_dp_attention",
                                                          "activations_in_float32",
                                                          "float32_gate_logits",
                                                          "float32_logits",
                                                          "float32_qk_product",
                                                          "logits_dot_in_fp32",
                                                          "prefuse_moe_weights",
                                                          "ragged_buffer_factor",
                                                          "use_tunix_gradient_accumulation",
                                                          "trainable_parameters_mask",
                                                          "use_max_logit_estimate",
                                                          "use_qk_clip",
                                                          "num_moe_emb_chunks",
                                                          "num_moe_token_chunks",
                                                          "moba",
                                                          "use_indexer"};

class MaxText {
public:
  MaxText(const yaml::Node& document, const ConfigContext& context)
      : leaves_(document, "MaxText's configuration"), draft_(context, document.where), devices_(context.devices) {}

  ImportedTraining read() {
    draft_.framework("maxtext");
    read_degrees();
    read_stages();
    read_batch();
    read_precision();
    read_maxtext_policy(leaves_, draft_);
    read_optimizer();
    if (const yaml::Node* length = leaves_.find("", "max_target_length")) {
      draft_.sequence_length("max_target_length", yaml::integer(*length, "max_target_length", 1, kMostConfigSamples),
                             length->where);
    }
    list_others();
    return draft_.take();
  }

private:
  Where where_of(const std::string& axis, const char* network = "ici_") {
    return leaves_.where("", network + axis + "_parallelism");
  }

  // The degrees of one network as the file gives them, and their product without the one, at most, that is -1.
  struct Given {
    std::array<long long, kAxes.size()> degrees{};
    std::size_t left = kAxes.size(); ///< the axis that is -1; else their number
    long long product = 1;
  };
  Given given_degrees(const char* network, std::string_view left_by_default) {
    Given given;
    for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
      const std::string key = network + std::string(kAxes[axis]) + "_parallelism";
      given.degrees[axis] = leaves_.integer("", key, -1, kMostConfigDegree, kAxes[axis] == left_by_default ? -1 : 1);
      if (given.degrees[axis] == 0) {
        throw InputError(leaves_.where("", key), "'" + key + "' is 0; allowed: 1 or more, or -1 for what is left");
      }
      if (given.degrees[axis] < 0 && given.left < kAxes.size()) {
        throw InputError(leaves_.where("", key), "'" + key + "' is -1, and so is '" + network +
                                                     std::string(kAxes[given.left]) +
                                                     "_parallelism'; allowed: -1 for one of them");
      }
      given.left = given.degrees[axis] < 0 ? axis : given.left;
      given.product = std::min<long long>(given.product * std::max(1LL, given.degrees[axis]), kMostConfigDegree);
    }
    return given;
  }

  // The first degree of a network that another number makes fit, and that number.
  std::string nearest_degree(const Given& given, const char* network, long long all) const {
    const bool none_left = given.left == kAxes.size();
    for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
      const long long degree = given.degrees[axis], others = degree > 1 ? given.product / degree : 0;
      if (others > 0 && all % others == 0) {
        const auto left = static_cast<int>(all / others);
        return "nearest that do: '" + std::string(network) + std::string(kAxes[axis]) + "_parallelism' " +
               (none_left ? std::to_string(left) + ", or -1 for one of them"
                          : nearest_divisors(left, static_cast<int>(degree)));
      }
    }
    return "allowed: -1 for one of them, or degrees that multiply to it";
  }

  // The axis that is -1 takes what the others leave of `all`.
  std::array<long long, kAxes.size()> filled(Given given, const char* network, long long all) {
    const bool none_left = given.left == kAxes.size();
    if (all % given.product != 0 || (none_left && given.product != all)) {
      throw InputError(named_where(network), "degrees of " + std::string(network) + " make " +
                                                 std::to_string(given.product) + ", which " +
                                                 (none_left ? "is not" : "does not divide") + " the " +
                                                 (std::string_view(network) == "ici_"
                                                      ? count_of(static_cast<int>(all), "device") + " of a slice"
                                                      : count_of(static_cast<int>(all), "slice")) +
                                                 "; " + nearest_degree(given, network, all));
    }
    if (!none_left) {
      given.degrees[given.left] = all / given.product;
    }
    return given.degrees;
  }

  // Place of the first degree of a network that the file gives.
  Where named_where(const char* network) {
    for (const std::string_view axis : kAxes) {
      if (leaves_.find("", network + std::string(axis) + "_parallelism") != nullptr) {
        return where_of(std::string(axis), network);
      }
    }
    return leaves_.where("", network);
  }

  // A slice is what one fast network joins; a platform does not say so. Without num_slices there are as many as the
  // degrees inside leave, or, where these take what is left, as the degrees between make.
  int slices(const Given& inside, const Given& between) {
    const int given = std::max(leaves_.integer("", "num_slices", -1, kMostConfigDegree, -1),
                               leaves_.integer("", "compile_topology_num_slices", -1, kMostConfigDegree, -1));
    const bool fills = inside.left < kAxes.size() || devices_ % inside.product != 0;
    const auto slices = static_cast<int>(given > 0 ? given : fills ? between.product : devices_ / inside.product);
    if (devices_ % slices != 0) {
      throw InputError(named_where("dcn_"), count_of(slices, "slice") + " do not divide the platform's " +
                                                count_of(devices_, "device") + "; allowed: a divisor");
    }
    return slices;
  }

  // The batch is shared by the ranks of data, fsdp and expert, which all but data shard the weights.
  void read_degrees() {
    const Given in_slice = given_degrees("ici_", "fsdp"), of_slices = given_degrees("dcn_", "data");
    const int count = slices(in_slice, of_slices);
    const auto inside = filled(in_slice, "ici_", devices_ / count);
    const auto between = filled(of_slices, "dcn_", count);
    const auto degree = [&](std::initializer_list<std::string_view> axes) {
      long long product = 1;
      for (const std::string_view axis : axes) {
        const auto at = static_cast<std::size_t>(std::find(kAxes.begin(), kAxes.end(), axis) - kAxes.begin());
        product *= inside[at] * between[at];
      }
      return static_cast<int>(std::min<long long>(product, kMostConfigDegree));
    };
    const int data = degree({"data"}), shard = degree({"fsdp", "fsdp_transpose", "expert"});
    const int tensor = degree({"tensor", "tensor_sequence", "tensor_transpose"});
    pipeline_ = degree({"pipeline"});
    draft_.degree("tensor", tensor, where_of("tensor"));
    draft_.degree("pipeline", pipeline_, where_of("pipeline"));
    draft_.degree("context", degree({"sequence", "context", "context_usp_ulysses"}), where_of("context"));
    if (const int ranks = degree({"sequence", "context", "context_usp_ulysses"}); ranks > 1) {
      read_context_rule(ranks, degree({"context_usp_ulysses"}));
    }
    draft_.degree("expert", degree({"expert"}), where_of("expert"));
    draft_.set("parallel.data", 1LL * data * shard, where_of("fsdp"));
    if (degree({"tensor_sequence"}) > 1) {
      draft_.set("parallel.sequence", "true", where_of("tensor_sequence"));
    }
    if (const int other = degree({"autoregressive", "context_autoregressive"}); other > 1) {
      throw InputError(where_of("autoregressive"),
                       "the degree of inference is " + std::to_string(other) + "; allowed: 1 in training");
    }
    const bool of_states = leaves_.boolean("", "shard_optimizer_over_data", false);
    draft_.set("parallel.zero", shard > 1 ? 3 : of_states ? 1 : 0, where_of("fsdp"));
    if (shard > 1 && data > 1) {
      draft_.set("parallel.shard", shard, where_of("fsdp"));
    }
    if (of_states && shard > 1) {
      draft_.leave("shard_optimizer_over_data");
    }
  }

  // All forwards, then all backwards: a loop over micro-batches that is differentiated. Repeats make it circular.
  void read_stages() {
    const int repeats = leaves_.integer("", "num_pipeline_repeats", -1, kMostConfigDegree, -1);
    const int layers = leaves_.integer("", "num_layers_per_pipeline_stage", 1, kMostConfigDegree, 1);
    if (pipeline_ == 1) {
      draft_.schedule("1f1b", where_of("pipeline"));
      return;
    }
    const long long at_once = 1LL * pipeline_ * layers;
    const bool is_given = leaves_.find("", "num_layers_per_pipeline_stage") != nullptr;
    const Where where = is_given ? leaves_.where("", "num_layers_per_pipeline_stage") : where_of("pipeline");
    if (draft_.layers() % at_once != 0) {
      throw InputError(where, std::to_string(draft_.layers()) + " layers are no multiple of " +
                                  count_of(pipeline_, "rank") + " x " + std::to_string(layers) +
                                  " layers of a stage; allowed: 'num_layers_per_pipeline_stage' so that they are");
    }
    const long long needed = std::max(1LL, draft_.layers() / at_once);
    if (repeats > 0 && repeats != needed) {
      throw InputError(leaves_.where("", "num_pipeline_repeats"),
                       "'num_pipeline_repeats' " + std::to_string(repeats) + " x " + std::to_string(at_once) +
                           " layers at once is not the model's " + std::to_string(draft_.layers()) +
                           "; allowed: " + std::to_string(needed) + ", or -1");
    }
    if (needed > 1) {
      draft_.set("parallel.interleave", needed, where);
    }
    draft_.schedule(needed > 1 ? "breadth-first" : "gpipe", where);
  }

  // The shares of a device that make the whole numbers of samples below and above.
  std::string nearest_batch(double samples) const {
    constexpr int kDigits = 10;
    if (samples >= kMostConfigSamples) {
      return "";
    }
    const double below = std::floor(samples) / devices_, above = std::ceil(samples) / devices_;
    return "; nearest that are: " + (below > 0 ? to_digits(below, kDigits) + " or " : "") + to_digits(above, kDigits);
  }

  void read_batch() {
    constexpr double kUsual = 12;
    const yaml::Node* given = leaves_.find("", "per_device_batch_size");
    const Where where = leaves_.where("", "per_device_batch_size");
    const double each = given != nullptr ? yaml::number(*given, "per_device_batch_size", yaml::kPositive) : kUsual;
    const int steps = leaves_.integer("", "gradient_accumulation_steps", 1, kMostConfigSamples, 1);
    const double of_step = each * devices_;
    if (of_step != std::floor(of_step) || of_step * steps > kMostConfigSamples || of_step < 1) {
      throw InputError(where, "'per_device_batch_size' on " + count_of(devices_, "device") +
                                  " is no whole number of samples up to " + std::to_string(kMostConfigSamples) +
                                  nearest_batch(of_step));
    }
    draft_.set("global_batch", static_cast<long long>(of_step) * steps, where);
    const int asked = leaves_.integer("", "num_pipeline_microbatches", -1, kMostConfigSamples, -1);
    const int parts = pipeline_ == 1 ? 1 : asked > 0 ? asked : pipeline_;
    if (static_cast<long long>(of_step) % parts != 0) {
      throw InputError(leaves_.where("", "num_pipeline_microbatches"),
                       std::to_string(parts) + " micro-batches do not divide " +
                           std::to_string(static_cast<long long>(of_step)) +
                           " samples; nearest that do: " + nearest_divisors(static_cast<int>(of_step), parts));
    }
    draft_.set("micro_batches", 1LL * parts * steps,
               leaves_.where("", pipeline_ == 1 ? "gradient_accumulation_steps" : "num_pipeline_microbatches"));
    if (pipeline_ > 1 && steps > 1) {
      draft_.leave(std::to_string(steps) +
                   " passes of the pipeline that add up gradients (here one pass has all micro-batches)");
    }
  }

  void read_precision() {
    const std::vector<std::string> known = {"bfloat16", "float32", "float16"};
    const std::string type = leaves_.choice("", "dtype", known, "bfloat16");
    const std::string gradients = leaves_.choice("", "grad_dtype", known, "float32");
    const std::string weights = leaves_.choice("", "weight_dtype", known, "float32");
    draft_.set("precision",
               type == "bfloat16"  ? "bf16"
               : type == "float16" ? "fp16"
                                   : "fp32",
               leaves_.where("", "dtype"));
    if (type != "float32" && gradients == "float32") {
      draft_.set("gradient_precision", "fp32", leaves_.where("", "grad_dtype"));
    }
    if (type != "float32" && weights != "float32") {
      draft_.leave("weight_dtype " + weights + " (here master weights are of single precision)");
    }
    const std::string name = leaves_.text("", "quantization", "");
    const auto row = std::find_if(kQuantizations.begin(), kQuantizations.end(),
                                  [&](const Quantization& one) { return one.name == lower_case(name); });
    if (row != kQuantizations.end() && type != "float32") {
      draft_.set("fp8", std::string(row->fp8), leaves_.where("", "quantization"));
    } else if (!name.empty() && lower_case(name) != "none") {
      if (const std::string meant = misspelt(name, names_of(kQuantizations)); !meant.empty()) {
        throw InputError(leaves_.where("", "quantization"),
                         "unknown quantization '" + excerpt(name) + "'; did you mean '" + meant + "'?");
      }
      draft_.leave("quantization " + excerpt(name));
    }
  }

  void read_optimizer() {
    const std::string name = lower_case(leaves_.text("", "opt_type", "adamw"));
    if (name == "adamw" || name == "adam_pax" || name == "sgd") {
      draft_.set("optimizer", name == "sgd" ? "sgd" : "adam", leaves_.where("", "opt_type"));
    } else {
      draft_.other_optimizer("opt_type", name, {"adamw", "adam_pax", "sgd"}, leaves_.where("", "opt_type"));
    }
    draft_.set("clip_gradients", leaves_.number("", "gradient_clipping_threshold", 1) > 0 ? "true" : "false",
               leaves_.where("", "gradient_clipping_threshold"));
  }

  // How ranks that share tokens compute attention: `usp` exchanges them for heads among so many, and keys and values
  // go round between these.
  void read_context_rule(int ranks, int heads) {
    const char* key = "context_parallel_strategy";
    const std::string given =
        leaves_.choice("", key, std::vector<std::string>{"all_gather", "ring", "ulysses", "usp"}, "all_gather");
    const Where where = leaves_.find("", key) != nullptr ? leaves_.where("", key) : where_of("context");
    const bool both = given == "usp" && heads > 1 && heads < ranks;
    const bool of_heads = given == "ulysses" || (given == "usp" && heads == ranks);
    draft_.set("parallel.context_rule",
               both                                ? "both"
               : of_heads                          ? "all-to-all"
               : given == "ring" || given == "usp" ? "ring"
                                                   : "all-gather",
               where);
    if (both) {
      draft_.set("parallel.context_heads", std::to_string(heads), where);
    }
  }

  // Dense products of experts are of as many rows as their capacity; sparse ones heed none (layers/moe.py).
  void read_expert_capacity() {
    const yaml::Node* given = leaves_.find("", "capacity_factor");
    const double factor = given != nullptr && !given->text.empty() ? yaml::number(*given, "capacity_factor", {}) : -1;
    if (factor <= 0) {
      return;
    }
    if (leaves_.boolean("", "sparse_matmul", true)) {
      draft_.leave("capacity_factor " + excerpt(given->text) + " (which MaxText heeds only with sparse_matmul False)");
      return;
    }
    draft_.expert_capacity("capacity_factor", factor, true, given->where);
  }

  // Values of which any but the one given here changes a time or a size that is not modelled.
  void list_values() {
    struct Usual {
      const char* key;
      std::array<std::string_view, 5> values;
    };
    static constexpr std::array kUsual = {
        Usual{"attention", {"autoselected", "flash", "cudnn_flash_te", "cudnn_flash_jax", ""}},
        Usual{"sparse_matmul", {"true", "True", ""}},
        Usual{"mu_dtype", {"float32", ""}},
        Usual{"mtp_num_layers", {"0", ""}},
        Usual{"num_vocab_tiling", {"1", ""}},
        Usual{"sa_block_q", {"2048", ""}}, // as its own recipes have them, and the recipe `maxtext` counts
        Usual{"sa_block_kv", {"2048", ""}},
        Usual{"context_sharding", {"context", ""}},
        Usual{"megablox", {"true", "True", ""}},
        Usual{"ulysses_context_sharding", {"context_usp_ulysses", ""}}};
    for (const Usual& one : kUsual) {
      const std::string given = leaves_.text("", one.key, "");
      if (std::find(one.values.begin(), one.values.end(), given) == one.values.end()) {
        draft_.leave(std::string(one.key) + " " + excerpt(given));
      }
    }
  }

  // Sizes of a model that the file describes itself; where it names one, that has its own.
  void read_sizes() {
    const std::string name = leaves_.text("", "model_name", "default");
    const bool scaled = leaves_.integer("", "global_parameter_scale", 1, kMostConfigDegree, 1) > 1;
    const ModelSizes sizes = sizes_of(draft_.context().model);
    for (const auto& [key, size] : {std::pair{"base_emb_dim", sizes.hidden},
                                    {"base_mlp_dim", sizes.feed_forward},
                                    {"base_num_query_heads", sizes.heads},
                                    {"base_num_kv_heads", sizes.groups},
                                    {"head_dim", sizes.head_width},
                                    {"base_num_decoder_layers", std::optional<long long>(draft_.layers())},
                                    {"num_experts", sizes.experts == 0 ? 1 : sizes.experts}, // 1 is none
                                    {"num_experts_per_tok", sizes.top == 0 ? 1 : sizes.top},
                                    {"base_moe_mlp_dim", sizes.expert_feed_forward},
                                    {"vocab_size", sizes.vocabulary}}) {
      const int said = leaves_.integer("", key, -1, kMostConfigSamples, -1); // -1 is not given
      if (said >= 0 && name == "default" && !scaled) {
        draft_.size(key, said, size, leaves_.where("", key));
      }
    }
  }

  void list_others() {
    read_expert_capacity();
    list_values();
    for (const std::string_view name : kListedKeys) {
      const yaml::Node* value = leaves_.find("", name);
      const bool is_one = value != nullptr && (value->text == "1" || value->text == "-1.0"); // as if left out
      if (value != nullptr && !is_off(*value) && !is_one) {
        draft_.leave(std::string(name));
      }
    }
    read_sizes();
    leaves_.ignore("", kOtherDimensions);
    constexpr std::array<std::string_view, 1> kOfCheckpoints = {"mtc_data_parallelism"};
    leaves_.ignore("", kOfCheckpoints);
    leaves_.ignore_if([](const ConfigLeaf& leaf) { return is_maxtext_name_without_effect(leaf.name); });
    leaves_.refuse_unknown("key of MaxText",
                           [](const ConfigLeaf& leaf) { return leaf.name.ends_with("_parallelism"); });
    leaves_.refuse_misspelt("key of MaxText");
    for (const ConfigLeaf* leaf : leaves_.left()) {
      if (!is_off(*leaf->value)) {
        draft_.leave(path_of(*leaf) + std::string(kNotKnown));
      }
    }
  }

  ConfigLeaves leaves_;
  TrainingDraft draft_;
  int devices_, pipeline_ = 1;
};

} // namespace

ImportedTraining import_maxtext(const ConfigSource& source, const ConfigContext& context) {
  return MaxText(source.document(), context).read();
}

} // namespace stagecraft
