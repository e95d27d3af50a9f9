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
#include "sim/study/inputs.hpp"
#include "sim/study/perturb_options.hpp"

namespace stagecraft {

/// The allowed speeds of a device, as multiples of its type's speed.
inline constexpr yaml::Range kSpeed{0.001, 1000, true, "0.001 to 1000"};

/// Something that happens to a device before an iteration of `adapt`.
struct AdaptEvent {
  int iteration = 0;
  DeviceId device = 0;
  double speed = 1; ///< from then on, as a multiple of its type's speed
  bool leaves = false;
};

/// Key `adapt` of a study: training over time.
struct AdaptOptions {
  int iterations = 100;
  int round_iterations = 5; ///< after which a policy may change the plan
  const ScheduleRow* schedule = nullptr;
  double jitter = 0;              ///< standard deviation of a device's speed in one iteration
  std::vector<AdaptEvent> events; ///< by iteration
};

/// A schedule to try: a row of the table, or an order from a file. One of them is set.
struct StudySchedule {
  const ScheduleRow* row = nullptr;
  std::shared_ptr<const Schedule> own = nullptr; ///< it can run; shared by studies that read the same file

  std::string_view name() const { return row != nullptr ? row->name : std::string_view(own->name); }
  /// Whether it is a named one that pairs forwards and backwards layer by layer.
  bool pairs_by_layers() const { return row != nullptr && row->pairs_by_layers; }
};

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

/// What a study is read for. A comparison searches what its `training` leaves open, a run takes plain defaults.
enum class Purpose { run, comparison };

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
