// Schedules: the order of work on each device. One file each, one row each; everything else is a shared pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// One piece of work of a schedule.
struct Action {
  TaskKind kind = TaskKind::forward;
  std::int32_t micro_batch = 0;
  std::int32_t stage = 0; ///< global: chunk * ranks + rank where stages are dealt out in turn
  bool operator==(const Action&) const = default;
};

/// Per rank the order of work of one iteration. Rank r is the r-th device of a plan, or all replicas of a stage.
struct Schedule {
  std::string name;
  int stages = 0, micro_batches = 0;
  bool splits_backward = false;
  std::vector<std::vector<Action>> orders;
  bool operator==(const Schedule&) const = default;
};

struct ScheduleRequest {
  int ranks = 1;
  int micro_batches = 1;
  int chunks = 1; ///< stages per rank; only 1 for schedules that do not interleave
};

using ScheduleResult = std::variant<Schedule, Infeasible>;

struct ScheduleRow {
  std::string_view name, help;
  bool splits_backward;
  bool interleaves; ///< several stages per rank
  ScheduleResult (*make)(const ScheduleRequest& request);
};
std::span<const ScheduleRow> schedules();

/// The row's schedule, or why it cannot be had for these numbers.
ScheduleResult make_schedule(const ScheduleRow& row, const ScheduleRequest& request);

/// Micro-batches (of a stage) that each stage holds at the moment when its rank holds most: activations are kept from F
/// until B, or until W where backward is split.
std::vector<double> in_flight(const Schedule& schedule);

/// "F0@0 B0@0 …", micro-batch @ global stage.
std::string to_text(std::span<const Action> order);

/// Every defect, in words: a missing or repeated task, a task of a stage on two ranks, or a cycle of waiting tasks,
/// which would be a deadlock.
std::vector<std::string> schedule_defects(const Schedule& schedule);

/// How recomputation enters an order.
struct RecomputeRule {
  bool early = true;                    ///< R may start before the gradient arrives; otherwise it waits like B
  bool skip_after_own_forward = false;  ///< no R where F of the same micro-batch stands directly before its B
  bool except_last_micro_batch = false; ///< torchgpipe `except_last`
};

/// Puts R before each B of a stage whose flag is set.
Schedule add_recompute(Schedule schedule, std::span<const char> recomputing_stages, const RecomputeRule& rule);

ScheduleResult make_naive(const ScheduleRequest&);
ScheduleResult make_accumulate(const ScheduleRequest&);
ScheduleResult make_gpipe(const ScheduleRequest&);
ScheduleResult make_one_f_one_b(const ScheduleRequest&);
ScheduleResult make_eager_one_f_one_b(const ScheduleRequest&);
ScheduleResult make_interleaved(const ScheduleRequest&);
ScheduleResult make_zb_h1(const ScheduleRequest&);

/// The order that runs any plan: whenever a device is free it takes B before F, the oldest micro-batch first, then the
/// stage with the longest way to go. Ranks are the plan's devices in order of their first stage. Transfers take their
/// time on an empty network. O(tasks log tasks).
Schedule make_list_schedule(Router& router, const Plan& plan, const PlanCost& cost, int micro_batches);

} // namespace stagecraft
