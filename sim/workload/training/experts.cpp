// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/experts.hpp"

#include <string>

namespace stagecraft {

Experts read_experts(yaml::Map& map, const char* degree, const char* tensor) {
  constexpr int kMost = 1 << 20;
  const Experts experts{map.integer(degree, 1, kMost, 1), map.integer(tensor, 1, kMost, 1)};
  if (experts.ranks == 1 && experts.tensor > 1) {
    throw InputError(map.where(tensor), "'" + std::string(tensor) + "' " + std::to_string(experts.tensor) +
                                            " says how many ranks share each expert, and '" + degree +
                                            "' is 1; allowed: with '" + degree + "' from 2 on");
  }
  return experts;
}

} // namespace stagecraft
