// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/space/sweep_axes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/dimension.hpp"
#include "sim/base/utf8.hpp"
#include "sim/sweep/space/plain_digits.hpp"

namespace stagecraft {
namespace {

constexpr double kMostAmount = 1e18; // of a range, in its unit: values are written without exponents

// "10 Gb/s" in two parts: 10 and " Gb/s".
struct Amount {
  double number = 0;
  std::string unit;
};

Amount read_amount(yaml::Map& map, std::string_view key) {
  const std::string& text = yaml::scalar(map.node(key), key);
  const std::size_t end = text.find_first_not_of("+-.0123456789eE");
  std::size_t digits = std::min(end, text.size());
  while (digits > 0 && (text[digits - 1] == 'e' || text[digits - 1] == 'E')) { // a unit may begin with e
    --digits;
  }
  return {parse_number(text.substr(0, digits), map.where(key)), text.substr(digits)};
}

// Converts an amount to the unit of another.
Amount in_unit_of(const Amount& one, Amount amount, std::string_view key, const Where& where) {
  if (amount.unit != one.unit) {
    const std::optional<AnyQuantity> its = find_quantity("1" + amount.unit), wanted = find_quantity("1" + one.unit);
    if (!its || !wanted || its->dimension != wanted->dimension) {
      const std::string allowed = wanted ? name_of(wanted->dimension) : "the unit of 'from'";
      throw InputError(where, "'" + std::string(key) + "' is of another kind than 'from'; allowed: " + allowed);
    }
    amount = {amount.number * (its->value / wanted->value), one.unit};
  }
  return amount;
}

constexpr int kAllDigits = 12;

yaml::Node amount_node(double number, const std::string& unit, const Where& where, int digits = kAllDigits) {
  return {.kind = yaml::Node::Kind::scalar, .text = plain_digits(number, digits) + unit, .where = where};
}

struct Scale {
  std::string_view name;
  bool logarithmic;
};
constexpr std::array kScales = {Scale{"linear", false}, Scale{"log", true}};

// The numbers of a range with `count` values, both ends included.
std::vector<double> spaced(double from, double to, int count, bool logarithmic) {
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i) {
    const double part = count > 1 ? static_cast<double>(i) / (count - 1) : 0;
    numbers.push_back(logarithmic ? from * std::pow(to / from, part) : from + part * (to - from));
  }
  numbers.back() = count > 1 ? to : from;
  return numbers;
}

// How many significant digits to keep, so that rounding moves no number by more than a thousandth of the step to the
// next.
int digits_of(const std::vector<double>& numbers) {
  constexpr int kLeast = 4;
  constexpr double kPart = 1e-3, kHalf = 5; // rounding is at most kHalf / 10^digits of a number
  double apart = 1;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const double larger = std::max(std::abs(numbers[i]), std::abs(numbers[i - 1]));
    apart = std::min(apart, std::abs(numbers[i] - numbers[i - 1]) / larger);
  }
  return apart > 0 ? std::clamp(static_cast<int>(std::ceil(std::log10(kHalf / (kPart * apart)))), kLeast, kAllDigits)
                   : kAllDigits;
}

std::vector<double> stepped(double from, double to, double step, const Where& where) {
  constexpr double kRounding = 1e-9;
  const double steps = std::floor((to - from) / step + kRounding);
  if (!(steps >= 0 && steps < kMostSweepValues)) { // NaN where there is no way to go and the step is 0
    throw InputError(where, "the step leads nowhere; allowed: one from 'from' to 'to', in at most " +
                                std::to_string(kMostSweepValues) + " steps");
  }
  std::vector<double> numbers;
  for (int i = 0; i <= static_cast<int>(steps); ++i) {
    numbers.push_back(from + i * step);
  }
  return numbers;
}

bool whole(double number) { return number == std::floor(number); }

