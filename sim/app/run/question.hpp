// What a result was asked: kept in it, so that `explain`, `replay` and `check` can ask it again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/run/given_run.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {

/// What a result was made from.
struct Question {
  yaml::Node study;                 ///< a study's document
  bool comparison = false;          ///< of the study's splits and schedules; else of the one run that is named
  RunOptions run;                   ///< its strategy or plan and its schedule; of a comparison those of its best run
  int micro_batches = 0;            ///< of that run
  std::optional<yaml::Node> config; ///< `training.config`, which a study only names beside itself
  Seconds iteration;                ///< that the result says; 0: the run is infeasible
};

/// The same as JSON, for a result that will lie in the file `result` ("": it is printed), from whose folder it names
/// files: the study with all that flags changed, `run` where no comparison was asked for, and the plans that stood
/// beside the study. "null" where no study file can say it.
std::string question_json(const GivenStudy& given, const RunOptions& run, const std::string& result,
                          const std::vector<std::string>& plans = {}, const std::string& plan_format = "");

/// Whether a file holds a result of `compare` or `replay`, by its beginning.
bool is_result(const std::string& file);

/// What such a file was asked. InputError where it does not say.
Question question_of(const std::string& file);

/// Its stages, as the text of a plan file. InputError where it has none that fits.
std::string plan_of_result(const std::string& file);

/// The study of a result's question, with `settings` on top.
GivenStudy asked_again(const std::string& file, const Question& question, const std::vector<Setting>& settings);

} // namespace stagecraft
