// A judgement as JSON and CSV.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/analysis/judgement.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/format/schema.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

template <class T> Json optional_value(const std::optional<T>& value) {
  if constexpr (std::is_same_v<T, double>) {
    return value ? Json(*value) : Json();
  } else {
    return value ? Json(value->value) : Json();
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json to_value(const PlannerScore& score, bool timing) {
  Json json = {{"planner", score.planner},
               {"cases", score.cases},
               {"feasible", score.feasible},
               {"why_not", text_or_null(score.why_not)},
               {"wins", score.wins},
               {"median_regret", score.median_regret}, // JSON has no NaN: null where nothing fits
               {"p95_regret", score.high_regret},
               {"median_over_bound", score.median_over_bound},
               {"p95_over_bound", score.high_over_bound},
               {"median_bias", score.median_bias},
               {"spearman", optional_value(score.spearman)},
               {"median_manual_seconds", optional_value(score.median_manual_seconds)}};
  if (timing) {
    json["timing"] = {{"median_planning_seconds", score.median_planning_seconds},
                      {"max_planning_seconds", score.most_planning_seconds}};
  }
  return json;
}

Json to_value(const JudgedPlan& plan, bool timing) {
  Json json = {{"planner", plan.planner},        {"model", plan.model},
               {"platform", plan.platform},      {"micro_batches", plan.micro_batches},
               {"feasible", plan.feasible},      {"why_not", text_or_null(plan.why_not)},
               {"note", text_or_null(plan.note)}};
  const auto set = [&](const char* key, double value) { json[key] = plan.feasible ? Json(value) : Json(); };
  set("iteration_seconds", plan.iteration.value);
  set("estimate_seconds", plan.estimate.value);
  set("bottleneck_seconds", plan.bottleneck.value);
  set("lower_bound_seconds", plan.lower_bound.value);
  set("speedup", plan.speedup);
  set("load_imbalance", plan.load_imbalance);
  json["staleness"] = plan.staleness.empty() ? Json() : Json(plan.staleness);
  set("regret", plan.regret);
  set("over_bound", plan.over_bound);
  set("bias", plan.bias);
  json["manual_seconds"] = optional_value(plan.manual_seconds);
  json["spread"] = Json();
  if (plan.spread) {
    const Spread& spread = *plan.spread;
    json["spread"] = {
        {"draws", spread.draws},          {"feasible", spread.feasible},           {"best_seconds", spread.best.value},
        {"p5_seconds", spread.low.value}, {"median_seconds", spread.median.value}, {"p95_seconds", spread.high.value}};
  }
  if (timing) {
    json["timing"] = {{"planning_seconds", plan.planning_seconds}};
  }
  return json;
}

} // namespace

std::string to_json(const Judgement& judgement, bool timing) {
  Json json = {{"schema", kSchema},
               {"name", text_or_null(judgement.name)},
               {"schedule", judgement.schedule},
               {"engine", judgement.engine},
               {"inputs", judgement.inputs},
               {"median_profile_seconds", optional_value(judgement.median_profile_seconds)},
               {"planners", Json::array()},
               {"plans", Json::array()}};
  for (const PlannerScore& score : judgement.planners) {
    json["planners"].push_back(to_value(score, timing));
  }
  for (const JudgedPlan& plan : judgement.plans) {
    json["plans"].push_back(to_value(plan, timing));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_csv(const Judgement& judgement) {
  std::string csv = "planner,model,platform,micro_batches,feasible,why_not,iteration_seconds,estimate_seconds,"
                    "lower_bound_seconds,speedup,load_imbalance,regret,over_bound,bias\n";
  for (const JudgedPlan& plan : judgement.plans) {
    csv += csv_cell(plan.planner) + "," + csv_cell(plan.model) + "," + csv_cell(plan.platform) + "," +
           std::to_string(plan.micro_batches) + "," + (plan.feasible ? "true" : "false") + "," + csv_cell(plan.why_not);
    for (const double value : {plan.iteration.value, plan.estimate.value, plan.lower_bound.value, plan.speedup,
                               plan.load_imbalance, plan.regret, plan.over_bound, plan.bias}) {
      csv += "," + (plan.feasible ? Json(value).dump() : std::string());
    }
    csv += "\n";
  }
  return csv;
}

} // namespace stagecraft
