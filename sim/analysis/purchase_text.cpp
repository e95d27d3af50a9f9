// A purchase for a terminal and as CSV.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/analysis/purchase.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/plan_line.hpp"

namespace stagecraft {
namespace {

double days_of(const Choice& choice) { return choice.whole.time.value / kSecondsOfDay; }

std::string range_in_words(double value, const WholeTraining& whole) {
  return whole.range ? three_digits(value * whole.range->first) + " to " + three_digits(value * whole.range->second) : "";
}

std::vector<Cell> cells_of(const Choice& choice, Style style) {
  const bool paid = choice.whole.cost.value > 0;
  const std::string mark = choice.whole.assumed ? kAssumedMark : "";
  return {{three_digits(days_of(choice)), style},
          {range_in_words(days_of(choice), choice.whole), style},
          {paid ? mark + three_digits(choice.whole.cost.value) : "", style},
          {paid ? range_in_words(choice.whole.cost.value, choice.whole) : "", style},
          {three_digits(choice.kilowatt_hours), style},
          {choice.goodput ? percent(*choice.goodput, 1) : "", style},
          {choice.run.strategy + ", " + choice.run.schedule + ", " + plan_line(choice.run), style}};
}

} // namespace

Table choices_table(const Purchase& purchase) {
  Table table{{{"rank", Align::right},
               {"offer"},
               {"devices", Align::right},
               {"days", Align::right},
               {"days, 9 of 10", Align::right},
               {"USD", Align::right},
               {"USD, 9 of 10", Align::right},
               {"kWh", Align::right},
               {"goodput", Align::right},
               {"plan"},
               {"remarks"}},
              {}};
  for (const Choice& choice : purchase.choices) {
    const std::size_t place = table.rows.size();
    const bool wins = place == 0 && purchase.chosen();
    const Style style = wins ? Style::good : choice.why_not.empty() ? Style::plain : Style::dim;
    std::vector<Cell> row = {
        {wins ? "*" : std::to_string(place + 1), style}, {choice.offer, style}, {std::to_string(choice.devices), style}};
    if (choice.fits()) {
      for (Cell& cell : cells_of(choice, style)) {
        row.push_back(std::move(cell));
      }
    }
    row.resize(table.columns.size() - 1, {"", style});
    row.push_back({choice.why_not.empty() ? choice.remark : choice.why_not, style});
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string to_csv(const Purchase& purchase) {
  std::string text = "offer,platform,devices,strategy,schedule,micro_batches,plan,days,low_days,high_days,usd,low_usd,"
                     "high_usd,assumed_price,kwh,goodput,basis,why_not,remark\n";
  for (const Choice& choice : purchase.choices) {
    const bool fits = choice.fits();
    const auto number = [&](double value) { return fits && std::isfinite(value) ? csv_cell(value) : std::string(); };
    const auto within = [&](double value, bool high) {
      const auto& range = choice.whole.range;
      return range && value > 0 ? number(value * (high ? range->second : range->first)) : std::string();
    };
    const double days = days_of(choice), usd = choice.whole.cost.value;
    const std::vector<std::string> cells = {csv_cell(choice.offer),
                                            csv_cell(choice.platform),
                                            std::to_string(choice.devices),
                                            csv_cell(choice.run.strategy),
                                            csv_cell(choice.run.schedule),
                                            fits ? std::to_string(choice.run.micro_batches) : "",
                                            csv_cell(plan_line(choice.run)),
                                            number(days),
                                            within(days, false),
                                            within(days, true),
                                            usd > 0 ? number(usd) : "",
                                            within(usd, false),
                                            within(usd, true),
                                            fits ? (choice.whole.assumed ? "true" : "false") : "",
                                            number(choice.kilowatt_hours),
                                            choice.goodput ? number(*choice.goodput) : "",
                                            csv_cell(fits ? basis_of_range(choice.run) : ""),
                                            csv_cell(choice.why_not),
                                            csv_cell(choice.remark)};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += (i == 0 ? "" : ",") + cells[i];
    }
    text += "\n";
  }
  return text;
}

} // namespace stagecraft
