// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/groups/axis_groups.hpp"

#include <numeric>
#include <utility>

#include "sim/plan/stage_cost/groups/dispatch_traffic.hpp"

namespace stagecraft {
namespace {

// How long a group takes for an exchange of middle size: what tells a slow one from a fast one.
Seconds typical_seconds(Axis axis, const Group& group) {
  constexpr Bytes kTypical{1 << 20};
  const CollectiveKind kind = axis == Axis::tensor    ? CollectiveKind::all_reduce
                              : axis == Axis::context ? CollectiveKind::all_gather
                                                      : CollectiveKind::all_to_all;
  return seconds_of({kind, group, kTypical});
}

// [place among the devices that are simulated]: its place among all of the stage.
std::vector<std::size_t> devices_simulated(const Stage& stage, const StageFold* fold) {
  std::vector<std::size_t> places(stage.devices.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (fold == nullptr) {
    return places;
  }
  const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
  places.clear();
  for (const std::int32_t replica : fold->first) {
    for (std::size_t rank = 0; rank < degree; ++rank) {
      places.push_back(static_cast<std::size_t>(replica) * degree + rank);
    }
  }
  return places;
}

// Sets, of simulated devices that have none yet, the one after each in its team.
void find_next(const Stage& stage, const std::vector<std::vector<std::size_t>>& teams,
               const std::vector<std::size_t>& simulated, std::vector<DeviceId>& next) {
  std::vector<DeviceId> after(stage.devices.size(), -1);
  for (const std::vector<std::size_t>& team : teams) {
    for (std::size_t i = 0; i < team.size(); ++i) {
      after[team[i]] = stage.devices[team[(i + 1) % team.size()]];
    }
  }
  for (std::size_t place = 0; place < simulated.size(); ++place) {
    next[place] = next[place] < 0 ? after[simulated[place]] : next[place];
  }
}

} // namespace

std::vector<double> figures_of(const AxisGroups& groups) {
  std::vector<double> figures;
  for (const Axis axis : kPassAxes) {
    const std::vector<double> own = figures_of(groups.along(axis));
    figures.insert(figures.end(), own.begin(), own.end());
  }
  return figures;
}

// Ranks are numbered with tensor ranks innermost, then heads, then context. Teams along an axis differ in nothing but
// their coordinate of it.
std::vector<std::vector<std::size_t>> team_places(const StageAxes& axes, Axis axis, std::size_t devices) {
  std::size_t stride = 1;
  auto size = static_cast<std::size_t>(axes.degree);
  if (axis == Axis::heads) {
    stride = size;
    size = static_cast<std::size_t>(axes.context.heads);
  } else if (axis == Axis::context) {
    stride = size * static_cast<std::size_t>(axes.context.heads);
    size = static_cast<std::size_t>(axes.context.loops());
  } else if (axis == Axis::experts) {
    stride = static_cast<std::size_t>(axes.experts.tensor);
    size = static_cast<std::size_t>(axes.experts.ranks);
  }
  std::vector<std::vector<std::size_t>> teams;
  for (std::size_t place = 0; place < devices && size > 1; ++place) {
    if (place / stride % size == 0) {
      auto& team = teams.emplace_back();
      for (std::size_t i = 0; i < size; ++i) {
        team.push_back(place + i * stride);
      }
    }
  }
  return teams;
}

Teams teams_of(const Problem& problem, const Stage& stage, const StageFold* fold) {
  const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
  const std::vector<std::size_t> simulated = devices_simulated(stage, fold);
  Teams teams;
  DispatchTraffics tokens(problem, stage);
  teams.of.resize(simulated.size());
  for (auto& of_place : teams.of) {
    of_place.fill(-1);
  }
  teams.next.assign(simulated.size(), -1);
  for (const Axis axis : kPassAxes) {
    std::vector<std::vector<std::size_t>> all = team_places(stage.axes(), axis, stage.devices.size());
    find_next(stage, all, simulated, teams.next);
    for (const FoldedGroup& group : fold_groups(std::move(all), fold, degree)) {
      Team team{.axis = axis, .places = simulated_places(group.members, fold, degree), .count = group.count};
      for (const std::size_t place : team.places) {
        teams.of[place][AxisGroups::place_of(axis)] = static_cast<std::int32_t>(teams.all.size());
      }
      for (const std::size_t member : group.members) {
        team.devices.push_back(stage.devices[member]);
      }
      team.group =
          group_of_devices(problem, team.devices, axis == Axis::experts ? tokens.among(team.devices) : nullptr);
      teams.all.push_back(std::move(team));
    }
  }
  return teams;
}

AxisGroups Teams::slowest(std::size_t first, std::size_t count) const {
  AxisGroups groups;
  for (std::size_t place = first; place < first + count; ++place) {
    for (const std::int32_t team : of[place]) {
      if (team < 0) {
        continue;
      }
      const Team& one = all[team];
      Group& slowest = groups.along(one.axis);
      if (slowest.ranks == 1 || typical_seconds(one.axis, slowest) < typical_seconds(one.axis, one.group)) {
        slowest = one.group;
      }
    }
  }
  return groups;
}

Group group_of_devices(const Problem& problem, const std::vector<DeviceId>& devices, const DispatchTraffic* tokens) {
  if (problem.training.all_reduce == &kHopByHop) {
    return ring_of(devices, problem.router);
  }
  return group_with_ways(devices, problem.router, problem.training.all_reduce->name, tokens);
}

} // namespace stagecraft
