// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <iterator>

#include "sim/base/large_count.hpp"
#include "sim/cost/gradient_sums.hpp"
#include "sim/cost/kernel_speed.hpp"
#include "sim/study/keys/given_prices.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/study/keys/take_config.hpp"
#include "sim/study/keys/trained_model.hpp"
#include "sim/study/read_compare.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

// What the framework holds of each device's memory, and what its allocator wastes, is not there for tensors.
void reserve_memory(const MemoryReserve& reserve, const Where& where, Platform& platform) {
  for (DeviceType& type : platform.types) {
    const Bytes room = reserve.room(type.memory);
    if (room.value <= 0) {
      throw InputError(where, "a context of " + to_text(reserve.context) + " leaves nothing of the " +
                                  to_text(type.memory) + " of device type '" + type.name +
                                  "'; allowed: less than that");
    }
    type.memory = room;
  }
}

// The device type that the model's first profile names, from the platform or from the shipped types. Null where the
// profile names none, where only the model's file knows the type, where all devices are like it, or where every type
// of the platform was measured itself.
std::unique_ptr<const DeviceType> profiled_device(const Study& study, const Folders& folders, const Where& where) {
  const std::string name = study.model->profiles.empty() ? "" : study.model->profiles.front().device;
  const bool all_alike = study.platform.types.size() == 1 && study.platform.types.front().vendor == "profiled";
  if (name.empty() || all_alike) {
    return nullptr;
  }
  for (const DeviceType& type : study.platform.types) {
    if (type.name == name) {
      return std::make_unique<DeviceType>(type);
    }
  }
  const auto& brought = study.model->devices;
  if (std::any_of(brought.begin(), brought.end(), [&](const BroughtDevices& one) { return one.type == name; })) {
    return nullptr;
  }
  if (std::all_of(study.platform.types.begin(), study.platform.types.end(), [&](const DeviceType& type) {
        return std::any_of(study.model->profiles.begin(), study.model->profiles.end(),
                           [&](const Profile& profile) { return profile.device == type.name; });
      })) {
    return nullptr; // nothing is scaled
  }
  const DeviceTypeSource source = device_types_in(folders.shipped / "platforms" / "devices");
  return std::make_unique<DeviceType>(load_device_type(source(name, where), source));
}

// A platform of N devices "like the one the model was profiled on" has times but no rates.
void refuse_rooflines_without_rates(yaml::Map& map, const ModelGraph& model) {
  const std::string name = map.text("cost_model", "auto");
  const bool roofline = name == "roofline" || (name == "auto" && model.profiles.empty());
  const yaml::Node* platform = map.find("platform");
  if (roofline && platform != nullptr && platform->find("devices") != nullptr) {
    throw InputError(map.where("platform"), "'devices' are like the one that the model was profiled on, and '" +
                                                model.name +
                                                "' brings no times for the cost model profiled; "
                                                "allowed: a platform by name or file");
  }
}

Platform find_platform(yaml::Map& map, const ModelGraph& model, const Folders& folders,
                       const std::vector<Setting>& settings) {
  if (const yaml::Node* node = map.find("platform")) {
    return read_platform(*node, folders, settings);
  }
  if (model.devices.empty()) {
    if (map.has("buy")) {
      throw InputError(map.where(), "the study has offers in place of a platform; allowed: `stagecraft buy` for all of "
                                    "them, or --set platform=P");
    }
    throw InputError(map.where(), "missing key 'platform' in study (flags: --platform P, or --devices N); only a model "
                                  "that brings its own devices needs none");
  }
  return brought_platform(model);
}

} // namespace

