// Judging planners: every planner's plan for every model on every platform, replayed. docs/formats/study.md, "judge".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/judgement.hpp"
#include "sim/base/system/command.hpp"
#include "sim/study/compare/prepare.hpp"

namespace stagecraft {

/// A strategy, drawn with several seeds where `draws` > 1, or a foreign command, which is run confined.
struct Planner {
  std::string name;
  const StrategyRow* strategy = nullptr; ///< null: a command
  int draws = 1;
  Command command;
  Where where; ///< place of the command in the study
};

/// The time that a person takes to split a model: trials * (edit + launch + iterations * iteration time of the trial).
/// Also the time to measure every operator, forward and backward, on one device of each type.
struct ManualWork {
  int trials = 5;
  Seconds edit{60}, launch{30};
  int iterations = 20;
  int profile_repetitions = 100;
};

/// How a planner's number of micro-batches is chosen.
enum class ChosenBy { estimate, replay };

struct ChosenByRow {
  std::string_view name, help;
  ChosenBy by;
};
inline constexpr std::array kChosenBy = {
    ChosenByRow{"estimate", "the least estimate of an iteration that flushes, as planners themselves know it",
                ChosenBy::estimate},
    ChosenByRow{"replay", "the fastest replay", ChosenBy::replay},
};

/// Valid by construction, except for the models and platforms, which are read one by one as they are judged.
struct JudgeStudy {
  std::string name;
  yaml::Node rest; ///< the study's other keys, the same for every model and platform
  std::vector<yaml::Node> models, platforms;
  std::vector<Planner> planners;
  StudySchedule schedule;
  ChosenBy micro_batches = ChosenBy::estimate;
  std::optional<ManualWork> manual;
  Folders folders;
  std::vector<Setting> settings; ///< of models and platforms
};

/// Reads a judge study with settings on top. Throws InputError.
JudgeStudy load_judge_study(const yaml::Node& document, const Folders& folders, const std::vector<Setting>& settings);

/// Plans with every planner, choosing the number of micro-batches as the study says, replays the plans of one model and
/// platform in one batch, and scores them. A foreign command that fails, takes too long or prints no plan is a row with
/// its reason. Throws InputError for a model or platform that cannot be read.
Judgement judge(const JudgeStudy& study, const ProgressCall& progress = {});

/// A problem as JSON, schema stagecraft/1, as foreign planners get it on standard input: operators with their times per
/// device type, bytes and edges; devices, and paths between them; training. docs/formats/planner.md.
std::string problem_to_json(const Problem& problem, const std::string& schedule);

} // namespace stagecraft
