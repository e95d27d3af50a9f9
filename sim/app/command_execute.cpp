// stagecraft execute: a plan under a schedule carried out for real, and its prediction beside it.
// SPDX-License-Identifier: Apache-2.0
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "sim/app/options.hpp"
#include "sim/base/file.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/schedule/schedule_file.hpp"
#include "sim/study/plan_file.hpp"
#include "sim/study/plan_formats.hpp"
#include "sim/study/run_accuracy.hpp"
#include "sim/study/simulator.hpp"

#include "calibrate/pipeline/executor.hpp"
#include "calibrate/pipeline/scale.hpp"
#include "calibrate/pipeline/stage_kernels.hpp"

namespace stagecraft {
namespace {

constexpr bool kRealTime = true; // is asked for

// A positive factor, or what the run chooses itself.
double factor_of(const std::string& text, const char* flag, double otherwise) {
  if (text.empty() || text == "auto") {
    return otherwise;
  }
  const Where where{std::string(flag) + " " + text, 0, 0};
  const double factor = parse_number(text, where);
  if (!(factor > 0)) {
    throw InputError(where, "allowed: auto, or a number more than 0");
  }
  return factor;
}

// What --plan or --strategy and --schedule say, ready to run; or why it cannot.
struct Asked {
  Study study;
  Plan plan;
  std::optional<ScheduleFile> orders;
  std::vector<Prepared> prepared;

