// SPDX-License-Identifier: Apache-2.0
#include "sim/base/named_table.hpp"

#include <algorithm>

#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

// Levenshtein distance by rows.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

} // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 64;
  if (name.size() > kLongestName) {
    return "";
  }
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  const std::string close = nearest(name, known);
  return "unknown " + std::string(what) + " '" + excerpt(name) + "'; " +
         (close.empty() ? "" : "did you mean '" + close + "'? ") + "known: " + join(known);
}

std::string join(const std::vector<std::string>& names, std::string_view separator) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : std::string(separator)) + name;
  }
  return text;
}

} // namespace stagecraft
