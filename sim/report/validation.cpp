// SPDX-License-Identifier: Apache-2.0
#include "sim/report/validation.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <tuple>

#include "sim/base/count_of.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/units.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

// Rows, or verdicts, grouped by what `name` says of each, in order of first appearance.
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

std::string metric_of(const ValidationRow& row) { return row.metric; }
std::string group_of(const ValidationRow& row) { return row.metric + (row.group.empty() ? "" : ", " + row.group); }

Json to_value(const Accuracy& accuracy) {
  Json json = {{"mape", accuracy.mape},       {"median_ape", accuracy.median_ape},
               {"p90_ape", accuracy.p90_ape}, {"max_ape", accuracy.max_ape},
               {"bias", accuracy.bias},       {"spearman", accuracy.spearman ? Json(*accuracy.spearman) : Json()}};
  if (accuracy.intervals > 0) {
    json["intervals"] = {{"rows", accuracy.intervals},
                         {"coverage", accuracy.coverage},
                         {"width", accuracy.width},
                         {"winkler", accuracy.winkler}};
  }
  return json;
}

Json to_value(const ValidationRow& row) {
  Json json = {
      {"case", row.case_name},    {"metric", row.metric},       {"group", row.group.empty() ? Json() : Json(row.group)},
      {"measured", row.measured}, {"predicted", row.predicted}, {"error", row.error()}};
  if (!row.contest.empty()) {
    json["contest"] = row.contest;
  }
  if (!row.family.empty()) {
    json["family"] = row.family;
  }
  if (row.high > 0) {
    json["low"] = row.low;
    json["high"] = row.high;
  }
  if (!row.assumed.empty()) {
    json["assumed"] = row.assumed;
  }
  if (row.beside) {
    json["beside"] = true;
  }
  return json;
}

Json to_value(const SkippedCase& skipped) {
  Json json = {{"case", skipped.case_name}};
  if (!skipped.metric.empty()) {
    json["metric"] = skipped.metric;
  }
  if (!skipped.group.empty()) {
    json["group"] = skipped.group;
  }
  json["why"] = skipped.why;
  return json;
}

Json to_value(const WhatIfAccuracy& accuracy) {
  return {{"pairs", accuracy.pairs},
          {"ties", accuracy.ties},
          {"signs_right", accuracy.pairs > accuracy.ties ? Json(accuracy.signs_right) : Json()},
          {"median_error", accuracy.median_error}};
}

Json to_value(const WhatIf& pair) {
  return {
      {"group", pair.group},   {"setting", pair.setting}, {"from", pair.from},         {"to", pair.to},
      {"before", pair.before}, {"after", pair.after},     {"measured", pair.measured}, {"predicted", pair.predicted},
      {"tie", pair.is_tie()}};
}

// Nothing where no runs were compared.
void add_what_ifs(const Validation& validation, Json& json) {
  if (!validation.what_ifs.empty()) {
    json["what_ifs"] = to_value(accuracy_of_pairs(pairs_of_devices(validation.what_ifs, false)));
    json["what_ifs"]["device_types"] = to_value(accuracy_of_pairs(pairs_of_devices(validation.what_ifs, true)));
    for (const auto& [name, pairs] : families_of_pairs(validation.what_ifs)) {
      json["what_ifs"]["families"][name] = to_value(accuracy_of_pairs(pairs));
    }
    for (const WhatIf& pair : validation.what_ifs) {
      json["what_ifs"]["list"].push_back(to_value(pair));
    }
  }
  for (const Ranking& one : validation.rankings) {
    json["rankings"].push_back({{"name", one.name},
                                {"runs", one.runs},
                                {"spearman", one.spearman ? Json(*one.spearman) : Json()},
                                {"regret", one.regret}});
  }
}

Json to_value(const VerdictCounts& counts) {
  return {{"runs", counts.runs},
          {"right", counts.right},
          {"fitted_though_predicted_not_to", counts.fitted_only},
          {"predicted_to_fit_though_it_did_not", counts.predicted_only}};
}

