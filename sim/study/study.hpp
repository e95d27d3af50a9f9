// A study: which splits and schedules to compare, of which model, on which platform. docs/formats/study.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/replay/replay.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/study/inputs.hpp"
#include "sim/study/perturb_runs.hpp"

namespace stagecraft {

/// What a device's speed may be, in parts of the speed that its type says.
inline constexpr yaml::Range kSpeed{0.001, 1000, true, "0.001 to 1000"};

/// Something that happens to a device before an iteration of `adapt`.
struct AdaptEvent {
  int iteration = 0;
  DeviceId device = 0;
  double speed = 1; ///< from then on, in parts of what its type says
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

/// Right by construction: the loader has checked every name and number.
struct Study {
  std::string name, description;
  /// Stays in place when the study moves, as the cost model refers to it; shared by studies that differ elsewhere.
  std::shared_ptr<const ModelGraph> model;
  Platform platform;
  Training training;
  std::optional<Loader> loader;                  ///< nothing: data is at hand
  std::unique_ptr<const DeviceType> profiled_on; ///< device type of the model's profiles, where it is known
  std::unique_ptr<CostModel> cost;
  std::vector<const StrategyRow*> strategies;
  std::vector<const ScheduleRow*> schedules;
  std::vector<Plan> plans; ///< made elsewhere, to run beside the strategies' own
  BalanceOptions balance;  ///< of the strategy dynamic
  /// Per device, how fast planners believe it is, in parts of its true speed; replays know the truth.
  std::vector<double> believed_speeds;
  const EngineRow* engine = &kEngines[0];
  std::uint64_t seed = 1;
  std::optional<AdaptOptions> adapt;
  std::optional<PerturbOptions> perturb;
  int confidence = 0; ///< draws of the cost model's errors; 0: its times are taken at their word
};

/// Reads a study document with settings on top. Throws InputError.
Study load_study(const yaml::Node& document, const Folders& folders, const std::vector<Setting>& settings);

/// Reads a plan in any form (plan_formats.hpp) and adds it to the study. A plan called like a strategy or like a plan
/// before it is called after its file too, and after as many of the file's folders as it takes.
void add_plan(Study& study, const std::filesystem::path& path, std::string_view format);

/// A document with the model and platform given by flags, to be read by load_study().
yaml::Node study_document(const std::string& model, const std::string& platform);

} // namespace stagecraft
