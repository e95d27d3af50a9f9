// Predictions beside measurements: errors by row, by group and in total.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/table.hpp"
#include "sim/report/what_ifs.hpp"

namespace stagecraft {

/// One figure measured and predicted.
struct ValidationRow {
  std::string case_name, metric; ///< metric: key of the figure in results, in SI units: iteration_seconds
  std::string group;             ///< group of rows whose errors are summed up together; "": none
  double measured = 0, predicted = 0;
  std::string contest = {}; ///< rows of one model on one platform that are ranked against each other; "": none
  std::string family = {};  ///< rows whose errors are expected to be alike; "": not told apart
  double low = 0, high = 0; ///< the interval of the prediction; both 0: there is none
  std::vector<std::string> assumed = {}; ///< what the source does not state and was assumed, a clause each
  bool beside = false; ///< rests mostly on what is assumed: shown with its error, in no sum over all rows

  double error() const { return predicted / measured - 1; }
};

struct SkippedCase {
  std::string case_name, why;
  std::string metric = {}, group = {}; ///< as of a row; "": not told
};

/// Whether a run fits into its devices' memory, as it turned out and as predicted.
struct FitVerdict {
  std::string case_name, group;
  bool fitted = true, predicted = true;
};

/// How often verdicts are right.
struct VerdictCounts {
  int runs = 0, right = 0;
  int fitted_only = 0;    ///< predicted not to fit, and did
  int predicted_only = 0; ///< predicted to fit, and did not
};
VerdictCounts count_verdicts(const std::vector<FitVerdict>& verdicts);

/// What a validator found. Baselines are simple formulas that predict the same rows, and that a model must beat.
struct Validation {
  std::string source;             ///< the measurements that were read
  std::vector<std::string> notes; ///< sentences on what was fitted to which rows
  std::vector<ValidationRow> rows;
  std::vector<ValidationRow> calibration = {}; ///< rows of models that constants were fitted on: no test of these
  std::map<std::string, std::vector<ValidationRow>> baselines;
  std::vector<SkippedCase> skipped;
  std::vector<FitVerdict> verdicts = {};     ///< of each run once
  std::vector<FitVerdict> verdict_rows = {}; ///< rows that say nothing else of a run
  std::vector<std::string> inputs = {};      ///< files that the validation read
  /// Of groups in which a configuration was measured several times: the median error of predicting one measurement by
  /// the others of its configuration. No model can be expected to do better.
  std::map<std::string, double> noise = {};
  std::vector<WhatIf> what_ifs = {}; ///< pairs of rows that differ in one setting
  std::vector<Ranking> rankings = {};
};

/// Relative errors over rows; rows of several metrics may be mixed.
struct Accuracy {
  double mape = 0, median_ape = 0, p90_ape = 0, max_ape = 0; ///< absolute errors
  double bias = 0;                                           ///< mean of the signed errors
  /// Spearman's rank correlation: mean over the metrics, weighted by their rows. Metrics with fewer than three rows do
  /// not count.
  std::optional<double> spearman;
  int intervals = 0;   ///< rows that have one
  double coverage = 0; ///< the part of these whose measurement lies in it
  double width = 0;    ///< of these, the mean width, as a part of the prediction
  double winkler = 0;  ///< the mean interval score (Winkler 1972) at 90 %, as a part of the prediction
};

/// The accuracy over some rows; all 0 without rows.
Accuracy accuracy_of(const std::vector<ValidationRow>& rows);

/// As JSON: schema stagecraft/1, docs/formats/results.md, "validate".
std::string to_json(const Validation& validation);
/// As CSV, a line per row: case, metric, group, measured, predicted, error; where rows have intervals also low, high,
/// family, and what each baseline predicts; then its status (scored, beside, not scored, right, wrong, skipped), what
/// is assumed of it, and why it was skipped.
std::string to_csv(const Validation& validation);
/// Whether any row was predicted, scored or not.
bool predicts_any(const Validation& validation);
/// How many rows were skipped and how many are not scored, as a sentence; "": none.
std::string sentence_on_unscored(const Validation& validation);
/// The columns of the table of rows.
Table header_of_validated_rows();
/// For a terminal: tables of rows, groups, baselines and skipped cases. The view's columns and order are those of the
/// rows.
std::string to_text(const Validation& validation, const TableView& view);
std::string to_text(const Validation& validation, bool color);

} // namespace stagecraft
