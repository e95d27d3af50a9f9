// SPDX-License-Identifier: Apache-2.0
#include "sim/base/large_count.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

struct Word {
  std::string_view word;
  double factor;
};
constexpr std::array kWords = {
    Word{"trillion", 1e12}, Word{"T", 1e12}, Word{"billion", 1e9},  Word{"B", 1e9}, Word{"G", 1e9},
    Word{"million", 1e6},   Word{"M", 1e6},  Word{"thousand", 1e3}, Word{"k", 1e3}, Word{"", 1}};

} // namespace

double parse_large_count(std::string_view text, const Where& where) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view word = text.substr(static_cast<std::size_t>(end - text.data()));
  word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
  const auto* known =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& one) { return same_name(one.word, word); });
  const double count = failure == std::errc{} && known != kWords.end() ? value * known->factor : 0;
  if (!(count >= 1 && count <= kMostCounted)) {
    throw InputError(where, "'" + excerpt(text) + "' is no count; allowed: 1 to 1e18, as 300e9, 300B or 300 billion");
  }
  return count;
}

std::string in_words(double count) {
  constexpr int kDigits = 4;
  for (const Word& one : kWords) {
    if (one.word.size() > 1 && one.factor > 1e3 && count >= one.factor) {
      return to_digits(count / one.factor, kDigits) + " " + std::string(one.word);
    }
  }
  return with_commas(count);
}

std::string with_commas(double number) {
  std::string text = to_text(number, number < 100 ? 1 : 0);
  const std::size_t end = std::min(text.find('.'), text.size());
  constexpr std::size_t kGroup = 3;
  for (std::size_t at = end; at > kGroup;) {
    at -= kGroup;
    text.insert(at, ",");
  }
  return text;
}

std::string three_digits(double number) {
  constexpr double kHundred = 100;
  constexpr int kDigits = 3;
  return number < kHundred ? to_digits(number, kDigits) : with_commas(number);
}

} // namespace stagecraft
