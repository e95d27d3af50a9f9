// Our plans as TorchTitan's TOML.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/named_table.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

// All that FSDP's CPUOffloadPolicy leaves to hosts.
bool offloads_as_fsdp(const Offload& offload) {
  return offload == Offload{.optimizer = 1, .gradients = true, .parameters = true, .activations = 0};
}

// The value of selective_ac_option that makes as many layers of a stage run again as the training does, or operators
// by kind; "" where there is none.
std::string selective_option(const ConfigToWrite& what) {
  const RecomputeChoice& choice = what.training.recompute;
  if (choice.kinds == std::vector{KernelKind::normalization, KernelKind::elementwise} && choice.modules.empty() &&
      choice.operators.empty()) {
    return "op";
  }
  const auto stages = static_cast<long>(what.layers.stages.size());
  const long of_stage = std::max(1L, static_cast<long>(what.layers.count('t')) / stages);
  for (long n = 2; choice.first > 0 && n <= of_stage; ++n) {
    if ((of_stage + n - 1) / n == choice.first) {
      return std::to_string(n);
    }
  }
  return "";
}

// What TorchTitan cannot say of 8 bits, or of experts.
std::string refusal_of_torchtitan_parts(const ConfigToWrite& what) {
  const Training& training = what.training;
  const std::string_view fp8 = training.fp8->name;
  if (training.fp8->products && fp8 != "tensorwise" && fp8 != "rowwise" && fp8 != "mxfp8") {
    return "fp8 " + std::string(fp8) + ", and TorchTitan has tensorwise, rowwise and mxfp8";
  }
  if (training.sharding.quantized_weights == QuantizedWeights::fp8 && training.fp8->name != "tensorwise") {
    return "weights of " + std::string(training.fp8->name) +
           " that are gathered in 8 bits, and TorchTitan gathers "
           "those of tensorwise so";
  }
  if (training.fp8_weights) {
    return "weights in 8 bits alone, and TorchTitan's are of single precision between steps";
  }
  if (what.mesh.experts.ranks == 1) {
    return "";
  }
  if (training.dispatcher.kind == DispatcherKind::allgather) {
    return "a dispatcher that gathers tokens, and TorchTitan's send them to their experts";
  }
  const int shard = training.sharding.zero == Zero::weights ? sharing(what) : what.mesh.context.ranks;
  return shard * what.mesh.tensor % what.mesh.experts.ranks != 0
             ? "experts across groups that share weights, and TorchTitan's divide the ranks of one"
             : "";
}

std::string refusal_of_torchtitan(const ConfigToWrite& what) {
  const Training& training = what.training;
  const bool shards = training.sharding.zero == Zero::weights;
  const bool mixes = shards || (what.mesh.tensor == 1 && what.mesh.pipeline == 1);
  if (training.sharding.on() && !shards) {
    return zero_text(what) + " shares states or gradients, and TorchTitan shares weights too or nothing";
  }
  if (shards && sharing(what) == 1) {
    return zero_text(what) + " without replicas that share";
  }
  if (what.mesh.tensor > 1 && !what.mesh.sequence) {
    return "a tensor group that does not share tokens, and TorchTitan's always does";
  }
  if (training.precision != Precision::fp32 && (training.precision != Precision::bf16 || !mixes)) {
    return "precision " + std::string(row_of(training.precision).name) +
           ", and TorchTitan computes in bf16 under FSDP or where nothing but replicas share the model, else in fp32";
  }
  if (what.mesh.context.heads > 1) {
    return "context ranks that exchange tokens for heads, and TorchTitan's gather keys and values or pass them on";
  }
  if (training.optimizer->name != "adam") {
    return "optimizer " + std::string(training.optimizer->name) + ", and TorchTitan has Adam and AdamW";
  }
  if (what.layers.count('m') > 0) {
    return "layers that predict further tokens";
  }
  if (what.recompute == Recompute::selective && selective_option(what).empty()) {
    return "recompute of other parts than every n-th layer, or all but products";
  }
  if (has_zero_plus_plus(training)) {
    return "weights or gradients of ZeRO++, and TorchTitan gathers weights in 16 or, with float8, 8 bits";
  }
  if (training.offload.on() && (!shards || !offloads_as_fsdp(training.offload))) {
    return "a part of what FSDP can leave to hosts, and TorchTitan leaves weights, gradients and states there, or "
           "nothing";
  }
  return refusal_of_torchtitan_parts(what);
}

// [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]
std::string modules_of(const PipelineLayout& layers) {
  std::string text = "[";
  int layer = 0;
  for (const std::string& stage : layers.stages) {
    std::string modules;
    for (const char letter : stage) {
      modules += modules.empty() ? "" : ", ";
      modules += letter == 'E'   ? "\"tok_embeddings\""
                 : letter == 'L' ? "\"norm\", \"output\""
                                 : "\"layers." + std::to_string(layer++) + "\"";
    }
    text += (text.size() > 1 ? ", [" : "[") + modules + "]";
  }
  return text + "]";
}

// When weights are given up again and gradients reduced, where it is not as TorchTitan does by itself.
std::string reshard_of_torchtitan(const ConfigToWrite& what) {
  const Sharding& sharding = what.training.sharding;
  if (sharding.zero != Zero::weights) {
    return "";
  }
  const Reshard usual = what.mesh.pipeline > 1 ? Reshard::after_step : Reshard::after_forward;
  const Reduce usual_reduce = what.mesh.pipeline > 1 ? Reduce::last_micro_batch : Reduce::each_micro_batch;
  std::string text;
  if (sharding.reshard != usual) {
    text += "fsdp_reshard_after_forward = \"" +
            std::string(sharding.reshard == Reshard::after_forward ? "always" : "never") + "\"\n";
  }
  text += sharding.reduce != usual_reduce && sharding.reduce == Reduce::last_micro_batch
              ? "fsdp_defer_gradient_reduction = true\n"
              : "";
  return text;
}

