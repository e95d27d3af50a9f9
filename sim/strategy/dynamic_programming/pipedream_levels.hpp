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

/// The states that PipeDream's optimiser looks at: where a model has several sources, only ideals that hold the first
/// operator and hang together, because the search begins at that source and meets another one where their data join.
/// The empty state and the last one are always there. Beyond `cap` states, or where the model itself does not hang
/// together, those of antichain_states().
AntichainStates pipedream_states(const ModelGraph& model, int cap);

/// Figures of each operator for one minibatch.
struct OperatorFigures {
  std::vector<double> seconds, parameter_bytes, output_bytes;
};

/// Sums over the states of a graph. The bytes of an augmented antichain count a tensor again that one of several
/// branches has used up already; PipeDream's published plans carry this, so it is kept.
LevelStates level_states(const ModelGraph& model, const AntichainStates& states, const OperatorFigures& figures);

/// Groups of workers, innermost level first: so many of the units of the level below, joined by links that give each
/// unit so much.
struct Level {
  int units = 1;
  BytesPerSecond bandwidth;
  int most_replicas = std::numeric_limits<int>::max(); ///< replicas of one stage over the units, at most
};

/// A stage that may be: it ends at state `to`, begins at `from`, runs on `replicas` units of a level (0: innermost),
/// and `after` more units of its group run later stages.
struct StageCandidate {
  int level, from, to, replicas, after;
};

/// What a stage needs at least on each of its workers: `fixed`, and of what is held per micro-batch in flight its
/// replica's share, both differences of sums over states.
struct LevelMemory {
  std::vector<double> fixed, per_micro_batch; ///< [state], bytes
  std::vector<double> held;                   ///< [innermost units of the group that run later stages]: in flight
  double capacity = 0;                        ///< bytes of a worker
};

struct LevelOptions {
  /// Activations are sent in 1/compression of their bytes; nothing: sending them takes no time.
  std::optional<double> compression = 1;
  bool straight = false;                           ///< no stage is replicated
  bool fewer_units = false;                        ///< units may stay idle
  std::function<bool(const StageCandidate&)> fits; ///< none: memory has no limit
  std::optional<LevelMemory> memory;               ///< where `fits` asks for no less; only makes the search shorter
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
/// the last term only where j is not the end. A split replaces one stage only if it is better by more than 1e-9 of it.
/// Nothing where no plan fits or the units cannot all be used. Cost: states^2 * units^2 at the outermost level,
/// states^3
/// * units^2 below it, of which bounds on the work left of and right of a split prune most.
std::optional<LevelPlan> pipedream_plan(const LevelStates& states, std::span<const Level> levels,
                                        const LevelOptions& options);

/// Time per minibatch with the whole model replicated over all units of all levels, as PipeDream counts it.
double replicated_seconds(const LevelStates& states, std::span<const Level> levels);

} // namespace stagecraft
