// Our plans as configurations of frameworks: what each can say, and why it cannot.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

int samples_at_a_time(const ConfigToWrite& what) {
  return what.training.global_batch / (what.micro_batches * what.mesh.data);
}

int chunks(const ConfigToWrite& what) { return static_cast<int>(what.layers.stages.size()) / what.mesh.pipeline; }

// Whether each stage has as many layers, and none predicts further tokens.
bool has_equal_stages(const ConfigToWrite& what) {
  const std::vector<std::string>& stages = what.layers.stages;
  const auto count = [](const std::string& stage) { return std::count(stage.begin(), stage.end(), 't'); };
  return what.layers.count('m') == 0 && std::all_of(stages.begin(), stages.end(), [&](const std::string& stage) {
           return count(stage) == count(stages.front());
         });
}

const char* boolean(bool on) { return on ? "true" : "false"; }

std::string zero_text(const ConfigToWrite& what) {
  return "'zero' " + std::to_string(static_cast<int>(what.training.sharding.zero));
}

// Replicas that share weights, and groups of them.
int sharing(const ConfigToWrite& what) {
  return what.training.sharding.sharing(what.mesh.data * what.mesh.context.ranks);
}

bool has_zero_plus_plus(const Training& training) {
  return training.sharding.secondary > 0 || training.sharding.quantized_gradients ||
         training.sharding.quantized_weights == QuantizedWeights::int8;
}

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
    text +=
        what.training.dispatcher.kind == DispatcherKind::deepep ? "expert_parallel_comm_backend = \"deepep\"\n" : "";
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
  const int local = what.mesh.pipeline > 1 ? training.global_batch / what.mesh.data : samples_at_a_time(what);
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

namespace {

// Tensor groups of TorchTitan's rules share operators otherwise than all others.
std::string refusal_of_rule(const ConfigToWrite& what) {
  return what.mesh.tensor == 1 || what.mesh.tensor_rule == TensorRule::megatron
             ? ""
             : "a tensor group by the rule '" + std::string(row_of(what.mesh.tensor_rule).name) + "'";
}

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
    return "precision " + std::string(training.fp8->products ? training.fp8->name : row_of(training.precision).name) +
           ", and DeepSpeed's JSON has fp32, fp16 and bf16";
  }
  if (groups_of_deepspeed(what) > 0 && training.sharding.zero != Zero::weights) {
    return "groups of replicas that share, and DeepSpeed's share weights too ('zero' 3)";
  }
  if (std::string why = refusal_of_offload(training); !why.empty()) {
    return why;
  }
  return refusal_of_rule(what);
}

} // namespace