Sharding sharding_of(const ParallelDegrees& degrees, int devices) {
  if (degrees.sharding.zero == Zero::none) {
    return {};
  }
  const ShardingRule& rule = degrees.sharding;
  const auto found = mesh_of(degrees, devices);
  const Mesh mesh = std::holds_alternative<Mesh>(found) ? std::get<Mesh>(found) : Mesh{};
  const bool pipeline = mesh.pipeline > 1;
  const bool keeps = rule.secondary == 0 && (pipeline || rule.zero < Zero::weights); // gathered weights, until the step
  Sharding sharding{.zero = rule.zero,
                    .group = rule.group,
                    .reshard = rule.reshard.value_or(keeps ? Reshard::after_step : Reshard::after_forward),
                    .reduce = rule.reduce.value_or(pipeline || rule.zero == Zero::states ? Reduce::last_micro_batch
                                                                                         : Reduce::each_micro_batch),
                    .gather = rule.gather,
                    .prefetch = rule.prefetch,
                    .prefetch_backward = rule.prefetch_backward,
                    .late_experts = rule.late_experts,
                    .copied_out = rule.copied_out,
                    .quantized_weights = rule.quantized_weights,
                    .secondary = rule.secondary,
                    .quantized_gradients = rule.quantized_gradients};
  sharding.replicas = sharding.sharing(mesh.data * mesh.context.ranks);
  return sharding;
}

std::vector<int> micro_batches_of(const Study& study, const StrategyRow* strategy) {
  std::vector<int> counts = study.training.micro_batches;
  if (strategy != nullptr && strategy->at_every_count) {
    for (const int more : study.training.more_micro_batches) {
      if (std::find(counts.begin(), counts.end(), more) == counts.end()) {
        counts.push_back(more);
      }
    }
  }
  return counts;
}

yaml::Node study_document(const std::string& model, const std::string& platform) {
  yaml::Node document{.kind = yaml::Node::Kind::map, .where = {"command line", 0, 0}};
  const auto add = [&](const char* key, const std::string& value, const char* flag) {
    if (!value.empty()) {
      const Where where{flag, 0, 0};
      document.entries.push_back({key, where, yaml::text_node(value, where)});
    }
  };
  add("model", model, "MODEL");
  add("platform", platform, "--platform");
  return document;
}

namespace {

// What a value is made of, as one text: the key to keep it under.
std::string text_of(const yaml::Node* node, const std::vector<Setting>& settings) {
  std::string text = node != nullptr ? yaml::flow_text(*node) : "";
  for (const Setting& setting : settings) {
    text += "\n" + setting.key + "=" + setting.value;
  }
  return text;
}

// The model kept from an earlier study, or a new one.
std::shared_ptr<const ModelGraph> kept_model(const Folders& folders, const std::string& key,
                                             const std::function<ModelGraph()>& make) {
  return folders.files != nullptr ? folders.files->model(key, make) : std::make_shared<const ModelGraph>(make());
}

std::shared_ptr<const ModelGraph> sized(const std::shared_ptr<const ModelGraph>& model, int batch,
                                        const Folders& folders, const std::string& key) {
  const auto unknown = [](const Profile& profile) { return profile.samples == 0; };
  if (std::none_of(model->profiles.begin(), model->profiles.end(), unknown)) {
    return model;
  }
  return kept_model(folders, key + "\nsamples=" + std::to_string(batch),
                    [&] { return with_profile_samples(*model, batch); });
}

Platform kept_platform(const Folders& folders, const std::string& key, const std::function<Platform()>& make) {
  return folders.files != nullptr ? *folders.files->platform(key, make) : make();
}

// How many tokens the whole training has.
double read_tokens(const yaml::Node& node, const ModelGraph& model) {
  const double tokens = parse_large_count(yaml::scalar(node, "tokens"), node.where);
  if (!(tokens_of(model) > 0)) {
    throw InputError(node.where, "'" + model.name +
                                     "' is not made of tokens; allowed: of a model of sequences, such as "
                                     "gpt2-xl");
  }
  return tokens;
}

// Where the study says so, exchanges slow down by the rule what devices compute whose types state nothing.
void slow_by_rule(Study& study) {
  for (DeviceType& type : study.platform.types) {
    type.beside_exchange.by_rule = study.training.exchanges_slow && type.beside_exchange == BesideExchange{};
  }
}

// The named cost model, at the speeds of a run and on the slowest devices.
std::unique_ptr<CostModel> read_cost(yaml::Map& map, const Study& study) {
  CostModelResult cost =
      make_cost_model(map.text("cost_model", "auto"), {*study.model, study.profiled_on.get()}, map.where("cost_model"));
  if (const Infeasible* reason = std::get_if<Infeasible>(&cost)) {
    throw InputError(map.where("cost_model"), reason->reason);
  }
  return with_gradient_sums(at_kernel_speed(std::move(std::get<std::unique_ptr<CostModel>>(cost)), *study.model,
                                            study.training.kernel_speed,
                                            slowest_devices(study.platform, study.training.device_spread)),
                            *study.model, study.training);
}

} // namespace

