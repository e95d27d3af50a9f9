// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/clock_start.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {

double clock_start(const ReplayRequest& request) {
  double all = 0; // seconds, if one task ran after another
  for (const std::int32_t work : request.graph.work) {
    all += request.graph.works[work].seconds.value + request.graph.works[work].latency.value;
  }
  for (const double seconds : request.computing) { // may be up to all that is longer than works say
    all += seconds / request.iterations;
  }
  // So that some 64 small graphs fit on one engine. Many devices work at the same time, so a graph of theirs takes a
  // small part of `all`, and a clock that starts early rounds its times less.
  constexpr double kGraphs = 64, kFewDevices = 16;
  const double room =
      kGraphs / std::clamp(static_cast<double>(request.graph.devices.size()) / kFewDevices, 1.0, kGraphs);
  int exponent = 0;
  std::frexp(room * all * request.iterations, &exponent);
  return std::ldexp(1.0, exponent);
}

} // namespace stagecraft
