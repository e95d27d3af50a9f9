// Sailor's measured plans beside their replays. docs/validation/unlike-nodes.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/system/file.hpp"
#include "sim/base/system/file_names.hpp"
#include "sim/study/error_families.hpp"
#include "sim/validate/sailor_study.hpp"
#include "sim/validate/truth/predict_truth.hpp"
#include "sim/validate/validators.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// Rows of one plan, and of the closed form.
void add_rows(const SailorPlan& plan, const SailorStudy& study, const PredictedRun& run, Validation& validation) {
  double most = 0;
  for (std::size_t stage = 0; stage < study.beside.size(); ++stage) {
    most = std::max(most, run.stage_memory[stage] + study.beside[stage].value);
  }
  ValidationRow time{.case_name = plan.case_name,
                     .metric = "iteration_seconds",
                     .group = plan.cluster,
                     .measured = plan.iteration.value,
                     .predicted = run.iteration,
                     .contest = plan.model + " on " + plan.cluster};
  ValidationRow memory = time;
  memory.metric = "peak_memory_bytes";
  memory.measured = plan.peak_memory.value;
  memory.predicted = most;
  memory.contest = "";
  ValidationRow formula = time;
  formula.predicted = study.formula.value;
  validation.rows.push_back(std::move(time));
  validation.rows.push_back(std::move(memory));
  validation.baselines["(M - 1) x slowest stage + all stages + update"].push_back(std::move(formula));
}

// Gives each row the interval of all models' runs: of plans predicted from profiles too few are known to say more.
void add_intervals(const std::vector<ErrorFamily>& families, std::vector<ValidationRow>& rows) {
  for (ValidationRow& row : rows) {
    if (const auto family = widest_family(families, {.time = row.metric == "iteration_seconds"})) {
      row.family = family->name;
      row.low = family->low(row.predicted);
      row.high = family->high(row.predicted);
    }
  }
}

void write_study(const fs::path& folder, const std::string& name, const std::string& text) {
  make_folder(folder);
  write_file((folder / (name + ".yaml")).string(), text);
}

} // namespace

bool is_sailor(const fs::path& folder) {
  std::error_code failure;
  return fs::is_regular_file(folder / "measured_summary.csv", failure) &&
         fs::is_regular_file(folder / "llm_info.json", failure) &&
         fs::is_regular_file(folder / "profiles_simulator.json", failure);
}

Validation validate_sailor(const fs::path& folder, const ValidateOptions& options) {
  Validation validation{.source = "Sailor's plans",
                        .notes = {"Times of layers and networks are as measured alone; nothing is fitted on a plan.",
                                  "Intervals are those of other measured runs of all kinds: plans that are predicted "
                                  "from profiles are too few to say how far off these are."},
                        .inputs = {(folder / "measured_summary.csv").string()}};
  SailorData data(folder);
  std::vector<SailorPlan> plans;
  std::vector<SailorStudy> studies;
  std::vector<std::string> texts;
  FileNames names;
  for (SailorPlan& plan : data.plans()) {
    auto study = sailor_study(plan, data);
    if (const auto* reason = std::get_if<Infeasible>(&study)) {
      validation.skipped.push_back({plan.case_name, reason->reason});
      continue;
    }
    studies.push_back(std::move(std::get<SailorStudy>(study)));
    texts.push_back(studies.back().text);
    if (!options.studies.empty()) {
      write_study(options.studies, names.unique(plan.case_name), texts.back());
    }
    plans.push_back(std::move(plan));
  }
  const std::vector<TruthPrediction> predictions = predict_studies(texts, options);
  for (std::size_t at = 0; at < plans.size(); ++at) {
    if (const auto* reason = std::get_if<Infeasible>(&predictions[at])) {
      validation.skipped.push_back({plans[at].case_name, reason->reason});
    } else {
      add_rows(plans[at], studies[at], std::get<PredictedRun>(predictions[at]), validation);
    }
  }
  add_intervals(shipped_error_families({.study = {}, .shipped = options.shipped}), validation.rows);
  return validation;
}

} // namespace stagecraft
