// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/read_training.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/layer/layers.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/fp8_products.hpp"
#include "sim/workload/training/latent_product.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

// The model must have the operators and kinds that a choice names.
void check_recompute(const RecomputeChoice& choice, const ModelGraph& model) {
  for (const std::string& name : choice.operators) {
    find_by_name(model.operators, name, "operator", choice.where);
  }
  for (const KernelKind kind : choice.kinds) {
    if (std::none_of(model.operators.begin(), model.operators.end(),
                     [&](const Operator& op) { return op.kind == kind; })) {
      throw InputError(choice.where, "no operator of '" + model.name + "' is of kind '" +
                                         std::string(row_of(kind).name) + "'; `stagecraft show` lists their kinds");
    }
  }
}

// A model that has none of the modules of a choice cannot follow it; where it has some, `unheeded` says of the others
// that it has none, as Megatron-LM passes over them.
void find_modules(RecomputeChoice& choice, const ModelGraph& model, std::vector<std::string>& unheeded) {
  const std::vector<std::string> missing = name_operators(choice, model);
  if (!missing.empty() && choice.of_modules.empty()) {
    std::string known;
    for (const ModuleRow& row : kRecomputeModules) {
      known += row.operators(model).empty() ? "" : (known.empty() ? "" : ", ") + std::string(row.name);
    }
    throw InputError(choice.where,
                     "no operator of '" + model.name + "' belongs to module '" + missing.front() + "'; " +
                         (known.empty() ? "it has no modules by these names; allowed: {operators: [NAME, …]}"
                                        : "modules that it has: " + known));
  }
  for (const std::string& module : missing) {
    unheeded.push_back("recompute of module " + module + " (the model has none)");
  }
}

// Layers that the study gives to stages are those of the model.
void check_layers(const Training& training, const ModelGraph& model) {
  if (!training.parallel || !training.parallel->layers || training.parallel->layers->by_time()) {
    return;
  }
  const PipelineLayout& layout = *training.parallel->layers;
  if (std::string defect = layers_defect(layout, model); !defect.empty()) {
    const auto layers = static_cast<int>(layer_row_of(model).layers.size()) - layout.count('m');
    constexpr int kNear = 64; // layers
    if (layers > 0 && std::abs(layers - layout.count('t')) <= kNear) {
      defect += "; nearest: " + to_text(with_layers(layout, layers));
    }
    throw InputError(layout.where, defect);
  }
  const std::vector<std::vector<OperatorId>> stages = stages_of(layout, model);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].empty()) {
      throw InputError(layout.where, "stage " + std::to_string(s) + " of 'layers' is " + layout.stages[s] + ", and '" +
                                         model.name + "' has nothing " + (s == 0 ? "before" : "behind") +
                                         " its numbered blocks; allowed: at least one t in that stage");
    }
  }
}

// A model must have products that can be computed in 8 bits, and no times that were measured otherwise.
void check_fp8(const ModelGraph& model, const Where& where) {
  if (!model.profiles.empty() || !model.configurations.empty()) {
    throw InputError(where, "the times of '" + model.name + "' were measured without 'fp8'; allowed: none");
  }
  if (std::none_of(model.operators.begin(), model.operators.end(), has_fp8_products)) {
    throw InputError(where, "'" + model.name +
                                "' has no linear layers in numbered blocks, such as 'layer.0', to compute in 8 bits; "
                                "allowed: none");
  }
}

// What is left to hosts must be known by block, and apart from all else.
void check_offload(const Offload& offload, const ModelGraph& model, const Where& where) {
  if (offload.on() && model.memory_given) {
    throw InputError(where, "the file of '" + model.name +
                                "' gives the memory of operators as a whole, so that no part of it can be left to "
                                "hosts; allowed: no 'offload'");
  }
  const auto in_block = [](const Operator& op) { return is_in_numbered_block(op.name); };
  if (offload.activations > 0 && std::none_of(model.operators.begin(), model.operators.end(), in_block)) {
    throw InputError(where, "'" + model.name +
                                "' has no numbered blocks, such as 'layer.0', whose activations could "
                                "be left to hosts; allowed: activations none");
  }
}

} // namespace

