// A device map, {"layer.0": "cuda:0", "layer.1": ["cuda:1", "cuda:2"]}: which device loads which layers of a model.
// docs/formats/foreign-plans.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/plan_names.hpp"
#include "sim/strategy/heuristic/placement.hpp"

namespace stagecraft {
namespace {

using Group = std::vector<DeviceId>;

Group read_group(const yaml::Node& node, const PlanNames& names) {
  Group group;
  if (node.kind == yaml::Node::Kind::sequence && !node.items.empty()) {
    for (const yaml::Node& item : node.items) {
      group.push_back(names.device_of(item));
    }
  } else {
    group.push_back(names.device_of(node));
  }
  return group;
}

// Whether `layer` covers the operator: "layer.0" covers the operator of that name and all below it; "" covers all
// operators.
bool stands_below(const std::string& name, const std::string& layer) {
  return layer.empty() || (name.starts_with(layer) && (name.size() == layer.size() || name[layer.size()] == '.' ||
                                                       name[layer.size()] == '/' || layer.ends_with('/')));
}

// place[op] is an index into `groups`, or -1 if no key covers the operator. The longest key that covers it decides.
struct Placed {
  std::vector<int> place;
  std::vector<Group> groups;
};

Placed read_places(const PlanSource& source) {
  const yaml::Node& document = source.document();
  if (document.kind != yaml::Node::Kind::map) {
    throw InputError(document.where, "a device map must be a mapping of layers to devices");
  }
  const PlanNames names(source.model, source.platform);
  Placed placed{std::vector<int>(source.model.size(), -1), {}};
  std::vector<std::size_t> length(source.model.size(), 0);
  std::map<Group, int> index;
  std::map<std::string_view, OperatorId> sorted;
  for (OperatorId op = 0; op < source.model.size(); ++op) {
    sorted.emplace(source.model.operators[op].name, op);
  }
  for (const yaml::Node::Entry& entry : document.entries) {
    Group group = read_group(entry.value, names);
    const auto [found, fresh] = index.emplace(group, static_cast<int>(placed.groups.size()));
    if (fresh) {
      placed.groups.push_back(std::move(group));
    }
    bool any = false;
    for (auto at = sorted.lower_bound(entry.key); at != sorted.end() && at->first.starts_with(entry.key); ++at) {
      if (stands_below(source.model.operators[at->second].name, entry.key)) {
        any = true;
        if (placed.place[at->second] < 0 || entry.key.size() >= length[at->second]) {
          placed.place[at->second] = found->second;
          length[at->second] = entry.key.size();
        }
      }
    }
    if (!any) {
      names.operator_of(entry.key, entry.where); // throws: the name is unknown
    }
  }
  return placed;
}

} // namespace

bool is_device_map(const PlanSource& source) {
  const yaml::Node& document = source.document();
  return document.kind == yaml::Node::Kind::map && document.find("stages") == nullptr &&
         document.find("schema") == nullptr && document.find("strategy") == nullptr;
}

Plan read_device_map(const PlanSource& source) {
  const Placed placed = read_places(source);
  Plan plan;
  for (Segment& segment : convex_segments(source.model, placed.place)) {
    plan.stages.push_back(
        {.operators = std::move(segment.operators), .devices = placed.groups[segment.place], .shares = {}});
  }
  if (plan.stages.empty()) {
    throw InputError(source.document().where, "the device map is empty; allowed: a device for each layer");
  }
  return plan;
}

WrittenPlan write_device_map(const PlanToWrite& what) {
  std::vector<const Stage*> stage_of(what.model.size());
  for (const Stage& stage : what.plan.stages) {
    for (const OperatorId op : stage.operators) {
      stage_of[op] = &stage;
    }
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (OperatorId op = 0; op < what.model.size(); ++op) {
    std::vector<std::string> devices;
    for (const DeviceId device : stage_of[op]->devices) {
      devices.push_back(what.platform.devices[device].name);
    }
    if (devices.size() == 1) {
      json[what.model.operators[op].name] = devices.front();
    } else {
      json[what.model.operators[op].name] = devices;
    }
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace stagecraft
