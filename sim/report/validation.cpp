// SPDX-License-Identifier: Apache-2.0
#include "sim/report/validation.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/count_of.hpp"
#include "sim/base/statistics.hpp"
#include "sim/report/validation_parts.hpp"

namespace stagecraft {
namespace {

// The interval score adds to the width what a measurement is outside by, 2 / (1 - 0.9) times.
void score_intervals(const std::vector<ValidationRow>& rows, Accuracy& accuracy) {
  constexpr double kPenalty = 20;
  for (const ValidationRow& row : rows) {
    if (row.high > 0) {
      const double outside = std::max({0.0, row.low - row.measured, row.measured - row.high});
      ++accuracy.intervals;
      accuracy.coverage += outside == 0 ? 1 : 0;
      accuracy.width += (row.high - row.low) / row.predicted;
      accuracy.winkler += (row.high - row.low + kPenalty * outside) / row.predicted;
    }
  }
  for (double* mean : {&accuracy.coverage, &accuracy.width, &accuracy.winkler}) {
    *mean /= std::max(accuracy.intervals, 1);
  }
}

} // namespace

std::vector<ValidationRow> summed(const std::vector<ValidationRow>& rows) {
  std::vector<ValidationRow> kept;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept),
               [](const ValidationRow& row) { return !row.beside; });
  return kept;
}

bool has_intervals(const Validation& validation) {
  return std::any_of(validation.rows.begin(), validation.rows.end(),
                     [](const ValidationRow& row) { return row.high > 0; });
}

VerdictCounts count_verdicts(const std::vector<FitVerdict>& verdicts) {
  VerdictCounts counts;
  for (const FitVerdict& verdict : verdicts) {
    ++counts.runs;
    counts.right += verdict.fitted == verdict.predicted ? 1 : 0;
    counts.fitted_only += verdict.fitted && !verdict.predicted ? 1 : 0;
    counts.predicted_only += !verdict.fitted && verdict.predicted ? 1 : 0;
  }
  return counts;
}

Accuracy accuracy_of(const std::vector<ValidationRow>& rows) {
  Accuracy accuracy;
  if (rows.empty()) {
    return accuracy;
  }
  const auto count = static_cast<double>(rows.size());
  std::vector<double> errors;
  for (const ValidationRow& row : rows) {
    errors.push_back(std::abs(row.error()));
    accuracy.mape += errors.back() / count;
    accuracy.bias += row.error() / count;
  }
  accuracy.median_ape = quantile(errors, 0.5);
  accuracy.p90_ape = quantile(errors, 0.9);
  accuracy.max_ape = quantile(errors, 1);
  double ranked = 0;
  double sum = 0;
  for (const auto& [metric, of_metric] : grouped_by(rows, metric_of)) {
    std::vector<double> measured;
    std::vector<double> predicted;
    for (const ValidationRow& row : of_metric) {
      measured.push_back(row.measured);
      predicted.push_back(row.predicted);
    }
    if (const auto correlation = spearman(measured, predicted)) {
      ranked += static_cast<double>(of_metric.size());
      sum += *correlation * static_cast<double>(of_metric.size());
    }
  }
  if (ranked > 0) {
    accuracy.spearman = sum / ranked;
  }
  score_intervals(rows, accuracy);
  return accuracy;
}

bool predicts_any(const Validation& validation) {
  return !validation.rows.empty() || !validation.calibration.empty() || !validation.verdict_rows.empty();
}

std::string sentence_on_unscored(const Validation& validation) {
  const auto are = [](std::size_t rows) { return count_of(rows, "row") + (rows == 1 ? " is" : " are"); };
  std::string text;
  if (!validation.skipped.empty()) {
    text = are(validation.skipped.size()) + " skipped, each with its reason";
  }
  if (!validation.calibration.empty()) {
    text += (text.empty() ? "" : "; ") + are(validation.calibration.size()) +
            " predicted but not scored, since constants rest on their models";
  }
  return text;
}

} // namespace stagecraft
