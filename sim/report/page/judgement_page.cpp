// The pages of a judgement of planners, and of training over time.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/result/run.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

bool is_answered(const json& planners) {
  return !planners.empty() && !std::isnan(number_at(planners.front(), "median_regret"));
}

// The card: which planner comes nearest to the best known plans.
Answer answer_of(const json& judgement) {
  const json& planners = list_at(judgement, "planners");
  if (!is_answered(planners)) {
    return {"No planner found a plan that fits."};
  }
  const json& first = planners.front();
  constexpr double kNone = 5e-4;
  const double regret = number_at(first, "median_regret");
  Answer answer{text_at(first, "planner") + " comes nearest to the best known plans: half of its plans are " +
                (regret < kNone ? "the best known" : "within " + percent(regret, 1) + " of them") + ", and it wins " +
                std::to_string(whole_at(first, "wins", 0)) + " of " + std::to_string(whole_at(first, "cases", 0)) +
                " cases."};
  answer.figures = {{"Median regret", percent(number_at(first, "median_regret"), 1), "slower than the best known plan"},
                    {"Nineteen of twenty within", percent(number_at(first, "p95_regret"), 1)},
                    {"Over the bound", percent(number_at(first, "median_over_bound"), 1), "median"},
                    {"Planners", std::to_string(planners.size()),
                     "over " + std::to_string(whole_at(first, "cases", 0)) + " pairs of model and platform"}};
  answer.basis = {{"Schedule", text_at(judgement, "schedule")}, {"Engine", text_at(judgement, "engine")}};
  return answer;
}

// Planners without a plan that fits, and how the second compares.
std::vector<std::string> others(const json& planners) {
  std::vector<std::string> sentences;
  if (is_answered(planners) && planners.size() > 1 && std::isfinite(number_at(planners[1], "median_regret"))) {
    sentences.push_back("Next is " + text_at(planners[1], "planner") + ": half of its plans are within " +
                        percent(number_at(planners[1], "median_regret"), 1) + " of the best known.");
  }
  for (const json& one : planners) {
    if (const std::string why = text_at(one, "why_not"); !why.empty()) {
      sentences.push_back(text_at(one, "planner") + " finds no plan that fits: " + why + ".");
    }
  }
  return sentences;
}

