// A validation as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/base/format/schema.hpp"
#include "sim/report/validation_parts.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

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

} // namespace

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

} // namespace stagecraft
