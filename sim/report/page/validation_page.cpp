// The pages of a validation, of predicted kernels, and of fits.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/validation_charts.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

std::vector<std::string> accuracy_sentences(const Validation& validation) {
  if (validation.rows.empty()) {
    return {"No row could be predicted."};
  }
  const Accuracy accuracy = accuracy_of(validation.rows);
  const auto worst = std::max_element(validation.rows.begin(), validation.rows.end(), [](const auto& a, const auto& b) {
    return std::abs(a.error()) < std::abs(b.error());
  });
  return {"On average predictions are off by " + percent(accuracy.mape, 2) + "; the worst, " + worst->case_name +
          ", is " + percent(worst->error(), 1) + " off."};
}

// The card: how well predictions agree with what was measured.
Answer accuracy_answer(const Validation& validation, const std::string& of, const std::string& what) {
  if (validation.rows.empty()) {
    return {"No row of " + of + " could be predicted."};
  }
  const Accuracy accuracy = accuracy_of(validation.rows);
  Answer answer{"Half of " + std::to_string(validation.rows.size()) + " predictions for " + of + " are within " +
                percent(accuracy.median_ape, 1) + " of what was measured, nine of ten within " +
                percent(accuracy.p90_ape, 1) + "."};
  answer.figures = {{"Rows", std::to_string(validation.rows.size()), what},
                    {"Median error", percent(accuracy.median_ape, 1)},
                    {"Nine of ten within", percent(accuracy.p90_ape, 1)},
                    {"Bias", percent(accuracy.bias, 1),
                     accuracy.bias < 0 ? "predictions are too low on average" : "predictions are too high on average"}};
  if (accuracy.spearman) {
    constexpr int kDigits = 3;
    answer.figures.push_back({"Order", to_digits(*accuracy.spearman, kDigits), "rank correlation; 1: all in order"});
  }
  return answer;
}

PageTable rows_table(const Validation& validation) {
  PageTable table{.title = "Rows",
                  .columns = {"case", "metric", "group", "measured", "predicted", "error [%]", "absolute error [%]"}};
  for (const ValidationRow& row : validation.rows) {
    table.rows.push_back({{row.case_name},
                          {row.metric},
                          {row.group},
                          number_cell(row.measured),
                          number_cell(row.predicted),
                          percent_cell(row.error()),
                          percent_cell(std::abs(row.error()))});
  }
  return table;
}

PageSection pictures(const Validation& validation) {
  PageSection section{.title = "Predicted against measured", .sentences = {}, .charts = charts_of(validation)};
  section.tables = {rows_table(validation)};
  return section;
}

std::optional<PageTable> baselines_table(const json& document) {
  const auto baselines = document.find("baselines");
  if (baselines == document.end() || baselines->empty()) {
    return {};
  }
  PageTable table{.title = "Simple formulas, to compare",
                  .columns = {"formula", "mean error [%]", "median [%]", "90 % within [%]", "rank correlation"}};
  for (const auto& [name, figures] : baselines->items()) {
    table.rows.push_back({{name},
                          percent_cell(number_at(figures, "mape")),
                          percent_cell(number_at(figures, "median_ape")),
                          percent_cell(number_at(figures, "p90_ape")),
                          number_cell(number_at(figures, "spearman"))});
  }
  return table;
}

std::optional<PageTable> skipped_table(const json& document) {
  PageTable table{.title = "Skipped", .columns = {"case", "why"}};
  for (const json& one : list_at(document, "skipped")) {
    table.rows.push_back({{text_at(one, "case")}, {text_at(one, "why")}});
  }
  return table.rows.empty() ? std::nullopt : std::optional(table);
}

// A row that lacks one of its numbers, or was measured as 0, has no error.
void add_row(ValidationRow row, Validation& validation) {
  if (std::isfinite(row.error())) {
    validation.rows.push_back(std::move(row));
  }
}

// Rows predicted from a device's fits, grouped by what predicted them.
Validation predicted_rows(const json& list) {
  Validation validation;
  for (const json& row : list) {
    add_row({.case_name = text_at(row, "kernel"),
             .metric = "kernel_seconds",
             .group = text_at(row, "source"),
             .measured = number_at(row, "measured"),
             .predicted = number_at(row, "predicted")},
            validation);
  }
  return validation;
}

// How often the predicted intervals held what was measured; "" without intervals.
std::string interval_sentence(const json& intervals) {
  const double coverage = number_at(intervals, "coverage");
  return std::isfinite(coverage) ? "Intervals that should hold nine of ten measurements held " + percent(coverage, 0) +
                                       " of " + std::to_string(whole_at(intervals, "rows", 0)) + "."
                                 : "";
}

