// torchgpipe's balance: {"balance": [3, 4, 5, 12], "devices": […], "chunks": 32, "checkpoint": "except_last"}, or just
// the list. docs/formats/foreign-plans.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/plan_names.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

struct CheckpointRow {
  std::string_view name;
  Recompute recompute;
};
constexpr std::array kCheckpoints = {
    CheckpointRow{"always", Recompute::full},
    CheckpointRow{"except_last", Recompute::full},
    CheckpointRow{"never", Recompute::none},
};

/// The balance and the keys beside it; a bare list has none of those.
struct Settings {
  std::vector<const yaml::Node*> balance, devices;
  Where where; ///< place of the balance
  Recompute recompute = Recompute::none;
  std::string note;
};

Settings read_settings(const yaml::Node& document) {
  Settings settings;
  if (document.kind == yaml::Node::Kind::sequence) {
    for (const yaml::Node& item : document.items) {
      settings.balance.push_back(&item);
    }
    settings.where = document.where;
    return settings;
  }
  constexpr int kMostChunks = 1 << 24;
  yaml::Map map(document, "torchgpipe plan");
  map.node("balance");
  settings.balance = map.list("balance");
  settings.where = map.where("balance");
  settings.devices = map.list("devices");
  const int chunks = map.integer("chunks", 1, kMostChunks, 0);
  settings.note = chunks > 0 ? "made for " + std::to_string(chunks) + " micro-batches" : "";
  if (map.has("checkpoint")) {
    const CheckpointRow& row = map.choice("checkpoint", kCheckpoints);
    settings.recompute = row.recompute;
    if (row.name == "except_last") {
      settings.note +=
          std::string(settings.note.empty() ? "" : "; ") + "the last micro-batch counted as recomputed too";
    }
  }
  if (map.boolean("deferred_batch_norm", false)) {
    settings.note += std::string(settings.note.empty() ? "" : "; ") + "deferred_batch_norm changes no time";
  }
  map.finish();
  return settings;
}

std::vector<int> read_balance(const Settings& settings) {
  constexpr int kMostLayers = 1'000'000;
  std::vector<int> balance;
  for (const yaml::Node* item : settings.balance) {
    balance.push_back(yaml::integer(*item, "balance", 1, kMostLayers));
  }
  if (balance.empty()) {
    throw InputError(settings.where, "the balance is empty; allowed: a number of layers for each stage");
  }
  if (!settings.devices.empty() && settings.devices.size() < balance.size()) {
    throw InputError(settings.devices.front()->where, std::to_string(settings.devices.size()) + " devices for " +
                                                          std::to_string(balance.size()) +
                                                          " stages; allowed: at least one for each");
  }
  return balance;
}

} // namespace

bool is_torchgpipe_plan(const PlanSource& source) {
  return source.document().kind == yaml::Node::Kind::sequence || source.document().find("balance") != nullptr;
}

Plan read_torchgpipe_plan(const PlanSource& source) {
  const Settings settings = read_settings(source.document());
  const std::vector<int> balance = read_balance(settings);
  long long count = 0;
  for (const int layers : balance) {
    count += layers;
  }
  const auto layers = layers_by_count(source.model, count, settings.where);
  const PlanNames names(source.model, source.platform);
  Plan plan;
  plan.note = settings.note;
  std::size_t next = 0;
  for (std::size_t s = 0; s < balance.size(); ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.recompute = settings.recompute;
    stage.devices = {settings.devices.empty() ? static_cast<DeviceId>(s) : names.device_of(*settings.devices[s])};
    for (int layer = 0; layer < balance[s]; ++layer, ++next) {
      stage.operators.insert(stage.operators.end(), layers[next].begin(), layers[next].end());
    }
    std::sort(stage.operators.begin(), stage.operators.end());
  }
  return plan;
}

WrittenPlan write_torchgpipe_plan(const PlanToWrite& what) {
  if (std::string why = not_plain(what.plan, "torchgpipe", false); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  Json json = {{"balance", Json::array()}, {"devices", Json::array()}};
  OperatorId next = 0;
  for (std::size_t s = 0; s < what.plan.stages.size(); ++s) {
    const Stage& stage = what.plan.stages[s];
    if (stage.devices.size() > 1) {
      return Infeasible{"stage " + std::to_string(s) + " has " + std::to_string(stage.devices.size()) +
                        " devices, and torchgpipe gives each stage one"};
    }
    for (const OperatorId op : stage.operators) {
      if (op != next++) {
        return Infeasible{"stage " + std::to_string(s) + " is no run of consecutive operators: it has '" +
                          what.model.operators[op].name + "' where '" + what.model.operators[next - 1].name +
                          "' is the next one"};
      }
    }
    json["balance"].push_back(stage.operators.size());
    json["devices"].push_back("cuda:" + std::to_string(stage.devices.front()));
  }
  json["chunks"] = what.micro_batches;
  json["checkpoint"] = what.plan.stages.front().recompute == Recompute::full ? "always" : "never";
  return json.dump() + "\n";
}

} // namespace stagecraft
