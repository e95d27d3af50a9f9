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

std::vector<DeviceId> devices_of(const std::vector<int>& ranks, const Groups& groups) {
  std::vector<DeviceId> devices;
  for (const int rank : ranks) {
    devices.insert(devices.end(), groups[rank].begin(), groups[rank].end());
  }
  return devices;
}

// Why a stage cannot live on its ranks, or "".
std::string misplaced(const Stage& stage, std::size_t number, const std::vector<int>& ranks, const Groups& groups) {
  const std::vector<DeviceId> devices = devices_of(ranks, groups);
  const bool at_home =
      std::find(ranks.begin(), ranks.end(), static_cast<int>(number)) != ranks.end() && groups[number] == stage.devices;
  if (ranks.size() == 1 && devices != stage.devices) {
    return "the schedule has stage " + std::to_string(number) + " on rank " + std::to_string(ranks.front()) +
           ", where the plan has other devices for it";
  }
  if (ranks.size() > 1 && stage.replicas() != 1 && devices != stage.devices && !at_home) {
    return "the schedule has stage " + std::to_string(number) + " on " + count_of(ranks.size(), "rank") +
           ", the plan has it on " + count_of(stage.replicas(), "replica") +
           "; allowed: one, one per rank, or those of the rank of the stage's own number";
  }
  return "";
}

// Why a stage cannot be copied to all of its ranks, or "": the copies have equally many shards, one on each device of a
// rank.
std::string divided_unequally(const Stage& stage, std::size_t number, const std::vector<int>& ranks,
                              const Groups& groups) {
  const bool on_all = devices_of(ranks, groups) == stage.devices;
  const std::size_t wanted = stage.devices.size() / (on_all ? ranks.size() : 1);
  for (const int rank : ranks) {
    const std::size_t devices = groups[rank].size();
    if (ranks.size() > 1 && devices != wanted) {
      return "the schedule has stage " + std::to_string(number) + " on rank " + std::to_string(rank) +
             " too, which has " + count_of(devices, "device") + ", the plan divides it over " + std::to_string(wanted) +
             "; allowed: ranks of equally many devices";
    }
  }
  return "";
}

// Gives a stage the devices of all of its ranks, each of which has all of it.
void spread(Stage& stage, const std::vector<int>& ranks, const Groups& groups) {
  stage.turns = static_cast<int>(ranks.size());
  if (std::vector<DeviceId> all = devices_of(ranks, groups); stage.devices.size() < all.size()) {
    stage.devices = std::move(all);
    const std::vector<double> own = stage.shares;
    for (std::size_t copy = 1; copy < ranks.size(); ++copy) {
      stage.shares.insert(stage.shares.end(), own.begin(), own.end());
    }
  } else {
    stage.shares.clear();
  }
}

// Whether stages have as many ranks each, and every micro-batch runs on those of one place among them.
bool keeps_turns(const Schedule& schedule, const std::vector<std::vector<int>>& ranks) {
  const auto as_many = [&](const std::vector<int>& of_stage) { return of_stage.size() == ranks.front().size(); };
  if (!std::all_of(ranks.begin(), ranks.end(), as_many)) {
    return false;
  }
  std::vector<std::ptrdiff_t> turn(schedule.micro_batches, -1);
  for (std::size_t rank = 0; rank < schedule.orders.size() && ranks.front().size() > 1; ++rank) {
    for (const Action& action : schedule.orders[rank]) {
      const std::vector<int>& of_stage = ranks[action.stage];
      const std::ptrdiff_t own = std::find(of_stage.begin(), of_stage.end(), rank) - of_stage.begin();
      std::ptrdiff_t& known = turn[action.micro_batch % schedule.micro_batches];
      if (known >= 0 && known != own) {
        return false;
      }
      known = own;
    }
  }
  return true;
}

} // namespace

std::variant<PlacedPlan, Infeasible> place(const Plan& plan, const Schedule& schedule) {
  const std::size_t ranks = schedule.orders.size();
  if (static_cast<std::size_t>(schedule.stages) != plan.stages.size()) {
    return Infeasible{"the schedule has " + count_of(schedule.stages, "stage") + ", the plan " +
                      std::to_string(plan.stages.size())};
  }
  std::vector<std::vector<int>> homes = homes_of(schedule);
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
  PlacedPlan placed{.plan = plan, .rank_of = {}};
  for (std::size_t s = 0; s < homes.size(); ++s) {
    if (homes[s].size() > 1) {
      std::stable_partition(homes[s].begin(), homes[s].end(), [&](int rank) { return rank == static_cast<int>(s); });
      spread(placed.plan.stages[s], homes[s], groups);
    }
  }
  placed.keeps_turns = keeps_turns(schedule, homes);
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    for (const DeviceId device : groups[rank]) {
      placed.rank_of.resize(std::max(placed.rank_of.size(), static_cast<std::size_t>(device) + 1), -1);
      placed.rank_of[device] = static_cast<int>(rank);
    }
  }
  return placed;
}

} // namespace stagecraft
