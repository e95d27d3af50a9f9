// The groups in which devices of a stage exchange data in its passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/collective/layout.hpp"
#include "sim/plan/fold.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Axes along which passes exchange data, the innermost first.
inline constexpr std::array kPassAxes = {Axis::tensor, Axis::heads, Axis::context, Axis::experts};

/// A device's group along each of these; of one rank where there is none.
class AxisGroups {
public:
  AxisGroups() = default;
  AxisGroups(Group tensor) { along(Axis::tensor) = std::move(tensor); } // NOLINT: a tensor group and no other

  Group& along(Axis axis) { return groups_[place_of(axis)]; }
  const Group& along(Axis axis) const { return groups_[place_of(axis)]; }

  /// Where an axis stands in kPassAxes.
  static std::size_t place_of(Axis axis) {
    std::size_t at = 0;
    while (kPassAxes[at] != axis) {
      ++at;
    }
    return at;
  }

private:
  std::array<Group, kPassAxes.size()> groups_;
};

/// Groups for which this is the same take the same times.
std::vector<double> figures_of(const AxisGroups& groups);

/// Devices of a stage that exchange data along an axis.
struct Team {
  Axis axis = Axis::tensor;
  std::vector<std::size_t> places; ///< among the stage's devices that are simulated
  Group group;                     ///< with the ways in which they can, by the algorithm of the training
  std::vector<DeviceId> devices;   ///< all of them, also those that are not simulated
  std::int32_t count = 1;          ///< teams that it stands for
};

/// All teams of a stage's devices, of those that are alike one.
struct Teams {
  std::vector<Team> all;
  std::vector<std::array<std::int32_t, kPassAxes.size()>> of; ///< [place][place of the axis]; -1: none
  std::vector<DeviceId> next; ///< [place]: the device after it in its innermost team; -1: none

  /// The groups of a replica's devices, the slowest of each axis.
  AxisGroups slowest(std::size_t first, std::size_t count) const;
};
/// `fold`: what of the stage is simulated; null: all of it.
Teams teams_of(const Problem& problem, const Stage& stage, const StageFold* fold = nullptr);

/// The places of the devices that form each team along an axis, for this many devices in a stage's order.
std::vector<std::vector<std::size_t>> team_places(const StageAxes& axes, Axis axis, std::size_t devices);

/// Devices that exchange data, with the ways in which they can, by the algorithm of the training; with `tokens`, also
/// the way in which they send these to experts.
Group group_of_devices(const Problem& problem, const std::vector<DeviceId>& devices,
                       const DispatchTraffic* tokens = nullptr);

} // namespace stagecraft
