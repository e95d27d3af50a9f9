// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/run_accuracy.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/base/format/schema.hpp"
#include "sim/base/statistics.hpp"
#include "sim/replay/contention.hpp"
#include "sim/replay/what_if/lockstep.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/report/table.hpp"
#include "sim/timeline/critical_path.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

Timeline replay_once(ReplayFunction engine, const Platform& platform, const TaskGraph& graph, int iterations) {
  const ReplayRequest request{graph, platform, iterations};
  return std::move(engine({&request, 1}).front());
}

Timeline predict(const RunRecord& record, const std::optional<PartTimes>& parts, ReplayFunction engine) {
  const int iterations = record.timeline.iterations;
  if (!parts) {
    return replay_once(engine, record.platform, record.graph, iterations);
  }
  const Platform platform = with_parts(record.platform, record.graph, *parts);
  const TaskGraph graph = with_parts(record.graph, *parts);
  return parts->contention.empty() ? replay_once(engine, platform, graph, iterations)
                                   : replay_contended(engine, platform, graph, iterations, parts->contention);
}

// That prediction, but where equal replicas meet on links they have drifted apart, as `replay` has it.
Timeline predict_drifted(const RunRecord& record, const std::optional<PartTimes>& parts, ReplayFunction engine,
                         Timeline exact) {
  const Platform platform = parts ? with_parts(record.platform, record.graph, *parts) : record.platform;
  const TaskGraph graph = parts ? with_parts(record.graph, *parts) : record.graph;
  const std::optional<TaskGraph> drawn = let_drift(record, graph, platform, exact.end());
  return drawn ? replay_once(engine, platform, *drawn, record.timeline.iterations) : std::move(exact);
}

ErrorSpread spread_of_errors(const std::vector<double>& errors) {
  return errors.empty() ? ErrorSpread{} : ErrorSpread{quantile(errors, 0.5), quantile(errors, 0.9)};
}

std::vector<KindErrors> errors_by_kind(const RunRecord& record, const RunAccuracy& accuracy) {
  const TaskGraph& graph = record.graph;
  std::vector<KindErrors> kinds;
  for (std::size_t kind = 0; kind < kTaskLetters.size(); ++kind) {
    KindErrors errors{.kind = static_cast<TaskKind>(kind)};
    std::vector<double> start, finish, duration;
    for (std::size_t entry = 0; entry < record.timeline.start.size(); ++entry) {
      const Work& work = graph.works[graph.work[entry % graph.tasks()]];
      if (work.kind != errors.kind || !(work.computes() || work.transfers())) {
        continue;
      }
      const Timeline &real = record.timeline, &predicted = accuracy.prediction;
      const double took = real.finish[entry] - real.start[entry];
      start.push_back(std::abs(predicted.start[entry] - real.start[entry]) / accuracy.measured);
      finish.push_back(std::abs(predicted.finish[entry] - real.finish[entry]) / accuracy.measured);
      if (work.seconds.value > 0 && took > 0) {
        duration.push_back(std::abs((predicted.finish[entry] - predicted.start[entry]) / took - 1));
      }
    }
    errors.tasks = static_cast<int>(start.size());
    errors.start = spread_of_errors(start);
    errors.finish = spread_of_errors(finish);
    errors.duration = spread_of_errors(duration);
    if (errors.tasks > 0) {
      kinds.push_back(errors);
    }
  }
  return kinds;
}

// Why a device waits for a task's last input, given the task that the input came from.
WaitCause cause_of(const TaskGraph& graph, TaskId before) {
  const Work& work = graph.works[graph.work[before]];
  if (is_collective(work.kind)) {
    return WaitCause::reduction;
  }
  if (work.transfers()) {
    return WaitCause::transfer;
  }
  return work.computes() ? WaitCause::hand_over : WaitCause::barrier;
}

} // namespace

std::optional<TaskGraph> let_drift(const RunRecord& record, const TaskGraph& graph, const Platform& platform,
                                   double exact_seconds) {
  if (!record.shares_links || !replicas_meet(graph, platform)) {
    return {};
  }
  constexpr std::uint64_t kSeed = 1; // a study's, unless it says another
  std::vector<double> ends;
  for (int draw = 0; draw < kDriftDraws; ++draw) {
    ends.push_back(
        replay_once(replay_simgrid, platform, drifted(graph, kSeed, draw), record.timeline.iterations).end());
  }
  const int draw = median_index(ends);
  return gains(ends[draw], exact_seconds) ? std::optional(drifted(graph, kSeed, draw)) : std::nullopt;
}

