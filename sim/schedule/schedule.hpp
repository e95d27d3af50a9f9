// Schedules: the order of work on each device. A schedule is one file and one row; everything else is done by shared
// passes.
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
#include "sim/plan/stage_cost/stage_costs.hpp"

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
  copy,
  reduce_scatter,
  all_gather,
  exchange,   ///< what a tensor-parallel group exchanges in an F, B, R or optimiser step
  all_to_all, ///< of gradients, as one of the two hops by which they are reduced in 4 bits
  dequantize, ///< makes gathered weights into numbers that a unit computes with
  to_host,    ///< what a device leaves to its host
  from_host,  ///< and gets back
  host_step,  ///< the optimiser on a host's cores
  broadcast   ///< of the tensors that each replica has stepped, to all others that share
};

inline constexpr std::string_view kTaskLetters = "FBWRTAODLCSGXEQUVHP";
inline constexpr std::array<std::string_view, kTaskLetters.size()> kTaskNames = {
    "forward",    "backward",     "weight",         "recompute",      "transfer",   "all-reduce", "optimizer",
    "read",       "load",         "copy",           "reduce-scatter", "all-gather", "exchange",   "all-to-all",
    "dequantize", "copy to host", "copy from host", "host step",      "broadcast"};

/// Whether replicas do it together: for gradients, or for parameters.
constexpr bool is_collective(TaskKind kind) {
  return kind == TaskKind::all_reduce || kind == TaskKind::reduce_scatter || kind == TaskKind::all_gather ||
         kind == TaskKind::all_to_all || kind == TaskKind::broadcast;
}

/// Whether it is between a device and its host, or the host's own.
constexpr bool is_offload(TaskKind kind) {
  return kind == TaskKind::to_host || kind == TaskKind::from_host || kind == TaskKind::host_step;
}

/// The name of a kind in results and traces.
constexpr std::string_view name_of(TaskKind kind) { return kTaskNames.at(static_cast<std::size_t>(kind)); }

/// One piece of work of a schedule.
struct Action {
  TaskKind kind = TaskKind::forward;
  std::int32_t micro_batch = 0; ///< if iterations overlap, the next one's have the numbers M, M + 1, …
  std::int32_t stage = 0;       ///< global: its number in the chain of all stages
  bool fused =
      false; ///< fused with the action before it: they start together, and the outputs of both are sent at their end
  bool operator==(const Action&) const = default;
};

/// The order of work of one iteration, for each rank. Rank r is the r-th device of a plan, or all replicas of a stage.
/// A stage may live on several ranks, each of which runs some of its micro-batches; all of them then hold its weights
/// and reduce their gradients together.
struct Schedule {
  std::string name;
  int stages = 0, micro_batches = 0;
  bool splits_backward = false;
  /// Whether the pipeline empties between iterations. If not, the orders are those of the steady state: ranks go from
  /// one iteration to the next without a pause, and an order also has forwards of later iterations.
  bool flushes = true;
  int fills = 1; ///< times that it empties within an iteration and at its end, each after as many micro-batches
  bool steps_each_micro_batch = false; ///< the optimiser runs after every backward, not once per iteration
  bool predicts_weights = false;       ///< each forward first extrapolates its weights (XPipe)
  bool pairs_by_layers = false;        ///< as in the row
  std::vector<int> versions;           ///< [stage]: versions of its weights that a rank keeps; empty: 1 each
  std::vector<double> staleness;       ///< [stage]: optimiser steps between the weights that F used and those that its
                                       ///< gradient updates, the mean over micro-batches; empty: 0 each
  std::vector<std::vector<Action>> orders;
  bool operator==(const Schedule&) const = default;
};

/// What a schedule that depends on times knows about a stage. Equal stages by default.
struct StageFigures {
  double forward = 1, backward_input = 1, backward_weight = 1; ///< s per micro-batch
  double activation = 1;                                       ///< amount held from F until B, or until W if B is split
  double kept = 1; ///< share of `activation` that W needs; B releases the rest
};

