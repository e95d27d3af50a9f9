// What replicas share of weights and states, and among how many.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/training_rules.hpp"

namespace stagecraft {
namespace {

// The stage of ZeRO that the words say; of a number alone, as "1" or "zero_stage 3", that. -1: none.
int zero_of(const std::string& words) {
  if (has(words, "zero-2") || has(words, "shard-grad-op") || has(words, "shard_grad_op")) {
    return 2;
  }
  if (has(words, "full-shard") || has(words, "full_shard") || has(words, "fsdp") || has(words, "hsdp")) {
    return 3;
  }
  if (has(words, "distributed optimizer") || has(words, "distributed-optimizer")) {
    return 1;
  }
  if (has(words, "ddp") || words == "none") {
    return 0;
  }
  constexpr int kHighest = 3;
  const std::string bare = words.substr(0, words.find('.')); // "1.0", as of a column with empty cells
  for (int stage = 0; stage <= kHighest; ++stage) {
    const std::string digit = std::to_string(stage);
    for (const char* before : {"zero", "zero-", "zero ", "zero_", "stage ", "stage-", "stage_"}) {
      if (has(words, before + digit)) {
        return stage;
      }
    }
    if (bare == digit) {
      return stage;
    }
  }
  return -1;
}

} // namespace

// What replicas share, as degree `zero`, and among how many.
std::string write_sharing(RunTraining& run) {
  const std::string words = plain_words(run.row.zero);
  const bool part = has(run.row.flag("fsdp"), "optim_grads_params");
  // What stands in parentheses says the stage of names that leave it open.
  int zero = part ? 3 : has(run.row.zero, "ZeRO-2") ? 2 : zero_of(words);
  if (zero < 0 && has(run.row.zero, "ZeRO-1")) {
    zero = 1;
  }
  if (zero < 0 && says_no(words)) {
    zero = 0;
  }
  if (zero < 0 && !states_nothing(words)) {
    return "the zero_stage '" + excerpt(run.row.zero) +
           "' is not modelled; allowed: 0 to 3, or words such as ddp, distributed optimizer, ZeRO-2, fsdp";
  }
  if (const std::string flag = run.row.flag("distributed_optimizer"); zero < 0 && !flag.empty()) {
    zero = flag.starts_with("true") ? 1 : 0;
  }
  if (zero >= 0) {
    run.line("    zero: " + std::to_string(zero));
  }
  if (zero == 1 && run.gathers_8_bits) {
    run.line("    quantized_weights: fp8");
  }
  if (const std::string beside = run.row.flag("overlap_param_gather"); zero == 1 && !beside.empty()) {
    run.line(std::string("    gather: ") + (beside == "true" ? "before-use" : "after-step"));
    if (beside == "true" && run.framework.name == "megatron-lm-2025") { // whose recipe gathers after the step
      run.line("    late_experts: true");
    }
  }
  const int degree = number_after(words, "degree ");
  const int shard = has(words, "hsdp")                          ? run.row.devices_per_node
                    : has(words, "groups of ")                  ? number_after(words, "groups of ")
                    : has(words, "fsdp2 degree ") && degree > 0 ? degree
                                                                : 0;
  const int replicas = run.setting.devices / (run.tensor * run.pipeline);
  if (zero >= 1 && shard > 0 && shard < replicas && replicas % shard == 0) {
    run.line("    shard: " + std::to_string(shard));
  } else if (zero < 0 && run.is_maxtext() && run.setting.slice < replicas && run.setting.slice > 0 &&
             replicas % run.setting.slice == 0) { // its dcn_data_parallelism takes what is left
    run.line("    shard: " + std::to_string(run.setting.slice));
    run.assume("weights shared within each slice");
  }
  return "";
}

} // namespace stagecraft