// TorchTitan's name of the schedule; where it is not known, that of its stages.
std::string torchtitan_schedule(const ConfigToWrite& what) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames = {{{"1f1b", "1F1B"},
                                                                                    {"gpipe", "GPipe"},
                                                                                    {"interleaved", "Interleaved1F1B"},
                                                                                    {"breadth-first", "LoopedBFS"},
                                                                                    {"zb-v", "ZBVZeroBubble"},
                                                                                    {"dualpipe-v", "DualPipeV"}}};
  for (const auto& [ours, theirs] : kNames) {
    const bool several = theirs != "1F1B" && theirs != "GPipe";
    if (ours == what.schedule && several == (chunks(what) > 1)) {
      return std::string(theirs);
    }
  }
  return chunks(what) > 1 ? "Interleaved1F1B" : "1F1B";
}

std::string parallelism_of_torchtitan(const ConfigToWrite& what) {
  const int shard =
      what.training.sharding.zero == Zero::weights ? std::max(1, sharing(what) / what.mesh.context.ranks) : 1;
  std::string text = "[parallelism]\ndata_parallel_replicate_degree = " + std::to_string(what.mesh.data / shard) +
                     "\ndata_parallel_shard_degree = " + std::to_string(shard) +
                     "\ntensor_parallel_degree = " + std::to_string(what.mesh.tensor) +
                     "\npipeline_parallel_degree = " + std::to_string(what.mesh.pipeline) + "\n";
  if (what.mesh.context.ranks > 1) {
    text += "context_parallel_degree = " + std::to_string(what.mesh.context.ranks) +
            "\ncontext_parallel_rotate_method = \"" +
            (what.mesh.context.rule == ContextRule::ring ? "alltoall" : "allgather") + "\"\n";
  }
  if (what.mesh.experts.ranks > 1) {
    text += "expert_parallel_degree = " + std::to_string(what.mesh.experts.ranks) + "\n";
    text += what.mesh.experts.tensor > 1
                ? "expert_tensor_parallel_degree = " + std::to_string(what.mesh.experts.tensor) + "\n"
                : "";
    const TokenDispatcher& dispatcher = what.training.dispatcher;
    text += dispatcher.sends_once()
                ? "expert_parallel_comm_backend = \"" + std::string(row_of(dispatcher.kind).name) + "\"\n"
                : "";
  }
  if (what.mesh.tensor_rule == TensorRule::torchtitan_whole_loss) {
    text += "disable_loss_parallel = true\n";
  }
  text += what.training.pipelined_exchange && what.mesh.tensor > 1 ? "enable_async_tensor_parallel = true\n" : "";
  text += reshard_of_torchtitan(what);
  if (what.mesh.pipeline > 1) {
    text += "pipeline_parallel_schedule = \"" + torchtitan_schedule(what) +
            "\"\npipeline_parallel_microbatch_size = " + std::to_string(samples_at_a_time(what)) +
            "\nmodule_fqns_per_model_part = " + modules_of(what.layers) + "\n";
  }
  return text;
}

} // namespace

WrittenConfig write_torchtitan(const ConfigToWrite& what) {
  if (std::string why = refusal_of_torchtitan(what); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  const Training& training = what.training;
  const int local = what.mesh.pipeline > 1 ? training.global_batch / what.mesh.data / training.pipeline_fills
                                           : samples_at_a_time(what);
  std::string text = "[training]\nlocal_batch_size = " + std::to_string(local) +
                     "\nglobal_batch_size = " + std::to_string(training.global_batch) + "\n";
  if (const double tokens = tokens_of(what.model); tokens > 0) {
    text += "seq_len = " + std::to_string(std::lround(tokens)) + "\n";
  }
  text += training.offload.on() ? "enable_cpu_offload = true\n" : "";
  const bool half = training.precision == Precision::bf16;
  const bool reduces_half = half && training.sharding.zero == Zero::weights &&
                            training.gradient_precision.value_or(training.precision) == Precision::bf16;
  text += "max_norm = " + std::string(training.clip_gradients ? "1.0" : "0.0") + "\nmixed_precision_param = \"" +
          (half ? "bfloat16" : "float32") + "\"\n" + (reduces_half ? "mixed_precision_reduce = \"bfloat16\"\n" : "") +
          "\n" + parallelism_of_torchtitan(what) + "\n[activation_checkpoint]\nmode = \"" +
          (what.recompute == Recompute::full ? "full\"\n"
           : what.recompute == Recompute::none
               ? "none\"\n"
               : "selective\"\nselective_ac_option = \"" + selective_option(what) + "\"\n") +
          "\n[optimizer]\nname = \"AdamW\"\n";
  text += what.mesh.experts.ranks > 1 && training.expert_choice == ExpertChoice::round_robin
              ? "\n[debug]\nmoe_force_load_balance = true\n"
              : "";
  text += training.framework == "torchtitan" || training.pipelined_exchange ? "\n[compile]\nenable = true\n" : "";
  if (training.fp8->products) {
    const bool mx = training.fp8->name == "mxfp8";
    text += "\n[model]\nconverters = [\"" + std::string(mx ? "mx" : "float8") + "\"]\n";
    const bool gathers_fp8 = training.sharding.quantized_weights == QuantizedWeights::fp8;
    text += training.fp8->name == "rowwise" ? "\n[float8]\nrecipe_name = \"rowwise\"\n"
            : gathers_fp8                   ? "\n[float8]\nenable_fsdp_float8_all_gather = true\n"
                                            : "";
  }
  return text;
}

} // namespace stagecraft
