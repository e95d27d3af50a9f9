// SPDX-License-Identifier: Apache-2.0
#include "sim/base/edit_distance.hpp"

#include <algorithm>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {

// The distance of Levenshtein, with swaps of neighbours, by rows (optimal string alignment).
std::size_t edit_distance(std::string_view one, std::string_view other) {
  const std::string a = lower_case(one), b = lower_case(other);
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    above[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

std::string misspelt(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kShortest = 4, kLong = 8, kLongest = 64;
  const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& one) { return one == name; });
  if (known || name.size() < kShortest || name.size() > kLongest) {
    return "";
  }
  std::string best;
  std::size_t least = name.size() < kLong ? 2 : 3;
  for (const std::string& one : names) {
    const bool may_be = one.size() + 2 >= name.size() && one.size() <= name.size() + 2;
    if (const std::size_t distance = may_be ? edit_distance(name, one) : least; distance < least) {
      least = distance;
      best = one;
    }
  }
  return best;
}

} // namespace stagecraft
