// Predicts a framework's step on one device, its layers and its memory, with the cost model that knows the most about
// the device.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/improves.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"
#include "sim/cost/kernel_speed.hpp"
#include "sim/plan/stage_cost/passes/host_launches.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/keys/take_config.hpp"
#include "sim/study/keys/trained_model.hpp"
#include "sim/validate/validators.hpp"
#include "sim/validate/witness.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> witness_files_at(const fs::path& path) { return files_at(path, is_witness_file); }

// A device type by its name, or from a device file beside the witness, as `calibrate fit` writes it.
DeviceType device_type(const yaml::Node& name, const Folders& folders) {
  const DeviceTypeSource shipped = device_types_in(folders.shipped / "platforms" / "devices");
  const bool is_file = yaml::is_named_yaml(name.text);
  std::error_code failure;
  if (is_file && !fs::is_regular_file(folders.study / name.text, failure)) {
    throw InputError(name.where, "no device file '" + name.text +
                                     "' beside this one; allowed: one that is there, or "
                                     "the name of a shipped device type");
  }
  return load_device_type(is_file ? yaml::load_beside(name, "device") : shipped(name.text, name.where), shipped);
}

void set_cost_model(Study& study, std::string_view name, const Where& where) {
  CostModelResult cost = make_cost_model(name, {*study.model, study.profiled_on.get()}, where);
  if (const Infeasible* reason = std::get_if<Infeasible>(&cost)) {
    throw InputError(where, reason->reason);
  }
  study.cost = std::move(std::get<std::unique_ptr<CostModel>>(cost));
}

// The training of a step, with what the recipe of that name says.
Training training_of(const Witness& witness, const std::optional<yaml::Node>& framework, const Folders& folders) {
  const Where& where = framework ? framework->where : witness.model.where;
  yaml::Node document{.kind = yaml::Node::Kind::map, .where = where};
  if (framework) {
    yaml::set(document, "training.framework", *framework);
  }
  yaml::set(document, "training.global_batch", std::to_string(witness.batch), where);
  yaml::set(document, "training.optimizer", witness.optimizer->name, where);
  yaml::set(document, "training.precision", witness.precision->name, where);
  take_framework(document, folders);
  return load_training(*document.find("training"));
}

// The witness as a study: one device, one micro-batch.
Study study_of(const Witness& witness, const Training& training, const Folders& folders) {
  Study study;
  study.training = training;
  study.model = trained_model(
      std::make_shared<const ModelGraph>(with_profile_samples(read_model(witness.model, folders, {}), witness.batch)),
      training);
  const DeviceType type = device_type(witness.device, folders);
  study.platform = make_star_platform(type, 1, BytesPerSecond{kInfinity}, Seconds{0});
  if (study.model->profiles.empty()) {
    set_cost_model(study, "calibrated", witness.model.where);
    return study;
  }
  const std::vector<Profile>& profiles = study.model->profiles;
  const auto own =
      std::find_if(profiles.begin(), profiles.end(), [&](const Profile& one) { return one.device == type.name; });
  const Profile& profile = own != profiles.end() ? *own : profiles.front();
  if (profile.precision != study.training.precision) {
    throw InputError(witness.model.where, "the model's profile was taken in " +
                                              std::string(row_of(profile.precision).name) +
                                              "; allowed: a witness of the same 'precision'");
  }
  if (!profile.device.empty()) {
    study.profiled_on = std::make_unique<DeviceType>(
        profile.device == type.name
            ? type
            : device_type({.kind = yaml::Node::Kind::scalar, .text = profile.device, .where = witness.model.where},
                          folders));
  }
  set_cost_model(study, "profiled", witness.model.where);
  return study;
}

// Layers run alone, at the full speed of their kernels and from graphs; which kernels they have is as in the eager
// step.
Training training_of_layers(const Witness& witness, const Folders& folders) {
  const auto eager = std::find_if(witness.ways.begin(), witness.ways.end(),
                                  [](const WitnessWay& way) { return way.row == &kWitnessWays.front(); });
  return training_of(witness, eager != witness.ways.end() ? eager->framework : std::nullopt, folders);
}

