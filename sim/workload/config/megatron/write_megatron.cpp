// A training as Megatron-LM's arguments, as megatron_training() reads them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/units.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

class Writing {
public:
  explicit Writing(const ConfigToWrite& what) : what_(what), training_(what.training) {}

  std::string text() {
    if (const double tokens = tokens_of(what_.model); tokens > 0) {
      value("seq-length", std::to_string(std::lround(tokens)));
    }
    if (what_.mesh.order == RankOrder::tensor_pipeline_data) {
      flag("use-tp-pp-dp-mapping");
    }
    write_precision();
    write_sharing();
    write_recompute();
    write_captured_graphs();
    write_optimizer();
    write_experts();
    if (training_.pipelined_exchange && what_.mesh.sequence) {
      flag("tp-comm-overlap");
    }
    return std::move(text_);
  }

private:
  void flag(const std::string& name) { text_ += "--" + name + "\n"; }
  void value(const std::string& name, const std::string& value) { text_ += "--" + name + " " + value + "\n"; }
  void unsaid(const std::string& what) { text_ += "# Megatron-LM has no argument for " + what + "\n"; }

  void write_precision() {
    const Precision precision = training_.precision;
    const bool single = training_.gradient_precision == Precision::fp32;
    if (precision == Precision::bf16) {
      flag("bf16");
      if (!single) {
        flag("grad-reduce-in-bf16");
      }
    } else if (precision == Precision::fp16) {
      flag("fp16");
      if (single) {
        flag("accumulate-allreduce-grads-in-fp32");
      }
    } else if (precision != Precision::fp32) {
      unsaid("precision " + std::string(row_of(precision).name));
    }
    if (!training_.fp8->products) {
      return;
    }
    if (!training_.fp8->gathers) {
      unsaid("fp8 " + std::string(training_.fp8->name));
      return;
    }
    const bool four = training_.fp8->products == Precision::nvfp4;
    value(four ? "fp4-format" : "fp8-format", four ? "e2m1" : "hybrid");
    value(four ? "fp4-recipe" : "fp8-recipe", std::string(training_.fp8->name));
    if (training_.fp8_weights) {
      flag("fp8-param-gather");
    }
    if (training_.fp8_activations) {
      flag("activation-func-fp8-input-store");
    }
  }

  // What replicas share, and how gradients are reduced.
  void write_sharing() {
    const Sharding& sharding = training_.sharding;
    if (sharding.zero == Zero::states) {
      flag("use-distributed-optimizer");
    } else if (sharding.on()) {
      flag("use-megatron-fsdp");
      value("data-parallel-sharding-strategy", sharding.zero == Zero::weights ? "optim_grads_params" : "optim_grads");
    }
    if (sharding.zero == Zero::states && sharding.gather == Gather::before_use) {
      flag("overlap-param-gather");
    }
    const int ranks = what_.mesh.data * what_.mesh.context.ranks;
    if (sharding.on() && sharding.group > 0 && sharding.group < ranks) {
      value("num-distributed-optimizer-instances", std::to_string(ranks / sharding.group));
    }
    if (training_.gradient_bucket.value > 0) {
      flag("overlap-grad-reduce");
      const double bytes = row_of(training_.gradient_precision.value_or(training_.precision)).bytes;
      value("ddp-bucket-size", std::to_string(std::llround(training_.gradient_bucket.value / bytes)));
    }
    write_offload();
    if (sharding.secondary > 0 || sharding.quantized_gradients ||
        sharding.quantized_weights == QuantizedWeights::int8) {
      unsaid("weights and gradients of ZeRO++");
    }
  }

  // That part of the parameters is stepped by the host; what else is left to it no argument says.
  void write_offload() {
    const Offload& offload = training_.offload;
    constexpr int kDigits = 6;
    if (offload.optimizer > 0) {
      flag("optimizer-cpu-offload");
      value("optimizer-offload-fraction", to_digits(offload.optimizer, kDigits));
    }
    for (const auto& [is_on, what] : {std::pair{offload.gradients, "gradients"},
                                      {offload.parameters, "parameters"},
                                      {offload.activations > 0, "activations"}}) {
      if (is_on) {
        unsaid("training.offload." + std::string(what));
      }
    }
  }

