// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/real_run.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/system/command.hpp"
#include "sim/base/system/file.hpp"
#include "sim/plan_format/plan_file.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/timeline/metrics.hpp"
#include "sim/workload/layer/kernel_list.hpp"

#include "calibrate/pipeline/work/scale.hpp"
#include "calibrate/pipeline/work/stage_kernels.hpp"

namespace stagecraft {

void add_pipeline_flags(Flags& flags, RealRunOptions& options) {
  constexpr int kMostIterations = 1000;
  flags.add("--iterations", &options.iterations, "iterations to run in a row",
            {.check = whole_number(1, kMostIterations), .shows_default = true});
  flags.add("--copies", &options.copies, "how data gets from one part of a GPU to another",
            {.check = one_of({"device", "host", "shaped"}), .shows_default = true});
}

namespace {

constexpr double kDisturbed = 0.03; // of a device's time: a run with more was disturbed

// The factor given, which must be positive, or `otherwise` where none or "auto" is.
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

// How many times as long an emulated run takes. Normally an iteration takes a second. Where a channel's transfers fill
// more than a tenth of the iteration and are so short that a few packets would decide, it takes up to five seconds.
double slowness(const TaskGraph& graph, double makespan) {
  constexpr double kIteration = 1, kMost = 5, kTransfer = 20e-3; // s
  constexpr double kShare = 0.1;
  const Channels channels = channels_of(graph);
  double shortest = kTransfer * makespan / kIteration;
  for (const Work& work : graph.works) {
    const std::int32_t channel = work.transfers() ? channels.of_work[&work - graph.works.data()] : -1;
    if (channel >= 0 && work.kind == TaskKind::transfer &&
        work.seconds.value * channels.transfers[channel] > kShare * makespan) {
      shortest = std::min(shortest, work.seconds.value);
    }
  }
  return std::min(kTransfer / shortest, kMost / makespan);
}

// The run's scale: times by slowness(), and bandwidths so low that this machine can carry what all devices send at
// once.
pipeline::Scale scale_of(const RealRunOptions& options, const Prepared& prepared, const pipeline::BackendRow& backend) {
  constexpr double kFastest = 60e6, kTogether = 250e6; // B/s
  const auto given = [](const std::string& scale) { return !scale.empty() && scale != "auto"; };
  if (!backend.emulates && (given(options.time_scale) || given(options.bandwidth_scale))) {
    throw InputError({"execute", 0, 0},
                     "times of backend '" + std::string(backend.name) +
                         "' are those of this machine; allowed: no --time-scale or --bandwidth-scale");
  }
  pipeline::Scale scale;
  const double makespan = prepared.run.metrics.makespan.value;
  scale.time = factor_of(options.time_scale, "--time-scale",
                         backend.emulates && makespan > 0 ? slowness(*prepared.graph, makespan) : 1);
  double fastest = 0, together = 0;
  const Channels channels = channels_of(*prepared.graph);
  for (const std::int32_t work : channels.work_of) {
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

RunInputs inputs_of(const Study& study, const Prepared& prepared) {
  return {.model = study.model->name,
          .platform = study.platform.name,
          .strategy = prepared.run.strategy,
          .schedule = prepared.run.schedule,
          .global_batch = study.training.global_batch,
          .micro_batches = prepared.run.micro_batches,
          .plan = plan_to_yaml(prepared.plan, *study.model, study.platform),
          .orders = to_csv(prepared.schedule)};
}

// The kernels that a computing backend runs; none for a backend that emulates.
std::vector<std::vector<cpu::KernelRun>> kernels_for(const Study& study, const Prepared& prepared,
                                                     const TaskGraph& graph, const pipeline::BackendRow& row) {
  if (row.emulates) {
    return {};
  }
  if (row.holds_cores && study.training.precision != Precision::fp32) {
    throw InputError({"training.precision", 0, 0}, "this machine's cores compute in fp32; allowed: fp32");
  }
  require_kernels(*study.model, study.model->name);
  const double samples = static_cast<double>(study.training.global_batch) / prepared.run.micro_batches;
  try {
    return pipeline::kernels_of_works(graph, prepared.plan, *study.model, study.training, samples,
                                      study.training.precision);
  } catch (const std::invalid_argument& reason) {
    throw InputError({"plan", 0, 0}, reason.what());
  }
}

bool sooner(const pipeline::Execution& one, const pipeline::Execution& other) {
  return one.timeline.end() < other.timeline.end();
}

RunRecord record_for(const RealRunOptions& options, const pipeline::BackendRow& row, const Study& study,
                     const Prepared& prepared) {
  const pipeline::Scale scale = scale_of(options, prepared, row);
  RunRecord record;
  record.inputs = inputs_of(study, prepared);
  record.backend = row.name;
  record.shares_links = row.shares_links;
  record.time_scale = scale.time;
  record.bandwidth_scale = scale.bandwidth;
  record.platform = pipeline::rescaled(study.platform, scale);
  record.graph = chain_transfers(pipeline::rescaled(*prepared.graph, scale));
  if (const std::string reason = pipeline::why_not_executable(record.graph, options.iterations); !reason.empty()) {
    throw InputError({"execute", 0, 0}, reason);
  }
  return record;
}

} // namespace

RealRun::RealRun(const RealRunOptions& options, const pipeline::BackendRow& row, const Study& study,
                 const Prepared& prepared)
    : options_(options), row_(row), record_(record_for(options, row, study, prepared)),
      channels_(channels_of(record_.graph)), kernels_(kernels_for(study, prepared, record_.graph, row)),
      speeds_(pipeline::speeds_of(record_.graph, study.platform)), setting_{record_.graph, record_.platform, channels_,
                                                                            kernels_, speeds_},
      backend_(row.runs_elsewhere() ? nullptr : row.make(setting_)) {}

RunRecord RealRun::record(bool quiet) {
  if (row_.runs_elsewhere()) {
    record_elsewhere();
  } else if (row_.holds_cores) {
    record_alternately(quiet);
  } else {
    record_once();
  }
  return record_;
}

pipeline::Execution RealRun::execute() {
  return pipeline::execute(setting_, *backend_, {options_.iterations, true, row_.holds_cores});
}

// Repeats the run while something else has the processor, which late sleepers show. It waits before it repeats, as the
// disturbance may pass.
void RealRun::record_once() {
  constexpr int kMostPause = 3000; // ms
  record_.parts = row_.measure(setting_, *backend_, true);
  double least = 0;
  for (int attempt = 1; attempt <= options_.attempts; ++attempt) {
    pipeline::Execution execution = execute();
    const double late = pipeline::latest_sleeper(record_.graph, execution.timeline).value;
    if (attempt == 1 || late < least) {
      least = late;
      note_conditions(execution);
      record_.conditions.emplace_back("latest_sleeper_seconds", to_text(late, 6));
      record_.timeline = std::move(execution.timeline);
    }
    if (!record_.disturbed()) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(100 << std::min(attempt, 5), kMostPause)));
  }
  remark("something else had the processor for " + to_text(Seconds{least}) + "; see --attempts\n");
}

// A shared machine's speed changes by a tenth within a second, so runs and measurements of the parts alternate, and the
// median of each counts. Disturbed runs do not count unless all were disturbed; whether a run was disturbed does not
// depend on how long it took.
void RealRun::record_alternately(bool quiet) {
  std::vector<PartTimes> parts = {row_.measure(setting_, *backend_, true)};
  std::vector<pipeline::Execution> clean, disturbed;
  for (int run = 0; run < options_.runs; ++run) {
    pipeline::Execution execution = execute();
    (backend_->disturbance() > kDisturbed ? disturbed : clean).push_back(std::move(execution));
    parts.push_back(row_.measure(setting_, *backend_, true));
  }
  std::vector<pipeline::Execution>& counted = clean.empty() ? disturbed : clean;
  std::sort(counted.begin(), counted.end(), sooner);
  pipeline::Execution& middle = counted[(counted.size() - 1) / 2];
  const double spread = counted[counted.size() * 3 / 4].timeline.end() - counted[counted.size() / 4].timeline.end();
  note_conditions(middle);
  record_.conditions.emplace_back("runs", std::to_string(options_.runs));
  record_.conditions.emplace_back("disturbed_runs", std::to_string(disturbed.size()));
  record_.conditions.emplace_back("spread_of_runs", percent(spread / middle.timeline.end(), 1));
  record_.timeline = std::move(middle.timeline);
  record_.parts = median(parts);
  if (!disturbed.empty() && !quiet) {
    remark("something else took more than " + percent(kDisturbed, 0) + " of a core's time in " +
           std::to_string(disturbed.size()) + " of " + std::to_string(options_.runs) + " runs\n");
  }
}

gpu::Pipeline RealRun::pipeline() const {
  const auto route =
      std::find(gpu::kCopyRoutes.begin(), gpu::kCopyRoutes.end(), options_.copies) - gpu::kCopyRoutes.begin();
  const RunInputs& inputs = record_.inputs;
  return pipeline::gpu_pipeline(setting_, options_.iterations, static_cast<gpu::CopyRoute>(route),
                                inputs.model + ", " + inputs.platform + ", " + inputs.strategy + ", " +
                                    inputs.schedule);
}

// Takes the times from calibrate_gpu on this machine, or from a file that it wrote for the same pipeline on another.
void RealRun::record_elsewhere() {
  const gpu::Pipeline pipeline = this->pipeline();
  std::string file = options_.carried_out, text;
  if (file.empty()) {
    constexpr double kLongest = 600; // s
    file = "calibrate_gpu";
    CommandAnswer answer = run_command(
        {{gpu_program(options_.gpu_binary), "--pipeline", "-", "--runs", std::to_string(options_.runs)}, "", kLongest},
        gpu::to_text(pipeline));
    if (!answer.why_not.empty()) {
      throw pipeline::Unavailable(answer.why_not);
    }
    text = std::move(answer.output);
  } else {
    text = read_file(file);
  }
  gpu::CarriedOut carried;
  try {
    carried = gpu::parse_times(text, file);
  } catch (const std::invalid_argument& reason) {
    throw InputError({"--carried-out", 0, 0}, reason.what());
  }
  if (!carried.failure.empty()) {
    throw pipeline::ExecutionFailure(carried.failure);
  }
  if (const std::string reason = pipeline::why_not_its_times(pipeline, carried); !reason.empty()) {
    throw InputError({file, 0, 0}, reason);
  }
  record_.timeline = pipeline::timeline_of(carried, options_.iterations);
  record_.parts = pipeline::part_times_of(carried, record_.graph);
  record_.conditions = carried.conditions;
  record_.conditions.emplace_back("copies", options_.copies);
  record_.conditions.emplace_back("software", "stagecraft " + std::string(program_version()));
}

void RealRun::note_conditions(const pipeline::Execution& execution) {
  utsname system{};
  uname(&system);
  double load = 0;
  getloadavg(&load, 1);
  record_.conditions = {{"scheduling", execution.real_time ? "fifo" : "normal"},
                        {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
                        {"cores", std::to_string(std::thread::hardware_concurrency())},
                        {"load", to_text(load, 2)},
                        {"software", "stagecraft " + std::string(program_version())}};
  for (const auto& condition : backend_->conditions()) {
    record_.conditions.push_back(condition);
  }
}

Evaluation RealRun::evaluate() {
  std::vector<pipeline::Execution> runs;
  std::vector<double> seconds;
  for (int run = 0; run < (row_.holds_cores ? options_.runs : 1); ++run) {
    runs.push_back(execute());
    seconds.push_back(runs.back().timeline.end());
    std::this_thread::sleep_for(std::chrono::duration<double>(row_.holds_cores ? seconds.back() : 0));
  }
  std::sort(runs.begin(), runs.end(), sooner);
  Timeline& middle = runs[(runs.size() - 1) / 2].timeline;
  middle.window = std::max(1, middle.iterations - 1); // the first iteration is not yet the steady state
  const Metrics metrics = measure(record_.graph, middle, record_.platform);
  const double model = 1 / record_.time_scale;
  Evaluation measured{.iteration = model * metrics.iteration, .devices = record_.graph.devices};
  for (std::size_t device = 0; device < measured.devices.size(); ++device) {
    measured.busy.push_back(model * metrics.busy[device]);
    measured.tail.push_back(model * metrics.tail[device]);
  }
  const double spread = relative_spread(quantile(seconds, 0.25), quantile(seconds, 0.5), quantile(seconds, 0.75));
  measured.noise = spread / std::sqrt(static_cast<double>(seconds.size()));
  return measured;
}

} // namespace stagecraft
