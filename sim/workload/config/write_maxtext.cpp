// Our plans as overrides of MaxText's base.yml.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
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
    return "precision " + precision_text(training) +
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
    text += "num_layers_per_pipeline_stage: " + std::to_string(layers_of_stage(what)) +
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
  if (const std::optional<ExpertCapacity> experts = expert_capacity(what.model); experts && experts->padded) {
    text += "sparse_matmul: False\ncapacity_factor: " + to_digits(experts->factor, kDigits) + "\n";
  }
  return text;
}

} // namespace stagecraft