std::string set_of(const FitVerdict& verdict) { return verdict.group; }

// Nothing where nobody knows which runs fitted.
void add_verdicts(const Validation& validation, Json& json) {
  if (validation.verdicts.empty()) {
    return;
  }
  json["which_runs_fit"] = to_value(count_verdicts(validation.verdicts));
  for (const auto& [name, verdicts] : grouped_by(validation.verdicts, set_of)) {
    json["which_runs_fit"]["groups"][name] = to_value(count_verdicts(verdicts));
  }
  for (const FitVerdict& row : validation.verdict_rows) {
    json["which_runs_fit"]["rows"].push_back(
        {{"case", row.case_name}, {"group", row.group}, {"fitted", row.fitted}, {"predicted", row.predicted}});
  }
  for (const FitVerdict& verdict : validation.verdicts) {
    if (verdict.fitted != verdict.predicted) {
      json["which_runs_fit"]["wrong"].push_back({{"case", verdict.case_name}, {"fitted", verdict.fitted}});
    }
  }
}

std::vector<Cell> cells_of(const std::string& name, const VerdictCounts& counts) {
  return {{name, Style::plain},
          {std::to_string(counts.runs), Style::plain},
          {std::to_string(counts.right), Style::plain},
          {std::to_string(counts.fitted_only), Style::plain},
          {std::to_string(counts.predicted_only), Style::plain}};
}

Table table_of_verdicts(const std::vector<FitVerdict>& verdicts) {
  Table table{{{"which runs fit"},
               {"runs", Align::right},
               {"right", Align::right},
               {"did, predicted not to", Align::right},
               {"did not, predicted to", Align::right}},
              {}};
  for (const auto& [name, of_group] : grouped_by(verdicts, set_of)) {
    table.rows.push_back(cells_of(name, count_verdicts(of_group)));
  }
  table.rows.push_back(cells_of("all", count_verdicts(verdicts)));
  return table;
}

// The rows that sums over all rows are of.
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

std::vector<Cell> cells_of(const std::string& name, const std::vector<ValidationRow>& rows, bool intervals) {
  const Accuracy accuracy = accuracy_of(rows);
  std::vector<Cell> cells = {{name, Style::plain},
                             {std::to_string(rows.size()), Style::plain},
                             {percent(accuracy.mape, 2), Style::plain},
                             {percent(accuracy.median_ape, 2), Style::plain},
                             {percent(accuracy.p90_ape, 2), Style::plain},
                             {percent(accuracy.max_ape, 2), Style::plain},
                             {percent(accuracy.bias, 2), Style::plain},
                             {accuracy.spearman ? to_text(*accuracy.spearman, 3) : "", Style::plain}};
  if (intervals) {
    const bool any = accuracy.intervals > 0;
    cells.push_back({any ? percent(accuracy.coverage, 2) : "", Style::plain});
    cells.push_back({any ? percent(accuracy.width, 2) : "", Style::plain});
    cells.push_back({any ? percent(accuracy.winkler, 2) : "", Style::plain});
  }
  return cells;
}

// A figure, with its unit if the metric's name shows it.
std::string figure_text(const std::string& metric, double value) {
  return metric.ends_with("_seconds")                  ? to_text(Seconds{value})
         : metric.ends_with("_bytes")                  ? to_text(Bytes{value})
         : metric.ends_with("flops_per_device_second") ? to_text(FlopsPerSecond{value})
         : metric.ends_with("_watts")                  ? to_text(Watts{value})
                                                       : to_text(value, 3);
}

// Cases that were left out for one reason, in order of first appearance.
std::vector<std::pair<std::string, std::vector<std::string>>> by_reason(const std::vector<SkippedCase>& skipped) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  std::map<std::string, std::size_t> places;
  for (const SkippedCase& one : skipped) {
    const auto [place, is_new] = places.try_emplace(one.why, reasons.size());
    if (is_new) {
      reasons.push_back({one.why, {}});
    }
    reasons[place->second].second.push_back(one.case_name);
  }
  return reasons;
}

