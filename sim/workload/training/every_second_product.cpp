// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/every_second_product.hpp"

namespace stagecraft {

std::vector<std::string> every_second_product(int blocks) {
  std::vector<std::string> names;
  for (int block = 0; block < blocks; ++block) {
    const std::string front = "layer." + std::to_string(block) + ".";
    names.push_back(front + "projection");
    if (block % 2 == 0) {
      names.push_back(front + "expand");
    }
  }
  return names;
}

} // namespace stagecraft
