// Predicts real runs, each from the times of its parts alone.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/base/statistics.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"
#include "sim/validate/run_accuracy.hpp"
#include "sim/validate/validators.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> run_records_at(const fs::path& path) { return files_at(path, is_run_record); }

// Runs compete where they have the same model, platform and batch.
std::string contest_of(const RunInputs& inputs) {
  return inputs.model + " on " + inputs.platform + ", batch " + std::to_string(inputs.global_batch);
}

// How much longer the run predicted to be the fastest takes than the run that is the fastest, and how well all are
// ranked.
std::string ranking(const std::string& contest, const std::vector<ValidationRow>& rows) {
  const auto predicted_best = std::min_element(rows.begin(), rows.end(),
                                               [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  const auto best =
      std::min_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.measured < b.measured; });
  std::vector<double> measured, predicted;
  for (const ValidationRow& row : rows) {
    measured.push_back(row.measured);
    predicted.push_back(row.predicted);
  }
  const auto correlation = spearman(measured, predicted);
  const std::string found = predicted_best->measured > best->measured
                                ? " takes " + percent(predicted_best->measured / best->measured - 1, 2) +
                                      " longer than the fastest, " + best->case_name
                                : " is the fastest";
  return contest + ": of " + std::to_string(rows.size()) + " runs the one predicted to be the fastest, " +
         predicted_best->case_name + "," + found +
         (correlation ? "; rank correlation " + to_text(*correlation, 4) : "");
}

} // namespace

bool is_runs(const fs::path& path) { return !run_records_at(path).empty(); }

Validation validate_runs(const fs::path& path, const ValidateOptions& /*options*/) {
  Validation validation;
  validation.source = path.string();
  std::map<std::string, std::vector<ValidationRow>> contests;
  for (const fs::path& file : run_records_at(path)) {
    validation.inputs.push_back(file.string());
    const RunRecord record = read_run_record(file);
    if (record.disturbed()) {
      const double late = record.latest_sleeper();
      validation.skipped.push_back(
          {file.stem().string(),
           "disturbed: " + (late > 0 ? "a computation that slept ended " + to_text(Seconds{late}) + " late"
                                     : "something else had the cores in every run")});
      continue;
    }
    const RunAccuracy accuracy = accuracy_of(record);
    const double iteration = 1 / (record.time_scale * record.timeline.iterations);
    ValidationRow row{
        file.stem().string(),           "iteration_seconds",      record.backend, accuracy.measured * iteration,
        accuracy.predicted * iteration, contest_of(record.inputs)};
    validation.rows.push_back(row);
    contests[row.contest].push_back(row);
    row.predicted = accuracy.retold * iteration;
    validation.baselines["own durations"].push_back(row);
    row.predicted = accuracy.unmeasured * iteration;
    validation.baselines["parts as asked"].push_back(row);
    row.predicted = accuracy.unshared * iteration;
    validation.baselines["links not shared"].push_back(row);
    if (record.shares_links) {
      row.predicted = accuracy.lockstep * iteration;
      validation.baselines["replicas in lockstep"].push_back(row);
    }
    if (record.parts && !record.parts->slowdowns.empty()) {
      row.predicted = accuracy.alone * iteration;
      validation.baselines["no device slows another"].push_back(row);
    }
    if (record.parts && !record.parts->contention.empty()) {
      row.predicted = accuracy.constant * iteration;
      validation.baselines["a slowdown per device"].push_back(row);
    }
  }
  validation.notes.emplace_back(
      "Predictions are made from the times of computations and transfers measured alone beside each run; nothing is "
      "fitted. 'own durations' is no prediction: it replays a run's own durations, and so tells what order alone is "
      "worth.");
  for (const auto& [contest, rows] : contests) {
    if (rows.size() > 1) {
      validation.notes.push_back(ranking(contest, rows));
    }
  }
  return validation;
}

} // namespace stagecraft
