// How far off the ratio of two predicted times is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stagecraft {

/// The median, of pairs of measured runs that differ in one setting: docs/validation/what-ifs.md.
inline constexpr double kErrorOfRatio = 0.06;

} // namespace stagecraft
