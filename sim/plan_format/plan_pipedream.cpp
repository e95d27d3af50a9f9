// PipeDream's two forms of a plan: the profile graph whose nodes have a stage_id, and the runtime's configuration,
// {"module_to_stage_map": [0, 1, 1], "stage_to_rank_map": {"0": [0, 1], "1": [2]}}. docs/formats/foreign-plans.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/plan/stage_of_operators.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/plan_names.hpp"
#include "sim/workload/import/pipedream.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

// Whether the text is a profile graph: its first non-empty line has " -- " between the parts of a node or edge.
bool is_graph(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of("\r\n"), text.size());
  const std::string_view line = text.substr(start, text.find('\n', start) - start);
  return line.find(" -- ") != std::string_view::npos && !line.starts_with('#');
}

// The stages get one device each, in order: the graph says nothing about replicas.
Plan read_graph(const PlanSource& source) {
  const PlanNames names(source.model, source.platform);
  Plan plan;
  bool any = false;
  for (const StagedNode& node : read_pipedream_stages(source.text, source.file)) {
    const OperatorId op = names.operator_of(node.id, node.where);
    if (node.stage < 0) {
      continue; // an operator without a stage is reported as a defect of the plan
    }
    any = true;
    while (static_cast<int>(plan.stages.size()) <= node.stage) {
      const auto device = static_cast<DeviceId>(plan.stages.size());
      plan.stages.push_back({.operators = {}, .devices = {device}, .shares = {}});
    }
    plan.stages[node.stage].operators.push_back(op);
  }
  if (!any) {
    throw InputError({source.file, 1, 1}, "no node carries a stage; allowed: ' -- stage_id=k' behind the fields");
  }
  for (Stage& stage : plan.stages) {
    std::sort(stage.operators.begin(), stage.operators.end());
  }
  return plan;
}

// The operators of each module: modules are layers, or all operators belong to the first module if all lie on one
// stage. A module after the last layer is the criterion, which a profile does not contain.
std::vector<std::vector<OperatorId>> operators_of_modules(const ModelGraph& model, const std::vector<int>& stage_of,
                                                          const Where& where) {
  if (std::all_of(stage_of.begin(), stage_of.end(), [&](int stage) { return stage == stage_of.front(); })) {
    std::vector<std::vector<OperatorId>> modules(stage_of.size());
    for (OperatorId op = 0; op < model.size(); ++op) {
      modules.front().push_back(op);
    }
    return modules;
  }
  const auto count = static_cast<long long>(stage_of.size());
  try {
    return layers_by_count(model, count, where);
  } catch (const InputError& failure) {
    try {
      auto modules = layers_by_count(model, count - 1, where);
      modules.emplace_back();
      return modules;
    } catch (const InputError&) {
      throw failure;
    }
  }
}

Plan read_configuration(const PlanSource& source) {
  yaml::Map map(source.document(), "PipeDream configuration");
  std::vector<int> stage_of;
  map.node("module_to_stage_map");
  for (const yaml::Node* item : map.list("module_to_stage_map")) {
    stage_of.push_back(yaml::integer(*item, "module_to_stage_map", 0, kMostPipedreamStage));
  }
  const Where where = map.where("module_to_stage_map");
  if (stage_of.empty()) {
    throw InputError(where, "'module_to_stage_map' is empty; allowed: the stage of each module");
  }
  Plan plan;
  plan.stages.resize(*std::max_element(stage_of.begin(), stage_of.end()) + 1);
  const auto modules = operators_of_modules(source.model, stage_of, where);
  for (std::size_t m = 0; m < stage_of.size(); ++m) {
    auto& operators = plan.stages[stage_of[m]].operators;
    operators.insert(operators.end(), modules[m].begin(), modules[m].end());
    std::sort(operators.begin(), operators.end());
  }
  const yaml::Node& ranks = map.node("stage_to_rank_map");
  yaml::Map by_stage(ranks, "'stage_to_rank_map'");
  for (const yaml::Node::Entry& entry : ranks.entries) {
    const int stage = parse_integer(entry.key, 0, kMostPipedreamStage, entry.where);
    if (stage >= static_cast<int>(plan.stages.size())) {
      throw InputError(entry.where, "stage " + entry.key + " has ranks and no module; allowed: stages 0 to " +
                                        std::to_string(plan.stages.size() - 1));
    }
    for (const yaml::Node* rank : by_stage.list(entry.key)) {
      plan.stages[stage].devices.push_back(yaml::integer(*rank, "rank", 0, kMostRank));
    }
  }
  map.finish();
  return plan;
}

} // namespace

bool is_pipedream_plan(const PlanSource& source) {
  return is_graph(source.text) || source.document().find("module_to_stage_map") != nullptr ||
         source.document().find("stage_to_rank_map") != nullptr;
}

Plan read_pipedream_plan(const PlanSource& source) {
  return is_graph(source.text) ? read_graph(source) : read_configuration(source);
}

WrittenPlan write_pipedream_plan(const PlanToWrite& what) {
  if (std::string why = not_plain(what.plan, "PipeDream", false); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  if (what.plan.stages.front().recompute != Recompute::none) {
    return Infeasible{"the plan recomputes, which PipeDream's configuration cannot express"};
  }
  const std::vector<int> stage_of = stage_of_operators(what.model.size(), what.plan);
  Json ranks = Json::object();
  std::vector<char> taken(what.platform.devices.size());
  for (std::size_t s = 0; s < what.plan.stages.size(); ++s) {
    const Stage& stage = what.plan.stages[s];
    for (const DeviceId device : stage.devices) {
      if (std::exchange(taken[device], 1) != 0) {
        return Infeasible{"device '" + what.platform.devices[device].name +
                          "' has several stages, and PipeDream gives a rank one"};
      }
    }
    ranks[std::to_string(s)] = stage.devices;
  }
  const Json json = {{"module_to_stage_map", stage_of}, {"stage_to_rank_map", ranks}};
  return json.dump() + "\n";
}

} // namespace stagecraft