PageTable planners_table(const json& planners) {
  PageTable table{.title = "Planners",
                  .columns = {"planner", "cases", "with a plan that fits", "wins", "median regret [%]",
                              "95 % regret [%]", "median over bound [%]", "median bias [%]", "rank correlation",
                              "remarks"}};
  for (const json& one : planners) {
    std::vector<PageCell> row = {{text_at(one, "planner")}};
    for (const char* key : {"cases", "feasible", "wins"}) {
      row.push_back(number_cell(number_at(one, key)));
    }
    for (const char* key : {"median_regret", "p95_regret", "median_over_bound", "median_bias"}) {
      row.push_back(percent_cell(number_at(one, key)));
    }
    row.push_back(number_cell(number_at(one, "spearman")));
    row.push_back({text_at(one, "why_not")});
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string remarks_of(const json& plan) {
  const std::string note = text_at(plan, "note");
  const std::vector<double> staleness = numbers_at(plan, "staleness");
  return staleness.empty() ? note : note + (note.empty() ? "" : "; ") + staleness_remark(staleness);
}

PageTable plans_table(const json& plans) {
  PageTable table{.title = "Plans",
                  .columns = {"planner", "model", "platform", "micro-batches", "iteration [s]", "regret [%]",
                              "over bound [%]", "speedup", "remarks"}};
  for (const json& plan : plans) {
    const std::string why_not = text_at(plan, "why_not");
    table.rows.push_back({{text_at(plan, "planner")},
                          {text_at(plan, "model")},
                          {text_at(plan, "platform")},
                          number_cell(number_at(plan, "micro_batches")),
                          number_cell(number_at(plan, "iteration_seconds")),
                          percent_cell(number_at(plan, "regret")),
                          percent_cell(number_at(plan, "over_bound")),
                          number_cell(number_at(plan, "speedup")),
                          {why_not.empty() ? remarks_of(plan) : why_not}});
  }
  return table;
}

// The card: which policy ends first.
Answer adapt_answer(const json& document) {
  const json& policies = list_at(document, "policies");
  const auto rate = [](const json& policy) { // seconds per iteration
    const double seconds = number_at(policy, "total_seconds") / number_at(policy, "iterations");
    return std::isfinite(seconds) ? seconds : std::numeric_limits<double>::infinity();
  };
  if (policies.empty()) {
    return {};
  }
  const auto [best, worst] = std::minmax_element(policies.begin(), policies.end(),
                                                 [&](const json& a, const json& b) { return rate(a) < rate(b); });
  Answer answer{"While the machines change, the policy '" + text_at(*best, "policy") + "' trains " +
                text_at(document, "model") + " fastest: " + number_cell(number_at(*best, "iterations")).text +
                " iterations in " + to_text(Seconds{number_at(*best, "total_seconds")}) + "."};
  answer.figures = {{"Per iteration", to_text(Seconds{rate(*best)}), "under " + text_at(*best, "policy")},
                    {"The slowest policy", to_text(Seconds{rate(*worst)}), text_at(*worst, "policy")},
                    {"Moved", to_text(Bytes{number_at(*best, "migrated_bytes")}), "of weights and states"},
                    {"Policies", std::to_string(policies.size()), "were compared"}};
  return answer;
}

} // namespace

DocumentPage judgement_page(const JsonDocument& document) {
  const json& planners = list_at(document.json(), "planners");
  std::vector<std::pair<std::string, double>> regrets;
  for (const json& one : planners) {
    regrets.emplace_back(text_at(one, "planner"), 100 * number_at(one, "median_regret"));
  }
  PageSection section{.title = "Planners", .sentences = {}};
  section.charts = {bars_of("regret", "Median regret: slower than the best known plan", "[%]", regrets)};
  section.tables = {planners_table(planners), plans_table(list_at(document.json(), "plans"))};
  return {"Planners judged: " + text_at(document.json(), "name"),
          {{.title = "Findings", .sentences = others(planners)}, std::move(section)},
          {},
          answer_of(document.json())};
}

DocumentPage adapt_page(const JsonDocument& document) {
  Chart chart{.name = "iterations",
              .title = "Iteration time as the world changes",
              .x = {.title = "iteration"},
              .y = {.title = "iteration [s]", .from_zero = true}};
  PageTable table{
      .title = "Policies",
      .columns = {"policy", "iterations", "total [s]", "moved [GiB]", "moving [s]", "replays", "why it stopped"}};
  std::vector<std::string> sentences;
  for (const json& policy : list_at(document.json(), "policies")) {
    ChartSeries series{text_at(policy, "policy"), Look::steps, {}};
    for (const json& round : list_at(policy, "rounds")) {
      const double first = number_at(round, "first_iteration"), time = number_at(round, "iteration_seconds");
      series.marks.push_back({.x = first, .y = time, .text = text_at(round, "action")});
      series.marks.push_back({.x = first + number_at(round, "iterations"), .y = time, .text = ""});
    }
    chart.series.push_back(std::move(series));
    table.rows.push_back({{text_at(policy, "policy")},
                          number_cell(number_at(policy, "iterations")),
                          number_cell(number_at(policy, "total_seconds")),
                          number_cell(number_at(policy, "migrated_bytes") / kGibibyte),
                          number_cell(number_at(policy, "migration_seconds")),
                          number_cell(number_at(policy, "replays")),
                          {text_at(policy, "why_not")}});
    if (const std::string why = text_at(policy, "why_not"); !why.empty()) {
      sentences.push_back("The policy '" + text_at(policy, "policy") + "' stopped: " + why + ".");
    }
  }
  PageSection section{.title = "Over time", .sentences = {}};
  section.charts = {std::move(chart)};
  section.tables = {std::move(table)};
  return {text_at(document.json(), "model") + " on " + text_at(document.json(), "platform") + ", as the world changes",
          {{.title = "Findings", .sentences = std::move(sentences)}, std::move(section)},
          {},
          adapt_answer(document.json())};
}

} // namespace stagecraft
