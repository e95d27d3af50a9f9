// SPDX-License-Identifier: Apache-2.0
#include "sim/study/plan_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unordered_map>

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;
using Index = std::unordered_map<std::string, int>;

constexpr const char* kSchema = "stagecraft/1";

int find_index(const Index& index, const yaml::Node& node, std::string_view what) {
  const std::string& name = yaml::scalar(node, what);
  const auto found = index.find(name);
  if (found == index.end()) {
    std::vector<std::string> known;
    for (const auto& [key, value] : index) {
      known.push_back(key);
    }
    std::sort(known.begin(), known.end());
    constexpr std::size_t kMostListed = 20;
    if (known.size() <= kMostListed) {
      throw InputError(node.where, unknown_name(what, name, known));
    }
    const std::string close = nearest(name, known);
    throw InputError(node.where, "unknown " + std::string(what) + " '" + name.substr(0, 60) + "'; " +
                                     (close.empty() ? "" : "did you mean '" + close + "'? ") +
                                     "known: " + std::to_string(known.size()) + ", which `stagecraft show` lists");
  }
  return found->second;
}

Stage read_stage(const yaml::Node& node, const Index& operators, const Index& devices) {
  yaml::Map map(node, "stage");
  Stage stage;
  for (const yaml::Node* item : map.list("operators")) {
    stage.operators.push_back(find_index(operators, *item, "operator"));
  }
  std::sort(stage.operators.begin(), stage.operators.end());
  for (const yaml::Node* item : map.list("devices")) {
    stage.devices.push_back(find_index(devices, *item, "device"));
  }
  for (const yaml::Node* item : map.list("shares")) {
    stage.shares.push_back(yaml::number(*item, "shares", yaml::kFraction));
  }
  constexpr int kMostDegree = 1 << 20;
  stage.tensor_parallel = map.integer("tensor_parallel", 1, kMostDegree, 1);
  stage.recompute = map.choice("recompute", kRecomputes, "none").recompute;
  for (const char* derived : {"chunk", "seconds"}) { // written for readers
    map.find(derived);
  }
  map.finish();
  return stage;
}

const char* recompute_name(const Stage& stage) { return stage.recompute == Recompute::full ? "full" : "none"; }

} // namespace

Plan read_plan(const yaml::Node& document, const ModelGraph& model, const Platform& platform) {
  yaml::Map map(document, "plan");
  Index operators;
  for (OperatorId op = 0; op < model.size(); ++op) {
    operators.emplace(model.operators[op].name, op);
  }
  Index devices;
  for (std::size_t device = 0; device < platform.devices.size(); ++device) {
    devices.emplace(platform.devices[device].name, static_cast<int>(device));
  }
  Plan plan;
  plan.strategy = map.text("strategy", "given");
  for (const yaml::Node* node : map.list("stages")) {
    plan.stages.push_back(read_stage(*node, operators, devices));
  }
  if (const std::string schema = map.text("schema", kSchema); schema != kSchema) {
    throw InputError(map.where("schema"), "'schema' is '" + schema.substr(0, 60) + "'; allowed: " + kSchema);
  }
  for (const char* derived :
       {"bottleneck_seconds", "objective", "estimate_seconds", "lower_bound_seconds", "note", "timing"}) {
    map.find(derived);
  }
  map.finish();
  if (plan.stages.empty()) {
    throw InputError(map.where("stages"), "a plan needs 'stages', a list of at least one");
  }
  return plan;
}

std::string plan_to_json(const Plan& plan, const PlanCost& cost, const PlanFigures& figures, const ModelGraph& model,
                         const Platform& platform, bool timing) {
  Json json = {{"schema", kSchema}, {"strategy", plan.strategy}, {"stages", Json::array()}};
  const std::size_t ranks = std::max<std::size_t>(1, devices_of(plan).size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    Json shown = {{"operators", Json::array()}, {"devices", Json::array()}};
    for (const OperatorId op : stage.operators) {
      shown["operators"].push_back(model.operators[op].name);
    }
    Seconds seconds;
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      shown["devices"].push_back(platform.devices[replica.device].name);
      seconds = std::max(seconds, replica.busy());
    }
    if (!stage.shares.empty()) {
      shown["shares"] = stage.shares;
    }
    shown["tensor_parallel"] = stage.tensor_parallel;
    shown["recompute"] = recompute_name(stage);
    shown["chunk"] = stage.devices.size() > 1 ? 0 : s / ranks;
    shown["seconds"] = seconds.value;
    json["stages"].push_back(std::move(shown));
  }
  json["bottleneck_seconds"] = figures.bottleneck.value;
  json["objective"] =
      plan.objective ? Json{{"name", plan.objective->name}, {"seconds", plan.objective->value.value}} : Json();
  json["estimate_seconds"] = figures.estimate.value;
  json["lower_bound_seconds"] = figures.lower_bound.value;
  json["note"] = plan.note.empty() ? Json() : Json(plan.note);
  if (timing) {
    json["timing"] = {{"planning_seconds", figures.planning_seconds}};
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string plan_to_yaml(const Plan& plan, const ModelGraph& model, const Platform& platform) {
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }; // JSON strings are YAML strings
  std::string text = "# A plan of Stagecraft: operators of '" + model.name + "' on devices of '" + platform.name +
                     "'; docs/formats/plan.md\nschema: stagecraft/1\nstrategy: " + quoted(plan.strategy) +
                     "\nstages:\n";
  for (const Stage& stage : plan.stages) {
    std::vector<std::string> operators;
    for (const OperatorId op : stage.operators) {
      operators.push_back(quoted(model.operators[op].name));
    }
    std::vector<std::string> devices;
    for (const DeviceId device : stage.devices) {
      devices.push_back(quoted(platform.devices[device].name));
    }
    text += "  - devices: [" + join(devices) + "]\n";
    if (!stage.shares.empty()) {
      text += "    shares: " + Json(stage.shares).dump() + "\n";
    }
    text += "    recompute: " + std::string(recompute_name(stage)) + "\n    operators: [" + join(operators) + "]\n";
  }
  return text;
}

} // namespace stagecraft