Study load_study(const yaml::Node& document, const Folders& folders, const std::vector<Setting>& settings,
                 Purpose purpose) {
  ChangedStudy given = changed_study(document, settings);
  yaml::Node& changed = given.document;
  const std::vector<Setting>&of_model = given.of_model, &of_platform = given.of_platform;
  yaml::Map map(changed, "study");
  Study study;
  study.name = map.text("name", "");
  study.description = map.text("description", "");
  std::string model_text;
  const auto take_model = [&] {
    model_text = text_of(&map.node("model"), of_model);
    return kept_model(folders, model_text, [&] { return read_model(map.node("model"), folders, of_model); });
  };
  auto model = take_model();
  refuse_rooflines_without_rates(map, *model);
  study.platform = kept_platform(folders, model_text + "\n" + text_of(map.find("platform"), of_platform),
                                 [&] { return find_platform(map, *model, folders, of_platform); });
  if (const yaml::Node* price = map.find("price")) {
    take_prices(*price, study.platform);
  }
  TakenConfig config = take_config(changed, {*model, static_cast<int>(study.platform.devices.size())});
  if (config.experts && take_expert_capacity(changed, *config.experts)) {
    model = take_model();
  }
  take_framework(changed, folders);
  study.training = read_training(map, *model, purpose);
  study.training.config = std::move(config.name);
  study.config_conflicts = std::move(config.conflicts);
  study.framework_of_config = std::move(config.framework);
  std::move(config.unheeded.begin(), config.unheeded.end(), std::back_inserter(study.training.unheeded));
  slow_by_rule(study);
  count_micro_batches(study.training, static_cast<int>(study.platform.devices.size()));
  if (study.training.parallel) {
    study.training.sharding = sharding_of(*study.training.parallel, static_cast<int>(study.platform.devices.size()));
  }
  if (study.training.memory.any()) {
    reserve_memory(study.training.memory, map.where("training"), study.platform);
  }
  if (const yaml::Node* loader = map.find("loader")) {
    study.loader = load_loader(*loader);
  }
  study.model = trained_model(sized(model, study.training.global_batch, folders, model_text), study.training);
  study.profiled_on = profiled_device(study, folders, map.where("model"));
  read_compare(map, folders, study);
  study.balance = read_balance(map);
  study.believed_speeds = read_beliefs(map, study.platform);
  study.adapt = read_adapt(map, study.platform);
  constexpr int kMostDraws = 10'000;
  study.confidence = map.integer("confidence", 0, kMostDraws, 0);
  if (const yaml::Node* perturb = map.find("perturb")) {
    study.perturb = load_perturb(*perturb, study.platform);
  }
  study.engine = &map.choice("engine", kEngines, "simgrid");
  study.detail = &map.choice("detail", kDetails, "auto");
  study.unfold = map.boolean("unfold", false);
  study.per_device = map.boolean("per_device", false);
  if (const yaml::Node* tokens = map.find("tokens")) {
    study.tokens = read_tokens(*tokens, *study.model);
  }
  constexpr int kMostSeed = 1'000'000'000;
  study.seed = static_cast<std::uint64_t>(map.integer("seed", 0, kMostSeed, 1));
  study.cost = read_cost(map, study);
  if (study.model->profiles.empty()) { // times that a profile gives have no range
    study.error_families = shipped_error_families(folders, !study.training.framework.empty());
  }
  map.find("sweep"); // load_sweep() reads it
  map.find("buy");   // load_buy_question() does
  map.finish();
  check_operator_types(map, study.training, *study.model);
  return study;
}

} // namespace stagecraft
