// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/rows/truth_metrics.hpp"

#include <algorithm>
#include <set>

#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

constexpr double kGiga = 1e9, kGibi = 1073741824.0, kMebi = 1048576.0, kTera = 1e12, kPercent = 0.01;
constexpr std::array<TruthUnit, 4> kBytes = {TruthUnit{"GiB", kGibi}, TruthUnit{"GB", kGiga}, TruthUnit{"MiB", kMebi},
                                             TruthUnit{"MB", 1e6}};

constexpr std::array<TruthUnit, 4> kTimes = {TruthUnit{"s", 1}, TruthUnit{"ms", 1e-3}};

double iteration(const PredictedRun& run) { return run.iteration; }
double samples(const PredictedRun& run) { return run.samples_per_second; }
double tokens(const PredictedRun& run) { return run.tokens_per_second; }
double watts(const PredictedRun& run) { return run.watts; }
double tokens_per_device(const PredictedRun& run) { return run.tokens_per_second / run.devices; }
double samples_per_device(const PredictedRun& run) { return run.samples_per_second / run.devices; }
double flops_per_device(const PredictedRun& run) { return run.model_flops / run.iteration / run.devices; }
double peak_memory(const PredictedRun& run) { return run.peak_memory(); }
double kept(const PredictedRun& run) { return run.kept; }
double fixed(const PredictedRun& run) { return run.fixed; }
double mfu(const PredictedRun& run) { return run.mfu; }
double hfu(const PredictedRun& run) { return run.hfu; }
double forward(const PredictedRun& run) { return run.forward; }
double backward(const PredictedRun& run) { return run.backward; }
double stage_forward(const PredictedRun& run) { return run.stage_forward; }
double stage_backward(const PredictedRun& run) { return run.stage_backward; }
double stage_weight(const PredictedRun& run) { return run.stage_weight; }

double busy_share(const PredictedRun& run) { return run.busy_share; }
double transfer(const PredictedRun& run) { return run.transfer; }
double training(const PredictedRun& run) { return run.training; }
double lacks_memory(const PredictedRun& run) { return run.lacking > 0 ? 1 : 0; }

// "Tensor-level parallel" of Korthikanti et al. 2023, figure 7: each tensor group keeps whole what it does not share,
// and nothing runs again.
TruthRow tensor_parallel_baseline(TruthRow row) {
  row.degrees.sequence = false;
  row.recompute = "none";
  return row;
}

// A bubble can be as small as one likes, and then is off by any share: what is compared is the rest of the time.
double all_but(double part) { return 1 - part; }

template <std::size_t Stage> double memory_of_stage(const PredictedRun& run) {
  return Stage < run.stage_memory.size() ? run.stage_memory[Stage] : 0;
}

