// The axes of sweeps as axes of charts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/page/sweep/sweep_page.hpp"

namespace stagecraft {

/// An axis of a chart, and the position of each value of a sweep's axis on it.
struct Scale {
  ChartAxis axis;
  std::vector<double> places; ///< [value]
};

/// The scale of a sweep's axis: of numbers where all values are numbers or quantities of one kind, else of names.
Scale scale_of(const SweptAxis& axis);

/// The order of the values of a sweep's axis: by size, names by first appearance.
std::vector<std::size_t> order_of(const SweptAxis& axis);

/// The values of a sweep's axis as columns or rows of a map.
struct Places {
  std::vector<std::size_t> of;    ///< [value]: its place
  std::vector<std::string> names; ///< [place]: its value, or the range of its values
  std::size_t shared = 1;         ///< neighbouring values per place
};
Places places_of(const SweptAxis& axis, const std::vector<std::size_t>& order, std::size_t shared);

/// How many neighbouring values share a column and a row of a map, so that the map has no more cells than a reader can
/// take in at once.
struct SharedPlaces {
  std::size_t across = 1, down = 1;
  std::size_t cells = 0; ///< number of cells of the map
};
SharedPlaces shared_places(std::size_t values_across, std::size_t values_down);

/// A key in words: "platform.network.bandwidth" is "network bandwidth".
std::string short_name(const std::string& key);

/// The name of an axis for readers: its label, or its key in words.
std::string name_of(const SweptAxis& axis);
/// A value with the name of its axis: "network bandwidth 10 Gb/s", "2 A100 servers", "uniform".
std::string value_in_words(const SweptAxis& axis, const std::string& value);

/// A value for people: "1.40491809684 GB/s" is "1.405 GB/s", {"workers": "2"} is "workers: 2".
std::string shortened(const std::string& text);

/// A number for a sentence, with four digits.
std::string rounded(double value);

/// The texts as numbers without units, if all are such.
std::optional<std::vector<double>> plain_numbers(const std::vector<std::string>& texts);

} // namespace stagecraft
