// A number of things in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stagecraft {

/// "1 device", "3 devices".
inline std::string count_of(long long count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

} // namespace stagecraft
