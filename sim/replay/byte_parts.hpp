// How the bytes of flows that have met are counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// SimGrid counts whole bytes, but a flow may have met others in the middle of one. So bytes are counted in small
/// parts, of which the largest transfer has no more than fit into 62 bits: how many a byte has.
inline double parts_of_byte(const TaskGraph& graph) {
  constexpr int kMostBits = 62, kFinest = 40;
  double most = 1;
  for (const Work& work : graph.works) {
    most = std::max(most, work.bytes);
  }
  return std::ldexp(1.0, std::clamp(kMostBits - std::ilogb(most) - 1, 0, kFinest));
}

/// At least one, since a flow of none would never end.
inline std::uint64_t whole_parts(double bytes, double parts_of_byte) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(bytes * parts_of_byte)));
}

} // namespace stagecraft
