// Our plans as configurations of frameworks. docs/formats/framework-configs.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/plan_format/uniform_plan.hpp"

namespace stagecraft {
namespace {

// The plan as frameworks see it: blocks that run again one by one are their full recompute, and a rule by which a
// tensor group shares operators is that of a framework, which formats look at themselves.
Plan as_frameworks_see(const Plan& plan, const Training& training) {
  Plan seen = plan;
  const bool by_blocks = training.recompute.blocks > 0 && training.recompute.first == 0;
  for (Stage& stage : seen.stages) {
    stage.tensor_rule = stage.tensor_rule == TensorRule::search ? stage.tensor_rule : TensorRule::megatron;
    if (stage.recompute == Recompute::selective && by_blocks) {
      stage.recompute = Recompute::full;
      stage.recomputed.clear();
    }
  }
  return seen;
}

ConfigToWrite to_write(const PlanToWrite& what, const Plan& seen, const UniformPlan& uniform) {
  const Stage& first = what.plan.stages.front();
  ConfigToWrite config{.model = what.model, .training = what.training, .mesh = {}, .layers = {}};
  config.mesh.tensor = first.tensor_parallel;
  config.mesh.sequence = first.sequence_parallel;
  config.mesh.tensor_rule = first.tensor_rule;
  config.mesh.context = first.context;
  config.mesh.experts = first.experts;
  config.mesh.data = uniform.replicas;
  config.mesh.pipeline = uniform.ranks;
  config.layers = read_pipeline_layout({uniform.layout, {}});
  config.micro_batches = what.micro_batches;
  config.recompute = seen.stages.front().recompute;
  return config;
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
                    training.global_batch == config.training.global_batch;
  return same ? "" : "it would be read as other degrees";
}

} // namespace

WrittenConfig write_config(const ConfigFormat& format, const PlanToWrite& what) {
  const Plan seen = as_frameworks_see(what.plan, what.training);
  const auto found = uniform_plan({seen, what.model, what.platform, what.training, what.micro_batches}, format.name);
  if (const Infeasible* why = std::get_if<Infeasible>(&found)) {
    return *why;
  }
  const auto& uniform = std::get<UniformPlan>(found);
  const ConfigToWrite config = to_write(what, seen, uniform);
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
