// Schedules: the order of work on each device. One file each, one row each; everything else is a shared pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/plan/stage_costs.hpp"

namespace stagecraft {

/// Kinds of work. B is the whole backward pass unless the schedule splits it; then B is the input gradient, W the
/// weight gradient. A batch of the loader is read from disk, loaded (decoded on a host core) and copied to its device.
enum class TaskKind : std::uint8_t {
  forward,
  backward,
  weight,
  recompute,
  transfer,
  all_reduce,
  optimizer,
  read,
  load,
  copy
};

inline constexpr std::string_view kTaskLetters = "FBWRTAODLC";
inline constexpr std::array<std::string_view, kTaskLetters.size()> kTaskNames = {
    "forward", "backward", "weight", "recompute", "transfer", "all-reduce", "optimizer", "read", "load", "copy"};

/// The name of a kind in results and traces.
constexpr std::string_view name_of(TaskKind kind) { return kTaskNames.at(static_cast<std::size_t>(kind)); }

/// One piece of work of a schedule.
struct Action {
  TaskKind kind = TaskKind::forward;
  std::int32_t micro_batch = 0; ///< where iterations overlap, those of the next one follow on: M, M + 1, …
  std::int32_t stage = 0;       ///< global: in a chain of all stages
  bool fused =
      false; ///< fused with the action before it: they start together, and the outputs of both are sent at their end
  bool operator==(const Action&) const = default;
};

/// Per rank the order of work of one iteration. Rank r is the r-th device of a plan, or all replicas of a stage. A
/// stage may live on several ranks, each micro-batch of it on one of them: then every one of them holds its weights,
/// and they reduce their gradients together.
struct Schedule {
  std::string name;
  int stages = 0, micro_batches = 0;
  bool splits_backward = false;
  /// Whether the pipeline runs dry between iterations. Without it the orders are those of the steady state: ranks go
  /// from one iteration to the next without a pause, and forwards of later iterations stand among those of this one.
  bool flushes = true;
  bool steps_each_micro_batch = false; ///< the optimiser runs after every backward, not once per iteration
  bool predicts_weights = false;       ///< each forward first extrapolates its weights (XPipe)
  std::vector<int> versions;           ///< [stage]: versions of its weights that a rank keeps; empty: 1 each
  std::vector<double> staleness;       ///< [stage]: optimiser steps between the weights that F used and those that its
                                       ///< gradient updates, the mean over micro-batches; empty: 0 each
  std::vector<std::vector<Action>> orders;
  bool operator==(const Schedule&) const = default;
};

/// What a schedule that depends on times knows about a stage. Equal stages by default.
struct StageFigures {
  double forward = 1, backward_input = 1, backward_weight = 1; ///< s per micro-batch
  double activation = 1; ///< amount held from F until B, or until W where B is split
  double kept = 1;       ///< share of `activation` that W needs; B releases the rest
};

struct ScheduleRequest {
  int ranks = 1;
  int micro_batches = 1;
  int chunks = 1;            ///< stages per rank; rows with a number of their own ignore it
  std::vector<int> replicas; ///< [stage], for schedules whose replicas take whole micro-batches in turn; empty: 1 each
  std::vector<StageFigures> figures; ///< [stage]; empty: equal stages
  std::vector<double> hops;          ///< [stage]: s from it to the next, one less than stages; empty: 0
  std::vector<double> room;          ///< [rank]: most activations held at once, in their unit; empty: as the row says
  /// Period of an order as the replay finds it, s; infinite where it does not fit. Empty: a replay of the figures.
  std::function<double(const Schedule&)> evaluate;
};

using ScheduleResult = std::variant<Schedule, Infeasible>;

struct ScheduleRow {
  std::string_view name, help;
  ScheduleResult (*make)(const ScheduleRequest& request);
  bool splits_backward = false;
  int chunks = 1;                                               ///< stages per rank; 0: as many as asked for
  StagePlacement stage_placement = StagePlacement::interleaved; ///< on which ranks
  bool bidirectional = false;       ///< stage s lives on rank P-1-s too, and half of the micro-batches run there
  bool in_turn = false;             ///< replicas of a stage are ranks, which take whole micro-batches in turn
  std::string_view planned_as = {}; ///< schedule whose counts planners assume, for one made after the plan
};
std::span<const ScheduleRow> schedules();

/// The row that planners assume for a schedule: its own, unless it is made after the plan (planned_as).
const ScheduleRow& planned_row(const ScheduleRow& row);

/// Stages per rank of a row's schedule when `asked` are asked for.
constexpr int chunks_of(const ScheduleRow& row, int asked) { return row.chunks > 0 ? row.chunks : asked; }

/// The schedule of a row, or why there is none for these numbers.
ScheduleResult make_schedule(const ScheduleRow& row, const ScheduleRequest& request);

/// Micro-batches (of a stage) that each stage holds at the moment when its rank holds most: activations are kept from F
/// until B, or until W where backward is split. Of a stage that lives on several ranks, on that which holds most of it;
/// where iterations overlap, in the steady state. From B until W a micro-batch counts `kept`.
std::vector<double> in_flight(const Schedule& schedule, double kept = 1);

/// The micro-batches that each rank holds at most, one for each of its stages: from F until B, or until W where
/// backward is split.
std::vector<int> most_held(const Schedule& schedule);

/// One iteration alone, of a schedule whose iterations overlap: what its ranks do from empty until the pipeline is
/// empty again. Of any other schedule, the schedule.
Schedule from_empty(const Schedule& schedule);

/// "F0@0 B0@0 …", micro-batch @ global stage; + joins what is fused.
std::string to_text(std::span<const Action> order);
/// The text of each task.
std::vector<std::string> tokens(std::span<const Action> order);

/// Every defect, in words: a missing or repeated task, a micro-batch of a stage on two ranks, or a cycle of waiting
/// tasks, which would be a deadlock. Where iterations overlap the steady state and one iteration alone are both looked
/// at; in the steady state a task may need nothing of a later round of the orders. O(tasks).
std::vector<std::string> schedule_defects(const Schedule& schedule);

/// Puts R before each B of a stage whose flag is set, or before all that is fused with it; none where F and B of a
/// micro-batch are fused.
Schedule add_recompute(Schedule schedule, std::span<const char> recomputing_stages, const RecomputeRule& rule);

/// The order that runs any plan: whenever a device is free it takes B before F, the oldest micro-batch first, then the
/// stage with the longest path to go. Ranks are the plan's devices in order of their first stage. Transfers take their
/// time on an empty network. O(tasks log tasks).
Schedule make_list_schedule(Router& router, const Plan& plan, const PlanCost& cost, int micro_batches);

} // namespace stagecraft