constexpr std::array kMetrics = {
    TruthMetric{
        "iteration_seconds", "time of an iteration", "iteration_seconds", {{{"s", 1}, {"ms", 1e-3}}}, iteration},
    TruthMetric{"epoch_seconds",
                "time of an epoch; its errors are those of an iteration's",
                "iteration_seconds",
                {{{"s", 1}}},
                iteration},
    TruthMetric{"throughput",
                "samples a second of all devices",
                "samples_per_second",
                {{{"samples/s", 1}, {"images/s", 1}, {"sequences/s", 1}}},
                samples,
                FigureKind::time,
                true},
    TruthMetric{"throughput",
                "tokens a second of all devices",
                "tokens_per_second",
                {{{"tokens/s", 1}}},
                tokens,
                FigureKind::time,
                true},
    TruthMetric{
        "average_power", "what a device draws, over time", "mean_device_watts", {{{"W", 1}}}, watts, FigureKind::power},
    TruthMetric{"tokens_per_gpu_second",
                "tokens a second of a device",
                "tokens_per_device_second",
                {{{"tokens/GPU/s", 1}, {"tokens/s/GPU", 1}, {"tokens/s", 1}}},
                tokens_per_device,
                FigureKind::time,
                true},
    TruthMetric{"samples_per_gpu_second",
                "samples a second of a device",
                "samples_per_device_second",
                {{{"samples/GPU/s", 1}, {"samples/s/GPU", 1}}},
                samples_per_device,
                FigureKind::time,
                true},
    TruthMetric{"tflops_per_gpu",
                "FLOPs of the model a second and device, as the table counts them",
                "model_flops_per_device_second",
                {{{"TFLOP/s/GPU", kTera}, {"TFLOPS/GPU", kTera}, {"TFLOP/s", kTera}}},
                flops_per_device,
                FigureKind::time,
                true},
    TruthMetric{"mfu_percent",
                "model FLOPs utilisation",
                "mfu",
                {{{"%", kPercent}, {"fraction", 1}}},
                mfu,
                FigureKind::time,
                true,
                nullptr,
                same_figure,
                1},
    TruthMetric{"hfu_percent",
                "utilisation by all FLOPs",
                "hfu",
                {{{"%", kPercent}, {"fraction", 1}}},
                hfu,
                FigureKind::time,
                true,
                nullptr,
                same_figure,
                1},
    TruthMetric{"layer_forward_ms", "forward of one layer", "layer_forward_seconds", kTimes, forward},
    TruthMetric{"layer_backward_ms", "backward of one layer, with what is recomputed", "layer_backward_seconds", kTimes,
                backward},
    TruthMetric{"stage_forward_ms", "forward of the middle stage", "stage_forward_seconds", kTimes, stage_forward},
    TruthMetric{"stage_backward_input_ms", "gradients of a stage's input, of the middle one",
                "stage_backward_input_seconds", kTimes, stage_backward},
    TruthMetric{"stage_backward_weight_ms", "gradients of a stage's weights, of the middle one",
                "stage_backward_weight_seconds", kTimes, stage_weight},
    TruthMetric{"forward_seconds", "forward on one device", "forward_seconds", kTimes, forward},
    TruthMetric{"backward_seconds", "backward on one device", "backward_seconds", kTimes, backward},
    TruthMetric{"peak_memory", "the most that any device holds", "peak_memory_bytes", kBytes, peak_memory,
                FigureKind::memory},
    TruthMetric{"peak_memory_stage0", "the same of stage 0", "peak_memory_bytes", kBytes, memory_of_stage<0>,
                FigureKind::memory},
    TruthMetric{"peak_memory_stage1", "the same of stage 1", "peak_memory_bytes", kBytes, memory_of_stage<1>,
                FigureKind::memory},
    TruthMetric{"peak_memory_stage2", "the same of stage 2", "peak_memory_bytes", kBytes, memory_of_stage<2>,
                FigureKind::memory},
    TruthMetric{"peak_memory_stage3", "the same of stage 3", "peak_memory_bytes", kBytes, memory_of_stage<3>,
                FigureKind::memory},
    TruthMetric{"activation_memory", "activations at the peak, the most of any device", "activation_bytes", kBytes,
                kept, FigureKind::memory},
    TruthMetric{"parameter_and_optimizer_memory",
                "weights, gradients and states of the optimiser, the most of any device",
                "parameter_and_optimizer_bytes", kBytes, fixed, FigureKind::memory},
    TruthMetric{"activation_memory_share",
                "activations, of those of the same run by tensor parallelism alone",
                "activation_memory_share",
                {{{"percent", kPercent}}},
                kept,
                FigureKind::memory_share,
                false,
                tensor_parallel_baseline},
    TruthMetric{"bubble_fraction_from_profile",
                "the rest of the time of the stage that runs longest: its passes",
                "busy_share",
                {{{"fraction", 1}}},
                busy_share,
                FigureKind::time_share,
                false,
                nullptr,
                all_but},
    TruthMetric{"stage_communication_ms", "the longest transfer between stages", "stage_communication_seconds", kTimes,
                transfer, FigureKind::transfer},
    TruthMetric{"time_to_train_seconds", "iterations and evaluations until it has converged", "time_to_train_seconds",
                kTimes, training, FigureKind::training},
    TruthMetric{"out_of_memory",
                "1 where a device lacks memory",
                "out_of_memory",
                {{{"bool", 1}}},
                lacks_memory,
                FigureKind::verdict},
};

// Metrics that tables have and that cannot be predicted, by how their names begin.
struct UnpredictedMetric {
  std::string_view name, why;
};
constexpr std::array kUnpredicted = {
    UnpredictedMetric{"throughput normalized to K=2",
                      "its batch, which the authors fitted to memory, is not published"},
    UnpredictedMetric{"peak activation memory",
                      "what a compiler for TPU makes again, or an unpublished batch, decides it"},
    UnpredictedMetric{"total memory usage", "its batch is not published"},
    UnpredictedMetric{"model memory", "of which parts it is the sum is not published"},
    UnpredictedMetric{"total model parameter memory",
                      "it is the number of parameters times 12 bytes, and no measurement"},
};

// What a unit is made of by other names.
struct UnitPart {
  std::string_view theirs, ours;
};
constexpr std::array kUnitParts = {UnitPart{"sec", "s"},          UnitPart{"second", "s"},
                                   UnitPart{"seconds", "s"},      UnitPart{"msec", "ms"},
                                   UnitPart{"tok", "tokens"},     UnitPart{"token", "tokens"},
                                   UnitPart{"toks", "tokens"},    UnitPart{"sample", "samples"},
                                   UnitPart{"seq", "sequences"},  UnitPart{"sequence", "sequences"},
                                   UnitPart{"seqs", "sequences"}, UnitPart{"img", "images"},
                                   UnitPart{"image", "images"},   UnitPart{"imgs", "images"},
                                   UnitPart{"device", "gpu"},     UnitPart{"chip", "gpu"},
                                   UnitPart{"percent", "%"},      UnitPart{"tflops", "tflop/s"}};

