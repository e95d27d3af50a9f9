// What each device of a tensor-parallel group has of a stage's operators, and what the group exchanges for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "sim/plan/problem.hpp"
#include "sim/plan/program/stage_program.hpp"
#include "sim/plan/stage_cost/passes/group_passes.hpp"

namespace stagecraft {

/// What a rank gets of all ranks that share experts with it, where each gets all tokens: for a whole micro-batch.
struct GatheredTokens {
  Bytes tokens;  ///< all of them, held until rows are made of them
  Bytes choices; ///< which experts each chose, and what each expert's result weighs; held as long
  Bytes kept;    ///< the part of the choices that backward needs: those of the rank's own experts
};

/// One operator, as a device has it. Parts are fractions of what its replica has of a micro-batch, which on a context
/// axis is its part of the tokens.
struct RankShare {
  Shard shard;             ///< degree 1: each device does the whole operator
  double parameters = 1;   ///< the part of its parameters
  bool of_experts = false; ///< ranks share its experts
  /// The part of what its file, or frozen weights and copies of weights, take all the time, in a tensor group of t.
  double resident(int t) const { return of_experts ? parameters : 1.0 / t; }
  double stash = 1;                        ///< the part of what it keeps for backward
  double weight_stash = 1;                 ///< the part of what its weight gradient needs
  double output = 1;                       ///< the part of its output that later operators find
  std::vector<Exchange> forward, backward; ///< in each pass
  Bytes exchanged;                         ///< bytes sent in either pass, if a file gives them
  GatheredTokens gathered{};               ///< for its forward
  bool deferred = false;                   ///< the gradient of its weights is computed after all backwards
  Bytes terms; ///< gradients of which each device has a term; added up over the group once an iteration
};

struct TensorSplit {
  std::vector<RankShare> operators; ///< in the stage's order
  double borders = 1;               ///< the part that a device has of each tensor at the stage's borders
};

/// How fast tensor-parallel groups that share operators in the same way are; only a search for letters asks.
struct GroupSpeed {
  std::vector<int> types; ///< of their devices, each once
  Group group;            ///< the slowest of them
  double share = 1;       ///< the largest share of a micro-batch
};

/// Of the groups that these devices form, one after the other. Nothing where the axis's rule is no search.
GroupSpeed speed_of_groups(const Problem& problem, const std::vector<DeviceId>& devices, const StageAxes& axes,
                           double share);

/// Reads off the stage's program (stage_program). If the model's file has measured an operator at this degree, its
/// times include all that is exchanged, except what the file says a cut adds. A group of one has and exchanges
/// everything and nothing. `known`: where stages may be alike; null: they are not.
std::variant<TensorSplit, Infeasible> split_tensors(const Problem& problem, const std::vector<OperatorId>& stage,
                                                    const StageAxes& axes, const GroupSpeed& speed = {},
                                                    KnownPrograms* known = nullptr);

/// The part of a wait that is bytes which a file gives; the same in both passes.
Seconds given_wait(const RankShare& of_operator, const Group& group, double share);

} // namespace stagecraft
