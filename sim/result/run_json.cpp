// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/base/schema.hpp"
#include "sim/result/stage_json.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

template <class Q> Json values(const std::vector<Q>& quantities) {
  Json list = Json::array();
  for (const Q& quantity : quantities) {
    list.push_back(quantity.value);
  }
  return list;
}

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

Json to_value(const RunSpread& spread) {
  return {
      {"samples", spread.samples},
      {"iteration_seconds", {{"p5", spread.low.value}, {"median", spread.median.value}, {"p95", spread.high.value}}}};
}

// Candidates are null where they are those of the round before.
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
                    {"waiting_seconds", values(round.waiting)},
                    {"largest_waiting_seconds", ran ? Json(round.largest_waiting.value) : Json()},
                    {"mean_waiting_seconds", ran ? Json(round.mean_waiting.value) : Json()},
                    {"waiting_shares", round.waiting_shares},
                    {"tail_seconds", values(round.tail)},
                    {"why_not", ran ? Json() : Json(round.why_not)},
                    {"action", round.action}});
  }
  return list;
}

// Every key of the schema, null until a feasible run fills it.
Json empty_run(const Run& run) {
  Json json = {{"strategy", run.strategy},
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
                 {"except_last", run.recompute.rule.except_last_micro_batch}}},
               {"feasible", run.feasible},
               {"why_not", run.why_not.empty() ? Json() : Json(run.why_not)},
               {"would_fit", run.would_fit.empty() ? Json() : Json(run.would_fit)},
               {"note", run.note.empty() ? Json() : Json(run.note)}};
  for (const char* key : {"iteration_seconds",
                          "makespan_seconds",
                          "samples_per_second",
                          "speedup",
                          "bubble_fraction",
                          "load_imbalance",
                          "utilization",
                          "waiting_seconds",
                          "exposed_communication_seconds",
                          "data_stall_seconds",
                          "loader",
                          "peak_memory_bytes",
                          "energy_joules",
                          "energy",
                          "mean_power_watts",
                          "joules_per_sample",
                          "cost_usd",
                          "usd_per_million_samples",
                          "estimate_seconds",
                          "bottleneck_seconds",
                          "optimal_bottleneck_seconds",
                          "lower_bound_seconds",
                          "over_bound",
                          "objective",
                          "tasks",
                          "folded_replicas"}) {
    json[key] = nullptr;
  }
  json["stages"] = Json::array();
  return json;
}

// Where the energy of an iteration goes, and the mean power of each part; they add up to the whole.
Json components_of(const Energy& energy, Seconds iteration) {
  Json json;
  const auto add = [&](const char* name, Joules joules) {
    json[name] = {{"joules", joules.value}, {"mean_watts", iteration.value > 0 ? (joules / iteration).value : 0.0}};
  };
  add("devices_idle", energy.devices_idle);
  add("devices_waiting", energy.devices_waiting);
  add("devices_dynamic", energy.devices_dynamic);
  add("hosts_idle", energy.hosts_idle);
  add("loader_cores_busy", energy.loaders_busy);
  add("loader_cores_waiting", energy.loaders_waiting);
  add("driver_cores_waiting", energy.drivers_waiting);
  add("links_idle", energy.links_idle);
  add("links_dynamic", energy.links_dynamic);
  return json;
}

Json energy_of(const Energy& energy, Seconds iteration) {
  return {{"devices",
           {{"idle", energy.devices_idle.value},
            {"waiting", energy.devices_waiting.value},
            {"dynamic", energy.devices_dynamic.value}}},
          {"hosts", {{"idle", energy.hosts_idle.value}, {"dynamic", energy.hosts_dynamic.value}}},
          {"links", {{"idle", energy.links_idle.value}, {"dynamic", energy.links_dynamic.value}}},
          {"components", components_of(energy, iteration)}};
}

Json to_value(const Run& run, bool timing) {
  Json json = empty_run(run);
  if (run.feasible) {
    const Metrics& m = run.metrics;
    Json utilization = Json::array();
    for (const Seconds busy : m.busy) {
      utilization.push_back(m.iteration.value > 0 ? busy / m.iteration : 0.0);
    }
    json["iteration_seconds"] = m.iteration.value;
    json["makespan_seconds"] = m.makespan.value;
    json["samples_per_second"] = run.samples_per_second;
    json["speedup"] = run.speedup;
    json["bubble_fraction"] = m.bubble_fraction;
    json["load_imbalance"] = m.load_imbalance;
    json["utilization"] = std::move(utilization);
    json["waiting_seconds"] = values(m.waiting);
    json["exposed_communication_seconds"] = values(m.exposed);
    json["data_stall_seconds"] = run.data_stall.value;
    if (run.loader) {
      json["loader"] = {{"workers", run.loader->workers}, {"queue", run.loader->queue}, {"host", run.loader->host}};
    }
    json["peak_memory_bytes"] = values(m.peak_memory);
    json["energy_joules"] = m.energy.total().value;
    json["energy"] = energy_of(m.energy, m.iteration);
    json["mean_power_watts"] = m.iteration.value > 0 ? (m.energy.total() / m.iteration).value : 0.0;
    json["joules_per_sample"] = run.energy_per_sample.value;
    json["cost_usd"] = m.cost.value;
    json["usd_per_million_samples"] = run.cost_per_million_samples.value;
    json["estimate_seconds"] = run.estimate.value;
    json["bottleneck_seconds"] = run.bottleneck.value;
    if (run.optimal_bottleneck) {
      json["optimal_bottleneck_seconds"] = run.optimal_bottleneck->value;
    }
    json["lower_bound_seconds"] = run.lower_bound.value;
    json["over_bound"] = run.over_bound();
    if (run.objective) {
      json["objective"] = {{"name", run.objective->name}, {"seconds", run.objective->value.value}};
    }
    json["tasks"] = m.tasks;
    json["folded_replicas"] = run.folded_replicas;
    for (const RunStage& stage : run.stages) {
      json["stages"].push_back(to_value(stage));
    }
    if (run.perturbed) {
      json["perturbed"] = to_value(*run.perturbed);
    }
    if (run.confidence) {
      json["confidence"] = to_value(run.confidence->iteration);
      json["confidence"]["best"] = run.confidence->best;
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

std::string text_of(const Json& json) { return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace); }

// An object with further keys at its end: values may be a hundred megabytes, which no parser need see.
std::string with_parts(std::string object, const std::vector<JsonPart>& parts) {
  for (const JsonPart& part : parts) {
    if (!part.value.empty()) {
      object.resize(object.rfind('\n')); // before the closing brace
      object += ",\n \"" + part.key + "\": " + part.value + "\n}";
    }
  }
  return object;
}

} // namespace

std::string to_json(const std::vector<RunRound>& rounds) { return to_value(rounds).dump(); }

std::string to_json(const Comparison& comparison, bool timing,
                    const std::map<std::size_t, std::vector<JsonPart>>& of_run) {
  const Json head = {{"schema", kSchema},
                     {"model", comparison.model},
                     {"platform", comparison.platform},
                     {"global_batch", comparison.global_batch},
                     {"inputs", comparison.inputs},
                     {"verdict", comparison.verdict}};
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
  return with_parts(text_of(json), parts) + "\n";
}

} // namespace stagecraft