  void write_recompute() {
    const RecomputeChoice& choice = training_.recompute;
    const auto full = [&](const char* method, int layers) {
      value("recompute-granularity", "full");
      value("recompute-method", method);
      value("recompute-num-layers", std::to_string(layers));
    };
    if (what_.recompute == Recompute::full || (what_.recompute == Recompute::selective && choice.blocks > 0)) {
      full(choice.first > 0 ? "block" : "uniform", std::max(1, choice.first > 0    ? choice.first
                                                               : choice.blocks > 0 ? choice.blocks
                                                                                   : layers_of_stage(what_)));
    } else if (what_.recompute == Recompute::selective && choice.operators.empty() &&
               (choice.kinds.empty() || choice.kinds == std::vector{KernelKind::attention})) {
      std::string modules = choice.kinds.empty() ? "" : " core_attn";
      for (const std::string& module : choice.modules) {
        modules += " " + module;
      }
      value("recompute-granularity", "selective");
      value("recompute-modules", modules.substr(1));
    } else if (what_.recompute == Recompute::selective) {
      unsaid("recompute of kinds or operators");
    }
  }

  void write_captured_graphs() {
    const std::vector<std::string>& captured = training_.launches.captured;
    if (captured.empty()) {
      return;
    }
    const auto has = [&](std::string_view name) {
      return std::find(captured.begin(), captured.end(), name) != captured.end();
    };
    value("cuda-graph-impl", has("full_iteration") ? "full_iteration" : "local");
    if (!has("full_iteration") && !has("layer")) { // whole layers unless modules are named
      value("cuda-graph-modules", join(captured, " "));
    }
  }

  void write_optimizer() {
    const std::string_view name = training_.optimizer->name;
    value("optimizer", name == "adam" ? "adam" : "sgd");
    if (name != "adam") {
      value("sgd-momentum", name == "momentum" ? "0.9" : "0.0");
    }
    value("clip-grad", training_.clip_gradients ? "1.0" : "0.0");
    write_states();
  }

  // Formats of Adam's states. Whether master weights are remainders follows there from the precisions.
  void write_states() {
    if (training_.state_precision != Precision::fp32 || training_.master_remainders) {
      const std::string format(row_of(training_.state_precision).name);
      flag("use-precision-aware-optimizer");
      value("exp-avg-dtype", format);
      value("exp-avg-sq-dtype", format);
    }
  }

  void write_experts() {
    const bool mixes = std::any_of(what_.model.operators.begin(), what_.model.operators.end(),
                                   [](const Operator& op) { return op.routing.has_value(); });
    if (mixes && training_.dispatcher.sends_once()) {
      value("moe-token-dispatcher-type", "flex");
      value("moe-flex-dispatcher-backend", std::string(row_of(training_.dispatcher.kind).name));
    } else if (mixes) {
      value("moe-token-dispatcher-type", std::string(row_of(training_.dispatcher.kind).name));
    }
    if (const std::optional<ExpertCapacity> experts = expert_capacity(what_.model)) {
      constexpr int kDigits = 9;
      value("moe-expert-capacity-factor", to_digits(experts->factor, kDigits));
      if (experts->padded) {
        flag("moe-pad-expert-input-to-capacity");
      }
    }
    if (training_.deferred_head && what_.mesh.pipeline > 1) {
      flag("defer-embedding-wgrad-compute");
    }
    const bool interleaved = chunks(what_) > 1;
    if (interleaved &&
        (training_.blocking_sends == BlockingSends::unsplit || training_.blocking_sends == BlockingSends::always)) {
      flag("no-overlap-p2p-communication");
    }
    const std::string usual = interleaved ? "interleaved" : "1f1b";
    const bool pipes = what_.mesh.pipeline > 1;
    if (what_.schedule == (interleaved ? "combined-interleaved" : "combined-1f1b") && interleaved == pipes) {
      flag("overlap-moe-expert-parallel-comm"); // which it refuses of a pipeline without virtual stages
      if (training_.delayed_weights) {
        flag("delay-wgrad-compute");
      }
    } else if (pipes && !what_.schedule.empty() && what_.schedule != usual) {
      unsaid("the schedule " + what_.schedule + ": this runs under " + usual);
    }
  }

  const ConfigToWrite& what_;
  const Training& training_;
  std::string text_;
};

} // namespace

std::string write_megatron_training(const ConfigToWrite& what) { return Writing(what).text(); }

} // namespace stagecraft