SweepAxis read_range(const std::string& key, const Where& where, const yaml::Node& node) {
  yaml::Map map(node, "range");
  const Amount from = read_amount(map, "from");
  const Amount to = in_unit_of(from, read_amount(map, "to"), "to", map.where("to"));
  for (const auto& [end, amount] : {std::pair{"from", from.number}, {"to", to.number}}) {
    if (!(std::abs(amount) <= kMostAmount)) {
      throw InputError(map.where(end), "'" + std::string(end) + "' is too large for a range; allowed: at most 1e18" +
                                           excerpt(from.unit));
    }
  }
  const bool logarithmic = map.choice("scale", kScales, "linear").logarithmic;
  map.text(kLabel, "");
  if (logarithmic && (from.number <= 0 || to.number <= 0)) {
    throw InputError(map.where("scale"), "a logarithmic range has ends that are not positive; allowed: linear");
  }
  SweepAxis axis{{{key, where, {}}}, std::nullopt};
  const bool counted = map.has("count");
  const bool whole_ends = whole(from.number) && whole(to.number) && from.unit.empty();
  std::vector<double> numbers;
  if (counted && map.has("step")) {
    throw InputError(map.where("step"), "'step' stands beside 'count'; allowed: one of them");
  }
  if (counted) {
    numbers = spaced(from.number, to.number, map.integer("count", 1, kMostSweepValues), logarithmic);
  } else if (map.has("step")) {
    const Amount step = in_unit_of(from, read_amount(map, "step"), "step", map.where("step"));
    if (logarithmic) {
      throw InputError(map.where("step"), "'step' goes with a linear range; allowed: 'count'");
    }
    numbers = stepped(from.number, to.number, step.number, map.where("step"));
  } else if (whole_ends && !logarithmic) {
    numbers = stepped(from.number, to.number, to.number < from.number ? -1 : 1, map.where("to"));
  } else {
    axis.interval = Interval{from.number, to.number, logarithmic, from.unit};
  }
  map.finish();
  const int digits = counted && !whole_ends ? digits_of(numbers) : kAllDigits;
  for (double number : numbers) {
    number = whole_ends && counted ? std::round(number) : number; // whole ends give whole values
    const bool is_end = number == from.number || number == to.number;
    yaml::Node value = amount_node(number, from.unit, node.where, is_end ? kAllDigits : digits);
    if (axis.keys[0].values.empty() || axis.keys[0].values.back().text != value.text) {
      axis.keys[0].values.push_back(std::move(value));
    }
  }
  return axis;
}

} // namespace

SweepAxis read_axis(const std::string& key, const Where& where, const yaml::Node& node) {
  if (node.kind == yaml::Node::Kind::map && node.find(kValues) != nullptr) {
    yaml::Map map(node, "axis");
    const yaml::Node& values = map.node(kValues);
    map.text(kLabel, "");
    map.finish();
    if (values.kind == yaml::Node::Kind::map) {
      throw InputError(values.where, "the values of axis '" + key + "' are a mapping; allowed: a list");
    }
    return read_axis(key, where, values);
  }
  if (node.kind == yaml::Node::Kind::map) {
    return read_range(key, where, node);
  }
  if (node.kind != yaml::Node::Kind::sequence || node.items.empty()) {
    throw InputError(node.where, "axis '" + key +
                                     "' has no values; allowed: a list of values, or a range "
                                     "{from: 1, to: 8, count: 4, scale: log}");
  }
  return {{{key, where, node.items}}, std::nullopt};
}

SweepAxis read_zip(const yaml::Node& node) {
  SweepAxis together;
  for (const yaml::Node::Entry& entry : node.entries) {
    if (entry.key == kLabel) {
      yaml::scalar(entry.value, kLabel);
      continue;
    }
    SweepAxis axis = read_axis(entry.key, entry.where, entry.value);
    if (axis.interval) {
      throw InputError(entry.value.where, "axes that advance together need values; allowed: a list, or 'count'");
    }
    if (!together.keys.empty() && axis.size() != together.size()) {
      throw InputError(entry.value.where, "'" + entry.key + "' has " + std::to_string(axis.size()) + " values and '" +
                                              together.keys.front().key + "' " + std::to_string(together.size()) +
                                              "; allowed: as many, since they advance together");
    }
    together.keys.push_back(std::move(axis.keys.front()));
    if (together.size() * together.keys.size() > kMostSweepValues) {
      throw InputError(entry.value.where, "the keys up to here have more than " + std::to_string(kMostSweepValues) +
                                              " values; allowed: at most as many");
    }
  }
  if (together.keys.empty()) {
    throw InputError(node.where, "'zip' is a list of mappings from keys to their values");
  }
  return together;
}

yaml::Node value_at(const SweepAxis& axis, double part) {
  constexpr int kDigits = 5;
  const Interval& ends = *axis.interval;
  const double number =
      ends.logarithmic ? ends.low * std::pow(ends.high / ends.low, part) : ends.low + part * (ends.high - ends.low);
  return amount_node(number, ends.unit, axis.keys.front().where, kDigits);
}

} // namespace stagecraft
