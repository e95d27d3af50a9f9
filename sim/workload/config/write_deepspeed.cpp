// Our plans as DeepSpeed's JSON.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"

namespace stagecraft {
namespace {

const char* boolean(bool on) { return on ? "true" : "false"; }

// What of hosts DeepSpeed's JSON cannot say.
std::string refusal_of_offload(const Training& training) {
  const Offload& offload = training.offload;
  if (offload.activations > 0) {
    return "activations that are left to hosts, which DeepSpeed's JSON leaves to the code";
  }
  if (offload.optimizer > 0 && !training.sharding.on()) {
    return "an optimiser that is left to hosts without 'zero' 1 or more";
  }
  if (offload.optimizer > 0 && !offload.gradients) {
    return "gradients that go to hosts at the end of an iteration, and DeepSpeed's go as soon as they are reduced";
  }
  if (offload.optimizer > 0 && offload.optimizer < 1 && training.sharding.zero != Zero::weights) {
    return "a part of the optimiser that is left to hosts, and DeepSpeed does so with 'zero' 3 only";
  }
  return "";
}

// Replicas of a group that shares, where not all do (MiCS); else 0.
int groups_of_deepspeed(const ConfigToWrite& what) {
  const int group = what.training.sharding.group;
  return group > 0 && group != what.mesh.data * what.mesh.context.ranks ? group : 0;
}

// Layers that run again at a time, which DeepSpeed's pipelines are told; 0: none.
int blocks_of_deepspeed(const ConfigToWrite& what) {
  const RecomputeChoice& choice = what.training.recompute;
  const bool by_blocks = what.recompute != Recompute::none && choice.blocks > 0 && choice.first == 0;
  return by_blocks && what.mesh.pipeline > 1 ? choice.blocks : 0;
}

std::string refusal_of_deepspeed_degrees(const ConfigToWrite& what) {
  const Mesh& mesh = what.mesh;
  if (mesh.pipeline > 1 && what.training.sharding.zero > Zero::states) {
    return "a pipeline beside " + zero_text(what) + ", and DeepSpeed's share the optimiser's states at most";
  }
  if (mesh.pipeline > 1 && (!has_equal_stages(what) || chunks(what) > 1)) {
    return "stages of unlike numbers of layers, or several of a rank, which DeepSpeed's JSON leaves to the code";
  }
  if (mesh.context.ranks > 1 && mesh.context.rule != ContextRule::all_to_all) {
    return "ranks that gather keys and values or pass them on, and DeepSpeed's exchange tokens for heads";
  }
  if (mesh.experts.ranks > 1 &&
      (mesh.experts.tensor > 1 || what.training.dispatcher.kind != DispatcherKind::alltoall)) {
    return "experts that tensor groups share, or to which tokens go otherwise than by all-to-alls, and DeepSpeed's "
           "are whole";
  }
  if (what.recompute != Recompute::none && blocks_of_deepspeed(what) == 0) {
    return "recompute, and DeepSpeed's JSON leaves to the code what runs again but for blocks of a pipeline";
  }
  return "";
}

std::string refusal_of_deepspeed(const ConfigToWrite& what) {
  const Training& training = what.training;
  if (std::string why = refusal_of_deepspeed_degrees(what); !why.empty()) {
    return why;
  }
  if (what.mesh.sequence) {
    return "a tensor group that shares tokens, and DeepSpeed's does not";
  }
  if (training.precision == Precision::tf32 || training.fp8->products) {
    return "precision " + precision_text(training) + ", and DeepSpeed's JSON has fp32, fp16 and bf16";
  }
  if (groups_of_deepspeed(what) > 0 && training.sharding.zero != Zero::weights) {
    return "groups of replicas that share, and DeepSpeed's share weights too ('zero' 3)";
  }
  if (std::string why = refusal_of_offload(training); !why.empty()) {
    return why;
  }
  return refusal_of_rule(what);
}

// Keys of zero_optimization, each after a comma. `groups`: of so many replicas; 0: all share.
std::string sharing_of_deepspeed(const Training& training, int groups) {
  const Offload& offload = training.offload;
  const Sharding& sharding = training.sharding;
  std::string text;
  if (offload.optimizer > 0) {
    constexpr int kDigits = 6;
    text += ", \"offload_optimizer\": {\"device\": \"cpu\"" +
            (offload.optimizer < 1 ? ", \"ratio\": " + to_digits(offload.optimizer, kDigits) : "") + "}";
  }
  text += offload.parameters ? ", \"offload_param\": {\"device\": \"cpu\"}" : "";
  text += sharding.quantized_weights == QuantizedWeights::int8 ? ", \"zero_quantized_weights\": true" : "";
  text += sharding.quantized_gradients ? ", \"zero_quantized_gradients\": true" : "";
  text += groups > 0 ? ", \"mics_shard_size\": " + std::to_string(groups) : "";
  text += sharding.secondary > 1 ? ", \"zero_hpz_partition_size\": " + std::to_string(sharding.secondary) : "";
  return text;
}

// Stages, ranks that share tokens and those that share experts.
std::string degrees_of_deepspeed(const ConfigToWrite& what) {
  std::string text;
  if (what.mesh.pipeline > 1) {
    const int blocks = blocks_of_deepspeed(what);
    text += ",\n  \"pipeline\": {\"stages\": " + std::to_string(what.mesh.pipeline) + ", \"partition\": \"uniform\"" +
            (blocks > 0 ? ", \"activation_checkpoint_interval\": " + std::to_string(blocks) : "") + "}";
  }
  if (what.mesh.context.ranks > 1) {
    text += ",\n  \"sequence_parallel_size\": " + std::to_string(what.mesh.context.ranks);
  }
  if (what.mesh.experts.ranks > 1) {
    text +=
        ",\n  \"expert_parallel\": {\"enabled\": true, \"autoep_size\": " + std::to_string(what.mesh.experts.ranks) +
        "}";
  }
  return text;
}

} // namespace

WrittenConfig write_deepspeed(const ConfigToWrite& what) {
  if (std::string why = refusal_of_deepspeed(what); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  const Training& training = what.training;
  const bool adam = training.optimizer->name == "adam";
  const bool lamb = training.optimizer->name == "lamb";
  const bool momentum = training.optimizer->name == "momentum";
  std::string text = "{\n  \"train_batch_size\": " + std::to_string(training.global_batch) +
                     ",\n  \"train_micro_batch_size_per_gpu\": " + std::to_string(samples_at_a_time(what)) +
                     ",\n  \"gradient_accumulation_steps\": " + std::to_string(what.micro_batches) +
                     ",\n  \"optimizer\": {\"type\": \"" +
                     (adam   ? "AdamW\""
                      : lamb ? "Lamb\""
                             : "SGD\"") +
                     (momentum ? ", \"params\": {\"momentum\": 0.9}}" : "}");
  if (training.precision != Precision::fp32) {
    text += ",\n  \"" + std::string(row_of(training.precision).name) + "\": {\"enabled\": true}";
  }
  if (training.gradient_precision == Precision::fp32) {
    text += ",\n  \"data_types\": {\"grad_accum_dtype\": \"fp32\"}";
  }
  if (training.clip_gradients) {
    text += ",\n  \"gradient_clipping\": 1.0";
  }
  const bool overlaps = training.gradient_bucket.value > 0;
  text += ",\n  \"zero_optimization\": {\"stage\": " + std::to_string(static_cast<int>(training.sharding.zero)) +
          ", \"overlap_comm\": " + boolean(overlaps);
  if (overlaps) {
    text += ", \"reduce_bucket_size\": " +
            std::to_string(std::llround(training.gradient_bucket.value / row_of(training.precision).bytes));
  }
  text += sharing_of_deepspeed(training, groups_of_deepspeed(what)) + "}";
  if (what.mesh.tensor > 1) {
    text += ",\n  \"tensor_parallel\": {\"autotp_size\": " + std::to_string(what.mesh.tensor) + "}";
  }
  text += degrees_of_deepspeed(what);
  return text + "\n}\n";
}

} // namespace stagecraft
