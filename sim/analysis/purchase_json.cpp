// A purchase as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/analysis/purchase.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/units.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/json_parts.hpp"
#include "sim/result/plan_line.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json number_or_null(bool known, double value) { return known && std::isfinite(value) ? Json(value) : Json(); }

Json interval_of(const Choice& choice) {
  const WholeTraining& whole = choice.whole;
  if (!whole.range) {
    return {};
  }
  constexpr double kLevel = 0.9;
  const auto [low, high] = *whole.range;
  const double days = whole.time.value / kSecondsOfDay, usd = whole.cost.value;
  return {{"level", kLevel},
          {"low_days", number_or_null(true, days * low)},
          {"high_days", number_or_null(true, days * high)},
          {"low_usd", number_or_null(usd > 0, usd * low)},
          {"high_usd", number_or_null(usd > 0, usd * high)},
          {"basis", basis_of_range(choice.run)}};
}

Json to_value(const Choice& choice) {
  const bool fits = choice.fits();
  const std::string plan = plan_line(choice.run);
  return {{"offer", choice.offer},
          {"platform", choice.platform},
          {"device_types", choice.device_types},
          {"devices", choice.devices},
          {"global_batch", choice.global_batch},
          {"plan", fits ? Json(choice.run.strategy + ", " + choice.run.schedule + (plan.empty() ? "" : ", " + plan))
                        : Json()},
          {"days", number_or_null(fits, choice.whole.time.value / kSecondsOfDay)},
          {"usd", number_or_null(fits && choice.whole.cost.value > 0, choice.whole.cost.value)},
          {"assumed_price", fits ? Json(choice.whole.assumed) : Json()},
          {"kwh", number_or_null(fits, choice.kilowatt_hours)},
          {"goodput", choice.goodput ? number_or_null(true, *choice.goodput) : Json()},
          {"interval", fits ? interval_of(choice) : Json()},
          {"why_not", text_or_null(choice.why_not)},
          {"remark", text_or_null(choice.remark)}};
}

} // namespace

std::string to_json(const Purchase& purchase, bool timing) {
  const Choice best = purchase.choices.empty() ? Choice{} : purchase.choices.front();
  Json json = {{"schema", kSchema},
               {"model", purchase.model},
               {"platform", best.platform},
               {"tokens", purchase.tokens},
               {"objective", purchase.goal->name},
               {"answer", purchase.verdict.empty() ? Json() : Json(purchase.verdict.front())},
               {"verdict", purchase.verdict},
               {"inputs", purchase.inputs},
               {"choices", Json::array()},
               {"runs", Json::array()}};
  for (const Choice& choice : purchase.choices) {
    json["choices"].push_back(to_value(choice));
    json["runs"].push_back(Json::parse(
        to_json(choice.run, {purchase.model, choice.platform}, timing, {{"setting", choice.setting}})));
  }
  return with_parts(json.dump(1, ' ', false, Json::error_handler_t::replace), {{"question", best.question}}) + "\n";
}

} // namespace stagecraft