constexpr std::string_view kScored = "scored", kBeside = "beside", kNotScored = "not scored", kSkipped = "skipped";

constexpr std::string_view kOutOfMemory = "out_of_memory";

std::string_view status_of(const FitVerdict& row) { return row.fitted == row.predicted ? "right" : "wrong"; }
std::string_view status_of(const ValidationRow& row) { return row.beside ? kBeside : kScored; }

std::vector<Cell> cells_of(const ValidationRow& row, std::string_view status) {
  const bool bounded = row.high > 0;
  return {{row.case_name, Style::plain},
          {row.metric, Style::plain},
          {row.group, Style::plain},
          {figure_text(row.metric, row.measured), Style::plain},
          {figure_text(row.metric, row.predicted), Style::plain},
          {percent(row.error(), 2), Style::plain},
          {status == kScored ? "" : std::string(status), Style::dim},
          {bounded ? figure_text(row.metric, row.low) : "", Style::plain},
          {bounded ? figure_text(row.metric, row.high) : "", Style::plain},
          {row.assumed.empty() ? "" : std::to_string(row.assumed.size()), Style::plain}};
}

Table table_of_rows(const Validation& validation) {
  Table table = header_of_validated_rows();
  for (const ValidationRow& row : validation.rows) {
    table.rows.push_back(cells_of(row, status_of(row)));
  }
  for (const ValidationRow& row : validation.calibration) {
    table.rows.push_back(cells_of(row, kNotScored));
  }
  for (const FitVerdict& row : validation.verdict_rows) {
    std::vector<Cell> cells(table.columns.size());
    const std::vector<std::string> texts = {row.case_name,
                                            std::string(kOutOfMemory),
                                            row.group,
                                            row.fitted ? "0" : "1",
                                            row.predicted ? "0" : "1",
                                            "",
                                            std::string(status_of(row))};
    std::transform(texts.begin(), texts.end(), cells.begin(), [](const std::string& text) { return Cell{text}; });
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Without columns that say nothing of any row, but for those that every table has.
Table without_blank_columns(Table table) {
  const std::size_t kept = 6; // up to the error
  for (std::size_t column = table.columns.size(); column-- > kept;) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    if (std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row[column].text.empty(); })) {
      table.columns.erase(table.columns.begin() + at);
      for (auto& row : table.rows) {
        row.erase(row.begin() + at);
      }
    }
  }
  return table;
}

// What is assumed of rows, the most frequent first; how much a device lacks of memory is each row's own.
Table table_of_assumptions(const Validation& validation) {
  constexpr std::size_t kShown = 12;
  std::map<std::string, int> counts;
  for (const auto* rows : {&validation.rows, &validation.calibration}) {
    for (const ValidationRow& row : *rows) {
      for (const std::string& one : row.assumed) {
        ++counts[one.substr(0, std::min(one.find(", without which"), one.find(", though a device lacks")))];
      }
    }
  }
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table{{{"of rows", Align::right}, {"assumed, as nothing states it"}}, {}};
  for (std::size_t at = 0; at < std::min(kShown, sorted.size()); ++at) {
    table.rows.push_back({{std::to_string(sorted[at].second), Style::plain}, {sorted[at].first, Style::plain}});
  }
  if (sorted.size() > kShown) {
    const std::string more = std::to_string(sorted.size() - kShown) + " more; csv and json have those of each row";
    table.rows.push_back({{"…", Style::dim}, {more, Style::dim}});
  }
  return table;
}

// How far apart measurements of one configuration are in the set of these rows; "" of figures that are no times.
std::string noise_of(const Validation& validation, const ValidationRow& row) {
  const std::string& metric = row.metric;
  const bool other = metric.ends_with("_bytes") || metric.ends_with("_watts") || metric.ends_with("_share");
  const auto noise = validation.noise.find(row.group);
  return noise == validation.noise.end() || other ? "" : percent(noise->second, 2);
}

