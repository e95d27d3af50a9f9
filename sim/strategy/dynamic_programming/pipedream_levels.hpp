// PipeDream's optimiser (Narayanan et al. 2019, section 3.1; docs/model.md, "PipeDream") on plain numbers: stages,
// their replicas, and a hierarchy of links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sim/strategy/dynamic_programming/antichains.hpp"

namespace stagecraft {

/// Where a model can be cut. State 0 is before the first operator, the last one after all; a state stands for the
/// operators before it, and all figures are sums over those, for one minibatch on one worker.
struct LevelStates {
  std::vector<double> seconds;
  std::vector<double> parameter_bytes;
  std::vector<double> output_bytes; ///< bytes of the augmented antichain, which cross the cut as PipeDream counts it
  std::vector<std::vector<std::int32_t>> above; ///< [state]: the states that hold all its operators and more, ascending
};

/// The states that PipeDream's optimiser considers. If a model has several sources, these are only the connected ideals
/// that hold the first operator, because the search begins at that source and reaches another one where their data
/// join. The empty state and the last one are always included. With more than `cap` states, or if the model itself is
/// not connected, they are those of antichain_states().
AntichainStates pipedream_states(const ModelGraph& model, int cap);

/// Figures of each operator for one minibatch.
struct OperatorFigures {
  std::vector<double> seconds, parameter_bytes, output_bytes;
};

/// Sums over the states of a graph. The bytes of an augmented antichain also count tensors that the operators of one
/// branch have used up already; PipeDream's published plans carry this, so it is kept.
LevelStates level_states(const ModelGraph& model, const AntichainStates& states, const OperatorFigures& figures);

/// A group of workers: `units` units of the level below, joined by links that give each unit `bandwidth`. The innermost
/// level comes first.
struct Level {
  int units = 1;
  BytesPerSecond bandwidth;
  int most_replicas = std::numeric_limits<int>::max(); ///< the most replicas of one stage over the units
};

/// A possible stage: it begins at state `from`, ends at `to`, and runs on `replicas` units of a level (0: innermost);
/// `after` more units of its group run later stages.
struct StageCandidate {
  int level, from, to, replicas, after;
};

/// The least memory of a stage on each of its workers: `fixed`, and its replica's share of `per_micro_batch` for each
/// micro-batch in flight. Both are differences of sums over states.
struct LevelMemory {
  std::vector<double> fixed, per_micro_batch; ///< [state], bytes
  std::vector<double> held;                   ///< [innermost units after it in its group]: micro-batches in flight
  double capacity = 0;                        ///< bytes of a worker
};

struct LevelOptions {
  /// Activations are sent in 1/compression of their bytes; nothing: sending them takes no time.
  std::optional<double> compression = 1;
  bool straight = false;                           ///< no stage is replicated
  bool fewer_units = false;                        ///< units may stay idle
  std::function<bool(const StageCandidate&)> fits; ///< none: memory has no limit
  std::optional<LevelMemory> memory;               ///< a lower bound on what `fits` asks for; shortens the search
};

/// Stages of one level, and how each is split over the units that one replica has.
struct LevelStage {
  int from = 0, to = 0;          ///< states
  int replicas = 1;              ///< units of this level, each of which runs all of `inner`
  std::vector<LevelStage> inner; ///< empty at the innermost level
};

struct LevelPlan {
  double stage_seconds = 0;       ///< per minibatch, of the slowest stage or transfer
  std::vector<LevelStage> stages; ///< stages of the outermost level
};

/// The plan of least stage time. With A(i, j, m) the least for the operators between states i and j on m units,
/// U the time on one unit (at the innermost level T, the work; above it A of the level below on all its units), w the
/// parameters, out the bytes at a state, B the bandwidth, u the units of the level below (1 at the innermost):
///
///   one stage:  (U(i,j) + 4 (m-1) w(i,j) / (B m u)) / m
///   split at k: max(A(i,k,m-n), (U(k,j) + 4 (n-1) w(k,j) / (B n)) / n, 2 out(k) / (B n), 2 out(j) / (B n)),
///
/// the last term only if j is not the end. A split replaces one stage only if it is better by more than 1e-9 of its
/// value. No value if no plan fits or the units cannot all be used. Cost: states^2 * units^2 at the outermost level and
/// states^3 * units^2 below it; bounds on the work to the left and right of a split prune most of it.
std::optional<LevelPlan> pipedream_plan(const LevelStates& states, std::span<const Level> levels,
                                        const LevelOptions& options);

/// Time per minibatch with the whole model replicated over all units of all levels, as PipeDream counts it.
double replicated_seconds(const LevelStates& states, std::span<const Level> levels);

} // namespace stagecraft
