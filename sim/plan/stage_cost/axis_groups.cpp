// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/axis_groups.hpp"

#include "sim/plan/stage_cost/dispatch_traffic.hpp"

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
std::vector<std::vector<std::int32_t>> team_places(const StageAxes& axes, Axis axis, std::size_t devices) {
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
  std::vector<std::vector<std::int32_t>> teams;
  for (std::size_t place = 0; place < devices && size > 1; ++place) {
    if (place / stride % size == 0) {
      auto& team = teams.emplace_back();
      for (std::size_t i = 0; i < size; ++i) {
        team.push_back(static_cast<std::int32_t>(place + i * stride));
      }
    }
  }
  return teams;
}

Teams teams_of(const Problem& problem, const Stage& stage) {
  Teams teams;
  DispatchTraffics tokens(problem, stage);
  teams.of.resize(stage.devices.size());
  for (auto& of_place : teams.of) {
    of_place.fill(-1);
  }
  for (const Axis axis : kPassAxes) {
    for (std::vector<std::int32_t>& places : team_places(stage.axes(), axis, stage.devices.size())) {
      std::vector<DeviceId> devices;
      for (const std::int32_t place : places) {
        teams.of[place][AxisGroups::place_of(axis)] = static_cast<std::int32_t>(teams.all.size());
        devices.push_back(stage.devices[place]);
      }
      const DispatchTraffic* of_experts = axis == Axis::experts ? tokens.among(devices) : nullptr;
      teams.all.push_back({axis, std::move(places), group_of_devices(problem, devices, of_experts)});
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
      const auto& [axis, places, group] = all[team];
      Group& slowest = groups.along(axis);
      if (slowest.ranks == 1 || typical_seconds(axis, slowest) < typical_seconds(axis, group)) {
        slowest = group;
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
