// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/predict_truth.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "sim/base/process/worker_pool.hpp"
#include "sim/study/compare/compare.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/study/measure/expected_range.hpp"
#include "sim/timeline/memory.hpp"
#include "sim/validate/truth/pass_spans.hpp"
#include "sim/workload/attention_kernels.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

// What a process holds beside tensors unless a study says so (AIConfigurator's data sheets, Apache-2.0, NCCL 2.27.3:
// context and all else, and buffers of a communicator of four or eight devices), and the part of a board's nominal
// memory that programs see (PyTorch names 0.978 to 0.992 of it where memory runs out).
constexpr MemoryReserve kBesideTensors{.context = Bytes{551e6}, .communicator = Bytes{392.0 * 1024 * 1024}};
constexpr double kSeenByPrograms = 0.99;

// Of each device in use, where the study says nothing of it: measured peaks are of tensors.
std::vector<Bytes> beside_tensors(const TaskGraph& graph, bool is_given) {
  std::vector<Bytes> beside(graph.devices_in_use().size());
  for (std::size_t i = 0; i < beside.size() && !is_given; ++i) {
    beside[i] = graph.held(graph.simulated(i), Bytes{0});
  }
  return beside;
}

// The most that any device of each stage holds.
std::vector<double> memory_of_stages(const Run& run, const std::vector<Bytes>& beside) {
  std::vector<double> of_stages(run.stages.size(), 0.0);
  for (std::size_t s = 0; s < run.stages.size(); ++s) {
    for (std::size_t d = 0; d < run.metrics.peak_memory.size(); ++d) {
      const auto& devices = run.stages[s].devices;
      if (std::find(devices.begin(), devices.end(), run.devices[d]) != devices.end()) {
        of_stages[s] = std::max(of_stages[s], (run.metrics.peak_memory[d] - beside[d]).value);
      }
    }
  }
  return of_stages;
}

double longest(const std::vector<double>& seconds) {
  return seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end());
}

// Of stages in the order of these times the one in the middle, of two the longer, as Zero Bubble's authors take the
// passes of all ranks, each of which has one stage (sail-sg/zero-bubble-pipeline-parallelism at ed85b11c,
// zb_schedules.py: update_schedule).
double middle(std::vector<double> seconds) {
  if (seconds.empty()) {
    return 0;
  }
  const auto at = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), at, seconds.end());
  return *at;
}

double longest_update(const TaskGraph& graph) {
  double seconds = 0;
  for (const Work& work : graph.works) {
    seconds = work.kind == TaskKind::optimizer ? std::max(seconds, work.seconds.value) : seconds;
  }
  return seconds;
}

double longest_transfer(const TaskGraph& graph) {
  double seconds = 0;
  for (const Work& work : graph.works) {
    const bool between_stages = work.kind == TaskKind::transfer && work.stage != work.to_stage;
    seconds = between_stages ? std::max(seconds, work.seconds.value) : seconds;
  }
  return seconds;
}

// By how many bytes a device holds more than programs see of one of its type, at most; below 0, each has that much
// left.
double most_lacking(const TaskGraph& graph, const Run& run, const Platform& platform,
                    const std::vector<DeviceType>& types) {
  double most = -std::numeric_limits<double>::max();
  const std::span<const DeviceId> devices = graph.devices_in_use();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto type = static_cast<std::size_t>(platform.devices[devices[i]].type);
    most = std::max(most, (run.metrics.peak_memory[i] - types[type].memory * kSeenByPrograms).value);
  }
  return most;
}

PredictedRun figures_of(const Prepared& prepared, const Study& study, const std::vector<Bytes>& beside) {
  const Run& run = prepared.run;
  const double batch = study.training.global_batch;
  PredictedRun figures{.iteration = run.metrics.iteration.value,
                       .samples_per_second = run.samples_per_second,
                       .tokens_per_second = run.tokens_per_second,
                       .model_flops = model_flops(*study.model).value * batch,
                       .mfu = run.mfu,
                       .hfu = run.hfu,
                       .devices = static_cast<double>(study.platform.devices.size()),
                       .stage_memory = memory_of_stages(run, beside)};
  if (prepared.graph != nullptr) {
    const PassSpans spans = pass_spans(*prepared.graph, prepared.timeline, static_cast<int>(run.stages.size()));
    figures.forward = longest(spans.forward);
    figures.backward = longest(spans.backward);
    figures.weight = longest(spans.weight);
    figures.stage_forward = middle(spans.forward);
    figures.stage_backward = middle(spans.backward);
    figures.stage_weight = middle(spans.weight);
    figures.busy_share = spans.longest > 0 ? spans.busy / spans.longest : 0;
    figures.update = longest_update(*prepared.graph);
    figures.transfer = longest_transfer(*prepared.graph) + study.training.hand_over.value;
    for (std::size_t device = 0; device < prepared.graph->devices.size(); ++device) {
      const MemoryUse use = peak_memory(*prepared.graph, prepared.timeline, device);
      figures.kept = std::max(figures.kept, use.peak.stashed.value);
      figures.fixed = std::max(figures.fixed, (use.fixed.weights + use.fixed.gradients + use.fixed.optimizer).value);
    }
  }
  figures.attention = has_attention(*study.model);
  figures.measured_device = has_measured_devices(study, run);
  const Energy& energy = run.metrics.energy;
  figures.watts = (energy.devices_idle + energy.devices_waiting + energy.devices_dynamic).value /
                  run.metrics.iteration.value / figures.devices;
  if (!run.cost_basis.empty()) {
    figures.fits_share = whole_of(run.cost_basis).measured();
  }
  return figures;
}

