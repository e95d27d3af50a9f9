// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <set>

#include "sim/base/large_count.hpp"
#include "sim/base/utf8.hpp"
#include "sim/cost/gradient_sums.hpp"
#include "sim/cost/kernel_speed.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/strategy/heuristic/placements.hpp"
#include "sim/study/given_prices.hpp"
#include "sim/study/input_files.hpp"
#include "sim/study/read_schedules.hpp"
#include "sim/study/study.hpp"
#include "sim/study/take_config.hpp"
#include "sim/study/trained_model.hpp"
#include "sim/study/unique_name.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/layer/layers.hpp"
#include "sim/workload/model_flops.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/fp8_products.hpp"
#include "sim/workload/training/latent_product.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

// What `all` stands for: every row but the references, which try all others. Where degrees are given, those that split
// by them; where these are uneven, those that take them.
bool is_in_all(const StrategyRow& row, const Training& training) {
  if (!training.parallel) {
    return !row.reference && !row.takes_degrees;
  }
  return training.parallel->is_uneven() ? row.takes_degrees : row.keeps_degrees();
}

template <class Row>
std::vector<const Row*> read_rows(yaml::Map& map, std::string_view key, std::string_view what,
                                  std::span<const Row> table, const std::function<bool(const Row&)>& is_in_all) {
  std::vector<const Row*> rows;
  const std::vector<const yaml::Node*> listed = map.list(key);
  if (map.has(key) && listed.empty()) {
    throw InputError(map.where(key),
                     "'" + std::string(key) +
                         "' is an empty list, which is allowed beside plans alone; else allowed: all, or some of " +
                         join(names_of(table)));
  }
  for (const yaml::Node* item : listed) {
    const std::string& name = yaml::scalar(*item, key);
    if (name == "all" && listed.size() == 1) {
      break;
    }
    const Row* row = &find_by_name(table, name, what, item->where);
    if (std::find(rows.begin(), rows.end(), row) != rows.end()) {
      throw InputError(item->where, "'" + std::string(key) + "' lists '" + name + "' twice; allowed: once");
    }
    rows.push_back(row);
  }
  if (rows.empty()) {
    for (const Row& row : table) {
      if (is_in_all(row)) {
        rows.push_back(&row);
      }
    }
  }
  return rows;
}

// A plan's file: in the study's folder, or at the path as given.
std::filesystem::path find_plan(const Folders& folders, const std::string& name, const Where& where) {
  std::error_code failure;
  for (const std::filesystem::path& candidate : places_of(folders, name)) {
    if (std::filesystem::is_regular_file(candidate, failure)) {
      return candidate.lexically_normal();
    }
  }
  throw InputError(where, "no such plan file '" + excerpt(name, 200) + "'; it is looked for in the study's folder");
}

void note(const Folders& folders, const std::filesystem::path& read) {
  if (folders.files != nullptr) {
    folders.files->bytes(read);
  }
}

// Each plan is a file, or {file, format} where the file's content does not tell its form.
void read_plans(yaml::Map& compare, const Folders& folders, Study& study) {
  for (const yaml::Node* item : compare.list("plans")) {
    if (item->kind != yaml::Node::Kind::map) {
      const std::filesystem::path path = find_plan(folders, yaml::scalar(*item, "plans"), item->where);
      note(folders, path);
      add_plan(study, path, "");
      continue;
    }
    yaml::Map map(*item, "plan");
    const std::filesystem::path path = find_plan(folders, map.text("file"), map.where("file"));
    const std::string_view format = map.choice("format", plan_formats()).name;
    map.finish();
    note(folders, path);
    add_plan(study, path, format);
  }
}

void read_compare(yaml::Map& map, const Folders& folders, Study& study) {
  const yaml::Node empty{.kind = yaml::Node::Kind::map, .where = map.where()};
  const yaml::Node* node = map.find("compare");
  yaml::Map compare(node != nullptr ? *node : empty, "compare");
  const bool plans_alone =
      compare.has("strategies") && compare.list("strategies").empty() && !compare.list("plans").empty();
  if (!plans_alone) {
    study.strategies = read_rows<StrategyRow>(compare, "strategies", "strategy", strategies(),
                                              [&](const StrategyRow& row) { return is_in_all(row, study.training); });
  }
  study.schedules = read_schedules(compare, "schedules", folders);
  if (study.training.delayed_weights &&
      std::none_of(study.schedules.begin(), study.schedules.end(), std::mem_fn(&StudySchedule::pairs_by_layers))) {
    study.training.unheeded.emplace_back("training.delayed_weights (of the schedules here none has pairs of forward "
                                         "and backward by layers, as combined-1f1b has)");
  }
  read_plans(compare, folders, study);
  study.rank = compare.choice("rank", kRankings, "exact").rank;
  compare.finish();
}

// Speeds by device type, 1 where none is given.
std::vector<double> read_beliefs(yaml::Map& map, const Platform& platform) {
  std::vector<double> speeds(platform.devices.size(), 1.0);
  const yaml::Node* node = map.find("believed");
  if (node == nullptr) {
    return speeds;
  }
  yaml::Map believed(*node, "believed");
  yaml::Map of_types(believed.node("device_speed"), "device_speed");
  for (const DeviceType& type : platform.types) {
    const double speed = of_types.number(type.name, kSpeed, 1);
    for (std::size_t d = 0; d < speeds.size(); ++d) {
      speeds[d] = platform.devices[d].type == &type - platform.types.data() ? speed : speeds[d];
    }
  }
  of_types.finish();
  believed.finish();
  return speeds;
}

