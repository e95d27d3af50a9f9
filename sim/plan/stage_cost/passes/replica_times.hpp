// Times of a stage's replicas, each with its own devices and load.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/stage_cost/passes/group_passes.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"

namespace stagecraft {

/// Seconds of a replica's passes over its share of a micro-batch.
struct ReplicaSeconds {
  double forward = 0, input = 0, weight = 0;
  double overlap = 0;                                  ///< seconds saved by computing both gradients at the same time
  double again = 0;                                    ///< forward time of recomputed operators
  double deferred = 0;                                 ///< of `weight`, until after all backwards
  std::shared_ptr<const GroupPasses> passes = nullptr; ///< where a group takes these times
  AtRest rest{};
  Seconds ahead{}; ///< by how much the host has launched a backward before the device has computed it
};

/// What falls to a replica of each operator, to an equal share, where replicas that share tokens or experts have unlike
/// loads: of attention by the tokens that it has, of experts by those of the busiest rank of its tensor group.
class ReplicaLoads {
public:
  ReplicaLoads(const Problem& problem, const Stage& stage, const TensorSplit& split);

  bool equal() const { return equal_; }

  /// Replicas of the same number have the same loads.
  std::size_t number_of(std::size_t replica) const;

  /// [operator of the stage]; empty: all are 1.
  std::vector<double> of(std::size_t replica) const;

private:
  std::size_t loop_of(std::size_t replica) const;
  void fill(std::vector<std::vector<double>>& loads, std::size_t at, const std::vector<double>& of_ranks);
  const std::vector<double>& known_tokens(const AttentionMask& mask);
  std::vector<double> by_replica(const std::vector<double>& of_ranks) const; // the busiest expert rank of each

  const Stage& stage_;
  std::size_t experts_; // replicas that share experts
  bool equal_ = true;
  std::vector<std::vector<double>> tokens_, of_experts_; // [loop or replica][operator of the stage]
  std::vector<std::pair<AttentionMask, std::vector<double>>> masks_;
};

/// Times of the replicas of one stage. Those alike are computed once.
class ReplicaTimes {
public:
  ReplicaTimes(const Problem& problem, const Stage& stage, const TensorSplit& split)
      : problem_(problem), stage_(stage), split_(split), loads_(problem, stage, split) {}

  /// Of the replica on `devices`, whose exchanges go through `groups`.
  const ReplicaSeconds& of(std::size_t replica, const std::vector<DeviceId>& devices, const AxisGroups& groups);

  /// As in StageCost.
  std::vector<std::size_t> loads() const;

private:
  const Problem& problem_;
  const Stage& stage_;
  const TensorSplit& split_;
  ReplicaLoads loads_;
  std::map<std::tuple<std::vector<int>, double, std::vector<double>, std::size_t>, ReplicaSeconds> known_;
};

} // namespace stagecraft
