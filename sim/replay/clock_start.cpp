// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/clock_start.hpp"

#include <cmath>

namespace stagecraft {

double clock_start(const ReplayRequest& request) {
  double all = 0; // seconds, if one task ran after another
  for (const std::int32_t work : request.graph.work) {
    all += request.graph.works[work].seconds.value + request.graph.works[work].latency.value;
  }
  constexpr double kRoom = 64; // so that some 64 graphs fit on one engine
  int exponent = 0;
  std::frexp(kRoom * all * request.iterations, &exponent);
  return std::ldexp(1.0, exponent);
}

} // namespace stagecraft
