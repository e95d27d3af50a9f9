// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <array>
#include <ctime>

#include "sim/base/format/schema.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/json_parts.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/result/plan_line.hpp"
#include "sim/result/stage_json.hpp"
#include "sim/result/whole_training.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

Json to_value(const std::vector<RunRound::Group>& groups) {
  Json list = Json::array();
  for (const RunRound::Group& group : groups) {
    Json& json = list.emplace_back(Json{{"operators", group.operators}, {"devices", group.devices}});
    if (!group.shares.empty()) {
      json["shares"] = group.shares;
    }
  }
  return list;
}

// `candidates` is null where the round has those of the round before.
Json to_value(const std::vector<RunRound>& rounds) {
  Json list = Json::array();
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const RunRound& round = rounds[r];
    const bool ran = round.why_not.empty();
    const bool repeats = r > 0 && rounds[r - 1].candidates == round.candidates;
    list.push_back({{"stages", to_value(round.stages)},
                    {"devices", round.devices},
                    {"candidates", repeats ? Json() : to_value(round.candidates)},
                    {"weights", round.weights},
                    {"step", round.step},
                    {"held", round.held},
                    {"iteration_seconds", ran ? Json(round.iteration.value) : Json()},
                    {"waiting_seconds", values_of(round.waiting)},
                    {"largest_waiting_seconds", ran ? Json(round.largest_waiting.value) : Json()},
                    {"mean_waiting_seconds", ran ? Json(round.mean_waiting.value) : Json()},
                    {"waiting_shares", round.waiting_shares},
                    {"tail_seconds", values_of(round.tail)},
                    {"why_not", ran ? Json() : Json(round.why_not)},
                    {"action", round.action}});
  }
  return list;
}

// What was asked for, and the texts of the result.
Json head_of(const Run& run) {
  return {{"strategy", run.strategy},
          {"schedule", run.schedule},
          {"order", run.order.empty() ? Json() : Json(run.order)},
          {"engine", run.engine},
          {"devices", run.devices},
          {"unused_devices", run.unused_devices},
          {"micro_batches", run.micro_batches},
          {"recompute",
           {{"what", run.recompute.what},
            {"when", run.recompute.rule.early ? "early" : "lazy"},
            {"skip_after_forward", run.recompute.rule.skip_after_own_forward},
            {"except_last", run.recompute.rule.except_last_micro_batch},
            {"blocks", run.recompute.blocks}}},
          {"feasible", run.feasible},
          {"why_not", run.why_not.empty() ? Json() : Json(run.why_not)},
          {"would_fit", run.would_fit.empty() ? Json() : Json(run.would_fit)},
          {"note", run.note.empty() ? Json() : Json(run.note)}};
}

Json to_value(const WholeTraining& whole) {
  Json json = {{"tokens", whole.tokens},
               {"seconds", whole.time.value},
               {"usd", whole.cost.value > 0 ? Json(whole.cost.value) : Json()}};
  if (whole.range) {
    const auto [low, high] = *whole.range;
    json["low_seconds"] = whole.time.value * low;
    json["high_seconds"] = whole.time.value * high;
    json["low_usd"] = whole.cost.value > 0 ? Json(whole.cost.value * low) : Json();
    json["high_usd"] = whole.cost.value > 0 ? Json(whole.cost.value * high) : Json();
  }
  json["in_words"] = in_words(whole);
  return json;
}

Json loader_of(const Run& run) {
  return run.loader ? Json{{"workers", run.loader->workers}, {"queue", run.loader->queue}, {"host", run.loader->host}}
                    : Json();
}

Json energy_of(const Run& run) {
  const Energy& energy = run.metrics.energy;
  return {{"devices",
           {{"idle", energy.devices_idle.value},
            {"waiting", energy.devices_waiting.value},
            {"dynamic", energy.devices_dynamic.value}}},
          {"hosts", {{"idle", energy.hosts_idle.value}, {"dynamic", energy.hosts_dynamic.value}}},
          {"links", {{"idle", energy.links_idle.value}, {"dynamic", energy.links_dynamic.value}}}};
}

Json objective_of(const Run& run) {
  return run.objective ? Json{{"name", run.objective->name}, {"seconds", run.objective->value.value}} : Json();
}

Json prices_of(const Run& run) {
  Json list = Json::array();
  for (const auto& [of, price] : run.prices) {
    list.push_back({{"of", of},
                    {"usd_per_hour", price.rate.value * kSecondsOfHour},
                    {"source", price.source.empty() ? Json() : Json(price.source)},
                    {"date", price.date.empty() ? Json() : Json(price.date)},
                    {"assumed", price.assumed}});
  }
  return list;
}

