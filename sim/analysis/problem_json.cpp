// The problem as a foreign planner gets it.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/analysis/judge.hpp"
#include "sim/base/format/schema.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

Json seconds_by_type(const Problem& problem, const std::vector<std::vector<double>>& table, OperatorId op) {
  Json times = Json::object();
  for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
    const double time = table[type][op];
    times[problem.platform.types[type].name] = std::isinf(time) ? Json() : Json(time); // null: no kernel
  }
  return times;
}

Json operators_of(const Problem& problem) {
  Json list = Json::array();
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    const Operator& one = problem.model.operators[op];
    Json inputs = Json::array();
    for (const OperatorId from : problem.model.predecessors[op]) {
      inputs.push_back(problem.model.operators[from].name);
    }
    list.push_back({{"name", one.name},
                    {"type", one.type},
                    {"inputs", inputs},
                    {"parameters", one.parameters},
                    {"output_bytes", problem.output_bytes(op).value},
                    {"stash_bytes", problem.stash_bytes(op).value},
                    {"forward_seconds", seconds_by_type(problem, problem.forward, op)},
                    {"backward_input_seconds", seconds_by_type(problem, problem.backward_input, op)},
                    {"backward_weight_seconds", seconds_by_type(problem, problem.backward_weight, op)}});
  }
  return list;
}

Json devices_of(const Platform& platform) {
  Json list = Json::array();
  for (const Device& device : platform.devices) {
    const DeviceType& type = platform.types[device.type];
    list.push_back({{"name", device.name},
                    {"type", type.name},
                    {"node", platform.nodes[device.node].name},
                    {"memory_bytes", std::isinf(type.memory.value) ? Json() : Json(type.memory.value)}});
  }
  return list;
}

// Row d, column e: from device d to device e.
Json paths_of(const Problem& problem) {
  Json latency = Json::array();
  Json per_byte = Json::array();
  const int count = static_cast<int>(problem.platform.devices.size());
  for (DeviceId from = 0; from < count; ++from) {
    Json latencies = Json::array();
    Json per_bytes = Json::array();
    for (DeviceId to = 0; to < count; ++to) {
      const PathCost path = from == to ? PathCost{} : problem.path(from, to);
      latencies.push_back(path.latency.value);
      per_bytes.push_back(path.seconds_per_byte);
    }
    latency.push_back(std::move(latencies));
    per_byte.push_back(std::move(per_bytes));
  }
  return {{"latency_seconds", latency}, {"seconds_per_byte", per_byte}};
}

} // namespace

std::string problem_to_json(const Problem& problem, const std::string& schedule) {
  const ParameterBytes bytes = parameter_bytes(problem.training);
  const Json json = {
      {"schema", kSchema},
      {"model", {{"name", problem.model.name}, {"operators", operators_of(problem)}}},
      {"platform",
       {{"name", problem.platform.name}, {"devices", devices_of(problem.platform)}, {"paths", paths_of(problem)}}},
      {"training",
       {{"global_batch", problem.training.global_batch},
        {"micro_batches", problem.micro_batches},
        {"samples_per_micro_batch", problem.samples},
        {"bytes_per_parameter",
         {{"weight", bytes.weight}, {"gradient", bytes.gradient}, {"optimizer", bytes.optimizer}}},
        {"recompute", name_of(problem.training.recompute.what)}}},
      {"schedule", schedule}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace stagecraft
