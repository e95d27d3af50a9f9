// What `buy` found: the answer, and what the training takes on each offer.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_answer.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

std::string range_in_words(const json& interval, const char* low, const char* high, const std::string& unit = "") {
  const double from = number_at(interval, low), to = number_at(interval, high);
  return std::isfinite(from) && std::isfinite(to)
             ? three_digits(from) + " to " + three_digits(to) + (unit.empty() ? "" : " ") + unit
             : "";
}

// The best choice in figures: days, money, energy, devices, and what is lost to failures.
std::vector<AnswerFigure> figures_of(const json& choice) {
  const json& interval = object_at(choice, "interval");
  std::vector<AnswerFigure> figures;
  const auto add = [&](const char* name, const char* key, const std::string& unit, const std::string& detail) {
    if (const double value = number_at(choice, key); std::isfinite(value)) {
      const bool assumed = std::string(key) == "usd" && choice.value("assumed_price", json()) == true;
      figures.push_back({name, (assumed ? kAssumedMark : "") + three_digits(value) + " " + unit, detail});
    }
  };
  add("Time", "days", "days", range_in_words(interval, "low_days", "high_days", "days"));
  add("Cost", "usd", "USD", range_in_words(interval, "low_usd", "high_usd", "USD"));
  add("Energy", "kwh", "kWh", "of devices, hosts and links, without cooling");
  figures.push_back({"Devices", std::to_string(whole_at(choice, "devices", 0)), text_at(choice, "offer")});
  if (const double goodput = number_at(choice, "goodput"); std::isfinite(goodput)) {
    figures.push_back({"Goodput", percent(goodput, 1), "of the time makes progress that lasts"});
  }
  return figures;
}

// A bar for each offer that fits, with its range where one is known.
Chart chart_of(const json& choices, const char* name, const char* title, const std::string& x, const char* key,
               const std::string& unit) {
  Chart chart{.name = name, .title = title, .x = {.title = x, .from_zero = true}, .y = {.title = ""}};
  ChartSeries series{"", Look::bars, {}};
  for (const json& choice : choices) {
    const double value = number_at(choice, key);
    if (std::isfinite(value)) {
      const json& interval = object_at(choice, "interval");
      const std::string offer = text_at(choice, "offer");
      series.marks.push_back(
          {.x = value,
           .y = static_cast<double>(chart.y.names.size()),
           .text = offer + ": " + three_digits(value) + " " + unit,
           .low = number_at(interval, (std::string("low_") + key).c_str()),
           .high = number_at(interval, (std::string("high_") + key).c_str()),
           .label = three_digits(value) + (text_at(choice, "why_not").empty() ? "" : ", breaks a limit")});
      chart.y.names.push_back(offer);
    }
  }
  if (std::any_of(series.marks.begin(), series.marks.end(), [](const Mark& mark) { return std::isfinite(mark.low); })) {
    chart.interval = "where nine of ten measured runs would lie";
    chart.note = "Whiskers: " + chart.interval + ".";
  }
  chart.series.push_back(std::move(series));
  return chart;
}

PageTable table_of(const json& choices) {
  PageTable table{.title = "Every offer, the best first",
                  .columns = {"offer", "devices", "days", "days, nine of ten", "USD", "USD, nine of ten", "kWh",
                              "goodput [%]", "remarks", "plan"}};
  for (const json& choice : choices) {
    const json& interval = object_at(choice, "interval");
    const std::string why_not = text_at(choice, "why_not");
    table.rows.push_back({{text_at(choice, "offer")},
                          number_cell(number_at(choice, "devices")),
                          number_cell(number_at(choice, "days")),
                          {range_in_words(interval, "low_days", "high_days")},
                          number_cell(number_at(choice, "usd")),
                          {range_in_words(interval, "low_usd", "high_usd")},
                          number_cell(number_at(choice, "kwh")),
                          percent_cell(number_at(choice, "goodput")),
                          {why_not.empty() ? text_at(choice, "remark") : why_not},
                          {text_at(choice, "plan")}});
  }
  return table;
}

} // namespace

DocumentPage purchase_page(const JsonDocument& document) {
  const json &choices = list_at(document.json(), "choices"), &runs = list_at(document.json(), "runs");
  Answer answer{.sentence = text_at(document.json(), "answer"), .sure = text_at(document.json(), "sure")};
  const std::string prices = text_at(document.json(), "prices");
  if (!choices.empty() && !runs.empty()) {
    answer.figures = figures_of(choices.front());
    answer.basis = basis_of_run(runs.front(), runs.front(), prices);
  }
  PageSection section{.title = "What each offer takes", .sentences = {}};
  section.charts = {chart_of(choices, "cost", "What the training costs", "money [USD]", "usd", "USD"),
                    chart_of(choices, "days", "How long it takes", "time [days]", "days", "days"),
                    chart_of(choices, "energy", "What it draws", "energy [kWh]", "kwh", "kWh")};
  section.tables = {table_of(choices)};
  PageSection findings{.title = "Findings", .sentences = texts_at(document.json(), "verdict")};
  std::erase_if(findings.sentences, [&](const std::string& sentence) { // the card has them
    return sentence == answer.sentence || sentence == answer.sure || sentence == prices;
  });
  return {text_at(document.json(), "model") + ": which machines?",
          {std::move(findings), std::move(section)},
          {},
          std::move(answer)};
}

} // namespace stagecraft