Table table_of_errors(const Validation& validation) {
  Table table{{{"errors"},
               {"rows", Align::right},
               {"mean", Align::right},
               {"median", Align::right},
               {"90 %", Align::right},
               {"largest", Align::right},
               {"bias", Align::right},
               {"rank correlation", Align::right}},
              {}};
  const bool intervals = has_intervals(validation);
  if (intervals) {
    table.columns.push_back({"in interval", Align::right});
    table.columns.push_back({"its width", Align::right});
    table.columns.push_back({"Winkler score", Align::right});
  }
  if (!validation.noise.empty()) {
    table.columns.push_back({"measured again, apart", Align::right});
  }
  for (const auto& [name, rows] : grouped_by(validation.rows, group_of)) {
    table.rows.push_back(cells_of(name, rows, intervals));
    if (!validation.noise.empty()) {
      table.rows.back().push_back({noise_of(validation, rows.front()), Style::plain});
    }
  }
  if (const std::vector<ValidationRow> rows = summed(validation.rows); !rows.empty()) {
    table.rows.push_back(cells_of("all", rows, intervals));
  }
  if (!validation.calibration.empty()) {
    table.rows.push_back(cells_of("rows that constants were fitted on", validation.calibration, intervals));
  }
  for (const auto& [name, rows] : validation.baselines) {
    table.rows.push_back(cells_of("baseline: " + name, rows, intervals));
  }
  return table;
}

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

