// How far off the ratio of two predicted times is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/units.hpp"

namespace stagecraft {

/// The median, of pairs of measured runs that differ in one setting, and no more of two device types that did the same
/// work: docs/validation/what-ifs.md.
inline constexpr double kErrorOfRatio = 0.06;

/// The same as a clause, to stand behind a colon.
inline std::string error_of_ratio_in_words() {
  return "ratios of two predicted times are " + percent(kErrorOfRatio, 0) +
         " off in the median, on runs that others measured";
}

} // namespace stagecraft
