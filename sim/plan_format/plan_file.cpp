// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_format/plan_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/base/format/schema.hpp"
#include "sim/base/utf8.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/plan_names.hpp"
#include "sim/result/stage_json.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

// Reads a stage; adds the nodes of unknown operators to `unknown`.
Stage read_stage(const yaml::Node& node, const PlanNames& names, std::vector<const yaml::Node*>& unknown) {
  yaml::Map map(node, "stage");
  Stage stage;
  stage.operators = names.operators_of(map.list("operators"), unknown);
  for (const yaml::Node* item : map.list("devices")) {
    stage.devices.push_back(names.device_of(*item));
  }
  for (const yaml::Node* item : map.list("shares")) {
    stage.shares.push_back(yaml::number(*item, "shares", yaml::kFraction));
  }
  constexpr int kMostDegree = 1 << 20;
  stage.tensor_parallel = map.integer("tensor_parallel", 1, kMostDegree, 1);
  stage.sequence_parallel = map.boolean("sequence_parallel", false);
  stage.tensor_rule = map.choice("tensor_rule", kTensorRules, "megatron").rule;
  stage.context = read_context(map, "context_parallel");
  stage.experts = read_experts(map, "expert_parallel", "expert_tensor_parallel");
  stage.recompute = map.choice("recompute", kStageRecomputes, "none").recompute;
  stage.recomputed = names.operators_of(map.list("recomputed"), unknown);
  constexpr int kMostStreams = 128;
  stage.streams = map.has("streams") ? map.integer("streams", 1, kMostStreams) : 0;
  for (const char* derived : {"chunk", "seconds", "layout", "expert_layout"}) { // written only for people
    map.find(derived);
  }
  map.finish();
  return stage;
}

} // namespace

Plan read_plan(const yaml::Node& document, const ModelGraph& model, const Platform& platform) {
  yaml::Map map(document, "plan");
  const PlanNames names(model, platform);
  Plan plan;
  plan.strategy = map.text("strategy", "given");
  std::vector<const yaml::Node*> unknown;
  for (const yaml::Node* node : map.list("stages")) {
    plan.stages.push_back(read_stage(*node, names, unknown));
  }
  names.refuse(unknown);
  if (const std::string schema = map.text("schema", kSchema); schema != kSchema) {
    throw InputError(map.where("schema"), "'schema' is '" + excerpt(schema) + "'; allowed: " + kSchema);
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
  for (const RunStage& stage : describe_stages(model, platform, plan, cost)) {
    json["stages"].push_back(to_value(stage));
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
  std::string text = "# A plan of Stagecraft: operators of '" + on_one_line(model.name) + "' on devices of '" +
                     on_one_line(platform.name) + "'; docs/formats/plan.md\nschema: " + kSchema +
                     "\nstrategy: " + in_double_quotes(plan.strategy) + "\nstages:\n";
  for (const Stage& stage : plan.stages) {
    std::vector<std::string> operators;
    for (const OperatorId op : stage.operators) {
      operators.push_back(in_double_quotes(model.operators[op].name));
    }
    std::vector<std::string> devices;
    for (const DeviceId device : stage.devices) {
      devices.push_back(in_double_quotes(platform.devices[device].name));
    }
    text += "  - devices: [" + join(devices) + "]\n";
    if (!stage.shares.empty()) {
      text += "    shares: " + Json(stage.shares).dump() + "\n";
    }
    if (stage.tensor_parallel > 1) {
      text += "    tensor_parallel: " + std::to_string(stage.tensor_parallel) + "\n";
    }
    if (stage.sequence_parallel) {
      text += "    sequence_parallel: true\n";
    }
    if (stage.tensor_rule != TensorRule::megatron) {
      text += "    tensor_rule: " + std::string(row_of(stage.tensor_rule).name) + "\n";
    }
    if (stage.context.ranks > 1) {
      text += "    context_parallel: " + std::to_string(stage.context.ranks) + "\n";
      text += "    context_rule: " + std::string(row_of(stage.context.rule).name) + "\n";
      text += "    context_order: " + std::string(row_of(stage.context.order).name) + "\n";
    }
    if (stage.context.rule == ContextRule::both) {
      text += "    context_heads: " + std::to_string(stage.context.heads) + "\n";
    }
    if (stage.experts.ranks > 1) {
      text += "    expert_parallel: " + std::to_string(stage.experts.ranks) + "\n";
      text += "    expert_tensor_parallel: " + std::to_string(stage.experts.tensor) + "\n";
    }
    if (stage.streams > 0) {
      text += "    streams: " + std::to_string(stage.streams) + "\n";
    }
    text += "    recompute: " + std::string(name_of(stage.recompute)) + "\n";
    if (!stage.recomputed.empty()) {
      std::vector<std::string> recomputed;
      for (const OperatorId op : stage.recomputed) {
        recomputed.push_back(in_double_quotes(model.operators[op].name));
      }
      text += "    recomputed: [" + join(recomputed) + "]\n";
    }
    text += "    operators: [" + join(operators) + "]\n";
  }
  return text;
}

Plan read_stagecraft_plan(const PlanSource& source) {
  Plan plan = read_plan(source.document(), source.model, source.platform);
  if (source.document().find("strategy") == nullptr) {
    plan.strategy.clear(); // load_plan() then takes the file's name, which says more than "given"
  }
  return plan;
}

WrittenPlan write_stagecraft_plan(const PlanToWrite& what) {
  return plan_to_yaml(what.plan, what.model, what.platform);
}

} // namespace stagecraft
