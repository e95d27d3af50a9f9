// stagecraft schedule: a schedule alone, from given times, without model or platform.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/schedule_text.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/units.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/replay/replay.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/schedule/place.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {
namespace {

struct ScheduleCommand {
  std::string schedule;
  OutputOptions output;
  int stages = 4, micro_batches = 0, chunks = 0;
  std::vector<double> forward = {1}, backward, backward_input, backward_weight;
  double fused = 0; ///< 0: forward and backward together take the sum of both
  double hop_latency = 0;
  double memory = 0; ///< activations of a device at most, in micro-batches of all its stages; 0: no limit
  double kept = 1;   ///< the share of them that W needs after B
  std::string recompute;
  int iterations = 3;
  ScheduleTextOptions text;
};

// A number in [low, high]; of others `otherwise` says what is allowed.
Check plain_number(const char* name, double low, double high, const std::string& otherwise) {
  return {name, [=](const std::string& text) {
            double number = 0;
            const std::string refusal = refusal_of([&](const Where& where) { number = parse_number(text, where); });
            return !refusal.empty() ? refusal : number >= low && number <= high ? "" : otherwise;
          }};
}

// A number of something.
Check plain_number(const char* what, double low, double high) {
  return plain_number("NUMBER", low, high,
                      std::string(what) + " must be " + to_digits(low, 3) + " to " + to_digits(high, 3));
}

// A time without a unit. Above kLongest, sums of times would lose digits.
Check plain_time() {
  constexpr double kLongest = 1e12;
  return plain_number("TIME", 0, kLongest, "a time must be 0 to 1e12");
}

void add_flags(Flags& flags, ScheduleCommand& options) {
  constexpr int kMost = 1 << 20, kMostChunks = 1 << 16, kMostIterations = 1000;
  const Value time{.check = plain_time()}, times{.check = plain_time(), .commas = true};
  flags.add("NAME", &options.schedule, "see `list schedules`", {.required = true});
  add_result_flags(flags, options.output, {"table", "json", "csv"});
  flags.add("--stages", &options.stages, "number of devices in the pipeline",
            {.check = whole_number(1, kMost), .required = true});
  flags.add("--micro-batches", &options.micro_batches, "number of micro-batches in an iteration",
            {.check = whole_number(1, kMost), .required = true});
  flags.add("--chunks", &options.chunks, "stages per device (default 2 where the schedule interleaves)",
            {.check = whole_number(1, kMostChunks)});
  flags.add("--forward", &options.forward, "time of a device's forward pass: one number, or one per device", times);
  flags.add("--backward", &options.backward, "likewise of the backward pass (default twice forward)", times);
  flags.add("--backward-input", &options.backward_input, "likewise of the gradient of the inputs", times);
  flags.add("--backward-weight", &options.backward_weight, "likewise of the gradient of the weights", times);
  flags.add("--fused", &options.fused, "time of a forward and a backward that run together (default: their sum)", time);
  flags.add("--latency", &options.hop_latency, "delay between two devices", time);
  flags.add("--memory", &options.memory, "activations that a device holds at most, in micro-batches of all its stages",
            {.check = plain_number("the memory", 0.001, 1e9)});
  flags.add("--kept", &options.kept, "share of the activations that W still needs after B (default 1)",
            {.check = plain_number("the share", 0, 1)});
  flags.add("--recompute", &options.recompute, "run forward again before backward",
            {.check = one_of({"none", "early", "lazy", "skip", "except-last"})});
  flags.add("--iterations", &options.iterations, "iterations to find the period over",
            {.check = whole_number(1, kMostIterations)});
  add_schedule_text_flags(flags, options.text);
}

// One number per device, given as one for all or one for each.
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

DeviceTimes read_times(const ScheduleCommand& options, const ScheduleRow& row) {
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
  for (const double time : backward) { // a schedule that splits backward gives half of a whole backward to each part
    times.input.push_back(row.splits_backward ? time / 2 : time);
    times.weight.push_back(row.splits_backward ? time / 2 : 0);
  }
  return times;
}

// The plan for a schedule alone: one device per rank, with `chunks` stages on each.
Plan plan_of(const ScheduleRow& row, int devices, int chunks) {
  Plan plan;
  for (int s = 0; s < devices * chunks; ++s) {
    plan.stages.push_back({.devices = {rank_of(s, devices, row.stage_placement)}});
  }
  return plan;
}

// Every stage takes 1/chunks of its device's times; neighbours exchange data without bytes.
PlanCost cost_of_times(const DeviceTimes& times, const Plan& plan, int chunks, bool recomputes, double kept) {
  PlanCost cost;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    StageCost stage{.turns = plan.stages[s].turns};
    for (const DeviceId d : plan.stages[s].devices) {
      const double forward = times.forward[d] / chunks;
      ReplicaCost replica{.device = d,
                          .forward = Seconds{forward},
                          .backward_input = Seconds{times.input[d] / chunks},
                          .backward_weight = Seconds{times.weight[d] / chunks},
                          .recompute = Seconds{recomputes ? forward : 0}};
      replica.memory.per_micro_batch = Bytes{1.0 / chunks};
      replica.memory.for_weights = Bytes{kept / chunks};
      stage.replicas.push_back(replica);
    }
    cost.stages.push_back(std::move(stage));
    if (s > 0) {
      cost.edges.push_back({static_cast<int>(s) - 1, static_cast<int>(s), Bytes{0}});
    }
  }
  return cost;
}

