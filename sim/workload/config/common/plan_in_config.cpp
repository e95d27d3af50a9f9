// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/common/plan_in_config.hpp"

#include <algorithm>

#include "sim/base/named_table.hpp"

namespace stagecraft {
namespace {

int layers_in(const std::string& stage) { return static_cast<int>(std::count(stage.begin(), stage.end(), 't')); }

} // namespace

int samples_at_a_time(const ConfigToWrite& what) {
  return what.training.global_batch / (what.micro_batches * what.mesh.data);
}

int chunks(const ConfigToWrite& what) { return static_cast<int>(what.layers.stages.size()) / what.mesh.pipeline; }

int layers_of_stage(const ConfigToWrite& what) { return layers_in(what.layers.stages.front()); }

bool has_equal_stages(const ConfigToWrite& what) {
  const std::vector<std::string>& stages = what.layers.stages;
  return what.layers.count('m') == 0 && std::all_of(stages.begin(), stages.end(), [&](const std::string& stage) {
           return layers_in(stage) == layers_of_stage(what);
         });
}

int sharing(const ConfigToWrite& what) {
  return what.training.sharding.sharing(what.mesh.data * what.mesh.context.ranks);
}

std::string zero_text(const ConfigToWrite& what) {
  return "'zero' " + std::to_string(static_cast<int>(what.training.sharding.zero));
}

std::string precision_text(const Training& training) {
  return std::string(training.fp8->products ? training.fp8->name : row_of(training.precision).name);
}

std::optional<ExpertCapacity> expert_capacity(const ModelGraph& model) {
  const auto limited = std::find_if(model.operators.begin(), model.operators.end(),
                                    [](const Operator& op) { return op.routing && op.routing->most > 0; });
  return limited != model.operators.end()
             ? std::optional(ExpertCapacity{limited->routing->most, limited->routing->padded, {}})
             : std::nullopt;
}

bool has_zero_plus_plus(const Training& training) {
  return training.sharding.secondary > 0 || training.sharding.quantized_gradients ||
         training.sharding.quantized_weights == QuantizedWeights::int8;
}

std::string refusal_of_rule(const ConfigToWrite& what) {
  return what.mesh.tensor == 1 || what.mesh.tensor_rule == TensorRule::megatron
             ? ""
             : "a tensor group by the rule '" + std::string(row_of(what.mesh.tensor_rule).name) + "'";
}

} // namespace stagecraft