std::vector<DeviceTime> device_times(const TaskGraph& graph, const Timeline& timeline) {
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  const std::vector<LastInput> last = last_inputs(graph, timeline);
  std::vector<DeviceTime> times(graph.devices.size());
  for (std::size_t device = 0; device < times.size(); ++device) {
    double free = 0;
    for (int iteration = 0; iteration < timeline.iterations; ++iteration) {
      for (const TaskId task : graph.program_of(device)) {
        const std::size_t entry = static_cast<std::size_t>(iteration) * tasks + task;
        const double input = std::clamp(last[entry].time, free, timeline.start[entry]);
        if (input > free) { // the rest until the start is the hand-over itself
          times[device]
              .waiting[static_cast<std::size_t>(cause_of(graph, static_cast<TaskId>(last[entry].entry % tasks)))] +=
              input - free;
        }
        times[device].waiting[static_cast<std::size_t>(WaitCause::hand_over)] += timeline.start[entry] - input;
        times[device].busy += timeline.finish[entry] - timeline.start[entry];
        free = timeline.finish[entry];
      }
    }
  }
  return times;
}

RunAccuracy accuracy_of(const RunRecord& record) {
  RunAccuracy accuracy;
  accuracy.measured = record.makespan();
  accuracy.retold =
      replay_once(replay_analytic, record.platform, with_durations(record.graph, record.timeline), 1).end();
  const ReplayFunction engine = record.shares_links ? replay_simgrid : replay_analytic;
  std::optional<PartTimes> parts = record.parts;
  Timeline exact = predict(record, parts, engine);
  accuracy.lockstep = exact.end();
  accuracy.prediction = predict_drifted(record, parts, engine, std::move(exact));
  accuracy.predicted = accuracy.prediction.end();
  accuracy.unshared = predict(record, parts, replay_analytic).end();
  if (parts) {
    parts->contention.clear();
    accuracy.constant = predict(record, parts, engine).end();
    parts->slowdowns.clear();
    accuracy.alone = predict(record, parts, engine).end();
  }
  accuracy.unmeasured = predict_drifted(record, {}, engine, predict(record, {}, engine)).end();
  accuracy.kinds = errors_by_kind(record, accuracy);
  accuracy.device_measured = device_times(record.graph, record.timeline);
  accuracy.device_predicted = device_times(record.graph, accuracy.prediction);
  return accuracy;
}

namespace {

Json spread_value(const ErrorSpread& spread) { return {{"median", spread.median}, {"p90", spread.p90}}; }

Json time_value(const DeviceTime& time) {
  Json json = {{"busy", time.busy}};
  for (std::size_t cause = 0; cause < kWaitCauses.size(); ++cause) {
    json[std::string(kWaitCauses[cause])] = time.waiting[cause];
  }
  return json;
}

std::string device_name(const RunRecord& record, std::size_t device) {
  return record.platform.devices[record.graph.devices[device]].name;
}

std::vector<Cell> plain(const std::vector<std::string>& texts) {
  std::vector<Cell> cells;
  for (const std::string& text : texts) {
    cells.push_back({text, Style::plain});
  }
  return cells;
}

Table table_of_kinds(const RunAccuracy& accuracy) {
  Table table{{{"errors"},
               {"tasks", Align::right},
               {"start", Align::right},
               {"90 %", Align::right},
               {"finish", Align::right},
               {"90 %", Align::right},
               {"duration", Align::right},
               {"90 %", Align::right}},
              {}};
  for (const KindErrors& kind : accuracy.kinds) {
    table.rows.push_back(
        plain({std::string(name_of(kind.kind)), std::to_string(kind.tasks), percent(kind.start.median, 2),
               percent(kind.start.p90, 2), percent(kind.finish.median, 2), percent(kind.finish.p90, 2),
               percent(kind.duration.median, 2), percent(kind.duration.p90, 2)}));
  }
  return table;
}

// The measured times of each device, and where the prediction differs.
Table table_of_devices(const RunRecord& record, const RunAccuracy& accuracy) {
  Table table{{{"device"}, {"busy", Align::right}}, {}};
  for (const std::string_view cause : kWaitCauses) {
    table.columns.push_back({cause == "hand_over" ? "hand-over" : "for " + std::string(cause), Align::right});
  }
  const auto cell = [](double measured, double predicted) {
    const double difference = predicted - measured;
    return to_text(Seconds{measured}) + " (" + (difference < 0 ? "-" : "+") + to_text(Seconds{std::abs(difference)}) +
           ")";
  };
  for (std::size_t device = 0; device < accuracy.device_measured.size(); ++device) {
    const DeviceTime &real = accuracy.device_measured[device], &predicted = accuracy.device_predicted[device];
    std::vector<std::string> cells = {device_name(record, device), cell(real.busy, predicted.busy)};
    for (std::size_t cause = 0; cause < kWaitCauses.size(); ++cause) {
      cells.push_back(cell(real.waiting[cause], predicted.waiting[cause]));
    }
    table.rows.push_back(plain(cells));
  }
  return table;
}

std::string pictures(const RunRecord& record, const RunAccuracy& accuracy, bool color, int width) {
  std::vector<std::string> names;
  for (std::size_t device = 0; device < record.graph.devices.size(); ++device) {
    names.push_back(device_name(record, device));
  }
  PictureOptions options{.width = width, .color = color};
  options.until = std::max(accuracy.measured, accuracy.predicted) / record.timeline.iterations;
  return "\nmeasured, the first iteration\n" + ascii_timeline(record.graph, record.timeline, names, options) +
         "\npredicted\n" + ascii_timeline(record.graph, accuracy.prediction, names, options);
}

} // namespace