// What a schedule that depends on times gets: the seconds of each stage, the hops, and the limit on memory, or its own.
ScheduleRequest request_of(const ScheduleRow& row, const DeviceTimes& times, const ScheduleCommand& options,
                           int chunks) {
  ScheduleRequest request{.ranks = options.stages, .micro_batches = options.micro_batches, .chunks = chunks};
  for (int s = 0; s < options.stages * chunks; ++s) {
    const int d = rank_of(s, options.stages, row.stage_placement);
    request.figures.push_back(
        {times.forward[d] / chunks, times.input[d] / chunks, times.weight[d] / chunks, 1.0 / chunks, options.kept});
    if (s > 0) {
      request.hops.push_back(rank_of(s - 1, options.stages, row.stage_placement) == d ? 0 : options.hop_latency);
    }
  }
  if (options.memory > 0) {
    request.room.assign(options.stages, options.memory);
  }
  return request;
}

// Throws where a device holds more activations than it may.
void check_memory(const ScheduleCommand& options, const Metrics& metrics) {
  constexpr double kRounding = 1e-9;
  for (std::size_t device = 0; device < metrics.peak_memory.size(); ++device) {
    const double held = metrics.peak_memory[device].value;
    if (options.memory > 0 && held > options.memory * (1 + kRounding)) {
      throw InputError({"--memory", 0, 0}, options.schedule + " holds the activations of " + to_digits(held, 4) +
                                               " micro-batches on device " + std::to_string(device) + ", more than " +
                                               to_digits(options.memory, 4));
    }
  }
}

