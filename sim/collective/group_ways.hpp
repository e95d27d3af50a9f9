// In what ways the devices of a group exchange data with each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/collective/algorithm.hpp"

namespace stagecraft {

/// What a group's devices can send for each kind of collective that passes exchange, and how long that takes. Nothing
/// is broadcast in a pass.
class GroupWays {
public:
  /// The algorithm `wanted` where it can carry out the kind, as ways_of() says. Only with `tokens` are there ways for a
  /// dispatch and a combine.
  GroupWays(const std::vector<DeviceId>& devices, Router& router, std::string_view wanted,
            const DispatchTraffic* tokens = nullptr);

  /// The flows of the fastest way for this buffer of each rank.
  const Flows& flows(CollectiveKind kind, Bytes buffer) const;

  /// Latencies, bandwidths and multiprocessors of all flows, in a fixed order: groups with the same figures take the
  /// same times, and as much of their devices.
  const std::vector<double>& figures() const { return figures_; }

private:
  std::array<std::vector<Way>, kCollectiveKinds> ways_; // [CollectiveKind]
  std::vector<double> figures_;
};

} // namespace stagecraft
