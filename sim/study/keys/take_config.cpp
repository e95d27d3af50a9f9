// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/take_config.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "sim/base/count_of.hpp"
#include "sim/base/units.hpp"
#include "sim/study/keys/input_files.hpp"

namespace stagecraft {
namespace {

// What a recipe says of when weights are gathered, where the study's own degrees have none gathered so.
void leave_gathers_out(yaml::Node& training, const yaml::Node& own) {
  yaml::Node degrees = *training.find("parallel");
  const auto given = [&](const char* key, std::string_view otherwise) {
    const yaml::Node* node = degrees.find(key);
    return node != nullptr ? std::string(node->text) : std::string(otherwise);
  };
  const std::string zero = given("zero", "0"), gather = given("gather", "after-step");
  struct Gathering {
    std::string_view key;
    bool known; ///< to these degrees
  };
  const std::array gathering = {
      Gathering{"gather", zero != "0" && (gather != "broadcasts" || zero == "1")},
      Gathering{"late_experts", gather == "before-use" && (zero == "1" || zero == "2")},
      Gathering{"prefetch_backward", zero == "3"},
      Gathering{"copied_out", zero == "3"},
  };
  for (const auto& [key, known] : gathering) {
    if (!known && own.find(key) == nullptr) {
      yaml::erase(degrees, {key});
    }
  }
  yaml::set(training, "parallel", degrees);
}

// A mapping with the values of another over its own.
void merge(yaml::Node& map, const yaml::Node& over) {
  for (const yaml::Node::Entry& entry : over.entries) {
    const auto known = std::find_if(map.entries.begin(), map.entries.end(),
                                    [&](const yaml::Node::Entry& own) { return own.key == entry.key; });
    if (known == map.entries.end()) {
      map.entries.push_back(entry);
    } else if (known->value.kind == yaml::Node::Kind::map && entry.value.kind == yaml::Node::Kind::map) {
      merge(known->value, entry.value);
    } else {
      *known = entry;
    }
  }
}

// Layers of the file's stages are for its number of ranks: where the study says another one, they are shared anew.
void forget_layers(yaml::Node& training, const yaml::Node& own) {
  for (yaml::Node::Entry& entry : training.entries) {
    if (entry.key == "parallel" && (own.find("pipeline") != nullptr || own.find("interleave") != nullptr)) {
      yaml::erase(entry.value, {"layers"});
    }
  }
}

} // namespace

TakenConfig take_config(yaml::Node& study, const ConfigContext& context) {
  const yaml::Node* training = study.find("training");
  const yaml::Node* config = training != nullptr ? training->find("config") : nullptr;
  if (config == nullptr) {
    return {};
  }
  const Where config_where = config->where;
  ConfigContext for_file = context;
  for_file.batch_given = training->find("global_batch") != nullptr;
  auto [name, imported] = load_config(*config, for_file);
  yaml::Node own = *training;
  yaml::erase(own, {"config"});
  if (own.find("micro_batches") != nullptr || own.find("micro_batch_size") != nullptr) {
    yaml::erase(imported.training, {"micro_batches", "micro_batch_size"});
  }
  if (const yaml::Node* parallel = own.find("parallel"); parallel != nullptr && parallel->find("layers") == nullptr) {
    forget_layers(imported.training, *parallel);
  }
  merge(imported.training, own);
  yaml::set(study, "training", imported.training);
  if (const yaml::Node* compare = study.find("compare");
      !imported.schedule.empty() && (compare == nullptr || compare->find("schedules") == nullptr)) {
    yaml::set(study, "compare.schedules", yaml::text_node(imported.schedule, imported.schedule_where));
  }
  const bool names_recipe = own.find("framework") != nullptr;
  if (!names_recipe && !imported.framework.empty()) {
    yaml::set(study, "training.framework", yaml::text_node(imported.framework, config_where));
  }
  return {std::move(name), std::move(imported.unheeded), std::move(imported.conflicts),
          names_recipe ? "" : std::move(imported.framework), imported.experts};
}

bool take_expert_capacity(yaml::Node& study, const ExpertCapacity& experts) {
  yaml::Node model = *study.find("model");
  if (model.find("expert_capacity") != nullptr) {
    return false;
  }
  if (model.kind == yaml::Node::Kind::scalar) {
    yaml::Node named{.kind = yaml::Node::Kind::map, .where = model.where};
    named.entries.push_back({"file", model.where, model});
    model = std::move(named);
  }
  constexpr int kDigits = 9;
  yaml::set(model, "expert_capacity", to_digits(experts.factor, kDigits), experts.where);
  yaml::set(model, "expert_padding", experts.padded ? "true" : "false", experts.where);
  yaml::set(study, "model", model);
  return true;
}

FrameworkRecipe find_framework(const Folders& folders, const std::string& name, const Where& where) {
  return read_framework(read_document(folders, find_file(folders, kFrameworksFolder, name, where)));
}

void take_framework(yaml::Node& study, const Folders& folders) {
  const yaml::Node* training = study.find("training");
  const yaml::Node* name = training != nullptr ? training->find("framework") : nullptr;
  if (name == nullptr) {
    return;
  }
  if (name->text == kNoFramework) {
    yaml::Node plain = *training;
    yaml::erase(plain, {"framework"});
    yaml::set(study, "training", plain);
    return;
  }
  yaml::Node taken = find_framework(folders, yaml::scalar(*name, "framework"), name->where).training;
  const yaml::Node* parallel = training->find("parallel");
  if (parallel == nullptr) {
    yaml::erase(taken, {"parallel"});
  }
  merge(taken, *training);
  if (parallel != nullptr) {
    leave_gathers_out(taken, *parallel);
  }
  yaml::set(study, "training", taken);
}

void count_micro_batches(Training& training, int devices) {
  if (!training.micro_batch_size) {
    return;
  }
  const Where& where = training.micro_batch_size_where;
  if (!training.parallel) {
    throw InputError(where,
                     "'micro_batch_size' counts samples of a replica, and no degrees say how many replicas there "
                     "are; allowed: 'micro_batches', or 'parallel' beside it");
  }
  const auto found = mesh_of(*training.parallel, devices);
  if (!std::holds_alternative<Mesh>(found)) { // how many replicas is not known: a plan says what is wrong
    training.micro_batches.resize(1, 1);
    training.more_micro_batches.clear();
    return;
  }
  const int replicas = std::get<Mesh>(found).data;
  const long long step = static_cast<long long>(*training.micro_batch_size) * replicas;
  const long long count = training.global_batch / step;
  const std::string product = std::to_string(*training.micro_batch_size) + " x " + count_of(replicas, "replica");
  if (count * step != training.global_batch) {
    throw InputError(where, "global_batch " + std::to_string(training.global_batch) +
                                " is no multiple of micro_batch_size " + product + " = " + std::to_string(step) +
                                "; nearest that are: " + (count > 0 ? std::to_string(count * step) + " or " : "") +
                                std::to_string((count + 1) * step));
  }
  if (!training.micro_batches.empty() && training.micro_batches.front() != count) {
    throw InputError(where, "global_batch " + std::to_string(training.global_batch) + " is " + std::to_string(count) +
                                " times micro_batch_size " + product + ", and 'micro_batches' is " +
                                std::to_string(training.micro_batches.front()) + "; allowed: one of the two keys");
  }
  training.micro_batches = {static_cast<int>(count)};
  training.more_micro_batches.clear();
}

} // namespace stagecraft
