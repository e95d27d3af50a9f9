// Predictions beside measurements: errors row by row, in groups and in all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft {

/// One figure measured and predicted.
struct ValidationRow {
  std::string case_name, metric; ///< metric in SI units by its key in results: iteration_seconds
  std::string group;             ///< rows whose errors belong together, or ""
  double measured = 0, predicted = 0;
  std::string contest = {}; ///< rows that compete, for a ranking: of one model on one platform; or ""

  double error() const { return predicted / measured - 1; }
};

struct SkippedCase {
  std::string case_name, why;
};

/// What a validator found. Baselines are simple formulas that a model must beat, on rows of the same metrics.
struct Validation {
  std::string source;             ///< what was read
  std::vector<std::string> notes; ///< what was fitted, on what: sentences
  std::vector<ValidationRow> rows;
  std::map<std::string, std::vector<ValidationRow>> baselines;
  std::vector<SkippedCase> skipped;
  std::vector<std::string> inputs = {}; ///< files, for readers to find
};

/// Errors over rows; relative ones, so rows of several metrics may be put together.
struct Accuracy {
  double mape = 0, median_ape = 0, p90_ape = 0, max_ape = 0; ///< of the absolute error
  double bias = 0;                                           ///< mean of the signed error
  /// Rank correlation per metric, weighted by its rows; metrics of fewer than three rows have none.
  std::optional<double> spearman;
};

/// All 0 without rows.
Accuracy accuracy_of(const std::vector<ValidationRow>& rows);

/// Schema stagecraft/1, docs/formats/results.md, "validate".
std::string to_json(const Validation& validation);
/// One line per row: case, metric, group, measured, predicted, error.
std::string to_csv(const Validation& validation);
/// Tables of rows, groups, baselines and skipped cases for a terminal.
std::string to_text(const Validation& validation, bool color);

} // namespace stagecraft
