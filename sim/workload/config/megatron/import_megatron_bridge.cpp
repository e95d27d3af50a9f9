// Megatron-Bridge's ConfigContainer (megatron.bridge.training.config): Megatron-LM's arguments with underscores, in
// sections. Recipes set more than a file of overrides says; what the file leaves out is as Megatron-LM has it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/names_without_effect.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"
#include "sim/workload/config/megatron/unheeded_arguments.hpp"

namespace stagecraft {
namespace {

struct Alias {
  std::string_view name, flag;
};
// Where Megatron-Bridge's name differs by more than underscores.
constexpr std::array kAliases = {
    Alias{"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    Alias{"num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    Alias{"num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    Alias{"microbatch_group_size_per_vp_stage", "microbatch-group-size-per-virtual-pipeline-stage"},
    Alias{"fp8", "fp8-format"},
    Alias{"fp4", "fp4-format"},
    Alias{"fp8_param", "fp8-param-gather"},
    Alias{"bucket_size", "ddp-bucket-size"},
    Alias{"cpu_offloading", "cpu-offloading-num-layers"},
    Alias{"distribute_saved_activations", "distribute-saved-activations"},
    // NeMo's until 2024, whose files have the same shape
    Alias{"activations_checkpoint_granularity", "recompute-granularity"},
    Alias{"activations_checkpoint_method", "recompute-method"},
    Alias{"activations_checkpoint_num_layers", "recompute-num-layers"},
    Alias{"num_nodes", "nnodes"},
};

// `trainer.precision` of PyTorch Lightning, by which NeMo's files of these years say it.
struct LightningPrecision {
  std::string_view name, flag; // "": 32 bits
};
constexpr std::array kLightningPrecisions = {
    LightningPrecision{"bf16", "bf16"}, LightningPrecision{"bf16-mixed", "bf16"},
    LightningPrecision{"16", "fp16"},   LightningPrecision{"16-mixed", "fp16"},
    LightningPrecision{"32", ""},       LightningPrecision{"32-true", ""}};

// Real fields whose names are as near to one that is read as a misspelling of it.
constexpr std::array<std::string_view, 4> kNearFields = {"fp4_param", "delayed_wgrad_compute", "nodes", "num_labels"};

struct PrecisionName {
  std::string_view name, flag, recipe;     // of products in 8 or 4 bits, "" where they are of 16
  bool gathers = false, wide_ends = false; // weights are held and gathered in 8 bits; first and last layer have 16
};
// mixed_precision may name a whole set of fields.
constexpr std::array kPrecisionNames = {
    PrecisionName{"bf16_mixed", "bf16", ""},
    PrecisionName{"fp16_mixed", "fp16", ""},
    PrecisionName{"bf16_with_fp8_delayed_scaling_mixed", "bf16", "delayed", true},
    PrecisionName{"bf16_with_fp8_current_scaling_mixed", "bf16", "tensorwise", true, true},
    PrecisionName{"bf16_with_fp8_subchannel_scaling_mixed", "bf16", "blockwise"},
    PrecisionName{"bf16_with_mxfp8_mixed", "bf16", "mxfp8", true},
    PrecisionName{"bf16_with_nvfp4_mixed", "bf16", "nvfp4"},
    PrecisionName{"fp16_with_fp8_delayed_scaling_mixed", "fp16", "delayed", true},
    PrecisionName{"fp16_with_fp8_current_scaling_mixed", "fp16", "tensorwise", true, true},
    PrecisionName{"fp16_with_mxfp8_mixed", "fp16", "mxfp8", true},
};

// Whatever they say, a pass depends on none of it.
constexpr std::array<std::string_view, 13> kSectionsBesideTraining = {
    "dataset",          "checkpoint", "logger", "rng",       "profiling",           "scheduler",
    "tokenizer",        "validation", "ft",     "straggler", "rerun_state_machine", "nvrx_straggler",
    "inprocess_restart"};

// Fields that are on unless the file turns them off, which changes a time or a size.
constexpr std::array<std::string_view, 13> kListedWhereOff = {"masked_softmax_fusion",
                                                              "persist_layer_norm",
                                                              "bias_activation_fusion",
                                                              "bias_dropout_fusion",
                                                              "apply_rope_fusion",
                                                              "deallocate_pipeline_outputs",
                                                              "async_tensor_model_parallel_allreduce",
                                                              "overlap_p2p_comm",
                                                              "gradient_reduce_div_fusion",
                                                              "moe_grouped_gemm",
                                                              "cross_entropy_loss_fusion",
                                                              "moe_permute_fusion",
                                                              "pin_cpu_grads"};

class Bridge {
public:
  Bridge(const yaml::Node& document, const ConfigContext& context)
      : document_(document), leaves_(document, "Megatron-Bridge's configuration"), context_(context) {}

  ImportedTraining read() {
    read_precision();
    for (const ConfigLeaf* leaf : leaves_.left()) {
      take(*leaf);
    }
    ImportedTraining read = megatron_training(MegatronArguments(settings_, 0, document_.where, MegatronNames::fields),
                                              std::move(unheeded_), context_);
    read.framework = "megatron-bridge";
    return read;
  }

private:
  void add(std::string_view flag, std::string text, const Where& where, const std::string& written) {
    const auto same = std::find_if(settings_.begin(), settings_.end(),
                                   [&](const MegatronSetting& known) { return known.name == flag; });
    if (same == settings_.end()) {
      settings_.push_back({std::string(flag), {std::move(text), where}, written});
    } else if (same->value.text != text) { // use_distributed_optimizer stands in two sections
      throw InputError(where, "'" + excerpt(written) + "' is '" + excerpt(text) + "', and in line " +
                                  std::to_string(same->value.where.line) + " '" + excerpt(same->value.text) +
                                  "'; allowed: the same");
    }
  }

  void read_precision() {
    const yaml::Node* named = leaves_.find("", "mixed_precision");
    if (const yaml::Node* lightning = leaves_.find("trainer", "precision"); named == nullptr && lightning != nullptr) {
      const LightningPrecision& row = find_by_name(kLightningPrecisions, yaml::scalar(*lightning, "precision"),
                                                   "precision of a trainer", lightning->where);
      if (!row.flag.empty()) {
        add(row.flag, "", lightning->where, "trainer.precision");
      }
      return;
    }
    if (named == nullptr) {
      const auto left = leaves_.left();
      if (std::none_of(left.begin(), left.end(), [](const ConfigLeaf* leaf) {
            return leaf->name == "bf16" || leaf->name == "fp16" || leaf->name == "params_dtype";
          })) {
        add("bf16", "", document_.where, "bf16"); // as its recipes set
      }
      return;
    }
    const PrecisionName& row =
        find_by_name(kPrecisionNames, yaml::scalar(*named, "mixed_precision"), "mixed precision", named->where);
    add(row.flag, "", named->where, "mixed_precision");
    if (!row.recipe.empty()) {
      const bool four = row.recipe == "nvfp4";
      add(four ? "fp4-format" : "fp8-format", four ? "e2m1" : "hybrid", named->where, "mixed_precision");
      add(four ? "fp4-recipe" : "fp8-recipe", std::string(row.recipe), named->where, "mixed_precision");
    }
    if (row.gathers && !turned_off("fp8_param_gather") && !turned_off("fp8_param")) {
      add("fp8-param-gather", "", named->where, "mixed_precision");
    }
    if (row.wide_ends && !turned_off("first_last_layers_bf16")) {
      unheeded_.push_back("mixed_precision " + std::string(row.name) +
                          ", whose first and last layer multiply in 16 bits (here all layers do in 8)");
    }
  }

  // Whether the file itself says that a field of a named set is off.
  bool turned_off(std::string_view name) const {
    const auto left = leaves_.left();
    return std::any_of(left.begin(), left.end(),
                       [&](const ConfigLeaf* leaf) { return leaf->name == name && is_off(*leaf->value); });
  }

  static bool is_beside_training(const ConfigLeaf& leaf) {
    return std::find(kSectionsBesideTraining.begin(), kSectionsBesideTraining.end(), leaf.section) !=
           kSectionsBesideTraining.end();
  }

  void take_optimizer(const ConfigLeaf& leaf) {
    const std::string name = lower_case(yaml::scalar(*leaf.value, leaf.name));
    if (name.find("distributed") != std::string::npos) {
      add("use-distributed-optimizer", "", leaf.value->where, path_of(leaf));
    }
    if (name.find("adam") == std::string::npos && name != "mcore_distributed_optim") {
      unheeded_.push_back(path_of(leaf) + " " + excerpt(name) + " (here it is Adam)");
    }
  }

  // A field of which nothing but its name tells whether it matters.
  void list_unless_known(const ConfigLeaf& leaf, const std::string& flag) {
    if (leaf.section == "peft") {
      unheeded_.emplace_back("peft (all weights are trained here)");
    } else if (!is_off(*leaf.value) && find_megatron_flag(flag) == nullptr && !is_megatron_name_without_effect(flag)) {
      unheeded_.push_back(path_of(leaf) + std::string(kNotKnown));
    }
  }

  void take(const ConfigLeaf& leaf) {
    const auto alias =
        std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& one) { return one.name == leaf.name; });
    std::string flag = alias != kAliases.end() ? std::string(alias->flag) : leaf.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (is_beside_training(leaf) || leaf.section == "peft") {
      list_unless_known(leaf, flag);
      return;
    }
    if (leaf.section == "optim" && leaf.name == "name") { // NeMo's, as distributed_fused_adam
      take_optimizer(leaf);
      return;
    }
    if (leaf.section == "trainer" && leaf.name == "devices") {
      flag = "nproc-per-node";
    }
    const std::string text =
        leaf.value->kind == yaml::Node::Kind::sequence ? joined(*leaf.value) : without_reference(leaf.value->text);
    if (flag == "gradient-accumulation-fusion") {
      if (is_off(*leaf.value)) {
        add("no-gradient-accumulation-fusion", "", leaf.value->where, leaf.name);
      }
      return;
    }
    if (flag == "grad-reduce-in-fp32") {
      if (is_off(*leaf.value)) {
        add("grad-reduce-in-bf16", "", leaf.value->where, leaf.name);
      }
      return;
    }
    if (const MegatronFlag* known = find_megatron_flag(flag)) {
      if (lower_case(text) != "none" && (known->valued || is_true(leaf))) {
        add(flag, known->valued ? text : "", leaf.value->where, leaf.name);
      }
      return;
    }
    const auto is_in = [&](std::span<const std::string_view> names) {
      return std::find(names.begin(), names.end(), flag) != names.end();
    };
    if (is_off(*leaf.value) &&
        std::find(kListedWhereOff.begin(), kListedWhereOff.end(), leaf.name) != kListedWhereOff.end()) {
      unheeded_.push_back(path_of(leaf) + " " + excerpt(text));
      return;
    }
    if (is_in(megatron_dimensions()) || is_megatron_name_without_effect(flag)) {
      return;
    }
    if (is_in(unheeded_megatron_flags()) && !is_off(*leaf.value)) {
      unheeded_.push_back(path_of(leaf));
    } else if (leaf.name.find("parallel_size") != std::string::npos || leaf.name.ends_with("batch_size")) {
      throw InputError(leaf.where, unknown_name("field of Megatron-Bridge", leaf.name, known_fields()));
    } else if (const std::string meant = misspelt(leaf.name, known_fields()); !meant.empty()) {
      throw InputError(leaf.where,
                       "unknown field of Megatron-Bridge '" + excerpt(leaf.name) + "'; did you mean '" + meant + "'?");
    } else {
      list_unless_known(leaf, flag);
    }
  }

  // Fields that are read, and those whose names are as near to one of them as a misspelling.
  static std::vector<std::string> known_fields() {
    std::vector<std::string> names = megatron_flags();
    for (const auto more : {unheeded_megatron_flags(), megatron_dimensions()}) {
      names.insert(names.end(), more.begin(), more.end());
    }
    for (std::string& name : names) {
      std::replace(name.begin(), name.end(), '-', '_');
    }
    for (const Alias& alias : kAliases) {
      names.emplace_back(alias.name);
    }
    names.insert(names.end(), {"grad_reduce_in_fp32", "mixed_precision"});
    names.insert(names.end(), kNearFields.begin(), kNearFields.end());
    return names;
  }

  // "${PRIMUS_TP:1}" is 1 where the environment says nothing, as AMD's Primus has it, and OmegaConf's oc.env.
  static std::string without_reference(const std::string& text) {
    const std::size_t colon = text.find(':');
    const bool refers = text.starts_with("${") && text.ends_with("}") && colon != std::string::npos;
    return refers ? text.substr(colon + 1, text.size() - colon - 2) : text;
  }

  static std::string joined(const yaml::Node& list) {
    std::string text;
    for (const yaml::Node& item : list.items) {
      text += (text.empty() ? "" : " ") + item.text;
    }
    return text;
  }

  static bool is_true(const ConfigLeaf& leaf) {
    const std::string text = lower_case(without_reference(yaml::scalar(*leaf.value, leaf.name)));
    if (text != "true" && text != "false" && text != "1" && text != "0") {
      throw InputError(leaf.value->where, "'" + leaf.name + "' is '" + excerpt(text) + "'; allowed: true, false");
    }
    return text == "true" || text == "1";
  }

  const yaml::Node& document_;
  ConfigLeaves leaves_;
  const ConfigContext& context_;
  std::vector<MegatronSetting> settings_;
  std::vector<std::string> unheeded_;
};

} // namespace

ImportedTraining import_megatron_bridge(const ConfigSource& source, const ConfigContext& context) {
  return Bridge(source.document(), context).read();
}

} // namespace stagecraft
