// stagecraft schedule: a schedule alone, from given times, without model or platform.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "sim/app/options.hpp"
#include "sim/base/schema.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/schedule/schedule_file.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {
namespace {

// One number for all devices or one for each.
std::vector<double> per_device(const std::vector<double>& given, int devices, const char* flag) {
  if (given.size() != 1 && given.size() != static_cast<std::size_t>(devices)) {
    throw InputError({flag, 0, 0}, std::to_string(given.size()) + " times; allowed: one, or one for each of " +
                                       std::to_string(devices) + " devices");
  }
  return given.size() == 1 ? std::vector<double>(devices, given.front()) : given;
}

struct DeviceTimes {
  std::vector<double> forward, input, weight;
};

DeviceTimes read_times(const Options& options, const ScheduleRow& row) {
  DeviceTimes times;
  times.forward = per_device(options.forward, options.stages, "--forward");
  const bool split = !options.backward_input.empty() || !options.backward_weight.empty();
  if (split && !options.backward.empty()) {
    throw InputError({"--backward", 0, 0}, "given beside --backward-input or --backward-weight; allowed: one form");
  }
  if (split && (options.backward_input.empty() || options.backward_weight.empty())) {
    throw InputError({"--backward-input", 0, 0}, "--backward-input and --backward-weight go together");
  }
  if (split) {
    times.input = per_device(options.backward_input, options.stages, "--backward-input");
    times.weight = per_device(options.backward_weight, options.stages, "--backward-weight");
    return times;
  }
  const std::vector<double> twice = [&] {
    std::vector<double> doubled = options.forward;
    std::for_each(doubled.begin(), doubled.end(), [](double& time) { time *= 2; });
    return doubled;
  }();
  const auto backward = per_device(options.backward.empty() ? twice : options.backward, options.stages, "--backward");
  for (const double time : backward) { // a split schedule halves what is given whole
    times.input.push_back(row.splits_backward ? time / 2 : time);
    times.weight.push_back(row.splits_backward ? time / 2 : 0);
  }
  return times;
}

// Stage s runs on device s mod P for 1/chunks of the device's times; neighbours exchange data without bytes.
PlanCost cost_of_times(const DeviceTimes& times, int devices, int chunks, bool recomputes) {
  PlanCost cost;
  for (int s = 0; s < devices * chunks; ++s) {
    const int d = s % devices;
    const double forward = times.forward[d] / chunks;
    ReplicaCost replica{.device = d,
                        .forward = Seconds{forward},
                        .backward_input = Seconds{times.input[d] / chunks},
                        .backward_weight = Seconds{times.weight[d] / chunks},
                        .recompute = Seconds{recomputes ? forward : 0}};
    replica.memory.per_micro_batch = Bytes{1};
    cost.stages.push_back({{replica}, Bytes{0}});
    if (s > 0) {
      cost.edges.push_back({s - 1, s, Bytes{0}});
    }
  }
  return cost;
}

Schedule with_recompute(Schedule schedule, const std::string& mode) {
  if (mode.empty() || mode == "none") {
    return schedule;
  }
  const std::vector<char> all(schedule.stages, 1);
  RecomputeRule rule;
  rule.early = mode != "lazy";
  rule.skip_after_own_forward = mode == "skip";
  rule.except_last_micro_batch = mode == "except-last";
  return add_recompute(std::move(schedule), all, rule);
}

struct Drawn {
  Schedule schedule;
  TaskGraph graph;
  Timeline timeline;
  Metrics metrics;
};

std::string to_json(const Drawn& drawn, const Options& options) {
  nlohmann::ordered_json json = {{"schema", kSchema},
                                 {"schedule", drawn.schedule.name},
                                 {"stages", options.stages},
                                 {"micro_batches", drawn.schedule.micro_batches},
                                 {"makespan", drawn.metrics.makespan.value},
                                 {"period", drawn.metrics.iteration.value}};
  Seconds busy;
  for (const Seconds one : drawn.metrics.busy) {
    busy += one;
  }
  const double makespan = drawn.metrics.makespan.value;
  json["bubble_fraction"] = makespan > 0 ? 1 - busy.value / (options.stages * makespan) : 0.0;
  json["in_flight"] = nlohmann::ordered_json::array();
  json["orders"] = nlohmann::ordered_json::array();
  const std::vector<double> held = in_flight(drawn.schedule);
  for (int device = 0; device < options.stages; ++device) {
    double sum = 0;
    for (int s = device; s < drawn.schedule.stages; s += options.stages) {
      sum += held[s];
    }
    json["in_flight"].push_back(static_cast<long>(sum));
    nlohmann::ordered_json order = nlohmann::ordered_json::array();
    for (const Action& action : drawn.schedule.orders[device]) {
      order.push_back(to_text(std::span(&action, 1)));
    }
    json["orders"].push_back(std::move(order));
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_picture(const Drawn& drawn, const Options& options) {
  std::vector<std::string> names;
  for (int device = 0; device < options.stages; ++device) {
    names.push_back("device " + std::to_string(device));
  }
  PictureOptions picture;
  picture.width = terminal_width() - 14;
  picture.color = use_color();
  picture.plain_numbers = true;
  return ascii_timeline(drawn.graph, drawn.timeline, names, picture) + "makespan " +
         to_text(drawn.metrics.makespan.value, 3) + ", period " + to_text(drawn.metrics.iteration.value, 3) + "\n";
}

} // namespace

int command_schedule(const Options& options) {
  const ScheduleRow& row = find_by_name(schedules(), options.schedule, "schedule", {"NAME", 0, 0});
  constexpr int kUsualChunks = 2;
  const int chunks = options.chunks > 0 ? options.chunks : chunks_of(row, kUsualChunks);
  if (row.chunks > 0 && chunks != row.chunks) {
    throw InputError({"--chunks", 0, 0}, "'" + std::string(row.name) + "' has " + std::to_string(row.chunks) +
                                             " stages per device; allowed: " + std::to_string(row.chunks));
  }
  const DeviceTimes times = read_times(options, row);
  constexpr double kMostTasks = 1e8; // some gigabytes
  if (static_cast<double>(options.stages) * options.micro_batches * chunks > kMostTasks) {
    throw InputError({"schedule", 0, 0}, "stages x micro-batches x chunks is too large; allowed: at most 100000000");
  }
  ScheduleResult made = make_schedule(row, {options.stages, options.micro_batches, chunks});
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    throw InputError({"schedule", 0, 0}, reason->reason);
  }
  Drawn drawn{.schedule = with_recompute(std::move(std::get<Schedule>(made)), options.recompute)};
  if (options.format == "csv") { // the orders need no times
    emit(options, to_csv(drawn.schedule));
    return kDone;
  }
  const bool recomputes = !options.recompute.empty() && options.recompute != "none";
  const Platform platform =
      make_star_platform(DeviceType{}, options.stages, BytesPerSecond{std::numeric_limits<double>::infinity()},
                         Seconds{options.hop_latency});
  Router router(platform);
  const PlanCost cost = cost_of_times(times, options.stages, chunks, recomputes);
  drawn.graph = make_task_graph({.cost = cost,
                                 .schedule = drawn.schedule,
                                 .router = router,
                                 .barrier = false,
                                 .early_recompute = options.recompute != "lazy"});
  const ReplayRequest request{&drawn.graph, options.iterations};
  drawn.timeline = replay_analytic(platform, std::span(&request, 1)).front();
  drawn.metrics = measure(drawn.graph, drawn.timeline, platform);
  emit(options, options.format == "json" ? to_json(drawn, options) : to_picture(drawn, options));
  return kDone;
}

} // namespace stagecraft
