// A purchase as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/analysis/purchase.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/units.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/json_parts.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json number_or_null(bool known, double value) { return known && std::isfinite(value) ? Json(value) : Json(); }

Json interval_of(const Choice& choice) {
  const WholeTraining& whole = choice.whole;
  if (!whole.range || !std::isfinite(whole.time.value)) {
    return {};
  }
  const auto [low, high] = *whole.range;
  const double days = whole.time.value / kSecondsOfDay, usd = whole.cost.value;
  const bool priced = choice.price.is_known;
  return {{"level", kRangeLevel},
          {"low_days", days * low},
          {"high_days", days * high},
          {"low_usd", number_or_null(priced, usd * low)},
          {"high_usd", number_or_null(priced, usd * high)},
          {"basis", basis_of_range(choice.run)}};
}

Json assumed_of(const Choice& choice) {
  Json assumed = Json::object();
  for (const Setting& setting : choice.assumed) {
    assumed[setting.key] = setting.value;
  }
  return assumed;
}

Json to_value(const Choice& choice) {
  const bool fits = choice.fits(), priced = fits && choice.price.is_known;
  return {{"offer", choice.offer},
          {"platform", choice.platform},
          {"device_types", choice.device_types},
          {"devices", choice.devices},
          {"global_batch", choice.global_batch},
          {"assumed", assumed_of(choice)},
          {"plan", text_or_null(plan_of(choice))},
          {"days", number_or_null(fits, choice.whole.time.value / kSecondsOfDay)},
          {"usd", number_or_null(priced, choice.whole.cost.value)},
          {"usd_per_hour", number_or_null(choice.price.is_known, choice.price.rate.value * kSecondsOfHour)},
          {"assumed_price", priced ? Json(choice.whole.assumed) : Json()},
          {"kwh", number_or_null(fits, choice.kilowatt_hours)},
          {"goodput", choice.goodput ? number_or_null(true, *choice.goodput) : Json()},
          {"interval", fits ? interval_of(choice) : Json()},
          {"why_not", text_or_null(choice.why_not)},
          {"remark", text_or_null(choice.remark)}};
}

Json to_value(const Failures& failures) {
  return {{"mean_time_between_seconds", failures.mean_time_between.value},
          {"checkpoint_every", failures.checkpoint_every},
          {"checkpoint_seconds", failures.checkpoint.value},
          {"restart_seconds", failures.restart.value}};
}

// The run as `replay` gives it, without what the whole training takes, which a choice says with its failures.
Json run_of(const Purchase& purchase, const Choice& choice, bool timing) {
  Run run = choice.run;
  run.tokens = 0;
  return Json::parse(to_json(run, {purchase.model, choice.platform}, timing, {{"setting", choice.setting}}));
}

} // namespace

std::string to_json(const Purchase& purchase, bool timing) {
  const PurchaseTerms& terms = purchase.terms;
  const bool none = purchase.choices.empty();
  Json json = {{"schema", kSchema},
               {"model", purchase.model},
               {"platform", none ? Json() : Json(purchase.choices.front().platform)},
               {"tokens", purchase.tokens},
               {"objective", terms.goal->name},
               {"constraints",
                {{"training_time_seconds", terms.time ? Json(terms.time->most.value) : Json()},
                 {"budget_usd", terms.budget ? Json(terms.budget->most.value) : Json()}}},
               {"failures", terms.failures ? to_value(*terms.failures) : Json()},
               {"answer", text_or_null(purchase.answer)},
               {"sure", text_or_null(purchase.sure)},
               {"prices", text_or_null(purchase.prices)},
               {"verdict", purchase.verdict()},
               {"inputs", purchase.inputs},
               {"choices", Json::array()},
               {"runs", Json::array()}};
  for (const Choice& choice : purchase.choices) {
    json["choices"].push_back(to_value(choice));
    json["runs"].push_back(run_of(purchase, choice, timing));
  }
  return with_parts(json.dump(1, ' ', false, Json::error_handler_t::replace),
                    {{"question", none ? "" : purchase.choices.front().question}}) +
         "\n";
}

} // namespace stagecraft
