// Our plans as configurations of frameworks. docs/formats/framework-configs.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/plan_format/uniform_plan.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"

namespace stagecraft {
namespace {

// Whether the stages run again what the training says, so that a configuration of it says so.
bool recomputes_as_trained(const PlanToWrite& what) {
  const std::vector<int> numbers = block_numbers(what.model);
  const RecomputeChoice& choice = what.training.recompute;
  return choice.what == Recompute::selective &&
         std::all_of(what.plan.stages.begin(), what.plan.stages.end(), [&](const Stage& stage) {
           return stage.recomputed == selected_in_stage(choice, what.model, numbers, stage.operators);
         });
}

// "", or how what was written says another plan.
std::string difference(const ImportedTraining& again, const ConfigToWrite& config, int devices) {
  const Training training = load_training(again.training);
  const auto found = mesh_of(*training.parallel, devices);
  if (const Infeasible* why = std::get_if<Infeasible>(&found)) {
    return why->reason;
  }
  const Mesh& mesh = std::get<Mesh>(found);
  const bool same = mesh.tensor == config.mesh.tensor && mesh.data == config.mesh.data &&
                    mesh.pipeline == config.mesh.pipeline && mesh.sequence == config.mesh.sequence &&
                    mesh.context.ranks == config.mesh.context.ranks && mesh.experts == config.mesh.experts &&
                    mesh.order == config.mesh.order && training.global_batch == config.training.global_batch;
  return same ? "" : "it would be read as other degrees";
}

// A value and what it would be read back as.
class Lost {
public:
  template <class Value> void compare(const std::string& key, const Value& meant, const Value& read) {
    if (meant != read) {
      texts_.push_back(key + " " + word(meant) + " (read back: " + word(read) + ")");
    }
  }
  std::vector<std::string> take() { return std::move(texts_); }

private:
  static std::string word(bool value) { return value ? "true" : "false"; }
  static std::string word(int value) { return std::to_string(value); }
  static std::string word(std::string_view value) { return std::string(value); }

