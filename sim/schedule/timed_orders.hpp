// Shared by schedules that depend on times: orders built action by action at the times when they would run, and the
// times of given orders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// A request with its defaults filled in: equal stages and hops of 0 unless given, and room for P micro-batches of a
/// rank's stages.
struct TimedPipeline {
  int ranks = 1, micro_batches = 1;
  std::vector<StageFigures> figures; ///< [stage]
  std::vector<double> hops;          ///< [stage]: s to the next one; 0 on the same rank, and after the last stage
  std::vector<int> home;             ///< [stage]: its rank
  std::vector<double> room;          ///< [rank], with a margin for rounding errors

  int stages() const { return static_cast<int>(figures.size()); }
};
TimedPipeline timed_pipeline(const ScheduleRequest& request, int chunks, StagePlacement placement);

/// The reason if a pipeline is too large for the schedule of this name to order it action by action: time and memory
/// grow with ranks x micro-batches.
std::optional<Infeasible> too_many_to_order(const ScheduleRequest& request, std::string_view name);

/// The reason if a rank cannot hold even one micro-batch of all its stages.
std::optional<Infeasible> lacks_room(const TimedPipeline& pipeline);

/// Orders under construction. Each action goes to the end of its rank's order, runs there as early as it can, and takes
/// the next micro-batch of its kind and stage. The caller must make sure that it fits in memory.
class TimedOrders {
public:
  explicit TimedOrders(const TimedPipeline& pipeline);

  int placed(TaskKind kind, int stage) const { return count_[index(kind, stage)]; }
  double free_at(int rank) const { return free_[rank]; }
  double held(int rank) const { return held_[rank]; }
  /// When the input of a stage's next F or B arrives; infinite if the action that makes it is not placed yet.
  double arrival(TaskKind kind, int stage) const;
  double seconds(TaskKind kind, int stage) const;
  /// Whether one more micro-batch of the stage fits, once `weights` more W are done.
  bool fits(int stage, int weights = 0) const;
  void place(TaskKind kind, int stage);

  /// The number of W that may run on a rank: those of its backwards, in their order.
  int pending(int rank) const { return static_cast<int>(backwards_[rank].size() - weights_[rank]); }
  int pending_stage(int rank, int ahead = 0) const { return backwards_[rank][weights_[rank] + ahead]; }
  void place_weight(int rank) { place(TaskKind::weight, pending_stage(rank)); }
  void make_room(int stage);
  /// Fills the time until `arrival` with W: those that end by then, and one more if more than `least_gap` is left.
  void fill(int rank, double arrival, double least_gap);

  /// How long a rank has waited since its first action, the longest of any rank, and the difference of the two.
  double bubble(int rank) const { return bubble_[rank]; }
  double worst_bubble() const { return worst_bubble_; }
  double slack(int rank) const { return worst_bubble_ - bubble_[rank]; }

  Schedule schedule() const;

private:
  std::size_t index(TaskKind kind, int stage) const { return static_cast<std::size_t>(kind) * stages_ + stage; }
  std::size_t task(TaskKind kind, int stage, int micro_batch) const {
    return index(kind, stage) * pipeline_.micro_batches + micro_batch;
  }

  const TimedPipeline& pipeline_;
  int stages_;
  std::vector<int> count_;  // [kind, stage]
  std::vector<double> end_; // [kind, stage, micro-batch]
  std::vector<double> free_, held_, bubble_;
  double worst_bubble_ = 0;
  std::vector<std::vector<int>> backwards_; // [rank]: stage of each B placed
  std::vector<std::size_t> weights_;        // [rank]: W placed
  std::vector<std::vector<Action>> orders_;
};

/// Times of orders whose ranks go from iteration to iteration without a barrier.
struct OrderTimes {
  double makespan = 0; ///< makespan of the first iteration, from empty; infinite if the orders cannot run
  double period = 0;   ///< period of the steady state, or a little more if that is not reached
};
OrderTimes order_times(const TimedPipeline& pipeline, const Schedule& schedule);

/// A bound that no order can beat if it fits in memory and each rank has one stage: a rank does its share of the work,
/// has only forwards to run until its first gradient comes back, and holds each micro-batch until its gradient comes
/// back. O(ranks).
OrderTimes least_times(const TimedPipeline& pipeline);

/// Whether no rank ever holds more than its room.
bool fits_room(const TimedPipeline& pipeline, const Schedule& schedule);

/// The same order with each B split into B and W.
Schedule split_backward(Schedule schedule);

} // namespace stagecraft
