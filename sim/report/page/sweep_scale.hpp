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

/// The values of a sweep's axis in order of size; names as they were first met.
std::vector<std::size_t> order_of(const SweptAxis& axis);

/// The same as columns or rows of a map.
struct Places {
  std::vector<std::size_t> of;    ///< [value]
  std::vector<std::string> names; ///< [place]: a value, or the range of those that share it
  std::size_t shared = 1;         ///< neighbouring values per place
};
Places places_of(const SweptAxis& axis, const std::vector<std::size_t>& order, std::size_t shared);

/// How many neighbouring values share a column and a row of a map, which is read as a whole and so has no more cells
/// than a window holds.
struct SharedPlaces {
  std::size_t across = 1, down = 1;
  std::size_t cells = 0; ///< of the map
};
SharedPlaces shared_places(std::size_t values_across, std::size_t values_down);

/// A key as a reader says it: "platform.network.bandwidth" is "network bandwidth".
std::string short_name(const std::string& key);

/// A value as a reader wants it: "1.40491809684 GB/s" is "1.405 GB/s", {"workers": "2"} is "workers: 2".
std::string shortened(const std::string& text);

/// A number for a sentence, of four digits.
std::string rounded(double value);

/// Numbers without units, where all are.
std::optional<std::vector<double>> plain_numbers(const std::vector<std::string>& texts);

} // namespace stagecraft
