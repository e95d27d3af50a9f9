// Given degrees of parallelism: how many devices share an operator, a micro-batch, the layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/base/yaml.hpp"
#include "sim/workload/pipeline_layout.hpp"
#include "sim/workload/sharding.hpp"
#include "sim/workload/tensor_rule.hpp"

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

/// Degrees as a study gives them.
struct ParallelDegrees {
  int tensor = 1;        ///< devices that compute each operator together
  bool sequence = false; ///< between products these share tokens (Megatron-LM's sequence parallelism); no matter at 1
  TensorRule tensor_rule = TensorRule::megatron; ///< by which they share; no matter at 1
  int data = 0;                                  ///< replicas; 0: as many as the devices leave
  int pipeline = 0; ///< ranks of the pipeline; 0: as many as the devices leave where `data` is given, else 1
  RankOrder order = RankOrder::tensor_data_pipeline;
  ShardingRule sharding;                ///< of the replicas
  std::optional<PipelineLayout> layers; ///< the layers of each stage; none: a strategy chooses
};

/// All degrees, on as many devices as they take.
struct Mesh {
  int tensor = 1, data = 1, pipeline = 1;
  bool sequence = false;
  TensorRule tensor_rule = TensorRule::megatron;
  RankOrder order = RankOrder::tensor_data_pipeline;

  /// The number, among the devices, of a tensor rank of a replica of a pipeline rank.
  int place(int pipeline_rank, int replica, int tensor_rank) const {
    const int outer =
        order == RankOrder::tensor_data_pipeline ? pipeline_rank * data + replica : replica * pipeline + pipeline_rank;
    return outer * tensor + tensor_rank;
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
