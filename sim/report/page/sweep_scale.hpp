// Axes of sweeps as axes of charts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/page/sweep_page.hpp"

namespace stagecraft {

/// An axis of a chart, and where the values of a sweep's axis stand on it.
struct Scale {
  Axis axis;
  std::vector<double> places; ///< [value]
};

/// Numbers where all values are numbers or quantities of one kind, else names.
Scale scale_of(const SweptAxis& axis);

/// A key as a reader says it: "platform.network.bandwidth" is "network bandwidth".
std::string short_name(const std::string& key);

/// A value as a reader wants it: "1.40491809684 GB/s" is "1.405 GB/s".
std::string shortened(const std::string& text);

/// A number for a sentence, of four digits.
std::string rounded(double value);

/// Numbers without units, where all are.
std::optional<std::vector<double>> plain_numbers(const std::vector<std::string>& texts);

} // namespace stagecraft
