// What the devices of a replica do in a pass of a micro-batch: they compute, exchange, compute, and so on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"
#include "sim/plan/stage_cost/groups/axis_groups.hpp"
#include "sim/plan/stage_cost/passes/host_launches.hpp"

namespace stagecraft {

struct RankShare;
struct TensorSplit;

/// What the groups of an axis exchange for a whole micro-batch; the bytes of the whole tensor, of each group's tensor
/// times the number of groups that have samples or tokens of their own.
struct Exchange {
  enum class When {
    before,        ///< the operator waits for it
    round,         ///< it goes round as a ring, each step beside a part of the operator
    before_weight, ///< of a backward: only the gradient of the weights waits for it
    after_input,   ///< of a backward: it is made of the gradients of the inputs, and may run beside that of the weights
    after          ///< it is made of what the operator computes
  };
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  When when = When::after;
  Axis axis = Axis::tensor;
  /// Rows that come by sender, of which a device has several experts: it puts them in the order of these, and back.
  bool sorts = false;
};

/// The part of a time in which the devices of a tensor-parallel group exchange data, and how much of it is latency.
struct Exchanged {
  Seconds all, latency;
  Seconds hidden{}; ///< not in `all`: it exchanges data and computes

  Exchanged& operator+=(const Exchanged& other) {
    all += other.all;
    latency += other.latency;
    hidden += other.hidden;
    return *this;
  }
};

/// What each device computes between two exchanges that it begins or waits for.
struct PassComputation {
  Seconds seconds;
  std::size_t needs = 0; ///< exchanges, from the pass's first one on, that have ended before
  Seconds launching{};   ///< in which the host launches it, and the exchanges behind it
};

/// An exchange begins after a computation, when those before it have ended.
struct PassExchange {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  Seconds seconds;       ///< alone on its links
  std::size_t after = 0; ///< index of the computation
  Axis axis = Axis::tensor;
  bool counted = false; ///< what computations beside it lose to it is a part of their times
  int processors = 0;   ///< multiprocessors that its kernels take on each rank; 0: not known
  bool awaited = false; ///< the host waits until what is before it has been computed
  Seconds launching{};  ///< in which the host launches it, behind that wait
};

/// One pass of a replica's part of a micro-batch. The devices of a group wait for each other at each exchange; those of
/// a replica take as long as the slowest for each operator. The last computation needs all exchanges.
struct GroupPass {
  std::vector<PassComputation> computations;
  std::vector<PassExchange> exchanges;
  Seconds seconds;     ///< of all of it, with each exchange alone on its links
  Exchanged exchanged; ///< the part of `seconds` in which the device exchanges data and computes nothing
  std::array<Seconds, kPassAxes.size()> of_axes{}; ///< all exchanges of each axis, one after another
};

/// What each operator of a stage takes of each pass, [operator of the stage].
struct OperatorSeconds {
  std::vector<Seconds> forward;
  std::vector<Seconds> backward; ///< both gradients
  std::vector<Seconds> backward_input, backward_weight;
  std::vector<Seconds> recompute;
};

/// Passes as a device takes them whose host is never late.
struct PromptPasses {
  GroupPass forward, backward, backward_input;
};

/// The passes of a replica.
struct GroupPasses {
  GroupPass forward;
  GroupPass backward;       ///< both gradients of an operator, one after the other, and beside them what may be
  GroupPass backward_input; ///< where the gradients of weights are computed apart
  Seconds backward_weight;  ///< all of these, which need no exchange
  Seconds deferred;         ///< of these, what `backward` leaves until after all backwards
  GroupPass recompute;      ///< forward again, of the operators that are recomputed
  GroupPass terms;          ///< once an iteration: gradients are added up of which each device has a term
  OperatorSeconds of_operators;
  AtRest rest;
  Seconds ahead; ///< by how much the host has launched a backward before the device has computed it
  std::optional<PromptPasses> prompt; ///< where the host is late and ranks share experts; else these are prompt
};

/// How long a forward of an operator takes, with what the groups exchange for it.
Seconds forward_seconds(const OperatorTime& time, const RankShare& of_operator, const AxisGroups& groups, double share);

/// How long both gradients of an operator take, with what the groups exchange for them: what only the gradient of the
/// weights needs beside the gradient of the inputs, and what this leaves beside that of the weights.
Seconds backward_seconds(const OperatorTime& time, const RankShare& of_operator, const AxisGroups& groups,
                         double share);

/// `types` are the types of the replica's devices, each once, and `loads` what falls to it of each operator of the
/// stage, to an equal share: empty where all is 1. Times are infinite if one lacks a kernel.
GroupPasses group_passes(const Problem& problem, const Stage& stage, const TensorSplit& split,
                         const std::vector<int>& types, const AxisGroups& groups, double share,
                         const std::vector<double>& loads = {});

} // namespace stagecraft
