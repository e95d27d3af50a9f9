// A plan: which operators form a stage, and which devices run it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/plan/program/stage_axes.hpp"
#include "sim/plan/rounds.hpp"
#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// A convex set of operators on a group of devices. With r * t devices, replica i is the devices i t … i t + t-1. They
/// compute every operator together, a shard each (tensor parallelism). Each replica runs a share of every micro-batch,
/// and the devices that hold the same shard reduce their gradients together. With a context axis of c, the replicas
/// i c … i c + c-1 share tokens: each runs its tokens of the same samples, and they exchange data in attention.
struct Stage {
  std::vector<OperatorId> operators;             ///< ascending
  std::vector<DeviceId> devices;                 ///< replica by replica, in each by rank
  std::vector<double> shares;                    ///< of each replica, adding up to 1 in a turn; empty: equal shares
  int tensor_parallel = 1;                       ///< t, which divides the number of devices
  bool sequence_parallel = false;                ///< between products the devices of a replica share tokens
  TensorRule tensor_rule = TensorRule::megatron; ///< by which they share operators
  Recompute recompute = Recompute::none;
  std::vector<OperatorId> recomputed; ///< for a selective stage: the operators that run forward again, ascending
  Context context{};                  ///< replicas that share tokens
  Experts experts{};                  ///< ranks, across replicas, that share experts
  int turns = 1;   ///< so many groups of equally many replicas take whole micro-batches in turn, not a share of each
  int streams = 0; ///< streams of the device on which its kernels run; 0: as the training says

  StageAxes axes() const { return {tensor_parallel, sequence_parallel, tensor_rule, context, experts}; }
  std::size_t replicas() const { return devices.size() / static_cast<std::size_t>(tensor_parallel); }
  double share(std::size_t replica) const {
    return shares.empty() ? static_cast<double>(turns) / static_cast<double>(replicas()) : shares[replica];
  }
  /// Whether an operator of the stage runs forward again before backward.
  bool recomputes(OperatorId op) const {
    return recompute == Recompute::full ||
           (recompute == Recompute::selective && std::binary_search(recomputed.begin(), recomputed.end(), op));
  }
  bool operator==(const Stage&) const = default;
};

/// How a stage may recompute, as plan files and results name it.
struct StageRecomputeRow {
  std::string_view name;
  Recompute recompute;
};
inline constexpr std::array kStageRecomputes = {
    StageRecomputeRow{"none", Recompute::none},
    StageRecomputeRow{"full", Recompute::full},
    StageRecomputeRow{"selective", Recompute::selective},
};
constexpr std::string_view name_of(Recompute recompute) {
  return kStageRecomputes[static_cast<std::size_t>(recompute)].name;
}

/// What a strategy itself minimised, if that is a time.
struct Objective {
  std::string name;
  Seconds value;
  bool operator==(const Objective&) const = default;
};

/// Stages in topological order: data flows from earlier to later ones only.
struct Plan {
  std::string strategy;
  std::vector<Stage> stages;
  std::optional<Objective> objective;
  std::string note;            ///< what a reader must know: a search cut short, branches contracted
  bool default_loader = false; ///< loads data as frameworks do by default: one worker, a queue of one, cores that spin
  bool memory_bound = false;   ///< more memory would change the split; if false, the plan serves any schedule it fits
  std::vector<BalanceRound> rounds; ///< the rounds of a strategy that measures its plans round by round
  bool operator==(const Plan&) const = default;
};

using PlanResult = std::variant<Plan, Infeasible>;

/// Where the stages live when each of P ranks has several. Interleaved: stage s on rank s mod P (Narayanan et al.
/// 2021). V-shaped: 0 … P-1, then P-1 … 0, and so on, so that stages P-1 and P share a rank (Liu et al. 2023, Qi et al.
/// 2024). With one stage per rank they are the same.
enum class StagePlacement { interleaved, v_shaped };

/// The rank on which a stage lives.
constexpr int rank_of(int stage, int ranks, StagePlacement placement) {
  const int place = stage % ranks;
  return placement == StagePlacement::v_shaped && stage / ranks % 2 == 1 ? ranks - 1 - place : place;
}

/// The device of each stage, `chunks` of them on every device.
std::vector<DeviceId> place_stages(const std::vector<DeviceId>& devices, int chunks, StagePlacement placement);

/// Devices that the plan uses, each once, in order of their first stage.
std::vector<DeviceId> devices_of(const Plan& plan);

/// Whether stage s runs on the device of its rank and nowhere else, `chunks` stages on each of P devices: the shape
/// that named pipeline schedules ask for. A single stage, replicated or not, has it too when chunks is 1.
bool is_pipeline(const Plan& plan, int chunks, StagePlacement placement = StagePlacement::interleaved);

} // namespace stagecraft
