// What the devices of a tensor-parallel group do in a pass of a micro-batch: they compute, exchange, compute, and so
// on. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

struct RankShare;
struct TensorSplit;

/// What a group exchanges for a whole micro-batch; the bytes of the whole tensor.
struct Exchange {
  enum class When {
    before,        ///< the operator waits for it
    before_weight, ///< of a backward: only the gradient of the weights waits for it
    after_input,   ///< of a backward: it is made of the gradients of the inputs, and may run beside that of the weights
    after          ///< it is made of what the operator computes
  };
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  When when = When::after;
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
};

/// An exchange begins after a computation, when those before it have ended.
struct PassExchange {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  Seconds seconds;       ///< alone on its links
  std::size_t after = 0; ///< index of the computation
};

/// One pass of a replica's part of a micro-batch. Its devices wait for each other at each exchange; all of them take as
/// long as the slowest for each operator. The last computation needs all exchanges.
struct GroupPass {
  std::vector<PassComputation> computations;
  std::vector<PassExchange> exchanges;
  Seconds seconds;     ///< of all of it, with each exchange alone on its links
  Exchanged exchanged; ///< the part of `seconds` in which the group exchanges data and computes nothing
};

/// What each operator of a stage takes of each pass, [operator of the stage].
struct OperatorSeconds {
  std::vector<Seconds> forward;
  std::vector<Seconds> backward; ///< both gradients
  std::vector<Seconds> backward_input, backward_weight;
  std::vector<Seconds> recompute;
};

/// The passes of a replica.
struct GroupPasses {
  GroupPass forward;
  GroupPass backward;       ///< both gradients of an operator, one after the other, and beside them what may be
  GroupPass backward_input; ///< where the gradients of weights are computed apart
  Seconds backward_weight;  ///< all of these, which need no exchange
  GroupPass recompute;      ///< forward again, of the operators that are recomputed
  GroupPass terms;          ///< once an iteration: gradients are added up of which each device has a term
  OperatorSeconds of_operators;
};

/// How long both gradients of an operator take, with what the group exchanges for them: what only the gradient of the
/// weights needs beside the gradient of the inputs, and what this leaves beside that of the weights.
Seconds backward_seconds(const OperatorTime& time, const RankShare& of_operator, const Group& group, double share);

/// `types` are the types of the group's devices, each once. Times are infinite if one lacks a kernel.
GroupPasses group_passes(const Problem& problem, const Stage& stage, const TensorSplit& split,
                         const std::vector<int>& types, const Group& group, double share);

} // namespace stagecraft
