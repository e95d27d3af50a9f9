// Given degrees of parallelism: how many devices share an operator, a micro-batch, the layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/format/yaml.hpp"
#include "sim/workload/training/context.hpp"
#include "sim/workload/training/experts.hpp"
#include "sim/workload/training/pipeline_layout.hpp"
#include "sim/workload/training/sharding.hpp"
#include "sim/workload/training/tensor_rule.hpp"

namespace stagecraft {

/// Which ranks are neighbours: the innermost dimension first.
enum class RankOrder { tensor_data_pipeline, tensor_pipeline_data };

struct RankOrderRow {
  std::string_view name, help;
  RankOrder order;
};
inline constexpr std::array kRankOrders = {
    RankOrderRow{"tensor-data-pipeline", "a stage's ranks are neighbours, as Megatron-LM has them by default",
                 RankOrder::tensor_data_pipeline},
    RankOrderRow{"tensor-pipeline-data", "a replica's ranks are neighbours, as with its --use-tp-pp-dp-mapping",
                 RankOrder::tensor_pipeline_data},
};

/// How replicas share the samples of a micro-batch.
enum class ReplicaShares { equal, by_speed };

struct ReplicaSharesRow {
  std::string_view name, help;
  ReplicaShares shares;
};
inline constexpr std::array kReplicaShares = {
    ReplicaSharesRow{"equal", "as many for every replica", ReplicaShares::equal},
    ReplicaSharesRow{"by-speed", "in proportion to the speed of a replica's slowest rank", ReplicaShares::by_speed},
};

/// Degrees of one rank of the pipeline.
struct RankDegrees {
  int tensor = 1;
  bool sequence = false; ///< no matter at 1
};

/// Degrees as a study gives them.
struct ParallelDegrees {
  int tensor = 1;        ///< devices that compute each operator together
  bool sequence = false; ///< between products these share tokens (Megatron-LM's sequence parallelism); no matter at 1
  TensorRule tensor_rule = TensorRule::megatron; ///< by which they share; no matter at 1
  Context context;                               ///< ranks that share tokens, in each replica
  Experts experts;                               ///< ranks, across replicas, that share experts
  int data = 0;                                  ///< replicas; 0: as many as the devices leave
  int pipeline = 0; ///< ranks of the pipeline; 0: as many as the devices leave where `data` is given, else 1
  RankOrder order = RankOrder::tensor_data_pipeline;
  ShardingRule sharding;                ///< of the replicas
  std::optional<PipelineLayout> layers; ///< the layers of each stage; none: a strategy chooses
  std::vector<RankDegrees> ranks;       ///< of each rank of the pipeline; none: all as above
  ReplicaShares shares = ReplicaShares::equal;

  /// Whether it says what strategies else choose or take to be alike: only those that take degrees can follow it.
  bool is_uneven() const { return layers || !ranks.empty() || shares != ReplicaShares::equal; }
};

/// All degrees, on as many devices as they take.
struct Mesh {
  int tensor = 1, data = 1, pipeline = 1;
  Context context{};
  Experts experts{};
  bool sequence = false;
  TensorRule tensor_rule = TensorRule::megatron;
  RankOrder order = RankOrder::tensor_data_pipeline;
  std::vector<RankDegrees> ranks; ///< of the pipeline, where they differ from `tensor` and `sequence`; else none

  RankDegrees rank(int pipeline_rank) const {
    return ranks.empty() ? RankDegrees{tensor, sequence} : ranks[pipeline_rank];
  }
  /// A replica's devices on the ranks of the pipeline before this one; of the number of ranks: all of its devices.
  int devices_before(int pipeline_rank) const;
  /// The number, among the devices, of a tensor rank of a context rank of a replica of a pipeline rank.
  int place(int pipeline_rank, int replica, int context_rank, int tensor_rank) const {
    const int before = devices_before(pipeline_rank);
    const int inside = context_rank * rank(pipeline_rank).tensor + tensor_rank;
    return inside + (order == RankOrder::tensor_data_pipeline
                         ? before * data + replica * rank(pipeline_rank).tensor * context.ranks
                         : replica * devices_before(pipeline) + before);
  }
};

/// The degrees on `devices` devices, which must use them all. Infeasible, with the nearest that work, where they do not
/// multiply to that number.
std::variant<Mesh, Infeasible> mesh_of(const ParallelDegrees& degrees, int devices);

/// Reads `training.parallel` of a study: docs/formats/study.md. `interleave` is the stages of each pipeline rank, and 0
/// where the mapping does not say; where layers are given, it and the pipeline's ranks follow from them. Throws
/// InputError, also for a degree that is not modelled.
struct ReadDegrees {
  ParallelDegrees degrees;
  int interleave = 0;
};
ReadDegrees load_parallel(const yaml::Node& node);

} // namespace stagecraft
