// How many devices share a model, in which ways, and how its layers lie on stages.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>

#include "sim/base/count_of.hpp"
#include "sim/validate/truth/study/training_rules.hpp"

namespace stagecraft {
namespace {

// By the words of Megatron-LM's --cp-comm-type.
void write_context_rule(RunTraining& run) {
  constexpr std::array kRules = {Alias{"a2a+p2p", "both"}, Alias{"a2a", "all-to-all"},
                                 Alias{"all_gather", "all-gather"}, Alias{"p2p", "ring"}};
  const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                 [&](const Alias& one) { return one.theirs == run.row.flag("cp_comm_type"); });
  if (rule != kRules.end()) {
    run.line("    context_rule: " + std::string(rule->ours));
  }
}

// Kernels that send tokens to other ranks' experts have something to do where ranks share experts: all of a stage,
// where a row says no number, as configurations of NeMo Automodel have it (examples/llm_benchmark/gpt_oss, ep_size).
int expert_ranks(RunTraining& run) {
  if (const int launched = number_after(run.row.flag("expert_parallel"), "");
      launched > 0 && run.row.degrees.expert == 0) {
    return launched;
  }
  const int ranks = run.setting.devices / run.pipeline, experts = run.row.sizes.experts;
  if (run.row.degrees.expert > 0 || experts == 0 || experts % ranks != 0 ||
      !(run.row.mentions("DeepEP") || run.row.mentions("HybridEP"))) {
    return run.row.degrees.expert;
  }
  run.assume("experts shared by all " + count_of(ranks, "rank") + " of a stage");
  return ranks;
}

// As few as divide the layers of a rank; or, where layers do not divide but with an embedding and a head as two more
// do, a stage for each of all these.
int usual_interleave(const RunTraining& run) {
  const int layers = run.row.sizes.layers, of_rank = layers / run.pipeline;
  if (run.is_torchtitan()) {
    return 2;
  }
  if (layers % run.pipeline != 0 && (layers + 2) % run.pipeline == 0) {
    return (layers + 2) / run.pipeline;
  }
  int stages = 2;
  while (stages < of_rank && of_rank % stages != 0) {
    ++stages;
  }
  return std::max(1, std::min(stages, of_rank));
}

// Where there are two stages more than layers, what stands before them and what comes after are stages of their own.
void write_layers(RunTraining& run) {
  const int layers = run.row.sizes.layers, of_rank = run.interleave > 1 ? run.interleave : turns_around(run) ? 2 : 1;
  if (run.pipeline > 1 && layers > 0 && layers + 2 == run.pipeline * of_rank) {
    run.line("    layers: \"E|(t|)*" + std::to_string(layers) + "L\"");
    run.assume("the embedding and the head as stages of their own");
  }
}

void write_interleave(RunTraining& run) {
  run.interleave = run.row.degrees.interleave;
  const bool interleaves = has(plain_words(run.row.schedule), "interleav") && run.pipeline > 1;
  if (run.interleave == 1 && interleaves) { // one stage of each rank is no interleaving
    run.interleave = 0;
  }
  const std::string flag = run.row.flag("vp");
  if (run.interleave == 0 && !flag.empty()) {
    run.interleave = std::atoi(flag.c_str());
  }
  if (run.interleave == 0 && interleaves) {
    run.interleave = usual_interleave(run);
    run.assume(std::to_string(run.interleave) + " stages of each rank");
  }
  if (!run.stages.empty() && run.pipeline > 1) {
    run.line("    layers: \"" + run.stages + "\"");
  }
  if (run.interleave > 1 && run.pipeline > 1) {
    run.line("    interleave: " + std::to_string(run.interleave));
  } else if (run.interleave > 1) {
    run.assume("nothing of virtual_stages " + std::to_string(run.interleave) + " in one stage");
  }
  if (run.stages.empty()) {
    write_layers(run);
  }
}

} // namespace

std::string write_degrees(RunTraining& run) {
  run.line("  parallel:");
  run.line("    tensor: " + std::to_string(run.tensor));
  run.line("    pipeline: " + std::to_string(run.pipeline));
  if (run.context > 1) {
    run.line("    context: " + std::to_string(run.context));
    write_context_rule(run);
  }
  if (const int expert = expert_ranks(run); expert > 1 && run.is_mixture()) {
    run.line("    expert: " + std::to_string(expert));
  } else if (expert > 1) {
    run.assume("nothing of expert_parallel " + std::to_string(expert) + ", as the model has no experts");
  }
  const std::string flag = run.row.flag("sequence_parallel");
  if (run.row.degrees.sequence || !flag.empty()) {
    run.line(std::string("    sequence: ") + (run.row.degrees.sequence.value_or(flag == "true") ? "true" : "false"));
  }
  const int model = run.tensor * run.pipeline * run.context;
  if (run.setting.devices % model != 0) {
    return "its degrees, " + std::to_string(model) + " in all, do not divide " +
           count_of(run.setting.devices, "device");
  }
  run.replicas = run.setting.devices / model;
  if (run.row.degrees.data > 0 && run.row.degrees.data != run.replicas &&
      run.row.degrees.data != run.replicas * run.context) {
    return "data_parallel " + std::to_string(run.row.degrees.data) + " and its other degrees do not make " +
           count_of(run.setting.devices, "device");
  }
  if (std::string reason = write_sharing(run); !reason.empty()) {
    return reason;
  }
  write_interleave(run);
  return "";
}

} // namespace stagecraft