// What a step takes, or why it is infeasible, and its peak of memory.
Run run_step(const Study& study) {
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const Scenario scenario{
      .strategy = &find_by_name(strategies(), "single", "strategy", {}),
      .schedule = &find_by_name(schedules(), "accumulate", "schedule", {}),
      .explain = false,
      .brief = true,
  };
  return run_scenario(memo, scenario).run;
}

struct Passes {
  double forward = 0, backward = 0;
  double sum() const { return forward + backward; }
};

/// One witness beside its prediction, added to a validation.
class WitnessCase {
public:
  WitnessCase(const fs::path& path, const Folders& folders, Validation& validation)
      : name_(path.stem().string()), folders_(folders), witness_(read_witness(yaml::load(path))),
        study_(study_of(witness_, training_of_layers(witness_, folders), folders)), validation_(validation) {}

  void add() {
    const std::vector<OperatorId> matched = match_layers(witness_.layers, *study_.model);
    for (std::size_t i = 0; i < matched.size(); ++i) {
      measured_[matched[i]].forward += witness_.layers[i].forward.value;
      measured_[matched[i]].backward += witness_.layers[i].backward.value;
    }
    {
      StudyCosts costs(study_); // refers to the cost model, which changes below
      const Problem& problem = costs.problem(1);
      add_layers(problem, layer_rows_, validation_.skipped);
      add_coverage(problem);
    }
    for (const WitnessWay& way : witness_.ways) {
      add_way(way);
    }
    if (study_.model->profiles.empty() && study_.platform.types.front().fits != nullptr) {
      set_cost_model(study_, "roofline", witness_.model.where);
      std::vector<ValidationRow> rows;
      std::vector<SkippedCase> told_already;
      add_layers(StudyCosts(study_).problem(1), rows, told_already);
      if (!rows.empty()) {
        auto& baseline = validation_.baselines["roofline"];
        baseline.insert(baseline.end(), rows.begin(), rows.end());
      }
    }
  }

  const std::vector<WitnessWay>& ways() const { return witness_.ways; }
  const std::vector<ValidationRow>& layer_rows() const { return layer_rows_; }

private:
  static Passes predicted(const Problem& problem, OperatorId op) {
    return {problem.forward[0][op], problem.backward_input[0][op] + problem.backward_weight[0][op]};
  }

  void add_layers(const Problem& problem, std::vector<ValidationRow>& rows, std::vector<SkippedCase>& skipped) const {
    for (const auto& [op, measured] : measured_) {
      const Passes passes = predicted(problem, op);
      const auto add = [&, op = op](const char* metric, double seen, double told) {
        const Operator& what = study_.model->operators[op];
        const std::string name = name_ + "/" + what.name;
        if (seen > 0 && told > 0 && std::isfinite(told)) {
          rows.push_back({name, metric, std::string(row_of(what.kind).name), seen, told});
        } else if (seen > 0 || told > 0) {
          skipped.push_back({name, std::string(metric) + ": " +
                                       (std::isinf(told) ? "the device lacks the kernel"
                                        : told > 0       ? "measured as 0"
                                                         : "predicted as 0: no kernel runs")});
        }
      };
      add("forward_seconds", measured.forward, passes.forward);
      add("backward_seconds", measured.backward, passes.backward);
    }
  }

  void add_coverage(const Problem& problem) {
    if (measured_.empty()) {
      return;
    }
    double covered = 0;
    double all = 0;
    for (OperatorId op = 0; op < study_.model->size(); ++op) {
      const double seconds = predicted(problem, op).sum();
      all += seconds;
      covered += measured_.contains(op) ? seconds : 0;
    }
    validation_.notes.push_back(
        name_ + ": " + witness_.software + " on " + study_.platform.types.front().name + "; " +
        std::to_string(measured_.size()) + " of " + std::to_string(study_.model->size()) +
        " operators were measured as layers" +
        (std::isfinite(all) && all > 0 ? ", " + percent(covered / all, 2) + " of the predicted time of all" : ""));
  }