namespace {

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

namespace {

// The modules that run again, as a cell; "" where others than modules do.
std::string nemo_modules(const ConfigToWrite& what) {
  const RecomputeChoice& choice = what.training.recompute;
  const bool attention = choice.kinds == std::vector{KernelKind::attention};
  if (what.recompute != Recompute::selective || choice.blocks > 0 || !choice.operators.empty() ||
      (!attention && !choice.kinds.empty())) {
    return "";
  }
  std::string text = attention ? "core_attn" : "";
  for (const std::string& module : choice.modules) {
    text += (text.empty() ? "" : "/") + module;
  }
  return text;
}

bool has_nemo_dtype(const Training& training) {
  return training.fp8->name == "delayed" || training.fp8->name == "nvfp4";
}

std::string refusal_of_nemo(const ConfigToWrite& what) {
  const Training& training = what.training;
  if (!has_equal_stages(what)) {
    return "stages of unlike numbers of layers, and a row has as many for each";
  }
  if (what.mesh.tensor > 1 && !what.mesh.sequence) {
    return "a tensor group that does not share tokens, and NeMo's recipes do";
  }
  if (training.precision != Precision::bf16 || (training.fp8->products && !has_nemo_dtype(training))) {
    return "precision " + std::string(training.fp8->products ? training.fp8->name : row_of(training.precision).name) +
           ", and a row has bf16, nvfp4, or fp8 with delayed scales";
  }
  if (training.sharding.zero != Zero::states && training.sharding.zero != Zero::weights) {
    return zero_text(what) + ", and NeMo's recipes share the optimiser's states, or weights too";
  }
  if (has_zero_plus_plus(training)) {
    return "weights or gradients that are made smaller before they are sent, and a row has no column for them";
  }
  const bool gathers = training.fp8_weights && training.sharding.quantized_weights == QuantizedWeights::fp8;
  if (training.fp8->name == "delayed" && !gathers) {
    return "weights in 16 bits beside 'fp8', and NeMo's recipes hold and gather them in 8 ('fp8_weights', "
           "'quantized_weights' fp8)";
  }
  if (training.offload.on()) {
    return "what is left to hosts, which a row cannot say";
  }
  if (what.recompute == Recompute::selective && training.recompute.first == 0 && nemo_modules(what).empty()) {
    return "recompute of kinds or operators, and a row has columns for layers and modules";
  }
  return refusal_of_rule(what);
}

} // namespace

WrittenConfig write_nemo(const ConfigToWrite& what) {
  if (std::string why = refusal_of_nemo(what); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  const std::string& stage = what.layers.stages.front();
  const auto layers = std::count(stage.begin(), stage.end(), 't');
  const auto number = [](auto value) { return std::to_string(value); };
  const std::vector<std::pair<std::string, std::string>> cells = {
      {"task", "pre_train"},
      {"model", csv_cell(what.model.name)},
      {"size", ""},
      {"system", ""},
      {"dtype", !what.training.fp8->products         ? "bf16"
                : what.training.fp8->name == "nvfp4" ? "nvfp4"
                                                     : "fp8"},
      {"num_gpus", number(what.mesh.devices_before(what.mesh.pipeline) * what.mesh.data)},
      {"seq_len", tokens_of(what.model) > 0 ? number(std::lround(tokens_of(what.model))) : ""},
      {"tp_size", number(what.mesh.tensor)},
      {"pp_size", number(what.mesh.pipeline)},
      {"cp_size", number(what.mesh.context.ranks)},
      {"ep_size", number(what.mesh.experts.ranks)},
      {"vp_size", number(chunks(what))},
      {"mbs", number(samples_at_a_time(what))},
      {"gbs", number(what.training.global_batch)},
      {"etp_size", what.mesh.experts.ranks > 1 ? number(what.mesh.experts.tensor) : ""},
      {"cuda_graphs", what.training.launches.captured == std::vector<std::string>{"layer"} ? "1" : "0"},
      {"use_mcore_fsdp", what.training.sharding.zero == Zero::weights ? "1" : "0"},
      {"recompute_layers", what.recompute == Recompute::full        ? number(layers)
                           : what.recompute == Recompute::selective ? number(what.training.recompute.first)
                                                                    : "0"},
      {"activation_offload_layers", "0"},
      {"recompute_modules", nemo_modules(what)},
  };
  std::string header, row;
  for (const auto& [name, value] : cells) {
    header += (header.empty() ? "" : ",") + name;
    row += (&name == &cells.front().first ? "" : ",") + value;
  }
  return header + "\n" + row + "\n";
}

namespace {

struct MaxTextName {
  std::string_view ours, theirs;
};
constexpr std::array kMaxTextQuantizations = {MaxTextName{"delayed", "te_fp8_delayedscaling"},
                                              MaxTextName{"tensorwise", "te_fp8_currentscaling"},
                                              MaxTextName{"mxfp8", "te_mxfp8"}};
constexpr std::array kMaxTextTypes = {MaxTextName{"bf16", "bfloat16"}, MaxTextName{"fp16", "float16"},
                                      MaxTextName{"fp32", "float32"}};

// What a table of names calls ours; "" where it has no name for it.
template <std::size_t N> std::string maxtext_name(const std::array<MaxTextName, N>& names, std::string_view ours) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const MaxTextName& one) { return one.ours == ours; });
  return found != names.end() ? std::string(found->theirs) : "";
}

// Its name for what is kept of a block; "" where it has none.
std::string maxtext_policy(const ConfigToWrite& what) {
  const RecomputeChoice& choice = what.training.recompute;
  if (what.recompute == Recompute::none || what.recompute == Recompute::full) {
    return what.recompute == Recompute::none ? "none" : "full";
  }
  if (!choice.modules.empty() || !choice.operators.empty() || choice.first > 0 || choice.blocks > 0) {
    return "";
  }
  using Kinds = std::vector<KernelKind>;
  return choice.kinds == Kinds{KernelKind::normalization, KernelKind::elementwise} ? "minimal_with_context"
         : choice.kinds == Kinds{KernelKind::attention, KernelKind::normalization, KernelKind::elementwise} ? "minimal"
                                                                                                            : "";
}

// Replicas that share weights.
int fsdp_of_maxtext(const ConfigToWrite& what) {
  return what.training.sharding.zero == Zero::weights ? std::min(sharing(what), what.mesh.data) : 1;
}

