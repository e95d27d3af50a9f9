// A group's ranks on a torus, as a part of algorithms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/collective/flow.hpp"
#include "sim/collective/rank_map.hpp"

namespace stagecraft {

/// Ranks that stand on a torus as a grid: at the same places along an axis wherever they are along the others, equally
/// far from each other.
struct TorusGrid {
  /// Ranks one after another along an axis.
  struct Line {
    std::vector<DeviceId> ranks;
    bool closes = false; ///< it goes all round an axis that wraps around, so that the last is next to the first
  };
  struct Axis {
    std::vector<Line> lines;
    int step = 1;   ///< links from a rank to the next, which as many groups beside this one share
    int weight = 1; ///< parts of the bytes that go along it: fewer where links are shared
  };
  std::vector<Axis> axes; ///< those along which there are several ranks

  /// Ways out of a rank, each as often as its axis weighs: two along an axis that closes. Along one that does not, the
  /// rank at an end has one.
  int ways() const;
};

/// Nothing where the devices are on no torus, on several, or form no grid.
std::optional<TorusGrid> torus_grid(const std::vector<DeviceId>& devices, Router& router);
/// Nothing also where the ranks are on several nodes.
std::optional<TorusGrid> torus_grid(const RankMap& ranks, Router& router);

/// Adds both directions of all lines, as often as their axes weigh; returns the latency of the longest chain of hops of
/// an all-gather or a reduce-scatter: along each axis half of the way round, or from end to end.
HopLatency add_torus(const TorusGrid& grid, FlowBuilder& flow);

} // namespace stagecraft
