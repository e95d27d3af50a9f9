// A validation as CSV.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <tuple>

#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/report/validation_parts.hpp"

namespace stagecraft {
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

} // namespace stagecraft
