// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/place.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/count_of.hpp"

namespace stagecraft {
namespace {

// For each stage the ranks whose orders contain it, ascending.
std::vector<std::vector<int>> homes_of(const Schedule& schedule) {
  std::vector<std::vector<int>> homes(schedule.stages);
  for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
    std::int32_t before = -1; // the stage of the action before
    for (const Action& action : schedule.orders[rank]) {
      if (action.stage == before) {
        continue;
      }
      before = action.stage;
      std::vector<int>& ranks = homes[action.stage];
      if (ranks.empty() || ranks.back() != static_cast<int>(rank)) {
        ranks.push_back(static_cast<int>(rank));
      }
    }
  }
  return homes;
}

using Groups = std::vector<std::vector<DeviceId>>; // the devices of each rank

// One rank per replica of each stage, stage by stage.
Groups groups_of_replicas(const Plan& plan) {
  Groups groups;
  for (const Stage& stage : plan.stages) {
    for (std::size_t i = 0; i < stage.devices.size(); i += stage.tensor_parallel) {
      groups.emplace_back(stage.devices.begin() + i, stage.devices.begin() + i + stage.tensor_parallel);
    }
  }
  return groups;
}

// The devices of each rank, if ranks are stages, or devices with several stages: those of the first stage that lives on
// the rank.
Groups groups_of_stages(const Plan& plan, const std::vector<std::vector<int>>& homes, std::size_t ranks) {
  Groups groups(ranks);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto own = static_cast<int>(s);
    const bool at_home = std::binary_search(homes[s].begin(), homes[s].end(), own);
    std::vector<DeviceId>& group = groups[at_home ? own : homes[s].front()];
    group = group.empty() ? plan.stages[s].devices : group;
  }
  return groups;
}

// Why a stage cannot live on its ranks, or "".
std::string misplaced(const Stage& stage, std::size_t number, const std::vector<int>& ranks, const Groups& groups) {
  std::vector<DeviceId> devices;
  for (const int rank : ranks) {
    devices.insert(devices.end(), groups[rank].begin(), groups[rank].end());
  }
  if (ranks.size() == 1 && devices != stage.devices) {
    return "the schedule has stage " + std::to_string(number) + " on rank " + std::to_string(ranks.front()) +
           ", where the plan has other devices for it";
  }
  if (ranks.size() > 1 && stage.replicas() != 1 && devices != stage.devices) {
    return "the schedule has stage " + std::to_string(number) + " on " + count_of(ranks.size(), "rank") +
           ", the plan has it on " + count_of(stage.replicas(), "replica") + "; allowed: one, or one per rank";
  }
  return "";
}

// Why a stage cannot be copied to all of its ranks, or "": the copies have equally many shards, one on each device of a
// rank.
std::string divided_unequally(const Stage& stage, std::size_t number, const std::vector<int>& ranks,
                              const Groups& groups) {
  for (const int rank : ranks) {
    const std::size_t shards = groups[rank].size();
    if (ranks.size() > 1 && shards != static_cast<std::size_t>(stage.tensor_parallel)) {
      return "the schedule has stage " + std::to_string(number) + " on rank " + std::to_string(rank) +
             " too, which has " + count_of(shards, "device") + ", the plan divides it over " +
             std::to_string(stage.tensor_parallel) + "; allowed: ranks of equally many devices";
    }
  }
  return "";
}

} // namespace

std::variant<PlacedPlan, Infeasible> place(const Plan& plan, const Schedule& schedule) {
  const std::size_t ranks = schedule.orders.size();
  if (static_cast<std::size_t>(schedule.stages) != plan.stages.size()) {
    return Infeasible{"the schedule has " + count_of(schedule.stages, "stage") + ", the plan " +
                      std::to_string(plan.stages.size())};
  }
  const std::vector<std::vector<int>> homes = homes_of(schedule);
  Groups groups = groups_of_replicas(plan);
  if (groups.size() != ranks || ranks == plan.stages.size()) {
    groups = groups_of_stages(plan, homes, ranks);
  }
  for (const auto& why_not : {misplaced, divided_unequally}) {
    for (std::size_t s = 0; s < homes.size(); ++s) {
      if (std::string why = why_not(plan.stages[s], s, homes[s], groups); !why.empty()) {
        return Infeasible{std::move(why)};
      }
    }
  }
  PlacedPlan placed{plan, {}};
  for (std::size_t s = 0; s < homes.size(); ++s) {
    Stage& stage = placed.plan.stages[s];
    if (homes[s].size() > 1) {
      std::vector<int> at = homes[s]; // its own rank first
      std::stable_partition(at.begin(), at.end(), [&](int rank) { return rank == static_cast<int>(s); });
      stage.in_turn = true;
      stage.shares.clear();
      if (stage.replicas() != at.size()) {
        stage.devices.clear();
        for (const int rank : at) {
          stage.devices.insert(stage.devices.end(), groups[rank].begin(), groups[rank].end());
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    for (const DeviceId device : groups[rank]) {
      placed.rank_of.resize(std::max(placed.rank_of.size(), static_cast<std::size_t>(device) + 1), -1);
      placed.rank_of[device] = static_cast<int>(rank);
    }
  }
  return placed;
}

} // namespace stagecraft