  // The step, its launches and its memory in one way.
  void add_way(const WitnessWay& way) {
    Training training = training_of(witness_, way.framework, folders_);
    if (!way.row->launched) {
      training.launches = {};
    }
    Study study = study_of(witness_, training, folders_);
    study.cost = at_kernel_speed(std::move(study.cost), *study.model, training.kernel_speed);
    const Run run = run_step(study);
    if (!run.feasible) {
      validation_.skipped.push_back({name_, "the " + std::string(way.row->name) + " step: " + run.why_not});
      return;
    }
    const auto add = [&](const char* fact, const auto& measured, double told) {
      if (measured && told > 0) {
        validation_.rows.push_back({name_, std::string(way.row->name) + "_" + fact, "", value_of(*measured), told});
      }
    };
    add("step_seconds", way.step, run.metrics.iteration.value);
    add("loop_seconds", way.loop, run.metrics.iteration.value);
    const double peak = run.metrics.peak_memory.front().value;
    add("peak_bytes", way.peak, peak);
    add("reserved_bytes", way.reserved, peak * (1 + training.memory.fragmentation));
    if (training.launches.each.value > 0) {
      StudyCosts costs(study);
      const PassLaunches launches =
          launches_of(costs.problem(1), all_operators(*study.model), {}, study.platform.types.front().host_speed);
      const double host = (launches.forward + launches.backward()).value;
      add("host_seconds", way.host, host);
      add("kernels", way.kernels,
          std::round(host * study.platform.types.front().host_speed / training.launches.each.value));
    }
    if (way.kernel_time) { // a step whose host is never late is nothing but its kernels
      study.training.launches = {};
      study.training.step_overhead = {};
      add("kernel_seconds", way.kernel_time, run_step(study).metrics.iteration.value);
    }
  }

  static double value_of(Seconds seconds) { return seconds.value; }
  static double value_of(Bytes bytes) { return bytes.value; }
  static double value_of(double number) { return number; }

  std::string name_;
  Folders folders_;
  Witness witness_;
  Study study_; ///< of the layers
  std::map<OperatorId, Passes> measured_;
  std::vector<ValidationRow> layer_rows_;
  Validation& validation_;
};

// Of each metric, in order of first appearance.
void add_medians(Validation& validation) {
  std::vector<std::pair<std::string, std::vector<double>>> errors;
  for (const ValidationRow& row : validation.rows) {
    auto found = std::find_if(errors.begin(), errors.end(), [&](const auto& one) { return one.first == row.metric; });
    if (found == errors.end()) {
      found = errors.insert(errors.end(), {row.metric, {}});
    }
    found->second.push_back(std::abs(row.error()));
  }
  std::string medians;
  for (const auto& [metric, of_metric] : errors) {
    medians += (medians.empty() ? "" : ", ") + metric + " " + percent(quantile(of_metric, 0.5), 2) + " (" +
               std::to_string(of_metric.size()) + ")";
  }
  validation.notes.push_back("Median errors (rows): " + (medians.empty() ? "none" : medians) +
                             ". Nothing is fitted on what is predicted.");
}

// What the framework held of the device beyond its tensors, which is not predicted unless a recipe says so.
void add_reserve(const std::vector<WitnessWay>& ways, Validation& validation) {
  std::vector<double> fragmentation, outside;
  for (const WitnessWay& way : ways) {
    if (way.peak && way.reserved) {
      fragmentation.push_back(*way.reserved / *way.peak - 1);
    }
    if (way.outside) {
      outside.push_back(way.outside->value);
    }
  }
  if (!fragmentation.empty()) {
    validation.notes.push_back(
        "The allocator held " + percent(quantile(fragmentation, 0.5), 2) + " more than its tensors at their peak" +
        (outside.empty() ? "" : ", and the framework " + to_text(Bytes{quantile(outside, 0.5)}) + " beside it") +
        " (medians).");
  }
}

} // namespace

bool is_witness(const fs::path& path) { return !witness_files_at(path).empty(); }

Validation validate_witness(const fs::path& path, const ValidateOptions& options) {
  Validation validation;
  validation.source = path.string();
  std::vector<WitnessWay> ways;
  std::vector<ValidationRow> layers; // there are many: behind the steps of all files
  for (const fs::path& file : witness_files_at(path)) {
    validation.inputs.push_back(file.string());
    WitnessCase one(file, {file.parent_path(), options.shipped}, validation);
    one.add();
    ways.insert(ways.end(), one.ways().begin(), one.ways().end());
    layers.insert(layers.end(), one.layer_rows().begin(), one.layer_rows().end());
  }
  validation.rows.insert(validation.rows.end(), layers.begin(), layers.end());
  add_reserve(ways, validation);
  add_medians(validation);
  return validation;
}

} // namespace stagecraft