// The time of forward and backward together as a fraction of their sum; 1 where no flag gives it.
double fused_part(const DeviceTimes& times, const ScheduleCommand& options) {
  if (options.fused <= 0) {
    return 1;
  }
  const double apart = times.forward.front() + times.input.front() + times.weight.front();
  return apart > 0 ? options.fused / apart : 1;
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

std::vector<Timeline> replay_until_steady(std::span<const ReplayRequest> requests) {
  return replay_steady(replay_analytic, requests);
}

struct Drawn {
  Schedule schedule; ///< one iteration from empty
  TaskGraph graph;   ///< graph of what is drawn: several iterations, or that one iteration where iterations overlap
  Timeline timeline;
  Metrics metrics;
};

std::string json_of(const Drawn& drawn, const ScheduleCommand& options) {
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
  const std::vector<int> held = most_held(drawn.schedule);
  for (int device = 0; device < options.stages; ++device) {
    json["in_flight"].push_back(held[device]);
    nlohmann::ordered_json order = nlohmann::ordered_json::array();
    for (const std::string& token : tokens(drawn.schedule.orders[device])) {
      order.push_back(token);
    }
    json["orders"].push_back(std::move(order));
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string picture_of(const Drawn& drawn, const ScheduleCommand& options) {
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

ExitStatus run(const ScheduleCommand& options) {
  const ScheduleRow& row = find_by_name(schedules(), options.schedule, "schedule", {"NAME", 0, 0});
  constexpr int kUsualChunks = 2;
  const int chunks = options.chunks > 0 ? options.chunks : chunks_of(row, kUsualChunks);
  if (row.chunks > 0 && chunks != row.chunks) {
    throw InputError({"--chunks", 0, 0}, "'" + std::string(row.name) + "' has " + std::to_string(row.chunks) +
                                             " stages per device; allowed: " + std::to_string(row.chunks));
  }
  const DeviceTimes times = read_times(options, row);
  constexpr double kMostTasks = 1e8; // a few GB
  if (static_cast<double>(options.stages) * options.micro_batches * chunks > kMostTasks) {
    throw InputError({"schedule", 0, 0}, "stages x micro-batches x chunks is too large; allowed: at most 100000000");
  }
  ScheduleResult made = make_schedule(row, request_of(row, times, options, chunks));
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    throw InputError({"schedule", 0, 0}, reason->reason);
  }
  const Schedule steady = with_recompute(std::move(std::get<Schedule>(made)), options.recompute);
  Drawn drawn{.schedule = from_empty(steady)};
  if (options.output.format == "csv" && options.memory == 0 && !options.output.also_table) { // the orders need no times
    emit(options.output, schedule_text(drawn.schedule, options.text));
    return kDone;
  }
  const auto placed = place(plan_of(row, options.stages, chunks), steady);
  if (const Infeasible* reason = std::get_if<Infeasible>(&placed)) {
    throw InputError({"schedule", 0, 0}, reason->reason);
  }
  const auto& placed_plan = std::get<PlacedPlan>(placed);
  const bool recomputes = !options.recompute.empty() && options.recompute != "none";
  const Platform platform =
      make_star_platform(DeviceType{}, options.stages, BytesPerSecond{std::numeric_limits<double>::infinity()},
                         Seconds{options.hop_latency});
  Router router(platform);
  const PlanCost cost = cost_of_times(times, placed_plan.plan, chunks, recomputes, options.kept);
  const auto replay = [&](const Schedule& schedule, int iterations) {
    drawn.graph = make_task_graph({.cost = cost,
                                   .schedule = schedule,
                                   .router = router,
                                   .barrier = false,
                                   .early_recompute = options.recompute != "lazy",
                                   .fused = [part = fused_part(times, options)](const FusedPair&) { return part; },
                                   .rank_of = placed_plan.rank_of});
    const ReplayRequest request{drawn.graph, platform, iterations};
    drawn.timeline = std::move((schedule.flushes ? replay_analytic : replay_until_steady)({&request, 1}).front());
    Metrics metrics = measure(drawn.graph, drawn.timeline, platform);
    check_memory(options, metrics);
    return metrics;
  };
  if (steady.flushes) {
    drawn.metrics = replay(steady, options.iterations);
  } else {
    const Seconds period = replay(steady, 2 + options.stages).iteration;
    drawn.metrics = replay(drawn.schedule, 1);
    drawn.metrics.iteration = period;
  }
  emit(options.output, {.table = [&] { return picture_of(drawn, options); },
                        .json = [&] { return json_of(drawn, options); },
                        .csv = [&] { return schedule_text(drawn.schedule, options.text); }});
  return kDone;
}

} // namespace

Job command_schedule(Flags& flags) { return make_job<ScheduleCommand>(flags, add_flags, run); }

} // namespace stagecraft
