// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "sim/collective/algorithm.hpp"
#include "sim/collective/ring.hpp"
#include "sim/collective/torus_grid.hpp"

namespace stagecraft {
namespace {

// The torus on which all of these devices stand; null where there is none.
const Torus* torus_of(const std::vector<DeviceId>& devices, Router& router) {
  const int torus = router.torus_place(devices.front()).torus;
  const bool same = std::all_of(devices.begin(), devices.end(),
                                [&](DeviceId device) { return router.torus_place(device).torus == torus; });
  return torus >= 0 && same ? &router.platform().tori[torus] : nullptr;
}

// From the first coordinate along an axis to the next.
int step_of(const std::set<int>& coordinates) {
  return coordinates.size() > 1 ? *std::next(coordinates.begin()) - *coordinates.begin() : 1;
}

// Whether coordinates along an axis are equally far from each other.
bool is_even(const std::set<int>& coordinates) {
  const int step = step_of(coordinates);
  int expected = *coordinates.begin();
  return std::all_of(coordinates.begin(), coordinates.end(), [&](int one) {
    const bool right = one == expected;
    expected += step;
    return right;
  });
}

// Whether the step from the last coordinate round to the first is as long as the others.
bool closes(const std::set<int>& coordinates, const Torus::Axis& axis) {
  constexpr std::size_t kFewest = 3;
  return axis.wraps && coordinates.size() >= kFewest &&
         *coordinates.begin() + axis.size - *coordinates.rbegin() == step_of(coordinates);
}

} // namespace

int TorusGrid::ways() const {
  int ways = 0;
  for (const Axis& axis : axes) {
    ways += axis.weight * (axis.lines.front().closes ? 2 : 1);
  }
  return ways;
}

std::optional<TorusGrid> torus_grid(const std::vector<DeviceId>& devices, Router& router) {
  const Torus* const torus = torus_of(devices, router);
  if (torus == nullptr) {
    return std::nullopt;
  }
  std::map<std::vector<int>, DeviceId> at; // coordinates
  std::vector<std::set<int>> along(torus->axes.size());
  for (const DeviceId device : devices) {
    const std::vector<int> coordinates = coordinates_of(*torus, router.torus_place(device).place);
    at.emplace(coordinates, device);
    for (std::size_t axis = 0; axis < along.size(); ++axis) {
      along[axis].insert(coordinates[axis]);
    }
  }
  std::size_t grid = 1;
  for (const std::set<int>& coordinates : along) {
    grid *= coordinates.size();
  }
  if (grid != devices.size() || !std::all_of(along.begin(), along.end(), is_even)) {
    return std::nullopt;
  }
  TorusGrid found;
  for (std::size_t axis = 0; axis < along.size(); ++axis) {
    if (along[axis].size() < 2) {
      continue;
    }
    std::map<std::vector<int>, TorusGrid::Line> lines; // by the coordinates along the other axes
    for (const auto& [coordinates, device] : at) {     // in the order of those along this one
      std::vector<int> others = coordinates;
      others[axis] = 0;
      TorusGrid::Line& line = lines[others];
      line.ranks.push_back(device);
      line.closes = closes(along[axis], torus->axes[axis]);
    }
    TorusGrid::Axis& of_axis = found.axes.emplace_back();
    of_axis.step = step_of(along[axis]);
    for (auto& [others, line] : lines) {
      of_axis.lines.push_back(std::move(line));
    }
  }
  int longest = 1;
  for (const TorusGrid::Axis& axis : found.axes) {
    longest = std::max(longest, axis.step);
  }
  for (TorusGrid::Axis& axis : found.axes) {
    axis.weight = longest / axis.step;
  }
  return found;
}

std::optional<TorusGrid> torus_grid(const RankMap& ranks, Router& router) {
  return ranks.nodes.size() == 1 ? torus_grid(ranks.nodes.front(), router) : std::nullopt;
}

HopLatency add_torus(const TorusGrid& grid, FlowBuilder& flow) {
  HopLatency sum;
  for (const TorusGrid::Axis& axis : grid.axes) {
    HopLatency slowest;
    for (const TorusGrid::Line& line : axis.lines) {
      const std::size_t ranks = line.ranks.size();
      for (std::size_t i = 0; i + (line.closes ? 0 : 1) < ranks; ++i) {
        const DeviceId one = line.ranks[i], other = line.ranks[(i + 1) % ranks];
        for (int part = 0; part < axis.weight; ++part) {
          slowest = greatest(slowest, greatest(flow.hop(one, other), flow.hop(other, one)));
        }
      }
    }
    const std::size_t ranks = axis.lines.front().ranks.size();
    sum += static_cast<double>(axis.lines.front().closes ? ranks / 2 : ranks - 1) * slowest;
  }
  return sum;
}

std::string why_no_torus(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (kind == CollectiveKind::shift || kind == CollectiveKind::broadcast) {
    return "a torus carries shifts and broadcasts as a ring";
  }
  if (ranks.nodes.size() > 1) {
    return "its ranks are on several nodes, and a torus is within one";
  }
  return torus_grid(ranks, router) ? "" : "its ranks are no grid of a torus";
}

namespace {

// How many of all pairs of ranks cross the busiest link of one direction of a line of k places, where ways go along one
// axis after another, the shorter way round. Of a closed line k^2/8 pairs of places cross each link, (k^2 - 1)/8 where
// k is odd; of an open one k^2/4 or (k^2 - 1)/4 cross the middle. Each stands for as many pairs of ranks as there are
// lines.
double crossings_of(const TorusGrid::Line& line, int ranks) {
  const auto size = static_cast<double>(line.ranks.size());
  const double odd = line.ranks.size() % 2 == 0 ? 0 : 1;
  return (line.closes ? (size * size - odd) / 8 : (size * size - odd) / 4) * ranks / size;
}

// Each rank's pair to each other one, over the links in between. The busiest of them holds all up, so that as much is
// counted over each: pairs one by one would be as many as the square of the ranks.
CoupledFlow all_to_all(TorusGrid grid, int ranks, Router& router) {
  for (TorusGrid::Axis& axis : grid.axes) {
    axis.weight = 1; // each pair has its way
  }
  FlowBuilder flow(router);
  const HopLatency latency = add_torus(grid, flow);
  double most = 0;
  for (const TorusGrid::Axis& axis : grid.axes) {
    most = std::max(most, crossings_of(axis.lines.front(), ranks));
  }
  const double share = most / ranks;
  return flow.finish(share, latency, share);
}

} // namespace

// Each way out of a rank brings its part of what the rank gets from all others. So the bytes of an all-gather take as
// long as a buffer takes through all of a rank's links at once, which no algorithm undercuts.
Flows torus_flows(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (ranks.ranks() < 2) {
    return {};
  }
  const TorusGrid grid = *torus_grid(ranks, router);
  if (kind == CollectiveKind::all_to_all) {
    return {all_to_all(grid, ranks.ranks(), router)};
  }
  FlowBuilder flow(router);
  const HopLatency half = add_torus(grid, flow);
  const double share = ring_share(kind, ranks.ranks()) / grid.ways();
  return {flow.finish(share, (kind == CollectiveKind::all_reduce ? 2 : 1) * half, share)};
}

} // namespace stagecraft