Answer fits_answer(const json& fits, const std::string& device) {
  std::vector<double> medians;
  double points = 0;
  for (const json& fit : fits) {
    medians.push_back(number_at(fit, "median_ape"));
    points += std::max(0.0, number_at(fit, "points"));
  }
  if (medians.empty()) {
    return {"Nothing was fitted for " + device + "."};
  }
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  Answer answer{"Times of " + std::to_string(medians.size()) + " kinds of kernels and collectives on " + device +
                " follow from measurements: the median error of a kind is " + percent(*least, 1) + " to " +
                percent(*most, 1) + "."};
  answer.figures = {{"Kinds", std::to_string(medians.size()), "of kernels and collectives"},
                    {"Measured points", to_text(points, 0)},
                    {"Best median error", percent(*least, 1)},
                    {"Worst median error", percent(*most, 1)}};
  return answer;
}

} // namespace

DocumentPage validation_page(const JsonDocument& document) {
  Validation validation;
  for (const json& row : list_at(document.json(), "rows")) {
    add_row({.case_name = text_at(row, "case"),
             .metric = text_at(row, "metric"),
             .group = text_at(row, "group"),
             .measured = number_at(row, "measured"),
             .predicted = number_at(row, "predicted"),
             .contest = text_at(row, "contest")},
            validation);
  }
  PageSection findings{.title = "Findings", .sentences = accuracy_sentences(validation)};
  for (std::string& note : texts_at(document.json(), "notes")) {
    findings.sentences.push_back(std::move(note));
  }
  PageSection section = pictures(validation);
  for (std::optional<PageTable> table : {baselines_table(document.json()), skipped_table(document.json())}) {
    if (table) {
      section.tables.push_back(std::move(*table));
    }
  }
  Answer answer = accuracy_answer(validation, text_at(document.json(), "source"), "measured and predicted");
  answer.sure = interval_sentence(object_at(document.json(), "intervals"));
  if (const std::size_t skipped = list_at(document.json(), "skipped").size(); skipped > 0) {
    answer.basis.push_back(
        {"Left out", std::to_string(skipped) + " rows, each with its reason, at the end of the page"});
  }
  return {"Validation: " + text_at(document.json(), "source"),
          {std::move(findings), std::move(section)},
          {},
          std::move(answer)};
}

DocumentPage prediction_page(const JsonDocument& document) {
  const Validation validation = predicted_rows(list_at(document.json(), "rows"));
  return {"Kernels of " + text_at(document.json(), "device") + ", predicted",
          {{.title = "Findings", .sentences = accuracy_sentences(validation)}, pictures(validation)},
          {},
          accuracy_answer(validation, text_at(document.json(), "device"), "measured kernels")};
}

DocumentPage fits_page(const JsonDocument& document) {
  const json& list = list_at(document.json(), "fits");
  std::vector<std::pair<std::string, double>> medians;
  PageTable table{
      .title = "Fits",
      .columns = {"fit", "form", "points", "mean error [%]", "median [%]", "90 % within [%]", "bias [%]", "errors of"}};
  for (const json& fit : list) {
    medians.emplace_back(text_at(fit, "fit"), 100 * number_at(fit, "median_ape"));
    table.rows.push_back({{text_at(fit, "fit")},
                          {text_at(fit, "form")},
                          number_cell(number_at(fit, "points")),
                          percent_cell(number_at(fit, "mape")),
                          percent_cell(number_at(fit, "median_ape")),
                          percent_cell(number_at(fit, "p90_ape")),
                          percent_cell(number_at(fit, "bias")),
                          {text_at(fit, "scheme")}});
  }
  const Validation validation = predicted_rows(list_at(document.json(), "rows"));
  std::vector<std::string> sentences;
  PageSection fits{.title = "Fits", .sentences = {}};
  fits.charts = {bars_of("fits", "Median error of each fit", "[%]", medians)};
  fits.tables = {std::move(table)};
  DocumentPage page{"Calibration of " + text_at(document.json(), "device"),
                    {},
                    {},
                    fits_answer(list, text_at(document.json(), "device"))};
  if (!validation.rows.empty()) {
    sentences = accuracy_sentences(validation);
  }
  page.sections = {{.title = "Findings", .sentences = std::move(sentences)}, std::move(fits)};
  if (!validation.rows.empty()) {
    page.sections.push_back(pictures(validation));
  }
  return page;
}

} // namespace stagecraft
