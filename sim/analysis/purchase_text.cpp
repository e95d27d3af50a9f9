// A purchase for a terminal and as CSV.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "sim/analysis/purchase.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"
#include "sim/result/expected.hpp"

namespace stagecraft {
namespace {

double days_of(const Choice& choice) { return choice.whole.time.value / kSecondsOfDay; }

std::string range_in_words(double value, const WholeTraining& whole, const std::string& mark = "") {
  return whole.range ? mark + three_digits(value * whole.range->first) + " to " + mark +
                           three_digits(value * whole.range->second)
                     : "";
}

// Days, money and energy, with their ranges; nothing of a training that never ends.
std::vector<Cell> cells_of(const Choice& choice, Style style) {
  const bool ends = std::isfinite(choice.whole.time.value), paid = ends && choice.price.is_known;
  const std::string mark = choice.whole.assumed ? kAssumedMark : "";
  return {{ends ? three_digits(days_of(choice)) : "never", style},
          {paid ? mark + three_digits(choice.whole.cost.value) : "", style},
          {ends ? range_in_words(days_of(choice), choice.whole) : "", style},
          {paid ? range_in_words(choice.whole.cost.value, choice.whole, mark) : "", style},
          {std::to_string(choice.devices), style},
          {ends ? three_digits(choice.kilowatt_hours) : "", style},
          {choice.goodput ? percent(*choice.goodput, 1) : "", style},
          {plan_of(choice), style}};
}

} // namespace

Table choices_table(const Purchase& purchase) {
  Table table{{{"rank", Align::right},
               {"offer"},
               {"days", Align::right},
               {"USD", Align::right},
               {"days 9 of 10", Align::right},
               {"USD 9 of 10", Align::right},
               {"devices", Align::right},
               {"kWh", Align::right},
               {"goodput", Align::right},
               {"plan"},
               {"remarks"}},
              {}};
  for (const Choice& choice : purchase.choices) {
    const std::size_t place = table.rows.size();
    const bool wins = place == 0 && choice.qualifies();
    const Style style = wins ? Style::good : choice.qualifies() ? Style::plain : Style::dim;
    std::vector<Cell> row = {{wins ? "*" : std::to_string(place + 1), style}, {choice.offer, style}};
    if (choice.fits()) {
      for (Cell& cell : cells_of(choice, style)) {
        row.push_back(std::move(cell));
      }
    }
    row.resize(table.columns.size() - 1, {"", style});
    const bool both = !choice.why_not.empty() && !choice.remark.empty();
    row.push_back({choice.why_not + (both ? "; " : "") + choice.remark, style});
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
      return range ? number(value * (high ? range->second : range->first)) : std::string();
    };
    const double days = days_of(choice);
    const double usd = choice.price.is_known ? choice.whole.cost.value : std::numeric_limits<double>::quiet_NaN();
    const std::vector<std::string> cells = {csv_cell(choice.offer),
                                            csv_cell(choice.platform),
                                            std::to_string(choice.devices),
                                            csv_cell(choice.run.strategy),
                                            csv_cell(choice.run.schedule),
                                            fits ? std::to_string(choice.run.micro_batches) : "",
                                            csv_cell(plan_of(choice)),
                                            number(days),
                                            within(days, false),
                                            within(days, true),
                                            number(usd),
                                            within(usd, false),
                                            within(usd, true),
                                            fits ? (choice.whole.assumed ? "true" : "false") : "",
                                            number(choice.kilowatt_hours),
                                            choice.goodput ? number(*choice.goodput) : "",
                                            csv_cell(fits ? basis_of_range(choice.run) : ""),
                                            csv_cell(choice.why_not),
                                            csv_cell(choice.remark)};
    text += join(cells, ",") + "\n";
  }
  return text;
}

} // namespace stagecraft
