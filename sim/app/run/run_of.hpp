// The run that `replay` and `explain` show: of a model, or the best of a study.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/run/given_run.hpp"

namespace stagecraft {

/// A run, what it was made from, and what was replayed.
struct GivenRun {
  GivenStudy given;
  Prepared prepared; ///< not feasible, with the reason, where nothing runs
};

/// Of a model: the run that --strategy or --plan and --schedule ask for. Of a study: the winner of its comparison, or
/// of the part of it that these flags name, whether the study lists them or not; its figures are those of the row of
/// `compare`. Of a result: its best run, or what these flags name of its study; a remark says where the same question
/// has another answer by now. Unless `quiet`, remarks say what nobody said of the training, and how far a comparison
/// is. InputError where flags contradict each other, or describe another model or platform than the study's.
GivenRun run_of(const ModelOptions& model, const SettingOptions& settings, const RunOptions& run, bool quiet);

} // namespace stagecraft
