// SPDX-License-Identifier: Apache-2.0
#include "sim/result/setting_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/named_table.hpp"
#include "sim/plan/plan.hpp"
#include "sim/platform/vertex_name.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

// The degrees that are given, as a reader names them; null where a strategy chooses.
Json degrees_of(const std::optional<ParallelDegrees>& given) {
  if (!given) {
    return {};
  }
  const auto left_open = [](int degree) { return degree > 0 ? Json(degree) : Json("the rest"); };
  Json json = {{"data", left_open(given->data)},
               {"tensor", given->tensor},
               {"pipeline", given->pipeline == 0 && given->data == 0 ? Json(1) : left_open(given->pipeline)},
               {"zero", static_cast<int>(given->sharding.zero)}};
  if (given->tensor > 1) {
    json["sequence"] = given->sequence;
  }
  if (given->context.ranks > 1) {
    json["context"] = given->context.ranks;
  }
  if (given->experts.ranks > 1) {
    json["expert"] = given->experts.ranks;
  }
  return json;
}

// What is tried of recomputation, each choice once.
Json recomputes_of(const Training& training) {
  std::vector<std::string> names;
  for (const RecomputeChoice& choice : training.recomputes) {
    const std::string name = choice.blocks > 0 ? "blocks" : std::string(name_of(choice.what));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return join(names);
}

double parameters_of(const ModelGraph& model) {
  return std::accumulate(model.operators.begin(), model.operators.end(), 0.0,
                         [](double sum, const Operator& op) { return sum + op.parameters; });
}

Json types_of(const Platform& platform) {
  std::vector<int> counts(platform.types.size(), 0);
  for (const Device& device : platform.devices) {
    ++counts[static_cast<std::size_t>(device.type)];
  }
  Json list = Json::array();
  for (std::size_t type = 0; type < counts.size(); ++type) {
    if (counts[type] > 0) {
      list.push_back({{"name", platform.types[type].name},
                      {"vendor", platform.types[type].vendor},
                      {"count", counts[type]},
                      {"memory_bytes", platform.types[type].memory.value},
                      {"usd_per_hour", platform.types[type].price.rate.value * kSecondsOfHour}});
    }
  }
  return list;
}

// The node of an end of a link; -1 for a switch between nodes.
int node_of(const Platform& platform, const Vertex& vertex, const std::map<std::string, int>& nodes) {
  if (vertex.kind == Vertex::Kind::device) {
    return platform.devices[static_cast<std::size_t>(vertex.index)].node;
  }
  const auto found = nodes.find(vertex.name.substr(0, vertex.name.find('/')));
  return found == nodes.end() ? -1 : found->second;
}

// Nodes with the same devices and links inside, and the links to what lies between nodes, each kind once.
class Cluster {
public:
  explicit Cluster(const Platform& platform) : platform_(platform) {
    std::map<std::string, int> nodes;
    for (std::size_t node = 0; node < platform.nodes.size(); ++node) {
      nodes.emplace(platform.nodes[node].name, static_cast<int>(node));
    }
    kinds_.resize(platform.nodes.size());
    types_.resize(platform.nodes.size());
    for (const Device& device : platform.devices) {
      ++types_[static_cast<std::size_t>(device.node)][platform.types[static_cast<std::size_t>(device.type)].name];
    }
    for (const Link& link : platform.links) {
      add(link, nodes);
    }
  }

  Json nodes() const {
    Json list = Json::array();
    for (std::size_t node = 0; node < kinds_.size(); ++node) {
      Json devices = Json::array(), links = Json::array();
      for (const auto& [type, count] : types_[node]) {
        devices.push_back({{"type", type}, {"count", count}});
      }
      for (const auto& [kind, count] : kinds_[node]) {
        links.push_back(to_value(kind, count));
      }
      const auto same = std::find_if(list.begin(), list.end(), [&](const Json& one) {
        return one["devices"] == devices && one["links"] == links;
      });
      if (same == list.end()) {
        list.push_back({{"names", {platform_.nodes[node].name}}, {"devices", devices}, {"links", links}});
      } else {
        (*same)["names"].push_back(platform_.nodes[node].name);
      }
    }
    return list;
  }

  Json network() const {
    Json list = Json::array();
    for (const auto& [kind, count] : between_) {
      list.push_back(to_value(kind, count));
    }
    return list;
  }

private:
  struct Kind {
    std::string from, to;
    double bandwidth = 0;
    auto operator<=>(const Kind&) const = default;
  };
  static Json to_value(const Kind& kind, int count) {
    return {{"from", kind.from}, {"to", kind.to}, {"bytes_per_second", kind.bandwidth}, {"count", count}};
  }

  void add(const Link& link, const std::map<std::string, int>& nodes) {
    const Vertex& from = platform_.vertices[static_cast<std::size_t>(link.from)];
    const Vertex& to = platform_.vertices[static_cast<std::size_t>(link.to)];
    if (from.kind == Vertex::Kind::disk || to.kind == Vertex::Kind::disk || link.from == link.to) {
      return; // no data between devices crosses a disk, nor a host's memory alone
    }
    const int here = node_of(platform_, from, nodes), there = node_of(platform_, to, nodes);
    std::map<Kind, int>& kinds = here >= 0 && here == there ? kinds_[static_cast<std::size_t>(here)] : between_;
    ++kinds[{name_of_kind(from), name_of_kind(to), link.bandwidth.value}];
  }

  const Platform& platform_;
  std::vector<std::map<Kind, int>> kinds_;        // [node]: of its links inside
  std::vector<std::map<std::string, int>> types_; // [node]: of its devices
  std::map<Kind, int> between_;
};

} // namespace

std::string setting_json(const RunSetting& setting) {
  const Training& training = setting.training;
  const Cluster cluster(setting.platform);
  const Json json = {{"program", setting.program},
                     {"engine", setting.engine},
                     {"model",
                      {{"description", setting.model.description},
                       {"parameters", parameters_of(setting.model)},
                       {"sequence_tokens", tokens_of(setting.model) > 0 ? Json(tokens_of(setting.model)) : Json()}}},
                     {"training",
                      {{"global_batch", training.global_batch},
                       {"precision", kNumberFormats[static_cast<std::size_t>(training.precision)].name},
                       {"optimizer", training.optimizer->name},
                       {"parallel", degrees_of(training.parallel)},
                       {"recompute", recomputes_of(training)},
                       {"gradient_bucket_bytes", training.gradient_bucket.value},
                       {"fp8", training.fp8->products ? Json(training.fp8->name) : Json()},
                       {"framework", training.framework.empty() ? Json() : Json(training.framework)}}},
                     {"platform",
                      {{"description", setting.platform.description},
                       {"types", types_of(setting.platform)},
                       {"nodes", cluster.nodes()},
                       {"network", cluster.network()}}}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace stagecraft