// Devices that are alike, with the figures of one of them; each device by itself where figures are not listed by device
// and nothing is alike. Null where the lists say as much.
Json classes_of(const Run& run) {
  std::vector<std::vector<std::int32_t>> classes = run.classes;
  if (classes.empty() && !run.lists_devices()) {
    for (std::size_t device = 0; device < run.devices.size(); ++device) {
      classes.push_back({static_cast<std::int32_t>(device)});
    }
  }
  if (classes.empty()) {
    return {};
  }
  std::vector<std::pair<std::string, std::vector<double>>> figures;
  for (const Metric& metric : kMetrics) {
    if (metric.per_device != nullptr && metric.is_key()) {
      figures.emplace_back(metric.path(), metric.per_device(run));
    }
  }
  Json list = Json::array();
  for (const std::vector<std::int32_t>& alike : classes) {
    Json& one = list.emplace_back(Json{{"devices", Json::array()}, {"count", alike.size()}});
    for (const std::int32_t device : alike) {
      one["devices"].push_back(run.devices[static_cast<std::size_t>(device)]);
    }
    for (const auto& [key, values] : figures) {
      one[key] = values[static_cast<std::size_t>(alike.front())];
    }
  }
  return list;
}

// The shares of the four sources that studies have, which are 1 in all unless some times are stated; and what part of
// the profile's is scaled.
Json shares_of(const CostBasis& basis) {
  const double scaled = basis.of(CostSource::scaled_profile), stated = basis.of(CostSource::stated);
  Json json = {{"fit", basis.of(CostSource::fit)},
               {"table", basis.of(CostSource::table)},
               {"roofline", basis.of(CostSource::roofline)},
               {"profile", basis.of(CostSource::profile) + scaled}};
  if (scaled > 0) {
    json["scaled_profile"] = scaled;
  }
  if (stated > 0) {
    json["stated"] = stated;
  }
  return json;
}

Json cost_basis_of(const Run& run) {
  Json json = shares_of(whole_of(run.cost_basis));
  for (const CostBasis& type : run.cost_basis) {
    json["types"][type.type] = shares_of(type);
  }
  return json;
}

// Where nine of ten iterations would lie, and what says so: measured runs, or else draws of what costs may be off by.
// Null where neither is known.
Json interval_of(const Run& run) {
  const auto range = [&](Seconds low, Seconds high) -> Json {
    return {{"level", kRangeLevel},
            {"low_seconds", low.value},
            {"high_seconds", high.value},
            {"basis", basis_of_range(run)}};
  };
  if (run.expected) {
    return range(run.expected->low, run.expected->high);
  }
  if (run.confidence) {
    return range(run.confidence->iteration.low, run.confidence->iteration.high);
  }
  return {};
}

// A key that stands among the metrics and holds more than one value.
struct Part {
  const Metric* after;
  const char* key;
  Json (*of)(const Run& run);
};
constexpr std::array kParts = {
    Part{&metric("data_stall_seconds"), "loader", loader_of}, Part{&metric("energy_joules"), "energy", energy_of},
    Part{&metric("assumed_cost_share"), "prices", prices_of}, Part{&metric("over_bound"), "objective", objective_of},
    Part{&metric("folded_replicas"), "classes", classes_of},
};

// The JSON value of a metric of a feasible run; null for NaN and infinity.
Json json_figure(const Metric& metric, const Run& run) {
  if (metric.per_device != nullptr) {
    return run.lists_devices() ? Json(metric.per_device(run)) : Json();
  }
  const double value = metric.value(run);
  return metric.shape == MetricShape::count ? Json(static_cast<long>(value)) : Json(value);
}

// Fills in the metrics that lie below a key of a run.
void add_metrics(Json& json, const std::string& key, const Run& run) {
  for (const Metric& metric : kMetrics) {
    std::string_view path = metric.path();
    if (!path.starts_with(key + ".")) {
      continue;
    }
    Json* place = &json;
    for (std::size_t end = 0; end != std::string_view::npos; path.remove_prefix(std::min(end + 1, path.size()))) {
      end = path.find('.');
      place = &(*place)[std::string(path.substr(0, end))];
    }
    *place = json_figure(metric, run);
  }
}

// Where the energy of an iteration goes, and the mean power of each part; they add up to the whole.
void add_components(Json& json, const Run& run) {
  add_metrics(json, "energy", run);
  const Seconds iteration = run.metrics.iteration;
  for (Json& component : json["energy"]["components"]) {
    const Joules joules{component["joules"].get<double>()};
    component["mean_watts"] = iteration.value > 0 ? (joules / iteration).value : 0.0;
  }
}

