// The pages of a validation, of predicted kernels, and of fits.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

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
  std::vector<std::string> sentences = {
      "Of " + std::to_string(validation.rows.size()) + " rows half are predicted within " +
          percent(accuracy.median_ape, 2) + " and nine tenths within " + percent(accuracy.p90_ape, 2) +
          "; on average " + percent(accuracy.mape, 2) + " off.",
      "Predictions are " + percent(std::abs(accuracy.bias), 2) + " too " + (accuracy.bias < 0 ? "low" : "high") +
          " on average. The worst, " + worst->case_name + ", is " + percent(worst->error(), 1) + " off."};
  if (accuracy.spearman) {
    sentences.push_back("Their order is right to a rank correlation of " + number_cell(*accuracy.spearman).text + ".");
  }
  return sentences;
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

// Rows predicted from a device's fits, grouped by what predicted them.
Validation predicted_rows(const json& list) {
  Validation validation;
  for (const json& row : list) {
    validation.rows.push_back({.case_name = text_at(row, "kernel"),
                               .metric = "kernel_seconds",
                               .group = text_at(row, "source"),
                               .measured = number_at(row, "measured"),
                               .predicted = number_at(row, "predicted")});
  }
  return validation;
}

} // namespace

DocumentPage validation_page(const JsonDocument& document) {
  Validation validation;
  for (const json& row : list_at(document.json(), "rows")) {
    validation.rows.push_back({.case_name = text_at(row, "case"),
                               .metric = text_at(row, "metric"),
                               .group = text_at(row, "group"),
                               .measured = number_at(row, "measured"),
                               .predicted = number_at(row, "predicted"),
                               .contest = text_at(row, "contest")});
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
  return {"Validation: " + text_at(document.json(), "source"), {std::move(findings), std::move(section)}, {}};
}

DocumentPage prediction_page(const JsonDocument& document) {
  const Validation validation = predicted_rows(list_at(document.json(), "rows"));
  return {"Kernels of " + text_at(document.json(), "device") + ", predicted",
          {{.title = "Findings", .sentences = accuracy_sentences(validation)}, pictures(validation)},
          {}};
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
  std::vector<std::string> sentences = {std::to_string(list.size()) + " kinds of kernels and collectives are fitted."};
  PageSection fits{.title = "Fits", .sentences = {}};
  fits.charts = {bars_of("fits", "Median error of each fit", "[%]", medians)};
  fits.tables = {std::move(table)};
  DocumentPage page{"Calibration of " + text_at(document.json(), "device"), {}, {}};
  if (!validation.rows.empty()) {
    const std::vector<std::string> more = accuracy_sentences(validation);
    sentences.insert(sentences.end(), more.begin(), more.end());
  }
  page.sections = {{.title = "Findings", .sentences = std::move(sentences)}, std::move(fits)};
  if (!validation.rows.empty()) {
    page.sections.push_back(pictures(validation));
  }
  return page;
}

} // namespace stagecraft
