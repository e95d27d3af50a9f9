// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/block_operators.hpp"

namespace stagecraft {

std::vector<std::string> in_all_blocks(int blocks, std::span<const std::string_view> names) {
  std::vector<std::string> all;
  for (int block = 0; block < blocks; ++block) {
    for (const std::string_view name : names) {
      all.push_back("layer." + std::to_string(block) + "." + std::string(name));
    }
  }
  return all;
}

} // namespace stagecraft