// Adds every metric and the keys that stand among them; null where the run is infeasible.
void add_metrics(Json& json, const Run& run) {
  for (const Metric& metric : kMetrics) {
    if (!metric.is_key()) {
      continue;
    }
    json[std::string(metric.path())] = run.feasible ? json_figure(metric, run) : Json();
    for (const Part& part : kParts) {
      if (part.after == &metric) {
        json[part.key] = run.feasible ? part.of(run) : Json();
      }
    }
  }
}

Json to_value(const Run& run, bool timing) {
  Json json = head_of(run);
  add_metrics(json, run);
  json["interval"] = run.feasible ? interval_of(run) : Json();
  json["exact_training"] = run.feasible ? Json(run.staleness.empty()) : Json();
  json["cost_basis"] = run.feasible ? cost_basis_of(run) : Json();
  json["stages"] = Json::array();
  if (run.feasible) {
    add_components(json, run);
    for (const RunStage& stage : run.stages) {
      json["stages"].push_back(to_value(stage));
    }
    json["plan"] = plan_line(run);
    if (const auto whole = whole_training(run)) {
      json["whole_training"] = to_value(*whole);
    }
    if (run.perturbed) {
      json["perturbed"] = {{"samples", run.perturbed->samples}};
      add_metrics(json, "perturbed", run);
    }
    if (run.confidence) {
      json["confidence"] = {{"samples", run.confidence->iteration.samples}};
      add_metrics(json, "confidence", run);
    }
    if (run.expected) {
      add_metrics(json, "expected", run);
      json["expected"]["family"] = run.expected->family;
      json["expected"]["models"] = run.expected->models;
      json["expected"]["median_error"] = run.expected->median;
    }
    if (run.expected_memory) {
      const RunExpectedMemory& memory = *run.expected_memory;
      json["expected_memory"] = {{"device", memory.device},         {"bytes", memory.peak.value},
                                 {"have_bytes", memory.have.value}, {"low_bytes", memory.low.value},
                                 {"high_bytes", memory.high.value}, {"family", memory.family},
                                 {"models", memory.models},         {"median_error", memory.median}};
    }
    if (!run.staleness.empty()) {
      json["staleness"] = run.staleness;
    }
    if (!run.rounds.empty()) {
      json["rounds"] = to_value(run.rounds);
    }
  }
  if (timing) {
    json["timing"] = {{"planning_seconds", run.planning_seconds}, {"replay_seconds", run.replay_seconds}};
  }
  return json;
}

// The date in UTC, "2026-11-26".
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, sizeof "2026-11-26"> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

std::string text_of(const Json& json) { return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace); }

} // namespace

std::string with_parts(std::string object, const std::vector<JsonPart>& parts) {
  const std::size_t brace = object.rfind('}');
  const std::string after = object.substr(brace + 1);
  object.resize(object.rfind('\n', brace)); // before the closing brace
  for (const JsonPart& part : parts) {
    object += part.value.empty() ? "" : ",\n \"" + part.key + "\": " + part.value;
  }
  return object + "\n}" + after;
}

std::string to_json(const std::vector<RunRound>& rounds) { return to_value(rounds).dump(); }

std::string to_json(const Comparison& comparison, bool timing,
                    const std::map<std::size_t, std::vector<JsonPart>>& of_run) {
  Json head = {{"schema", kSchema},
               {"model", comparison.model},
               {"platform", comparison.platform},
               {"global_batch", comparison.global_batch},
               {"rank", kRankings.at(static_cast<std::size_t>(comparison.rank)).name},
               {"inputs", comparison.inputs},
               {"verdict", comparison.verdict}};
  if (timing) {
    head["timing"] = {{"date", today()}};
  }
  std::string runs;
  for (std::size_t number = 0; number < comparison.runs.size(); ++number) {
    const auto parts = of_run.find(number);
    runs += (number == 0 ? "\n" : ",\n") + with_parts(text_of(to_value(comparison.runs[number], timing)),
                                                      parts == of_run.end() ? std::vector<JsonPart>{} : parts->second);
  }
  return with_parts(text_of(head), {{"runs", "[" + runs + "]"}}) + "\n";
}

std::string to_json(const Run& run, const RunOrigin& origin, bool timing, const std::vector<JsonPart>& parts) {
  Json json = {{"schema", kSchema}, {"model", origin.model}, {"platform", origin.platform}, {"inputs", origin.inputs}};
  json.update(to_value(run, timing));
  if (timing) {
    json["timing"]["date"] = today();
  }
  return with_parts(text_of(json), parts) + "\n";
}

} // namespace stagecraft