  std::vector<std::string> texts_;
};

std::string_view gradients_of(const Training& training) {
  return row_of(training.gradient_precision.value_or(training.precision)).name;
}

// "none", "full", "blocks 1", "first 2", "modules core_attn, mlp", "kinds …".
std::string recompute_text(const RecomputeChoice& choice) {
  if (choice.what != Recompute::selective) {
    return choice.what == Recompute::full ? "full" : "none";
  }
  if (choice.blocks > 0) {
    return choice.first > 0 ? "first " + std::to_string(choice.first) : "blocks " + std::to_string(choice.blocks);
  }
  const bool attention = choice.kinds == std::vector{KernelKind::attention}; // which is Megatron-LM's core_attn
  std::string text = attention ? "modules core_attn" : choice.modules.empty() ? "" : "modules " + join(choice.modules);
  for (const KernelKind kind : attention ? std::vector<KernelKind>() : choice.kinds) {
    text += (text.empty() ? "kinds " : ", ") + std::string(row_of(kind).name);
  }
  return text.empty() ? "operators " + join(choice.operators) : text;
}

// "none", "optimizer 0.5, gradients": what is left to hosts.
std::string offload_text(const Offload& offload) {
  constexpr int kDigits = 6;
  std::string text = offload.optimizer > 0 ? "optimizer " + to_digits(offload.optimizer, kDigits) : "";
  const auto add = [&](bool is_on, const std::string& what) { text += is_on ? (text.empty() ? "" : ", ") + what : ""; };
  add(offload.gradients, "gradients");
  add(offload.parameters, "parameters");
  add(offload.activations > 0, "activations " + std::to_string(offload.activations));
  return text.empty() ? "none" : text;
}

// "none", "1.25", "1.25 padded": rows that an expert takes at most, to those of an equal share.
std::string capacity_text(const std::optional<ExpertCapacity>& experts) {
  constexpr int kDigits = 6;
  return !experts ? "none" : to_digits(experts->factor, kDigits) + (experts->padded ? " padded" : "");
}

} // namespace

Plan as_frameworks_see(const PlanToWrite& what) {
  Plan seen = what.plan;
  const bool as_trained = recomputes_as_trained(what);
  const RecomputeChoice& choice = what.training.recompute;
  for (Stage& stage : seen.stages) {
    stage.tensor_rule = stage.tensor_rule == TensorRule::search ? stage.tensor_rule : TensorRule::megatron;
    if (stage.recompute == Recompute::selective && (as_trained || choice.by_all_blocks())) {
      stage.recompute = choice.by_all_blocks() ? Recompute::full : Recompute::none;
      stage.recomputed.clear();
    }
  }
  return seen;
}

ConfigToWrite config_of(const PlanToWrite& what, const UniformPlan& uniform) {
  const Stage& first = what.plan.stages.front();
  ConfigToWrite config{.model = what.model, .training = what.training, .mesh = {}, .layers = {}};
  config.mesh.tensor = first.tensor_parallel;
  config.mesh.sequence = first.sequence_parallel;
  config.mesh.tensor_rule = first.tensor_rule;
  config.mesh.context = first.context;
  config.mesh.experts = first.experts;
  config.mesh.data = uniform.replicas;
  config.mesh.pipeline = uniform.ranks;
  config.mesh.order = uniform.order;
  config.layers = read_pipeline_layout({uniform.layout, {}});
  config.micro_batches = what.micro_batches;
  const bool by_blocks = what.training.recompute.by_all_blocks();
  const bool selective = std::any_of(what.plan.stages.begin(), what.plan.stages.end(),
                                     [](const Stage& stage) { return stage.recompute == Recompute::selective; });
  config.recompute = selective ? (by_blocks ? Recompute::full : Recompute::selective) : first.recompute;
  config.schedule = what.schedule;
  return config;
}

std::vector<std::string> lost_in(const std::string& text, std::string_view format, const PlanToWrite& what) {
  const ConfigFormat& row = find_by_name(config_formats(), format, "format of configurations", {});
  const auto devices = static_cast<int>(devices_of(what.plan).size());
  const ImportedTraining imported =
      read_config({text, "export" + std::string(row.ending)}, format, {what.model, devices});
  const Training read = load_training(imported.training);
  const Training& meant = what.training;
  const ShardingRule& shares = read.parallel->sharding;
  Lost lost;
  lost.compare("precision", row_of(meant.precision).name, row_of(read.precision).name);
  lost.compare("gradient_precision", gradients_of(meant), gradients_of(read));
  lost.compare("optimizer", meant.optimizer->name, read.optimizer->name);
  lost.compare("state_precision", row_of(meant.state_precision).name, row_of(read.state_precision).name);
  lost.compare("master_remainders", meant.master_remainders, read.master_remainders);
  lost.compare("clip_gradients", meant.clip_gradients, read.clip_gradients);
  lost.compare("fp8", meant.fp8->name, read.fp8->name);
  lost.compare("fp8_weights", meant.fp8_weights, read.fp8_weights);
  lost.compare("fp8_activations", meant.fp8_activations, read.fp8_activations);
  lost.compare("recompute", recompute_text(meant.recompute), recompute_text(read.recompute));
  if (const Stage& first = what.plan.stages.front(); first.tensor_parallel > 1) {
    lost.compare("parallel.tensor_rule", row_of(first.tensor_rule).name, row_of(read.parallel->tensor_rule).name);
  }
  if (const Context& context = what.plan.stages.front().context; context.ranks > 1) {
    lost.compare("parallel.context_rule", row_of(context.rule).name, row_of(read.parallel->context.rule).name);
  }
  lost.compare("parallel.zero", static_cast<int>(meant.sharding.zero), static_cast<int>(shares.zero));
  if (meant.sharding.zero == shares.zero && meant.sharding.on()) {
    const Stage& first = what.plan.stages.front();
    const int all = static_cast<int>(first.devices.size()) / first.tensor_parallel;
    lost.compare("parallel.shard", meant.sharding.sharing(all), shares.group > 0 ? std::min(shares.group, all) : all);
  }
  if (meant.sharding.zero == Zero::states && shares.zero == Zero::states) {
    lost.compare("parallel.gather", row_of(meant.sharding.gather).name, row_of(shares.gather).name);
  }
  if (meant.sharding.zero < Zero::weights) {
    const auto bucket = [](Bytes size) { return size.value > 0 ? to_text(size) : std::string("none"); };
    lost.compare("gradient_bucket", bucket(meant.gradient_bucket), bucket(read.gradient_bucket));
  }
  lost.compare("deferred_head", meant.deferred_head, read.deferred_head);
  if (what.schedule.starts_with("combined")) { // elsewhere it changes nothing
    lost.compare("delayed_weights", meant.delayed_weights, read.delayed_weights);
  }
  lost.compare("pipelined_exchange", meant.pipelined_exchange, read.pipelined_exchange);
  if (what.plan.stages.front().experts.ranks > 1) {
    lost.compare("token_dispatcher", row_of(meant.dispatcher.kind).name, row_of(read.dispatcher.kind).name);
    lost.compare("expert_choice", row_of(meant.expert_choice).name, row_of(read.expert_choice).name);
  }
  lost.compare("expert_capacity", capacity_text(expert_capacity(what.model)), capacity_text(imported.experts));
  lost.compare("offload", offload_text(meant.offload), offload_text(read.offload));
  if (!what.schedule.empty() && devices_of(what.plan).size() > what.plan.stages.front().devices.size()) {
    lost.compare("schedule", std::string_view(what.schedule), std::string_view(imported.schedule));
    lost.compare("pipeline_fills", meant.pipeline_fills, read.pipeline_fills);
  }
  return lost.take();
}

WrittenConfig write_config(const ConfigFormat& format, const PlanToWrite& what) {
  const Plan seen = as_frameworks_see(what);
  const auto found = uniform_plan({seen, what.model, what.platform, what.training, what.micro_batches, what.schedule},
                                  format.name, format.orders);
  if (const Infeasible* why = std::get_if<Infeasible>(&found)) {
    return *why;
  }
  const auto& uniform = std::get<UniformPlan>(found);
  const ConfigToWrite config = config_of(what, uniform);
  WrittenConfig written = format.write(config);
  const std::string* text = std::get_if<std::string>(&written);
  if (text == nullptr) {
    return written;
  }
  try {
    const std::string file = "export" + std::string(format.ending);
    const ConfigContext context{what.model, uniform.devices};
    std::string why = difference(read_config({*text, file}, "", context), config, uniform.devices);
    return why.empty() ? written : WrittenConfig(Infeasible{std::move(why)});
  } catch (const InputError& refusal) { // a value that the format cannot hold
    return Infeasible{"it would be refused: " + std::string(refusal.what())};
  }
}

} // namespace stagecraft
