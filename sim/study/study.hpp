// A study: which splits and schedules to compare, for which model, on which platform. docs/formats/study.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/replay/engines.hpp"
#include "sim/result/run.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/study/error_families.hpp"
#include "sim/study/keys/adapt_options.hpp"
#include "sim/study/keys/inputs.hpp"
#include "sim/study/keys/perturb_options.hpp"
#include "sim/study/keys/read_schedules.hpp"
#include "sim/study/keys/read_training.hpp"

namespace stagecraft {

/// Valid by construction: the loader has checked every name and number.
struct Study {
  std::string name, description;
  /// Stays in place when the study moves, as the cost model refers to it; shared by studies that differ elsewhere.
  std::shared_ptr<const ModelGraph> model;
  Platform platform;
  Training training;
  std::vector<std::string> config_conflicts;     ///< sizes of the framework's file that are not the model's
  std::string framework_of_config;               ///< the recipe that the file brings along; "": none, or one is named
  std::optional<Loader> loader;                  ///< none: data is always ready
  std::unique_ptr<const DeviceType> profiled_on; ///< device type of the model's profiles, where it is known
  std::unique_ptr<CostModel> cost;
  std::vector<const StrategyRow*> strategies;
  std::vector<StudySchedule> schedules; ///< no two of one name
  std::vector<Plan> plans;              ///< made elsewhere, to run beside the strategies' own
  RankBy rank = RankBy::exact;
  BalanceOptions balance; ///< options of the strategy `dynamic`
  /// Per device, the speed that planners believe, as a multiple of its true speed; replays use the true speed.
  std::vector<double> believed_speeds;
  const EngineRow* engine = &kEngines[0];
  const DetailRow* detail = &kDetails[0];
  std::uint64_t seed = 1;
  std::vector<ErrorFamily> error_families; ///< where the training names a framework
  std::optional<AdaptOptions> adapt;
  std::optional<PerturbOptions> perturb;
  double tokens = 0;       ///< of the whole training, whose days and money results then say; 0: not said
  bool per_device = false; ///< results list the figures of each device, also of more than 64
  bool unfold = false;     ///< every device is simulated, also where some are alike
  int confidence = 0;      ///< draws of the cost model's errors; 0: its times are taken as exact
};

/// Reads a study document with settings on top. Throws InputError.
Study load_study(const yaml::Node& document, const Folders& folders, const std::vector<Setting>& settings,
                 Purpose purpose = Purpose::run);

/// What the replicas of a mesh share by these degrees. What is wrong with degrees is a reason of each plan.
Sharding sharding_of(const ParallelDegrees& degrees, int devices);

/// The numbers of micro-batches that a strategy, or a plan made elsewhere (null), is tried with: the study's own first.
std::vector<int> micro_batches_of(const Study& study, const StrategyRow* strategy);

/// Reads a plan in any form (plan_formats.hpp) and adds it to the study. A plan whose name a strategy or an earlier
/// plan already has gets its file's name added, and as many of the file's folders as it takes to be unique.
void add_plan(Study& study, const std::filesystem::path& path, std::string_view format);

/// A document with the model and platform given by flags, to be read by load_study().
yaml::Node study_document(const std::string& model, const std::string& platform);

} // namespace stagecraft