std::string to_json(const Validation& validation) {
  Json json = {
      {"schema", kSchema}, {"source", validation.source}, {"inputs", validation.inputs}, {"rows", Json::array()}};
  for (const ValidationRow& row : validation.rows) {
    json["rows"].push_back(to_value(row));
  }
  json.update(to_value(accuracy_of(summed(validation.rows))));
  json["groups"] = Json::object();
  for (const auto& [name, rows] : grouped_by(validation.rows, group_of)) {
    json["groups"][name] = to_value(accuracy_of(rows));
    json["groups"][name]["rows"] = rows.size();
  }
  json["baselines"] = Json::object();
  for (const auto& [name, rows] : validation.baselines) {
    json["baselines"][name] = to_value(accuracy_of(rows));
  }
  if (!validation.calibration.empty()) {
    json["calibration"] = Json::array();
    for (const ValidationRow& row : validation.calibration) {
      json["calibration"].push_back(to_value(row));
    }
  }
  if (!validation.noise.empty()) {
    json["noise"] = validation.noise;
  }
  add_verdicts(validation, json);
  add_what_ifs(validation, json);
  json["skipped"] = Json::array();
  for (const SkippedCase& skipped : validation.skipped) {
    json["skipped"].push_back(to_value(skipped));
  }
  json["notes"] = validation.notes;
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

namespace {

// The rows of a validation as CSV, whose columns depend on what it has.
class CsvRows {
public:
  explicit CsvRows(const Validation& validation) : intervals_(has_intervals(validation)) {
    text_ = "case,metric,group,measured,predicted,error";
    text_ += intervals_ ? ",low,high,family" : "";
    for (const auto& [name, rows] : validation.baselines) {
      if (!intervals_) {
        break;
      }
      text_ += "," + csv_cell(name);
      for (const ValidationRow& row : rows) {
        baselines_[name][{row.case_name, row.metric, row.group}] = row.predicted;
      }
    }
    text_ += ",status,assumed,why\n";
  }

  void add(const ValidationRow& row, std::string_view status) {
    add_name(row.case_name, row.metric, row.group);
    text_ += "," + csv_cell(row.measured) + "," + csv_cell(row.predicted) + "," + csv_cell(row.error());
    if (intervals_) {
      text_ += (row.high > 0 ? "," + csv_cell(row.low) + "," + csv_cell(row.high) : ",,") + "," + csv_cell(row.family);
    }
    for (const auto& [name, of_baseline] : baselines_) {
      const auto found = of_baseline.find({row.case_name, row.metric, row.group});
      text_ += "," + (found != of_baseline.end() ? csv_cell(found->second) : std::string());
    }
    text_ += "," + std::string(status) + "," + csv_cell(join(row.assumed, "; ")) + ",\n";
  }

  void add(const FitVerdict& row) {
    add_name(row.case_name, std::string(kOutOfMemory), row.group);
    text_ += std::string(row.fitted ? ",0" : ",1") + (row.predicted ? ",0," : ",1,") + blanks() + "," +
             std::string(status_of(row)) + ",,\n";
  }

  void add(const SkippedCase& skipped) {
    add_name(skipped.case_name, skipped.metric, skipped.group);
    text_ += ",,," + blanks() + "," + std::string(kSkipped) + ",," + csv_cell(skipped.why) + "\n";
  }

  std::string text() && { return std::move(text_); }

private:
  // Of what has neither interval nor baseline.
  std::string blanks() const {
    std::string commas((intervals_ ? 3 : 0) + baselines_.size(), ',');
    return commas;
  }

  void add_name(const std::string& case_name, const std::string& metric, const std::string& group) {
    text_ += csv_cell(case_name) + "," + csv_cell(metric) + "," + csv_cell(group);
  }

  bool intervals_;
  std::map<std::string, std::map<std::tuple<std::string, std::string, std::string>, double>> baselines_;
  std::string text_;
};

} // namespace

std::string to_csv(const Validation& validation) {
  CsvRows rows(validation);
  for (const ValidationRow& row : validation.rows) {
    rows.add(row, status_of(row));
  }
  for (const ValidationRow& row : validation.calibration) {
    rows.add(row, kNotScored);
  }
  for (const FitVerdict& row : validation.verdict_rows) {
    rows.add(row);
  }
  for (const SkippedCase& skipped : validation.skipped) {
    rows.add(skipped);
  }
  return std::move(rows).text();
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

Table header_of_validated_rows() {
  return {{{"case"},
           {"metric"},
           {"group"},
           {"measured", Align::right},
           {"predicted", Align::right},
           {"error", Align::right},
           {"score"},
           {"low", Align::right},
           {"high", Align::right},
           {"assumed", Align::right}},
          {}};
}

std::string to_text(const Validation& validation, const TableView& view) {
  TableView plain = view; // of the other tables
  plain.columns.clear();
  plain.sort.clear();
  std::string text = predicts_any(validation) ? "" : "no row was predicted\n";
  if (const Table rows = table_of_rows(validation); !rows.rows.empty()) {
    text = to_text(view.columns.empty() && view.sort.empty() ? without_blank_columns(rows) : rows, view);
  }
  if (const Table errors = table_of_errors(validation); !errors.rows.empty()) {
    text += "\n" + to_text(errors, plain);
  }
  if (!validation.verdicts.empty()) {
    text += "\n" + to_text(table_of_verdicts(validation.verdicts), plain);
  }
  if (const Table assumed = table_of_assumptions(validation); !assumed.rows.empty()) {
    text += "\n" + to_text(assumed, plain);
  }
  if (!validation.skipped.empty()) {
    Table table{{{"skipped"}, {"why"}}, {}};
    for (const auto& [why, cases] : by_reason(validation.skipped)) {
      constexpr std::size_t kNamed = 3;
      const bool many = cases.size() > kNamed;
      table.rows.push_back(
          {{many ? cases.front() + " and " + std::to_string(cases.size() - 1) + " more" : join(cases, ", "),
            Style::plain},
           {why, Style::dim}});
    }
    text += "\n" + to_text(table, plain);
  }
  if (const std::string compared = to_text(validation.what_ifs, validation.rankings, view.color); !compared.empty()) {
    text += "\n" + compared;
  }
  for (const std::string& note : validation.notes) {
    text += "\n" + note;
  }
  return text + (validation.notes.empty() ? "" : "\n");
}

std::string to_text(const Validation& validation, bool color) { return to_text(validation, TableView{.color = color}); }

} // namespace stagecraft
