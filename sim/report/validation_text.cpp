// A validation for a terminal: tables of rows, errors, verdicts, assumptions and skipped cases.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/report/table.hpp"
#include "sim/report/validation_parts.hpp"

namespace stagecraft {
namespace {

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

} // namespace

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