struct ScheduleRequest {
  int ranks = 1;
  int micro_batches = 1;
  int chunks = 1;            ///< stages per rank; rows with a number of their own ignore it
  int fills = 1;             ///< as of the schedule
  std::vector<int> replicas; ///< [stage], for schedules whose replicas take whole micro-batches in turn; empty: 1 each
  std::vector<StageFigures> figures; ///< [stage]; empty: equal stages
  std::vector<double> hops;          ///< [stage]: s from the stage to the next, so one entry less than stages; empty: 0
  std::vector<double> room;          ///< [rank]: most activations held at once, in the unit of `activation`; empty: as
                                     ///< the row says
  /// The period of a schedule in the replay, s; infinite if the schedule does not fit in memory. Empty: the figures are
  /// replayed instead.
  std::function<double(const Schedule&)> evaluate;
};

using ScheduleResult = std::variant<Schedule, Infeasible>;

struct ScheduleRow {
  std::string_view name, help;
  ScheduleResult (*make)(const ScheduleRequest& request);
  bool splits_backward = false;
  int chunks = 1;                                               ///< stages per rank; 0: as many as asked for
  StagePlacement stage_placement = StagePlacement::interleaved; ///< on which ranks
  bool bidirectional = false;   ///< stage s lives on rank P-1-s too, and half of the micro-batches run there
  bool pairs_by_layers = false; ///< what is fused runs beside each other in a fixed order, layer by layer (Megatron)
  bool timed = false;           ///< the order follows the stages' figures, not only the numbers
  bool in_turn = false;         ///< replicas of a stage are ranks, which take whole micro-batches in turn
  std::string_view planned_as = {}; ///< the schedule whose counts planners assume if this one is made after the plan
};
std::span<const ScheduleRow> schedules();

/// The row that planners assume for a schedule: its own, unless it is made after the plan (planned_as).
const ScheduleRow& planned_row(const ScheduleRow& row);

/// Stages per rank of a row's schedule when `asked` are asked for.
constexpr int chunks_of(const ScheduleRow& row, int asked) { return row.chunks > 0 ? row.chunks : asked; }

/// The schedule of a row, or why there is none for these numbers.
ScheduleResult make_schedule(const ScheduleRow& row, const ScheduleRequest& request);

/// An iteration that fills and drains the pipeline so often: the same order with further micro-batches, one after the
/// other.
Schedule repeat(const Schedule& once, int fills);

/// For each stage, the micro-batches that it holds at the moment when its rank holds most. Activations are kept from F
/// until B, or until W if backward is split; from B until W a micro-batch counts `kept`. If a stage lives on several
/// ranks, the one that holds most of it counts. If iterations overlap, the counts are those of the steady state.
std::vector<double> in_flight(const Schedule& schedule, double kept = 1);

/// The most micro-batches that each rank holds, counted once for each of its stages: from F until B, or until W if
/// backward is split.
std::vector<int> most_held(const Schedule& schedule);

/// The order with the backward of each fused pair before its forward: where they pair by layers, each layer's backward
/// gives back what the forward's takes.
std::vector<Action> backwards_first(std::vector<Action> order);

/// One iteration alone: what the ranks do from an empty pipeline until it is empty again. A schedule whose iterations
/// do not overlap comes back unchanged.
Schedule from_empty(const Schedule& schedule);

/// "F0@0 B0@0 …", micro-batch @ global stage; + joins what is fused.
std::string to_text(std::span<const Action> order);
/// The text of each task.
std::vector<std::string> tokens(std::span<const Action> order);

/// Describes every defect: a missing or repeated task, a micro-batch of a stage on two ranks, or a cycle of waiting
/// tasks, which would be a deadlock. If iterations overlap, both the steady state and one iteration alone are checked;
/// in the steady state no task may need one of a later round. O(tasks).
std::vector<std::string> schedule_defects(const Schedule& schedule);

/// One such reason.
struct ScheduleDefect {
  std::string text;
  int rank = -1; ///< the rank whose order shows it; -1: no rank's alone
};
/// The same, each with its rank.
std::vector<ScheduleDefect> find_defects(const Schedule& schedule);

/// Puts R before each B of a stage whose flag is set, and before all that the B is fused with. Adds none if F and B of
/// one micro-batch are fused, or if `rule` says so.
Schedule add_recompute(Schedule schedule, std::span<const char> recomputing_stages, const RecomputeRule& rule);

/// The order that runs any plan: whenever a device is free, it takes B before F, then the oldest micro-batch, then the
/// stage with the longest path to go. Ranks are the plan's devices in order of their first stage. Transfers take as
/// long as on an empty network. O(tasks log tasks).
Schedule make_list_schedule(Router& router, const Plan& plan, const PlanCost& cost, int micro_batches);

} // namespace stagecraft