std::string refusal_of_maxtext(const ConfigToWrite& what) {
  const Training& training = what.training;
  const Mesh& mesh = what.mesh;
  if (training.sharding.zero == Zero::gradients) {
    return zero_text(what) + ", and MaxText shares weights too, or the optimiser's states";
  }
  if (mesh.data % fsdp_of_maxtext(what) != 0 || (mesh.context.ranks > 1 && sharing(what) < mesh.context.ranks)) {
    return "groups that share weights across ranks of data and context, and MaxText's are of data";
  }
  if (mesh.experts.ranks > 1 && (mesh.experts.tensor > 1 || fsdp_of_maxtext(what) % mesh.experts.ranks != 0)) {
    return "experts across groups that share weights, or that tensor groups share, and MaxText's axis 'expert' shares "
           "weights";
  }
  if (mesh.pipeline > 1 && !has_equal_stages(what)) {
    return "stages of unlike numbers of layers, and MaxText's have as many each";
  }
  if (maxtext_name(kMaxTextTypes, row_of(training.precision).name).empty() ||
      (training.fp8->products && maxtext_name(kMaxTextQuantizations, training.fp8->name).empty())) {
    return "precision " + std::string(training.fp8->products ? training.fp8->name : row_of(training.precision).name) +
           ", and MaxText has bfloat16, float16, float32, and fp8 delayed, tensorwise and mxfp8";
  }
  if (training.fp8_weights || training.fp8_activations || has_zero_plus_plus(training) ||
      training.sharding.quantized_weights == QuantizedWeights::fp8) {
    return "weights, gradients or activations that are held or sent in fewer bits, and MaxText has no key for them";
  }
  if (training.offload.on()) {
    return "what is left to hosts, and MaxText's policies say it by names of tensors";
  }
  if (training.optimizer->name != "adam" && training.optimizer->name != "sgd") {
    return "optimizer " + std::string(training.optimizer->name) + ", and MaxText has adamw and sgd";
  }
  if (maxtext_policy(what).empty()) {
    return "recompute of other parts than whole blocks, or all but products with or without attention";
  }
  return refusal_of_rule(what);
}

// Each axis above 1 inside the one slice; 'fsdp' in any case, which else takes what is left.
std::string degrees_of_maxtext(const ConfigToWrite& what) {
  const Mesh& mesh = what.mesh;
  const bool states = what.training.sharding.zero == Zero::states;
  const int shard = fsdp_of_maxtext(what), experts = mesh.experts.ranks;
  const bool both = mesh.context.rule == ContextRule::both;
  const int heads = both ? mesh.context.heads : 1;
  const std::vector<std::pair<std::string, int>> axes = {{"data", mesh.data / shard},
                                                         {"fsdp", shard / experts},
                                                         {"expert", experts},
                                                         {mesh.sequence ? "tensor_sequence" : "tensor", mesh.tensor},
                                                         {"context", mesh.context.ranks / heads},
                                                         {"context_usp_ulysses", heads},
                                                         {"pipeline", mesh.pipeline}};
  std::string text;
  for (const auto& [axis, degree] : axes) {
    text += degree > 1 || axis == "fsdp" ? "ici_" + axis + "_parallelism: " + std::to_string(degree) + "\n" : "";
  }
  if (mesh.context.ranks > 1) {
    const ContextRule rule = mesh.context.rule;
    text += "context_parallel_strategy: " +
            std::string(both                              ? "usp"
                        : rule == ContextRule::all_to_all ? "ulysses"
                        : rule == ContextRule::ring       ? "ring"
                                                          : "all_gather") +
            "\n";
  }
  if (mesh.pipeline > 1) {
    const std::string& stage = what.layers.stages.front();
    text += "num_layers_per_pipeline_stage: " + std::to_string(std::count(stage.begin(), stage.end(), 't')) +
            "\nnum_pipeline_repeats: " + std::to_string(chunks(what)) +
            "\nnum_pipeline_microbatches: " + std::to_string(what.micro_batches) + "\n";
  }
  return text + (states ? "shard_optimizer_over_data: true\n" : "");
}

} // namespace

WrittenConfig write_maxtext(const ConfigToWrite& what) {
  if (std::string why = refusal_of_maxtext(what); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  const Training& training = what.training;
  const int steps = what.mesh.pipeline > 1 ? 1 : what.micro_batches;
  const int devices = what.mesh.devices_before(what.mesh.pipeline) * what.mesh.data;
  constexpr int kDigits = 12;
  std::string text = "base_config: base.yml\nper_device_batch_size: " +
                     to_digits(1.0 * training.global_batch / steps / devices, kDigits) +
                     "\ngradient_accumulation_steps: " + std::to_string(steps) + "\n";
  if (const double tokens = tokens_of(what.model); tokens > 0) {
    text += "max_target_length: " + std::to_string(std::lround(tokens)) + "\n";
  }
  const auto type = [](Precision precision) { return maxtext_name(kMaxTextTypes, row_of(precision).name); };
  text += degrees_of_maxtext(what) + "dtype: " + type(training.precision) +
          "\ngrad_dtype: " + type(training.gradient_precision.value_or(training.precision)) + "\n" +
          (training.fp8->products ? "quantization: " + maxtext_name(kMaxTextQuantizations, training.fp8->name) + "\n"
                                  : "") +
          "remat_policy: " + maxtext_policy(what) +
          "\nopt_type: " + (training.optimizer->name == "adam" ? "adamw" : "sgd") +
          "\ngradient_clipping_threshold: " + (training.clip_gradients ? "1.0" : "0.0") + "\n";
  return text;
}

} // namespace stagecraft