std::string to_text(const TruthPrediction& prediction) {
  if (const auto* reason = std::get_if<Infeasible>(&prediction)) {
    return Json{{"why_not", reason->reason}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  const auto& run = std::get<PredictedRun>(prediction);
  return Json{{"iteration", run.iteration},
              {"samples", run.samples_per_second},
              {"tokens", run.tokens_per_second},
              {"flops", run.model_flops},
              {"mfu", run.mfu},
              {"hfu", run.hfu},
              {"devices", run.devices},
              {"memory", run.stage_memory},
              {"forward", run.forward},
              {"backward", run.backward},
              {"weight", run.weight},
              {"stage_forward", run.stage_forward},
              {"stage_backward", run.stage_backward},
              {"stage_weight", run.stage_weight},
              {"update", run.update},
              {"watts", run.watts},
              {"kept", run.kept},
              {"fixed", run.fixed},
              {"lacking", run.lacking},
              {"fits", run.fits_share},
              {"busy", run.busy_share},
              {"transfer", run.transfer},
              {"attention", run.attention},
              {"measured_device", run.measured_device}}
      .dump();
}

TruthPrediction from_text(const std::string& text) {
  const Json json = Json::parse(text);
  if (json.contains("why_not")) {
    return Infeasible{json["why_not"].get<std::string>()};
  }
  return PredictedRun{.iteration = json["iteration"],
                      .samples_per_second = json["samples"],
                      .tokens_per_second = json["tokens"],
                      .model_flops = json["flops"],
                      .mfu = json["mfu"],
                      .hfu = json["hfu"],
                      .devices = json["devices"],
                      .stage_memory = json["memory"].get<std::vector<double>>(),
                      .forward = json["forward"],
                      .backward = json["backward"],
                      .weight = json["weight"],
                      .stage_forward = json["stage_forward"],
                      .stage_backward = json["stage_backward"],
                      .stage_weight = json["stage_weight"],
                      .kept = json["kept"],
                      .fixed = json["fixed"],
                      .update = json["update"],
                      .watts = json["watts"],
                      .lacking = json["lacking"],
                      .fits_share = json["fits"],
                      .busy_share = json["busy"],
                      .transfer = json["transfer"],
                      .attention = json["attention"],
                      .measured_device = json["measured_device"]};
}

} // namespace

TruthPrediction predict_study(const std::string& study_text, const ValidateOptions& options, InputFiles& files) {
  try {
    Study study = load_study(yaml::parse(study_text, "the row's study"),
                             {.study = {}, .shipped = options.shipped, .files = &files}, options.settings);
    const std::vector<DeviceType> types = study.platform.types;
    for (DeviceType& type : study.platform.types) { // it ran: whether it should have fitted is a figure of its own
      type.memory = Bytes{std::numeric_limits<double>::infinity()};
    }
    MemoryReserve& reserve = study.training.memory;
    const bool is_given = reserve.context.value > 0 || reserve.communicator.value > 0;
    if (!is_given) {
      reserve.context = kBesideTensors.context;
      reserve.communicator = kBesideTensors.communicator;
    }
    ScheduleCounts counts;
    StudyMemo memo(study, counts);
    const Prepared prepared = run_scenario(memo, scenarios_of(study).front(), true);
    if (!prepared.run.feasible) {
      return Infeasible{prepared.run.why_not};
    }
    PredictedRun figures = figures_of(prepared, study, beside_tensors(*prepared.graph, is_given));
    figures.lacking = most_lacking(*prepared.graph, prepared.run, study.platform, types);
    return figures;
  } catch (const InputError& error) {
    return Infeasible{error.what()};
  }
}

std::vector<TruthPrediction> predict_studies(const std::vector<std::string>& studies, const ValidateOptions& options) {
  InputFiles files;
  files.keep_types();
  std::vector<TruthPrediction> predictions(studies.size(), Infeasible{"not predicted"});
  std::size_t done = 0;
  const auto take = [&](std::size_t at, TruthPrediction prediction) {
    predictions[at] = std::move(prediction);
    ++done;
    if (options.progress) {
      options.progress(done, studies.size());
    }
  };
  const auto predict = [&](std::size_t at) { return predict_study(studies[at], options, files); };
  share_out(options.workers, {.count = studies.size(),
                              .work = [&](std::size_t at) { return to_text(predict(at)); },
                              .take = [&](std::size_t at, const std::string& text) { take(at, from_text(text)); },
                              .here = [&](std::size_t at) { take(at, predict(at)); }});
  return predictions;
}

} // namespace stagecraft
