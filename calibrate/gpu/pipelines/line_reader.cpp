// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/line_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace stagecraft::gpu {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Calls take(item) for each item of a list "1,2,3".
template <class Take> void for_each_item(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    take(list.substr(0, comma));
    if (comma + 1 == list.size()) {
      take(list.substr(list.size())); // an empty item after the last comma
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

template <class Values, class Write> std::string joined(const Values& values, const Write& write) {
  std::string text;
  for (const auto& value : values) {
    text += (text.empty() ? "" : ",") + write(value);
  }
  return text;
}

} // namespace

std::string_view KeyedLine::word(std::string_view allowed) {
  const std::size_t begin = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
  const std::size_t end = std::min(text_.find_first_of(kBlanks, begin), text_.size());
  const std::string_view found = text_.substr(begin, end - begin);
  if (found.empty() || found.find('=') != std::string_view::npos) {
    refuse("a word is missing; allowed: " + std::string(allowed), found.empty() ? text_.substr(text_.size()) : found);
  }
  at_ = end;
  return found;
}

std::string_view KeyedLine::rest() {
  const std::size_t begin = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
  const std::size_t last = text_.find_last_not_of(kBlanks);
  at_ = text_.size();
  return begin == text_.size() ? text_.substr(begin) : text_.substr(begin, last + 1 - begin);
}

void KeyedLine::read_keys() {
  while ((at_ = text_.find_first_not_of(kBlanks, at_)) < text_.size()) {
    const std::size_t end = std::min(text_.find_first_of(kBlanks, at_), text_.size());
    const std::string_view found = text_.substr(at_, end - at_);
    const std::size_t equals = found.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      refuse("'" + std::string(found) + "' is no KEY=VALUE", found);
    }
    if (has(found.substr(0, equals))) {
      refuse("'" + std::string(found.substr(0, equals)) + "' stands twice", found);
    }
    values_.push_back({found.substr(0, equals), found.substr(equals + 1)});
    at_ = end;
  }
  at_ = text_.size();
}

bool KeyedLine::has(std::string_view key) const {
  return std::any_of(values_.begin(), values_.end(), [&](const Value& value) { return value.key == key; });
}

std::string_view KeyedLine::text(std::string_view key) {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const Value& value) { return value.key == key; });
  if (found == values_.end()) {
    refuse("'" + std::string(key) + "=' is missing", text_.substr(text_.size()));
  }
  found->asked = true;
  return found->value;
}

std::int64_t KeyedLine::integer_of(std::string_view digits, std::int64_t low, std::int64_t high) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool leading_zero = digits.size() > 1 && digits.front() == '0';
  if (error != std::errc() || end != digits.data() + digits.size() || leading_zero || value < low || value > high) {
    refuse("'" + std::string(digits) + "'; allowed: " +
               (high < low ? "nothing, as there is none" : std::to_string(low) + " to " + std::to_string(high)),
           digits);
  }
  return value;
}

double KeyedLine::amount_of(std::string_view digits) const {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !(value >= 0) || std::isinf(value)) {
    refuse("'" + std::string(digits) + "'; allowed: a number of 0 or more", digits);
  }
  return value;
}

std::int64_t KeyedLine::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  return integer_of(text(key), low, high);
}

double KeyedLine::amount(std::string_view key) { return amount_of(text(key)); }

std::vector<int> KeyedLine::integers(std::string_view key, int low, int high) {
  std::vector<int> values;
  for_each_item(text(key),
                [&](std::string_view item) { values.push_back(static_cast<int>(integer_of(item, low, high))); });
  return values;
}

std::vector<double> KeyedLine::amounts(std::string_view key) {
  std::vector<double> values;
  for_each_item(text(key), [&](std::string_view item) { values.push_back(amount_of(item)); });
  return values;
}

void KeyedLine::finish() const {
  for (const Value& value : values_) {
    if (!value.asked) {
      std::string known;
      for (const Value& other : values_) {
        known += other.asked ? (known.empty() ? "" : ", ") + std::string(other.key) : "";
      }
      refuse("unknown key '" + std::string(value.key) + "'; allowed here: " + (known.empty() ? "none" : known),
             value.key);
    }
  }
  if (const std::size_t more = text_.find_first_not_of(kBlanks, at_); more < text_.size()) {
    refuse("nothing may follow here", text_.substr(more));
  }
}

void KeyedLine::refuse(const std::string& what, std::string_view at) const {
  const std::size_t column = at.data() == nullptr ? 0 : static_cast<std::size_t>(at.data() - text_.data());
  throw std::invalid_argument(*file_ + ":" + std::to_string(number_) + ":" + std::to_string(column + 1) + ": " + what);
}

std::vector<KeyedLine> keyed_lines(const std::string& text, const std::string& file) {
  std::vector<KeyedLine> lines;
  int number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::string_view content = line.substr(0, line.find('#'));
    if (content.find_first_not_of(kBlanks) != std::string_view::npos) {
      lines.emplace_back(file, number, content);
    }
    at = end + 1;
  }
  return lines;
}

std::string exact(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string listed(const std::vector<int>& values) {
  return joined(values, [](int value) { return std::to_string(value); });
}

std::string listed(const std::vector<double>& values) { return joined(values, exact); }

} // namespace stagecraft::gpu
