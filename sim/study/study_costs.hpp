// What follows from a study alone, whichever of its runs asks: routes, costs, bounds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/cost/device_speeds.hpp"
#include "sim/plan/problem.hpp"
#include "sim/study/known_schedules.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// What may be otherwise than the study says, to see what a plan lacks.
enum class FitChange {
  none,
  block_recompute, ///< every numbered block runs again, one after another
  full_recompute,
  unlimited_memory,
  share_states,  ///< `zero` 1, where replicas share nothing
  share_weights, ///< `zero` 3
  more_tensor,   ///< twice the tensor degree, with half the replicas
  more_pipeline, ///< twice the ranks of the pipeline, with half the replicas
};

/// Each value is a function of the study, worked out when it is first asked for. The study must outlive it and stay
/// where it is.
class StudyCosts {
public:
  explicit StudyCosts(const Study& study);
  StudyCosts(const StudyCosts&) = delete;
  StudyCosts& operator=(const StudyCosts&) = delete;

  const Study& study() const { return study_; }
  Router& router() { return router_; }
  KnownSchedules& schedules() { return schedules_; }                ///< those asked for so far
  const std::vector<DeviceId>& devices() const { return devices_; } ///< all of the platform
  /// The study's training, with one of its choices of recompute.
  const Training& training(int recompute) const { return trainings_.at(recompute); }

  const Problem& problem(int micro_batches, int recompute = 0, FitChange change = FitChange::none);
  /// The study's degrees after a change of them; nothing where it has none, or they cannot be changed so.
  std::optional<ParallelDegrees> changed_degrees(FitChange change) const;
  /// The same with the speeds that planners believe, key `believed` of the study.
  const Problem& believed(int micro_batches, int recompute = 0);

  /// The errors of every operator on a device type, at this number of micro-batches.
  const std::vector<OperatorError>& errors(int micro_batches, int type);

  /// Time of the fastest single device for the whole batch at its best micro-batch size, ignoring memory.
  Seconds single_device_seconds();
  /// Proven lower bound on any run's iteration time, with any of the study's numbers of micro-batches and choices of
  /// recompute. `from_empty` as in sim/plan/lower_bound.hpp.
  Seconds bound(bool from_empty);
  /// The same for runs whose kernels may overlap on so many streams of a device.
  Seconds bound_of_streams(int streams);

private:
  const Platform& platform_of(FitChange change);
  const Training& training_of(FitChange change, int recompute);

  /// By micro-batches, choice of recompute and change.
  using Problems = std::map<std::tuple<int, int, FitChange>, std::unique_ptr<Problem>>;

  const Study& study_;
  Router router_;
  KnownSchedules schedules_;
  std::vector<DeviceId> devices_;
  std::vector<Training> trainings_;                       // by choice of recompute
  std::map<std::pair<FitChange, int>, Training> changed_; // by change and choice of recompute
  std::optional<Platform> unlimited_;                     // its devices have room for anything
  std::optional<SpeedWorld> believed_;                    // where it differs from the truth
  Problems problems_, believed_problems_;
  std::map<std::pair<int, int>, std::vector<OperatorError>> errors_; // by micro-batches and device type
  std::optional<Seconds> single_;
  std::map<int, Seconds> bound_of_streams_;
  std::array<std::optional<Seconds>, 2> bound_; // [from empty]
};

} // namespace stagecraft
