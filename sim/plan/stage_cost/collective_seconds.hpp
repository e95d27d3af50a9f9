// How long devices take for a collective that has its links for itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/collective/algorithm.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Of some devices and a kind, for buffers of any size: by the training's algorithm, or the fastest for the size.
class CollectiveSeconds {
public:
  CollectiveSeconds(const Problem& problem, CollectiveKind kind, const std::vector<DeviceId>& devices);

  /// 0 for no bytes, and for one device.
  Seconds of(Bytes bytes) const;

private:
  CollectiveKind kind_;
  Group ring_; // hop by hop
  std::vector<Way> ways_;
};

} // namespace stagecraft
