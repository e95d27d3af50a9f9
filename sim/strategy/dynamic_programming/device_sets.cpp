// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/device_sets.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/plan/stage_cost/groups/axis_groups.hpp"

namespace stagecraft {
namespace {

enum class Policy { fresh_first, append_first, scatter_first };

using Units = std::vector<std::vector<std::vector<DeviceId>>>; // [server][unit]
using Used = std::vector<int>;                                 // [server]: units in use, its first ones

Units units_of(const Problem& problem, const std::vector<DeviceId>& devices, int grain) {
  std::map<int, std::size_t> of_node;
  Units servers;
  for (const DeviceId device : devices) {
    const auto [slot, is_new] = of_node.try_emplace(problem.platform.devices[device].node, servers.size());
    if (is_new) {
      servers.emplace_back();
    }
    auto& server = servers[slot->second];
    if (server.empty() || static_cast<int>(server.back().size()) == grain) {
      server.emplace_back();
    }
    server.back().push_back(device);
  }
  return servers;
}

// The server that gives the next unit, by the policy, to a stage that began when `before` was in use; -1 if no unit is
// left.
int next_server(const Units& servers, const Used& before, const Used& now, Policy policy) {
  int best = -1;
  const auto is_better = [&](std::size_t a, std::size_t b) { // strictly, so that the first server wins a tie
    if (policy == Policy::scatter_first) {
      return now[a] - before[a] < now[b] - before[b];
    }
    const bool fresh_a = before[a] == 0;
    const bool fresh_b = before[b] == 0;
    return fresh_a != fresh_b && fresh_a == (policy == Policy::fresh_first);
  };
  for (std::size_t server = 0; server < servers.size(); ++server) {
    const bool has_left = now[server] < static_cast<int>(servers[server].size());
    if (has_left && (best < 0 || is_better(server, static_cast<std::size_t>(best)))) {
      best = static_cast<int>(server);
    }
  }
  return best;
}

DeviceSets::Edge make_edge(const Problem& problem, const Units& servers, const Used& before, const Used& after) {
  DeviceSets::Edge edge;
  edge.of_type.assign(problem.platform.types.size(), 0.0);
  for (std::size_t server = 0; server < servers.size(); ++server) {
    for (int unit = before[server]; unit < after[server]; ++unit) {
      edge.devices.insert(edge.devices.end(), servers[server][unit].begin(), servers[server][unit].end());
    }
  }
  for (const DeviceId device : edge.devices) {
    edge.of_type[problem.type_index(device)] += 1;
  }
  edge.group = group_of_devices(problem, edge.devices);
  return edge;
}

} // namespace

std::optional<DeviceSets> device_sets(const Problem& problem, const std::vector<DeviceId>& devices, int most, int grain,
                                      std::size_t most_edges) {
  const Units servers = units_of(problem, devices, grain);
  DeviceSets sets;
  // Sorted by the number of units in use, so that edges lead to later nodes.
  std::map<std::pair<int, Used>, std::vector<Used>> reached = {{{0, Used(servers.size(), 0)}, {}}};
  std::size_t edges = 0;
  for (auto& [node, targets] : reached) {
    const Used& before = node.second;
    for (const Policy policy : {Policy::fresh_first, Policy::append_first, Policy::scatter_first}) {
      Used now = before;
      int taken = 0;
      for (int server = 0; (server = next_server(servers, before, now, policy)) >= 0;) {
        taken += static_cast<int>(servers[server][now[server]].size());
        if (taken > most) {
          break;
        }
        ++now[server];
        if (std::find(targets.begin(), targets.end(), now) == targets.end()) {
          targets.push_back(now);
          reached.try_emplace({std::accumulate(now.begin(), now.end(), 0), now});
          if (++edges > most_edges) {
            return std::nullopt;
          }
        }
      }
    }
  }
  std::map<Used, int> number;
  for (const auto& [node, targets] : reached) {
    number.emplace(node.second, static_cast<int>(number.size()));
  }
  sets.leaving.resize(number.size());
  for (const auto& [node, targets] : reached) {
    const int from = number.at(node.second);
    for (const Used& after : targets) {
      sets.leaving[from].push_back(static_cast<int>(sets.edges.size()));
      sets.edges.push_back(make_edge(problem, servers, node.second, after));
      sets.edges.back().from = from;
      sets.edges.back().to = number.at(after);
    }
  }
  return sets;
}

} // namespace stagecraft