Training read_training(yaml::Map& study, const ModelGraph& model, Purpose purpose) {
  const yaml::Node* node = study.find("training");
  const bool unknown_size = std::any_of(model.profiles.begin(), model.profiles.end(),
                                        [](const Profile& profile) { return profile.samples == 0; });
  const bool whole_micro_batches =
      model.micro_batches > 0 && (node == nullptr || node->find("global_batch") == nullptr);
  // Measured times are of one way to train, which the file may not tell.
  const TrainingDefaults defaults =
      purpose == Purpose::comparison && model.profiles.empty() ? TrainingDefaults::searched : TrainingDefaults::plain;
  Training training =
      node != nullptr ? load_training(*node, unknown_size || whole_micro_batches, defaults) : Training{};
  if (training.offload.on()) {
    check_offload(training.offload, model, yaml::Map(*node, "training").where("offload"));
  }
  for (RecomputeChoice& choice : training.recomputes) {
    find_modules(choice, model, training.unheeded);
    check_recompute(choice, model);
    restore_in_backward(choice, model);
  }
  training.recompute = training.recomputes.front();
  for (const std::string& module : training.launches.captured) {
    if (find_by_name(kCapturedModules, module, "module", {}).operators(model).empty()) {
      training.unheeded.push_back("captured graphs of module " + module + " (the model has none)");
    }
  }
  const bool mixes = std::any_of(model.operators.begin(), model.operators.end(),
                                 [](const Operator& op) { return op.routing.has_value(); });
  for (const std::string key : {"token_dispatcher", "expert_choice"}) {
    if (node != nullptr && node->find(key) != nullptr && !mixes) {
      training.unheeded.push_back("training." + key + " (the model has no experts)");
    }
  }
  check_layers(training, model);
  if (training.fp8->products) {
    check_fp8(model, node->find("fp8")->where);
  }
  if (whole_micro_batches) { // the file counts in micro-batches: each is one sample
    const bool given = node != nullptr && node->find("micro_batches") != nullptr;
    if (training.micro_batches.size() > 1) {
      throw InputError(study.where("training"),
                       "several 'micro_batches' need a batch; allowed: 'global_batch' beside them");
    }
    training.micro_batches = {given ? training.micro_batches.front() : model.micro_batches};
    training.global_batch = training.micro_batches.front();
  }
  if (!model.profiles.empty() && model.profiles.front().precision != training.precision) {
    throw InputError(study.where("training"), "the model's profile was taken in " +
                                                  std::string(row_of(model.profiles.front().precision).name) +
                                                  "; allowed: 'precision' the same");
  }
  return training;
}

void check_operator_types(yaml::Map& study, const Training& training, const ModelGraph& model) {
  if (training.kernel_speed.types.empty() && training.launches.types.empty()) {
    return;
  }
  const std::vector<std::string> kinds = names_of(layer_kinds());
  std::set<std::string> known(kinds.begin(), kinds.end());
  for (const Operator& op : model.operators) {
    known.insert(op.type);
  }
  for (const std::string& key : {std::string("kernel_speed"), std::string("launches")}) {
    const yaml::Node* part = study.find("training")->find(key);
    const yaml::Node* types = part != nullptr ? part->find("types") : nullptr;
    if (types == nullptr) {
      continue;
    }
    for (const yaml::Node::Entry& given : types->entries) {
      if (!known.contains(given.key) && (key != "launches" || given.key != kLatentProduct)) {
        throw InputError(given.value.where, unknown_name("type of operators in '" + key + ".types'", given.key,
                                                         {known.begin(), known.end()}));
      }
    }
  }
}

} // namespace stagecraft
