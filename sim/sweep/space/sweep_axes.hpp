// The axes of a sweep: which keys of study, model and platform take which values. docs/formats/sweep.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// The most values that all axes of a sweep have together; their combinations may be many more.
inline constexpr int kMostSweepValues = 1'000'000;

/// Words of an axis: its name for readers, and its values where it has a name.
inline constexpr std::string_view kLabel = "label", kValues = "values";

/// A key and the values that it takes.
struct AxisKey {
  std::string key;
  Where where;                    ///< of the key in the study
  std::vector<yaml::Node> values; ///< empty where the axis is continuous
};

/// The range of a continuous axis: any value between two ends.
struct Interval {
  double low = 0, high = 0;
  bool logarithmic = false;
  std::string unit; ///< of both ends, as written
};

/// One axis: a key, or several whose values advance together.
struct SweepAxis {
  std::vector<AxisKey> keys;
  std::optional<Interval> interval; ///< set for a continuous axis, which only sampling may have

  std::size_t size() const { return interval ? 0 : keys.front().values.size(); }
};

/// Reads one axis: a list of values, {values: a list}, or {from, to} with step, count or neither, and scale; both
/// mappings may have a label. Throws InputError.
SweepAxis read_axis(const std::string& key, const Where& where, const yaml::Node& node);
/// Reads axes that advance together.
SweepAxis read_zip(const yaml::Node& node);

/// The value of a continuous axis at a fraction, 0 to 1, of its range, with five significant digits.
yaml::Node value_at(const SweepAxis& axis, double part);

} // namespace stagecraft
