// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/experts.hpp"

namespace stagecraft {

Experts read_experts(yaml::Map& map, const char* degree, const char* tensor) {
  constexpr int kMost = 1 << 20;
  const Experts experts{map.integer(degree, 1, kMost, 1), map.integer(tensor, 1, kMost, 1)};
  return experts.ranks > 1 ? experts : Experts{};
}

} // namespace stagecraft