AdaptEvent read_event(const yaml::Node& node, int iterations, const Platform& platform) {
  yaml::Map map(node, "event");
  AdaptEvent event;
  event.iteration = map.integer("iteration", 0, iterations - 1);
  const Device& device = map.choice("device", platform.devices);
  event.device = static_cast<DeviceId>(&device - platform.devices.data());
  event.leaves = map.boolean("leaves", false);
  if (event.leaves == map.has("speed")) {
    throw InputError(node.where, "an event is one change; allowed: 'speed', or 'leaves: true'");
  }
  event.speed = map.number("speed", kSpeed, 1);
  map.finish();
  return event;
}

std::optional<AdaptOptions> read_adapt(yaml::Map& map, const Platform& platform) {
  const yaml::Node* node = map.find("adapt");
  if (node == nullptr) {
    return std::nullopt;
  }
  yaml::Map adapt(*node, "adapt");
  AdaptOptions options;
  constexpr int kMostIterations = 1'000'000;
  options.iterations = adapt.integer("iterations", 1, kMostIterations, options.iterations);
  options.round_iterations = adapt.integer("round_iterations", 1, kMostIterations, options.round_iterations);
  options.schedule = &adapt.choice("schedule", schedules(), "1f1b");
  options.jitter = adapt.number("jitter", {0, 0.5, true, "0 to 0.5"}, 0);
  for (const yaml::Node* event : adapt.list("events")) {
    options.events.push_back(read_event(*event, options.iterations, platform));
  }
  std::stable_sort(options.events.begin(), options.events.end(),
                   [](const AdaptEvent& a, const AdaptEvent& b) { return a.iteration < b.iteration; });
  adapt.finish();
  return options;
}

BalanceOptions read_balance(yaml::Map& map) {
  BalanceOptions options;
  const yaml::Node* node = map.find("dynamic");
  if (node == nullptr) {
    return options;
  }
  yaml::Map dynamic(*node, "dynamic");
  options.placement = dynamic.choice("placement", kPlacements, row_of(options.placement).name).rule;
  options.update = dynamic.choice("update", kWeightUpdates, "mean").update;
  options.balanced = dynamic.number("balanced", yaml::kFraction, options.balanced);
  options.changed = dynamic.number("changed", yaml::kFraction, options.changed);
  constexpr int kMostRounds = 1000;
  options.rounds = dynamic.integer("rounds", 1, kMostRounds, options.rounds);
  dynamic.finish();
  return options;
}

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

Training read_training(yaml::Map& map, const ModelGraph& model, Purpose purpose) {
  const yaml::Node* node = map.find("training");
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
  if (node != nullptr && node->find("token_dispatcher") != nullptr && !mixes) {
    training.unheeded.emplace_back("training.token_dispatcher (the model has no experts)");
  }
  check_layers(training, model);
  if (training.fp8->products) {
    check_fp8(model, node->find("fp8")->where);
  }
  if (whole_micro_batches) { // the file counts in micro-batches: each is one sample
    const bool given = node != nullptr && node->find("micro_batches") != nullptr;
    if (training.micro_batches.size() > 1) {
      throw InputError(map.where("training"),
                       "several 'micro_batches' need a batch; allowed: 'global_batch' beside them");
    }
    training.micro_batches = {given ? training.micro_batches.front() : model.micro_batches};
    training.global_batch = training.micro_batches.front();
  }
  if (!model.profiles.empty() && model.profiles.front().precision != training.precision) {
    throw InputError(map.where("training"), "the model's profile was taken in " +
                                                std::string(row_of(model.profiles.front().precision).name) +
                                                "; allowed: 'precision' the same");
  }
  return training;
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
                    .quantized_weights = rule.quantized_weights,
                    .secondary = rule.secondary,
                    .quantized_gradients = rule.quantized_gradients};
  sharding.replicas = sharding.sharing(mesh.data * mesh.context.ranks);
  return sharding;
}

void add_plan(Study& study, const std::filesystem::path& path, std::string_view format) {
  Plan plan = load_plan(path, format, *study.model, study.platform);
  std::vector<std::string> taken = names_of(strategies());
  for (const Plan& other : study.plans) {
    taken.push_back(other.strategy);
  }
  plan.strategy = unique_name(plan.strategy, path, taken);
  study.plans.push_back(std::move(plan));
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

// A recipe may name types that this model has not, but none that no model has.
void check_operator_types(const Study& study, yaml::Map& map) {
  const Training& training = study.training;
  if (training.kernel_speed.types.empty() && training.launches.types.empty()) {
    return;
  }
  const std::vector<std::string> kinds = names_of(layer_kinds());
  std::set<std::string> known(kinds.begin(), kinds.end());
  for (const Operator& op : study.model->operators) {
    known.insert(op.type);
  }
  for (const std::string& key : {std::string("kernel_speed"), std::string("launches")}) {
    const yaml::Node* part = map.find("training")->find(key);
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
  map.finish();
  check_operator_types(study, map);
  return study;
}

} // namespace stagecraft
