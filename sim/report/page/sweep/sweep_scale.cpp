// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep/sweep_scale.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kTogether = " + "; // between the parts of an axis whose keys advance together

template <class Q> std::optional<std::vector<double>> quantities(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  try {
    for (const std::string& text : texts) {
      numbers.push_back(parse_quantity<Q>(text, {}).value);
    }
  } catch (const InputError&) {
    return {};
  }
  return numbers;
}

Scale numeric_scale(const std::string& title, std::vector<double> numbers) {
  return {{.title = title, .logarithmic = true}, std::move(numbers)};
}

Scale name_scale(const SweptAxis& axis) {
  std::vector<double> places(axis.values.size());
  std::iota(places.begin(), places.end(), 0);
  Scale scale{{.title = name_of(axis)}, std::move(places)};
  std::transform(axis.values.begin(), axis.values.end(), std::back_inserter(scale.axis.names), shortened);
  return scale;
}

std::string unit_of(const std::string& text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  return end == 0 || end == std::string::npos ? "" : text.substr(end);
}

// "1 to 4 Gb/s", or "a to b".
std::string range_of(const std::string& first, const std::string& last) {
  const std::string from = shortened(first), to = shortened(last), unit = unit_of(from);
  return (unit == unit_of(to) ? from.substr(0, from.size() - unit.size()) : from) + " to " + to;
}

// Keys whose own words would not be understood, below their first word.
constexpr std::array<std::pair<std::string_view, const char*>, 8> kWords = {{
    {"micro_batches", "micro-batches"},
    {"network.nic", "network card per"},
    {"parallel.tensor", "tensor-parallel degree"},
    {"parallel.pipeline", "pipeline stages"},
    {"parallel.data", "data-parallel replicas"},
    {"parallel.context", "context-parallel degree"},
    {"parallel.expert", "expert-parallel degree"},
    {"parallel.zero", "ZeRO stage"},
}};

// One part of a key in words.
std::string short_part(const std::string& key) {
  const std::size_t first = key.find('.');
  std::string name = first == std::string::npos ? key : key.substr(first + 1);
  const auto word = std::find_if(kWords.begin(), kWords.end(), [&](const auto& one) { return one.first == name; });
  if (word != kWords.end()) {
    return word->second;
  }
  std::replace(name.begin(), name.end(), '.', ' ');
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// One part of a value for people.
std::string shortened_part(const std::string& text) {
  if (text.starts_with('{')) {
    std::string words = text;
    std::erase_if(words, [](char c) { return c == '{' || c == '}' || c == '"'; });
    return words;
  }
  constexpr std::size_t kLong = 6;
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (std::min(end, text.size()) <= kLong || text.find('.') >= end) {
    return text;
  }
  return rounded(std::strtod(text.c_str(), nullptr)) + (end == std::string::npos ? "" : text.substr(end));
}

} // namespace

std::vector<std::size_t> order_of(const SweptAxis& axis) {
  const Scale scale = scale_of(axis);
  std::vector<std::size_t> order(axis.values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scale.places[a] < scale.places[b]; });
  return order;
}

Places places_of(const SweptAxis& axis, const std::vector<std::size_t>& order, std::size_t shared) {
  Places places{.of = std::vector<std::size_t>(order.size()), .names = {}, .shared = shared};
  for (std::size_t at = 0; at < order.size(); ++at) {
    places.of[order[at]] = at / shared;
    if (at % shared == 0) {
      const std::string& first = axis.values[order[at]];
      const std::string& last = axis.values[order[std::min(at + shared, order.size()) - 1]];
      places.names.push_back(first == last ? shortened(first) : range_of(first, last));
    }
  }
  return places;
}

// As many values in each place, so that no place looks better just because it has more; the longer side is thinned
// first.
SharedPlaces shared_places(std::size_t values_across, std::size_t values_down) {
  constexpr std::size_t kMostCells = 2500, kMostPlaces = 100;
  for (SharedPlaces shared;;) {
    const std::size_t across = (values_across + shared.across - 1) / shared.across;
    const std::size_t down = (values_down + shared.down - 1) / shared.down;
    shared.cells = across * down;
    if (shared.cells <= kMostCells && std::max(across, down) <= kMostPlaces) {
      return shared;
    }
    ++(across >= down ? shared.across : shared.down);
  }
}

std::string as_one_axis(const std::vector<std::string>& names) {
  std::string name;
  for (const std::string& one : names) {
    name.append(name.empty() ? "" : kTogether).append(one);
  }
  return name;
}

std::vector<std::string> parts_of_axis(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = name.find(kTogether, begin);
    parts.push_back(name.substr(begin, end - begin));
    if (end == std::string::npos) {
      return parts;
    }
    begin = end + kTogether.size();
  }
}

std::string short_name(const std::string& key) {
  std::vector<std::string> parts = parts_of_axis(key);
  std::transform(parts.begin(), parts.end(), parts.begin(), short_part);
  return as_one_axis(parts);
}

std::string name_of(const SweptAxis& axis) { return axis.label.empty() ? short_name(axis.key) : axis.label; }

// A number goes before what it counts.
std::string value_in_words(const SweptAxis& axis, const std::string& value) {
  if (axis.key == "strategy" || axis.key == "schedule") {
    return value;
  }
  const std::string name = name_of(axis), text = shortened(value);
  const bool counts = name.ends_with('s') && !name.ends_with("ss") && text.find_first_not_of("0123456789") == text.npos;
  if (!counts) {
    return name + " " + text;
  }
  const bool one = text == "1";
  return text + " " + (one ? name.substr(0, name.size() - (name.ends_with("ches") ? 2 : 1)) : name);
}

std::string shortened(const std::string& text) {
  std::vector<std::string> parts = parts_of_axis(text);
  std::transform(parts.begin(), parts.end(), parts.begin(), shortened_part);
  return as_one_axis(parts);
}

std::string rounded(double value) {
  constexpr int kDigits = 4;
  return to_digits(value, kDigits);
}

std::optional<std::vector<double>> plain_numbers(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  try {
    for (const std::string& text : texts) {
      numbers.push_back(parse_number(text, {}));
    }
  } catch (const InputError&) {
    return {};
  }
  return numbers;
}

Scale scale_of(const SweptAxis& axis) {
  const std::string name = name_of(axis);
  constexpr double kGigabit = 1e9 / 8;
  if (auto numbers = plain_numbers(axis.values)) {
    return numeric_scale(name, std::move(*numbers));
  }
  if (auto rates = quantities<BytesPerSecond>(axis.values)) {
    std::transform(rates->begin(), rates->end(), rates->begin(), [](double rate) { return rate / kGigabit; });
    return numeric_scale(name + " [Gb/s]", std::move(*rates));
  }
  if (auto times = quantities<Seconds>(axis.values)) {
    return numeric_scale(name + " [s]", std::move(*times));
  }
  if (auto bytes = quantities<Bytes>(axis.values)) {
    return numeric_scale(name + " [B]", std::move(*bytes));
  }
  return name_scale(axis);
}

} // namespace stagecraft
