// Predicts a framework's step on one device, its layers and its memory, with the cost model that knows the most about
// the device.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/file.hpp"
#include "sim/base/improves.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/units.hpp"
#include "sim/study/replay_prepared.hpp"
#include "sim/validate/validators.hpp"
#include "sim/validate/witness.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> witness_files_at(const fs::path& path) { return files_at(path, is_witness_file); }

// A device type by its name, or from a device file beside the witness, as `calibrate fit` writes it.
DeviceType device_type(const yaml::Node& name, const Folders& folders) {
  const DeviceTypeSource shipped = device_types_in(folders.shipped / "platforms" / "devices");
  const bool is_file = fs::path(name.text).extension() == ".yaml";
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

// The witness as a study: one device, one micro-batch.
Study study_of(const Witness& witness, const Folders& folders) {
  Study study;
  study.model =
      std::make_shared<const ModelGraph>(with_profile_samples(read_model(witness.model, folders, {}), witness.batch));
  const DeviceType type = device_type(witness.device, folders);
  study.platform = make_star_platform(type, 1, BytesPerSecond{kInfinity}, Seconds{0});
  study.training.global_batch = witness.batch;
  study.training.optimizer = witness.optimizer;
  study.training.precision = witness.precision->precision;
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

struct Passes {
  double forward = 0, backward = 0;
  double sum() const { return forward + backward; }
};

/// One witness beside its prediction, added to a validation.
class WitnessCase {
public:
  WitnessCase(const fs::path& path, const Folders& folders, Validation& validation)
      : name_(path.stem().string()), witness_(read_witness(yaml::load(path))), study_(study_of(witness_, folders)),
        validation_(validation) {}

  void add() {
    const std::vector<OperatorId> matched = match_layers(witness_.layers, *study_.model);
    for (std::size_t i = 0; i < matched.size(); ++i) {
      measured_[matched[i]].forward += witness_.layers[i].forward.value;
      measured_[matched[i]].backward += witness_.layers[i].backward.value;
    }
    ScheduleCounts counts;
    StudyMemo memo(study_, counts);
    const Problem& problem = memo.costs.problem(1);
    add_layers(problem, validation_.rows, validation_.skipped);
    add_coverage(problem);
    add_step(memo);
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

  void add_step(StudyMemo& memo) {
    const Scenario scenario{
        .strategy = &find_by_name(strategies(), "single", "strategy", {}),
        .schedule = &find_by_name(schedules(), "accumulate", "schedule", {}),
        .explain = false,
        .brief = true,
    };
    const Run run = run_scenario(memo, scenario).run;
    if (!run.feasible) {
      validation_.skipped.push_back({name_, "the step: " + run.why_not});
      return;
    }
    const auto add = [&](const char* metric, double measured, double told) {
      validation_.rows.push_back({name_, metric, "", measured, told});
    };
    add("step_seconds", witness_.step.value, run.metrics.iteration.value);
    if (witness_.graph) {
      add("graph_seconds", witness_.graph->value, run.metrics.iteration.value);
    }
    if (witness_.peak) {
      add("peak_bytes", witness_.peak->value, run.metrics.peak_memory.front().value);
    }
  }

  std::string name_;
  Witness witness_;
  Study study_;
  std::map<OperatorId, Passes> measured_;
  Validation& validation_;
};

void add_medians(Validation& validation) {
  std::string medians;
  for (const char* metric : {"forward_seconds", "backward_seconds", "step_seconds", "graph_seconds", "peak_bytes"}) {
    std::vector<double> errors;
    for (const ValidationRow& row : validation.rows) {
      if (row.metric == metric) {
        errors.push_back(std::abs(row.error()));
      }
    }
    if (!errors.empty()) {
      medians += (medians.empty() ? "" : ", ") + std::string(metric) + " " + percent(quantile(errors, 0.5), 2) + " (" +
                 std::to_string(errors.size()) + ")";
    }
  }
  validation.notes.push_back("Median errors (rows): " + (medians.empty() ? "none" : medians) +
                             ". Nothing is fitted on what is predicted.");
}

} // namespace

bool is_witness(const fs::path& path) { return !witness_files_at(path).empty(); }

Validation validate_witness(const fs::path& path, const ValidateOptions& options) {
  Validation validation;
  validation.source = path.string();
  for (const fs::path& file : witness_files_at(path)) {
    validation.inputs.push_back(file.string());
    WitnessCase(file, {file.parent_path(), options.shipped}, validation).add();
  }
  add_medians(validation);
  return validation;
}

} // namespace stagecraft