  const Run& run() const { return prepared.front().run; }
};

Asked ask(const Options& options, const pipeline::BackendRow& row) {
  if (options.strategy.empty() == options.plan.empty()) {
    throw InputError({"command line", 0, 0}, "give either --strategy or --plan");
  }
  Asked asked{study_from(options), {}, {}, {}};
  asked.study.training.blocking_sends |= row.holds_cores;
  const Study& study = asked.study;
  Scenario scenario;
  if (options.schedule.ends_with(".csv")) {
    asked.orders = read_schedule(read_file(options.schedule), options.schedule);
    if (const auto defects = schedule_defects(*asked.orders); !defects.empty()) {
      throw InputError({options.schedule, 0, 0}, "the schedule cannot run: " + join(defects, "; "));
    }
    scenario.orders = &asked.orders->schedule;
  } else {
    scenario.schedule = &find_by_name(schedules(), options.schedule, "schedule", {"--schedule", 0, 0});
  }
  if (options.strategy.empty()) {
    asked.plan = load_plan(options.plan, options.plan_format, *study.model, study.platform);
    scenario.plan = &asked.plan;
  } else {
    scenario.strategy = &find_by_name(strategies(), options.strategy, "strategy", {"--strategy", 0, 0});
  }
  Simulator simulator(study);
  scenario.micro_batches = simulator.choose_micro_batches(scenario);
  asked.prepared = simulator.prepare({scenario});
  simulator.replay(asked.prepared);
  return asked;
}

// By how much an emulated run takes longer: to a second an iteration, and up to five where transfers that fill a tenth
// of it or more are so short that a few packets would decide.
double slowness(const TaskGraph& graph, double makespan) {
  constexpr double kIteration = 1, kMost = 5, kTransfer = 20e-3; // s
  constexpr double kShare = 0.1;
  const Ways ways = ways_of(graph);
  double shortest = kTransfer * makespan / kIteration;
  for (const Work& work : graph.works) {
    const std::int32_t way = work.transfers() ? ways.of_work[&work - graph.works.data()] : -1;
    if (way >= 0 && work.kind == TaskKind::transfer && work.seconds.value * ways.transfers[way] > kShare * makespan) {
      shortest = std::min(shortest, work.seconds.value);
    }
  }
  return std::min(kTransfer / shortest, kMost / makespan);
}

// Times as above; and so narrow that this machine carries what all devices can send at once.
pipeline::Scale scale_of(const Options& options, const Asked& asked, const pipeline::BackendRow& backend) {
  constexpr double kFastest = 60e6, kTogether = 250e6; // B/s
  const auto given = [](const std::string& scale) { return !scale.empty() && scale != "auto"; };
  if (!backend.emulates && (given(options.time_scale) || given(options.bandwidth_scale))) {
    throw InputError({"execute", 0, 0},
                     "times of backend '" + std::string(backend.name) +
                         "' are those of this machine; allowed: no --time-scale or --bandwidth-scale");
  }
  const Prepared& prepared = asked.prepared.front();
  pipeline::Scale scale;
  const double makespan = prepared.run.metrics.makespan.value;
  scale.time = factor_of(options.time_scale, "--time-scale",
                         backend.emulates && makespan > 0 ? slowness(*prepared.graph, makespan) : 1);
  double fastest = 0, together = 0;
  const Ways ways = ways_of(*prepared.graph);
  for (const std::int32_t work : ways.work_of) {
    const double bandwidth = prepared.graph->legs[prepared.graph->works[work].leg].bandwidth.value;
    if (!std::isinf(bandwidth)) {
      fastest = std::max(fastest, bandwidth);
      together += bandwidth;
    }
  }
  const bool shapes = backend.shares_links && fastest > 0;
  scale.bandwidth = factor_of(options.bandwidth_scale, "--bandwidth-scale",
                              shapes ? std::min(kFastest / fastest, kTogether / together) : 1);
  return scale;
}

std::vector<std::pair<std::string, std::string>> conditions_of(bool real_time, const pipeline::Backend& backend) {
  utsname system{};
  uname(&system);
  double load = 0;
  getloadavg(&load, 1);
  std::vector<std::pair<std::string, std::string>> conditions = {
      {"scheduling", real_time ? "fifo" : "normal"},
      {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
      {"cores", std::to_string(std::thread::hardware_concurrency())},
      {"load", to_text(load, 2)},
      {"software", "stagecraft " STAGECRAFT_VERSION}};
  for (const auto& condition : backend.conditions()) {
    conditions.push_back(condition);
  }
  return conditions;
}

RunInputs inputs_of(const Asked& asked) {
  const Prepared& prepared = asked.prepared.front();
  const Study& study = asked.study;
  return {.model = study.model->name,
          .platform = study.platform.name,
          .strategy = prepared.run.strategy,
          .schedule = prepared.run.schedule,
          .global_batch = study.training.global_batch,
          .micro_batches = prepared.run.micro_batches,
          .plan = plan_to_yaml(prepared.plan, *study.model, study.platform),
          .orders = to_csv(prepared.schedule)};
}

using Kernels = std::vector<std::vector<cpu::KernelRun>>;

// What a backend that computes is to run; nothing for one that emulates.
Kernels kernels_for(const Asked& asked, const TaskGraph& graph, const pipeline::BackendRow& row) {
  if (row.emulates) {
    return {};
  }
  const Study& study = asked.study;
  if (study.training.precision != Precision::fp32) {
    throw InputError({"training.precision", 0, 0}, "this machine's cores compute in fp32; allowed: fp32");
  }
  const bool known = std::any_of(study.model->operators.begin(), study.model->operators.end(),
                                 [](const Operator& op) { return !op.forward.calls.empty(); });
  if (!known) {
    throw InputError({study.model->name, 0, 0}, "says nothing of shapes: its costs are given by numbers");
  }
  const Prepared& prepared = asked.prepared.front();
  const double samples = static_cast<double>(study.training.global_batch) / prepared.run.micro_batches;
  try {
    return pipeline::kernels_of_works(graph, prepared.plan, *study.model, study.training, samples);
  } catch (const std::invalid_argument& reason) {
    throw InputError({"plan", 0, 0}, reason.what());
  }
}

// Of all works one after the other, each at its device's pace.
double pace(const PartTimes& parts, const TaskGraph& graph) {
  double seconds = 0;
  for (std::size_t work = 0; work < parts.works.size(); ++work) {
    const std::int32_t device = graph.works[work].device;
    seconds += graph.works[work].computes() ? parts.works[work].value * parts.slowdowns.at(device) : 0;
  }
  return seconds;
}

// Runs until no computation that sleeps wakes late, as something else had the processor then; the least disturbed run
// is kept.
void run_least_disturbed(RunRecord& record, const Options& options, const pipeline::BackendRow& row,
                         const pipeline::Setting& setting, pipeline::Backend& backend) {
  double least = 0;
  for (int attempt = 1; attempt <= options.attempts; ++attempt) {
    pipeline::Execution execution =
        pipeline::execute(setting, backend, {options.iterations, kRealTime, row.holds_cores});
    const double late = row.emulates ? pipeline::latest_sleeper(record.graph, execution.timeline).value : 0;
    if (attempt == 1 || late < least) {
      least = late;
      record.timeline = std::move(execution.timeline);
      record.conditions = conditions_of(execution.real_time, backend);
      if (row.emulates) {
        record.conditions.emplace_back("latest_sleeper_seconds", to_text(late, 6));
      }
    }
    if (!row.emulates || !record.disturbed()) {
      return;
    }
    constexpr int kMostPause = 3000; // ms: what disturbs may pass
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(100 << std::min(attempt, 5), kMostPause)));
  }
  remark("something else had the processor for " + to_text(Seconds{least}) + "; see --attempts\n");
}

RunRecord carry_out(const Options& options, const Asked& asked, const pipeline::BackendRow& row) {
  const pipeline::Scale scale = scale_of(options, asked, row);
  RunRecord record;
  record.inputs = inputs_of(asked);
  record.backend = row.name;
  record.shares_links = row.shares_links;
  record.time_scale = scale.time;
  record.bandwidth_scale = scale.bandwidth;
  record.platform = pipeline::rescaled(asked.study.platform, scale);
  record.graph = order_transfers(pipeline::rescaled(*asked.prepared.front().graph, scale));
  if (const std::string reason = pipeline::why_not_executable(record.graph, options.iterations); !reason.empty()) {
    throw InputError({"execute", 0, 0}, reason);
  }
  const Ways ways = ways_of(record.graph);
  const Kernels kernels = kernels_for(asked, record.graph, row);
  const std::vector<double> speeds = pipeline::speeds_of(record.graph, asked.study.platform);
  const pipeline::Setting setting{record.graph, record.platform, ways, kernels, speeds};
  const std::unique_ptr<pipeline::Backend> backend = row.make(setting);
  record.parts = row.measure(setting, *backend, kRealTime);
  run_least_disturbed(record, options, row, setting, *backend);
  if (row.holds_cores) { // whose speed may change meanwhile
    const PartTimes after = row.measure(setting, *backend, kRealTime);
    record.conditions.emplace_back("speed_changed",
                                   percent(pace(*record.parts, record.graph) / pace(after, record.graph) - 1, 1));
    record.parts = mean(*record.parts, after);
  }
  return record;
}

} // namespace

int command_execute(const Options& options) {
  const pipeline::BackendRow& row = find_by_name(pipeline::backends(), options.backend, "backend", {"--backend", 0, 0});
  const Asked asked = ask(options, row);
  if (!asked.run().feasible) {
    remark("infeasible: " + asked.run().why_not + "\n");
    return kNothingFeasible;
  }
  RunRecord record;
  try {
    record = carry_out(options, asked, row);
  } catch (const pipeline::Unavailable& reason) {
    remark("backend '" + std::string(row.name) + "' cannot run here: " + reason.what() + "\n");
    return kNoHardware;
  } catch (const pipeline::ExecutionFailure& failure) {
    remark("the run ended early: " + std::string(failure.what()) + "\n");
    return kNothingFeasible;
  }
  const RunAccuracy accuracy = accuracy_of(record);
  if (!options.trace.empty()) {
    write_file(options.trace, chrome_trace(record.graph, record.timeline, record.platform));
  }
  const int width = options.quiet ? 0 : terminal_width() - 28;
  emit(options, {.table = [&] { return to_text(record, accuracy, use_color(), width); },
                 .json = [&] { return to_json(record); },
                 .csv = {}});
  return kDone;
}

} // namespace stagecraft
