// How large and how small the quantities of a model or a cluster may be: generous for any machine, and so far from the
// limits of double precision that whatever is computed from them stays finite. docs/formats/quantities.md tells users.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/format/yaml.hpp"

namespace stagecraft::physical {

/// A measured time: 0, or one that a clock can tell. SimGrid takes events within 1e-12 s of each other as one, so that
/// times far below a nanosecond would be lost in a replay.
inline constexpr double kShortestTime = 1e-9; // s
inline constexpr double kLongestTime = 1e9;   // s, thirty years
inline constexpr const char* kTimeText = "0, or 1e-9 s to 1e9 s";
constexpr bool is_time(double seconds) { return seconds == 0 || (seconds >= kShortestTime && seconds <= kLongestTime); }

/// Times that nothing is replayed of: a restart, a checkpoint, a launch.
inline constexpr yaml::Range kDuration{0, kLongestTime, true, "0 to 1e9 s"};
inline constexpr yaml::Range kInterval{kShortestTime, kLongestTime, true, "1e-9 s to 1e9 s"};
inline constexpr yaml::Range kBandwidth{1, 1e18, true, "1 B/s to 1e18 B/s"};
inline constexpr yaml::Range kSpeed{1, 1e30, true, "1 FLOP/s to 1e30 FLOP/s"};
inline constexpr yaml::Range kWork{0, 1e30, true, "0 to 1e30 FLOP"};
inline constexpr yaml::Range kCapacity{1, 1e18, true, "1 B to 1e18 B"};
inline constexpr yaml::Range kSize{0, 1e18, true, "0 to 1e18 B"};
inline constexpr yaml::Range kPower{0, 1e12, true, "0 to 1e12 W"};
inline constexpr yaml::Range kPrice{0, 1e12, true, "0 to 1e12 USD/s"};
/// A number by which others are multiplied or divided: a scale of costs, the samples of a profile.
inline constexpr yaml::Range kFactor{1e-9, 1e9, true, "1e-9 to 1e9"};

/// Whether a number lies in a range.
constexpr bool holds(const yaml::Range& range, double value) {
  return (range.low_included ? value >= range.low : value > range.low) && value <= range.high;
}

/// A scalar as a measured time.
inline Seconds read_time(const yaml::Node& node, std::string_view what) {
  const auto time = yaml::quantity<Seconds>(node, what, kDuration);
  yaml::check_range(node, what, is_time(time.value) ? 0 : -1, {0, 0, true, kTimeText});
  return time;
}

} // namespace stagecraft::physical
