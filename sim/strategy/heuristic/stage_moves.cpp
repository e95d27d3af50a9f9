// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/stage_moves.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr int kIdle = -1;

struct Place {
  int stage; // or kIdle
  DeviceId device;
};

std::vector<Place> places_of(const StageGroups& state) {
  std::vector<Place> places;
  for (int s = 0; s < state.stages(); ++s) {
    for (const DeviceId device : state.groups[s]) {
      places.push_back({s, device});
    }
  }
  for (const DeviceId device : state.idle) {
    places.push_back({kIdle, device});
  }
  return places;
}

std::vector<DeviceId>& group_of(StageGroups& state, int stage) {
  return stage == kIdle ? state.idle : state.groups[stage];
}

void take(StageGroups& state, int stage, DeviceId device) {
  std::vector<DeviceId>& group = group_of(state, stage);
  group.erase(std::find(group.begin(), group.end(), device));
}

void give(StageGroups& state, int stage, DeviceId device) {
  std::vector<DeviceId>& group = group_of(state, stage);
  group.insert(std::upper_bound(group.begin(), group.end(), device), device);
}

// Removes a stage without devices; its operators join stage `heir`, a neighbour.
void dissolve(StageGroups& state, int stage, int heir) {
  state.groups.erase(state.groups.begin() + stage);
  state.bounds.erase(state.bounds.begin() + std::max(stage, heir));
}

} // namespace

std::optional<StageGroups> shift_boundary(const StageGroups& from, Random& random) {
  if (from.stages() < 2) {
    return std::nullopt;
  }
  StageGroups to = from;
  const int boundary = 1 + random.below(from.stages() - 1);
  const int low = from.bounds[boundary - 1] + 1;
  const int high = from.bounds[boundary + 1] - 1;
  int& at = to.bounds[boundary];
  at = random.below(2) == 0 ? at + 1 - 2 * random.below(2) : low + random.below(high - low + 1);
  if (at < low || at > high || to == from) {
    return std::nullopt;
  }
  return to;
}

std::optional<StageGroups> swap_devices(const StageGroups& from, Random& random) {
  const std::vector<Place> places = places_of(from);
  const Place a = places[random.below(static_cast<int>(places.size()))];
  const Place b = places[random.below(static_cast<int>(places.size()))];
  if (a.stage == b.stage) {
    return std::nullopt;
  }
  StageGroups to = from;
  take(to, a.stage, a.device);
  take(to, b.stage, b.device);
  give(to, a.stage, b.device);
  give(to, b.stage, a.device);
  return to;
}

std::optional<StageGroups> move_device(const StageGroups& from, Random& random) {
  const std::vector<Place> places = places_of(from);
  const Place moved = places[random.below(static_cast<int>(places.size()))];
  const int target = random.below(from.stages() + 1) - 1;
  const bool is_last = moved.stage != kIdle && from.groups[moved.stage].size() == 1;
  if (target == moved.stage || (is_last && from.stages() == 1)) {
    return std::nullopt;
  }
  StageGroups to = from;
  take(to, moved.stage, moved.device);
  give(to, target, moved.device);
  if (is_last) {
    int heir = moved.stage + (random.below(2) == 0 ? -1 : 1);
    heir = heir < 0 || heir == from.stages() ? 2 * moved.stage - heir : heir;
    const bool to_neighbour = target != kIdle && std::abs(target - moved.stage) == 1;
    dissolve(to, moved.stage, to_neighbour ? target : heir);
  }
  return to;
}

std::optional<StageGroups> split_stage(const StageGroups& from, Random& random) {
  const int stage = random.below(from.stages());
  const int operators = from.bounds[stage + 1] - from.bounds[stage];
  const bool alone = from.groups[stage].size() == 1;
  if (operators < 2 || (alone && from.idle.empty())) {
    return std::nullopt;
  }
  StageGroups to = from;
  to.bounds.insert(to.bounds.begin() + stage + 1, from.bounds[stage] + 1 + random.below(operators - 1));
  std::vector<DeviceId> second;
  if (alone) {
    second = {from.idle[random.below(static_cast<int>(from.idle.size()))]};
    take(to, kIdle, second.front());
  } else {
    std::vector<DeviceId>& left = to.groups[stage];
    const int count = 1 + random.below(static_cast<int>(left.size()) - 1);
    for (int i = 0; i < count; ++i) {
      const auto drawn = left.begin() + random.below(static_cast<int>(left.size()));
      second.push_back(*drawn);
      left.erase(drawn);
    }
    std::sort(second.begin(), second.end());
  }
  to.groups.insert(to.groups.begin() + stage + random.below(2), second); // before the rest or after it
  return to;
}

std::optional<StageGroups> random_move(const StageGroups& from, Random& random) {
  switch (random.below(6)) {
  case 0:
    return swap_devices(from, random);
  case 1:
    return move_device(from, random);
  case 2:
    return split_stage(from, random);
  default:
    return shift_boundary(from, random);
  }
}

} // namespace stagecraft
