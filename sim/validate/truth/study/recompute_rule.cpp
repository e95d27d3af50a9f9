// What a run computes again in backward.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/training_rules.hpp"
#include "sim/workload/training/block_operators.hpp"
#include "sim/workload/training/every_second_product.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

// "full", and what people call it who know no other kind.
bool says_blocks(const std::string& words) {
  return words.starts_with("full") || words == "yes" || words == "true" || words == "on" || words == "1" ||
         words.starts_with("block") || words.starts_with("uniform") ||
         (has(words, "checkpoint") && !says_no(words) && !has(words, "selective"));
}

// The recipes that MaxText's figures come from keep what goes into a block, those of mixtures on the host, and without
// experts queries, keys and values (AI-Hypercomputer/maxtext, benchmarks/maxtext_trillium_model_configs.py and
// maxtext_v5p_model_configs.py, and AI-Hypercomputer/tpu-recipes). XLA leaves out what backward does not read again, as
// an MLP's last product.
void write_maxtext_policy(RunTraining& run) {
  if (run.row.sizes.experts > 0) {
    run.line("  recompute: blocks");
    run.line("  offload: {activations: all}");
    run.assume("blocks run again, and what goes into them is kept on the host, as in MaxText's own recipes");
    return;
  }
  if (run.row.sizes.layers == 0) {
    run.line("  recompute: blocks");
    run.assume("blocks run again, as in MaxText's own recipes");
    return;
  }
  constexpr std::array<std::string_view, 2> kProducts = {"projection", "expand"};
  run.line("  recompute: {kinds: [attention, normalization, elementwise], operators: [" +
           join(in_all_blocks(run.row.sizes.layers, kProducts)) + "]}");
  const bool on_host = run.setting.device == "tpu-v5e" || run.setting.device == "tpu-v6e";
  if (on_host) { // chips of 16 and 32 GB
    run.line("  offload: {activations: all}");
  }
  run.assume(std::string("queries, keys and values are kept") + (on_host ? " on the host" : "") +
             ", and what else of a block backward reads runs again, as in MaxText's own recipes");
}

void write_selective(RunTraining& run, const std::string& words) {
  if (run.is_torchtitan() || run.framework.name == "fsdp") {
    const std::string operators =
        run.is_torchtitan() ? ", operators: [" + join(every_second_product(run.row.sizes.layers)) + "]" : "";
    run.line("  recompute: {kinds: [normalization, elementwise]" + operators + "}");
    return;
  }
  const std::string modules = modules_named(words, kRecomputeModules);
  if (!modules.empty() || words == "selective") { // Megatron-LM's default
    run.line("  recompute: {modules: [" + (modules.empty() ? "core_attn" : modules) + "]}");
  }
}

} // namespace

std::string write_recompute(RunTraining& run) {
  const std::string words = recompute_stated(run.row);
  if (words.empty() && run.is_maxtext()) {
    write_maxtext_policy(run);
  } else if (words.empty()) {
    run.assume(std::string(kNothingRecomputed));
  } else if (run.is_torchgpipe() && says_blocks(words)) { // what a partition is given is kept, whatever its layers
    const bool but_last = has(words, "except last") || has(words, "except_last");
    run.line("  recompute: {what: full, except_last: " + std::string(but_last ? "true" : "false") + "}");
  } else if (const int first = number_after(words, "first "); first > 0) {
    run.line("  recompute: {first: " + std::to_string(first) + "}");
  } else if (says_blocks(words)) {
    run.line("  recompute: blocks");
  } else if (words.starts_with("selective") || words.starts_with("sel")) {
    write_selective(run, words);
  } else if (!says_no(words)) {
    return "the recompute '" + excerpt(words) + "' is not modelled; allowed: none, selective, full, first N blocks";
  }
  return "";
}

} // namespace stagecraft
