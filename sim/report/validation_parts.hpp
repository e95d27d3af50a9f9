// What the forms of a validation share: groups of its rows, and the words for what became of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/report/validation.hpp"

namespace stagecraft {

/// Rows, or verdicts, grouped by what `name` says of each, in order of first appearance.
template <class Row, class Name>
std::vector<std::pair<std::string, std::vector<Row>>> grouped_by(const std::vector<Row>& rows, Name name) {
  std::vector<std::pair<std::string, std::vector<Row>>> groups;
  for (const Row& row : rows) {
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == name(row); });
    if (found == groups.end()) {
      found = groups.insert(groups.end(), {name(row), {}});
    }
    found->second.push_back(row);
  }
  return groups;
}

inline std::string metric_of(const ValidationRow& row) { return row.metric; }
inline std::string group_of(const ValidationRow& row) {
  return row.metric + (row.group.empty() ? "" : ", " + row.group);
}
inline std::string set_of(const FitVerdict& verdict) { return verdict.group; }

/// What became of a row.
inline constexpr std::string_view kScored = "scored", kBeside = "beside", kNotScored = "not scored",
                                  kSkipped = "skipped";
inline std::string_view status_of(const FitVerdict& row) { return row.fitted == row.predicted ? "right" : "wrong"; }
inline std::string_view status_of(const ValidationRow& row) { return row.beside ? kBeside : kScored; }

/// The metric of a verdict.
inline constexpr std::string_view kOutOfMemory = "out_of_memory";

/// The rows that sums over all rows are of.
std::vector<ValidationRow> summed(const std::vector<ValidationRow>& rows);

bool has_intervals(const Validation& validation);

} // namespace stagecraft