std::string to_json(const RunRecord& record, const RunAccuracy& accuracy) {
  Json json = {{"schema", kSchema},
               {"model", record.inputs.model},
               {"platform", record.inputs.platform},
               {"strategy", record.inputs.strategy},
               {"schedule", record.inputs.schedule},
               {"backend", record.backend},
               {"iterations", record.timeline.iterations},
               {"measured_seconds", accuracy.measured},
               {"predicted_seconds", accuracy.predicted},
               {"error", accuracy.error()},
               {"retold_seconds", accuracy.retold},
               {"retold_error", accuracy.retold_error()},
               {"unmeasured_seconds", accuracy.unmeasured},
               {"unshared_seconds", accuracy.unshared},
               {"constant_seconds", record.parts ? Json(accuracy.constant) : Json()},
               {"alone_seconds", record.parts ? Json(accuracy.alone) : Json()},
               {"lockstep_seconds", accuracy.lockstep},
               {"kinds", Json::array()},
               {"devices", Json::array()}};
  for (const KindErrors& kind : accuracy.kinds) {
    json["kinds"].push_back({{"kind", name_of(kind.kind)},
                             {"tasks", kind.tasks},
                             {"start", spread_value(kind.start)},
                             {"finish", spread_value(kind.finish)},
                             {"duration", spread_value(kind.duration)}});
  }
  for (std::size_t device = 0; device < accuracy.device_measured.size(); ++device) {
    json["devices"].push_back({{"name", device_name(record, device)},
                               {"measured_seconds", time_value(accuracy.device_measured[device])},
                               {"predicted_seconds", time_value(accuracy.device_predicted[device])}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const RunRecord& record, const RunAccuracy& accuracy, bool color, int width) {
  const RunInputs& inputs = record.inputs;
  std::string text =
      inputs.model + " on " + inputs.platform + ", " + inputs.strategy + ", " + inputs.schedule + ", " +
      std::to_string(inputs.micro_batches) + " micro-batches, " + std::to_string(record.timeline.iterations) +
      " iterations by backend '" + record.backend + "', times x " + to_text(record.time_scale, 3) + ", bandwidths x " +
      to_text(record.bandwidth_scale, 6) + "\nmeasured " + to_text(Seconds{accuracy.measured}) + "; predicted from " +
      (record.parts ? "its parts " : "the model ") + to_text(Seconds{accuracy.predicted}) + ", " +
      percent(accuracy.error(), 2) + " off; its own durations retold " + to_text(Seconds{accuracy.retold}) + ", " +
      percent(accuracy.retold_error(), 2) + " off\n\n";
  text += to_text(table_of_kinds(accuracy), color);
  text += "starts and finishes in parts of the whole run, durations in parts of their own\n\n";
  text += to_text(table_of_devices(record, accuracy), color);
  text += "time of the whole run, and by how much the prediction says more or less\n";
  return text + (width > 0 ? pictures(record, accuracy, color, width) : "");
}

} // namespace stagecraft