// A unit as all spellings of it are alike: "tflop/gpu/s" of "TFLOP/s/GPU", "TFLOPS/GPU" and "TFLOPs per GPU"; "mib" of
// "MiB allocated (as logged, MB)". What it is divided by stands in the order of the alphabet.
std::string plain_unit(std::string_view text) {
  std::string plain = lower_case(text);
  for (std::size_t at = plain.find(" per "); at != std::string::npos; at = plain.find(" per ", at)) {
    plain.replace(at, std::string_view(" per ").size(), "/");
  }
  plain.erase(std::min(plain.find(' '), plain.size()));
  std::string whole;
  std::set<std::string> below;
  for (std::size_t begin = 0; begin <= plain.size();) {
    const std::size_t end = std::min(plain.find('/', begin), plain.size());
    std::string part = plain.substr(begin, end - begin);
    const auto known =
        std::find_if(kUnitParts.begin(), kUnitParts.end(), [&](const UnitPart& one) { return one.theirs == part; });
    part = known == kUnitParts.end() ? part : std::string(known->ours);
    if (part == "tflop/s") {
      part = "tflop";
      below.insert("s");
    }
    if (begin == 0) {
      whole = part;
    } else {
      below.insert(part);
    }
    begin = end + 1;
  }
  for (const std::string& part : below) {
    whole += "/" + part;
  }
  return whole;
}

// Whether the text names the unit, alone or in front of a remark, as "GiB per GPU".
bool is_unit(std::string_view text, const TruthUnit& unit) {
  const std::string plain = plain_unit(unit.name);
  return !unit.name.empty() && (plain_unit(text) == plain || plain_unit(text.substr(0, text.find(' '))) == plain);
}

} // namespace

double PredictedRun::peak_memory() const {
  return stage_memory.empty() ? 0 : *std::max_element(stage_memory.begin(), stage_memory.end());
}

TimedParts timed_parts(const TruthRow& row) {
  const auto notes = [&](std::string_view words) { return row.note.find(words) != std::string::npos; };
  return notes("forward only") ? TimedParts::forward : notes("no optimizer") ? TimedParts::passes : TimedParts::all;
}

PredictedRun PredictedRun::of(TimedParts parts) const {
  if (parts == TimedParts::all) {
    return *this;
  }
  PredictedRun part = *this;
  part.iteration = parts == TimedParts::forward ? forward : iteration - update;
  const double faster = iteration / part.iteration;
  part.samples_per_second *= faster;
  part.tokens_per_second *= faster;
  return part;
}

std::span<const TruthMetric> truth_metrics() { return kMetrics; }

const TruthMetric* find_truth_metric(std::string_view name, std::string_view unit) {
  const auto has_unit = [&](const TruthMetric& row) {
    return std::any_of(row.units.begin(), row.units.end(), [&](const TruthUnit& one) { return is_unit(unit, one); });
  };
  const TruthMetric* found = nullptr;
  for (const TruthMetric& row : kMetrics) {
    if (row.name == name && (found == nullptr || has_unit(row))) {
      found = &row;
    }
  }
  return found;
}

std::string usual_metric(const std::string& name) {
  struct Name {
    std::string_view theirs, ours;
  };
  constexpr std::array kNames = {
      Name{"iteration_time", "iteration_seconds"},
      Name{"step_time", "iteration_seconds"},
      Name{"step_seconds", "iteration_seconds"},
      Name{"time_per_iteration", "iteration_seconds"},
      Name{"seconds_per_iteration", "iteration_seconds"},
      Name{"mfu", "mfu_percent"},
      Name{"hfu", "hfu_percent"},
      Name{"tflops", "tflops_per_gpu"},
      Name{"tflops_per_device", "tflops_per_gpu"},
      Name{"tokens_per_second_per_gpu", "tokens_per_gpu_second"},
      Name{"tokens_per_device_second", "tokens_per_gpu_second"},
      Name{"samples_per_second_per_gpu", "samples_per_gpu_second"},
      Name{"tokens_per_second", "throughput"},
      Name{"samples_per_second", "throughput"},
      Name{"max_memory", "peak_memory"},
  };
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](const Name& one) { return one.theirs == lower_case(name); });
  return found == kNames.end() ? name : std::string(found->ours);
}

std::string_view why_not_predicted(std::string_view name) {
  const auto found = std::find_if(kUnpredicted.begin(), kUnpredicted.end(),
                                  [&](const UnpredictedMetric& one) { return name.starts_with(one.name); });
  return found == kUnpredicted.end() ? "" : found->why;
}

double seconds_of_figure(const TruthMetric& metric, const PredictedRun& run, double figure) {
  const double own = metric.predict(run);
  return metric.falls_with_time ? run.iteration * own / figure : run.iteration * figure / own;
}

double scale_of(const TruthMetric& metric, const std::string& unit, const Where& where) {
  std::string known;
  for (const TruthUnit& one : metric.units) {
    if (is_unit(unit, one)) {
      return one.scale;
    }
  }
  for (const TruthMetric& row : kMetrics) {
    for (const TruthUnit& one : row.units) {
      const bool listed = row.name != metric.name || one.name.empty();
      known += listed ? "" : (known.empty() ? "" : ", ") + std::string(one.name);
    }
  }
  throw InputError(where, "'" + excerpt(unit) + "' is no unit of " + std::string(metric.name) + "; allowed: " + known);
}

bool of_whole_iterations(const TruthMetric& metric) {
  return metric.kind == FigureKind::time && (metric.falls_with_time || metric.key == "iteration_seconds");
}

} // namespace stagecraft
