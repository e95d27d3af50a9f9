// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/plan_ranks.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/base/format/schema.hpp"
#include "sim/collective/rank_map.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

// The name of the link by which a device enters the network on the way to another node; "" where there is none.
std::string nic_of(DeviceId device, const Platform& platform, Router& router) {
  const auto elsewhere = std::find_if(platform.devices.begin(), platform.devices.end(),
                                      [&](const Device& other) { return other.node != platform.devices[device].node; });
  if (elsewhere == platform.devices.end()) {
    return "";
  }
  const LinkId nic = stagecraft::nic_of(device, static_cast<DeviceId>(elsewhere - platform.devices.begin()), router);
  return nic < 0 ? "" : platform.links[nic].name;
}

std::vector<std::string> texts_of(const std::vector<int>& numbers) {
  std::vector<std::string> texts;
  for (const int number : numbers) {
    texts.push_back(std::to_string(number));
  }
  return texts;
}

} // namespace

std::vector<PlanRank> ranks_of(const Plan& plan, const Platform& platform) {
  std::vector<PlanRank> ranks;
  std::vector<int> rank_of(platform.devices.size(), -1);
  Router router(platform);
  int pipeline = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    bool is_new = false;
    for (std::size_t at = 0; at < stage.devices.size(); ++at) {
      int& rank = rank_of[stage.devices[at]];
      if (rank < 0) {
        rank = static_cast<int>(ranks.size());
        const int place = static_cast<int>(at);
        ranks.push_back({.device = stage.devices[at],
                         .pipeline = pipeline,
                         .data = place / stage.tensor_parallel / stage.context.ranks,
                         .context = place / stage.tensor_parallel % stage.context.ranks,
                         .tensor = place % stage.tensor_parallel,
                         .expert = place / stage.experts.tensor % stage.experts.ranks,
                         .nic = nic_of(stage.devices[at], platform, router)});
        is_new = true;
      }
      ranks[rank].stages.push_back(static_cast<int>(s));
    }
    pipeline += is_new ? 1 : 0;
  }
  return ranks;
}

void emit_ranks(const OutputOptions& options, const Plan& plan, const Platform& platform) {
  const std::vector<PlanRank> ranks = ranks_of(plan, platform);
  const auto node_of = [&](const PlanRank& rank) { return platform.nodes[platform.devices[rank.device].node].name; };
  if (options.format == "json") {
    nlohmann::ordered_json json = {{"schema", kSchema}, {"platform", platform.name}};
    for (std::size_t number = 0; number < ranks.size(); ++number) {
      const PlanRank& rank = ranks[number];
      json["ranks"].push_back({{"rank", number},
                               {"pipeline", rank.pipeline},
                               {"data", rank.data},
                               {"context", rank.context},
                               {"tensor", rank.tensor},
                               {"expert", rank.expert},
                               {"device", platform.devices[rank.device].name},
                               {"node", node_of(rank)},
                               {"nic", rank.nic.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(rank.nic)},
                               {"stages", rank.stages}});
    }
    emit(options, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  Table table{{{"rank", Align::right},
               {"pipeline", Align::right},
               {"data", Align::right},
               {"context", Align::right},
               {"tensor", Align::right},
               {"expert", Align::right},
               {"device"},
               {"node"},
               {"into the network by"},
               {"stages"}},
              {}};
  for (std::size_t number = 0; number < ranks.size(); ++number) {
    const PlanRank& rank = ranks[number];
    table.rows.push_back({{std::to_string(number)},
                          {std::to_string(rank.pipeline)},
                          {std::to_string(rank.data)},
                          {std::to_string(rank.context)},
                          {std::to_string(rank.tensor)},
                          {std::to_string(rank.expert)},
                          {platform.devices[rank.device].name},
                          {node_of(rank)},
                          {rank.nic},
                          {join(texts_of(rank.stages))}});
  }
  emit(options, to_text(table, use_color()));
}

} // namespace stagecraft
