// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/base/format/schema.hpp"
#include "sim/validate/run_record.hpp"
#include "sim/validate/run_record_rows.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kNano = 1e9;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <class Row> Json write_rows(RunColumns<Row> columns, const std::vector<Row>& rows) {
  Json json = Json::array();
  for (const Row& row : rows) {
    json.push_back(write_row(columns, row));
  }
  return json;
}

Json platform_value(const Platform& platform) {
  Json json = {{"name", platform.name}, {"devices", Json::array()}, {"links", Json::array()}};
  for (const Device& device : platform.devices) {
    json["devices"].push_back(device.name);
  }
  json["links"] = write_rows(link_columns(), platform.links);
  return json;
}

Json graph_value(const TaskGraph& graph) {
  Json json = {{"devices", graph.devices},
               {"works", write_rows(work_columns(), graph.works)},
               {"legs", write_rows(leg_columns(), graph.legs)},
               {"work", graph.work},
               {"micro_batch", graph.micro_batch},
               {"successors", Json::array()},
               {"programs", Json::array()},
               {"ties", Json::array()}};
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    json["successors"].push_back(graph.successors_of(task));
  }
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    json["programs"].push_back(graph.program_of(device));
  }
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    for (const Tie& tie : graph.ties_of(task)) {
      json["ties"].push_back(write_row(tie_columns(), RunTie{task, tie.to, tie.iterations}));
    }
  }
  json["overlaps"] = graph.overlaps;
  return json;
}

// A row for each pair that was measured; other pairs do not slow each other.
Json contention_value(const PartTimes& parts, std::size_t works) {
  constexpr double kDigits = 1e4;
  Json json = Json::array();
  for (std::size_t pair = 0; pair < parts.contention.size(); ++pair) {
    if (parts.contention[pair] != 1) {
      const RunContention row{static_cast<std::int64_t>(pair / works), static_cast<std::int64_t>(pair % works),
                              std::round(parts.contention[pair] * kDigits) / kDigits};
      json.push_back(write_row(pair_columns(), row));
    }
  }
  return json;
}

Json parts_value(const RunRecord& record) {
  if (!record.parts) {
    return {};
  }
  Json json = {{"computation_seconds", record.parts->computation.value},
               {"legs", write_rows(part_columns(), record.parts->legs)}};
  if (!record.parts->works.empty()) {
    json["work_seconds"] = Json::array();
    for (const Seconds work : record.parts->works) {
      json["work_seconds"].push_back(work.value);
    }
  }
  if (!record.parts->slowdowns.empty()) {
    json["slowdowns"] = record.parts->slowdowns;
  }
  if (!record.parts->contention.empty()) {
    json["contention"] = contention_value(*record.parts, record.graph.works.size());
  }
  return json;
}

} // namespace

std::string to_json(const RunRecord& record) {
  const RunInputs& inputs = record.inputs;
  std::vector<std::int64_t> start, duration;
  for (std::size_t entry = 0; entry < record.timeline.start.size(); ++entry) {
    start.push_back(std::llround(record.timeline.start[entry] * kNano));
    duration.push_back(std::llround(record.timeline.finish[entry] * kNano) - start.back());
  }
  Json conditions = Json::object();
  for (const auto& [name, value] : record.conditions) {
    conditions[name] = value;
  }
  const Json graph = graph_value(record.graph);
  std::string text = "{\n\"schema\": " + dump(kSchema) + ",\n\"executed\": " +
                     dump({{"backend", record.backend},
                           {"shares_links", record.shares_links},
                           {"time_scale", record.time_scale},
                           {"bandwidth_scale", record.bandwidth_scale},
                           {"iterations", record.timeline.iterations},
                           {"makespan_seconds", record.makespan()}}) +
                     ",\n\"conditions\": " + dump(conditions) + ",\n\"inputs\": " +
                     dump({{"model", inputs.model},
                           {"platform", inputs.platform},
                           {"strategy", inputs.strategy},
                           {"schedule", inputs.schedule},
                           {"global_batch", inputs.global_batch},
                           {"micro_batches", inputs.micro_batches},
                           {"plan", inputs.plan},
                           {"orders", inputs.orders}}) +
                     ",\n\"parts\": " + dump(parts_value(record)) +
                     ",\n\"platform\": " + dump(platform_value(record.platform)) + ",\n\"graph\": {\n";
  bool first = true;
  for (const auto& [key, value] : graph.items()) {
    text += (first ? "\"" : ",\n\"") + key + "\": " + dump(value);
    first = false;
  }
  const std::string rounds = record.rounds.empty() ? "" : ",\n\"rounds\": " + to_json(record.rounds);
  return text + "\n}" + rounds + ",\n\"start_nanoseconds\": " + dump(start) +
         ",\n\"duration_nanoseconds\": " + dump(duration) + "\n}\n";
}

} // namespace stagecraft
