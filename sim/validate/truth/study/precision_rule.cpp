// What a run is computed in.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/training_rules.hpp"

namespace stagecraft {
namespace {

// What a run is computed in that says nothing of it. Scripts leave 32 bits as they are: PyTorch's convolutions then
// use TF32 where there is any, and until its version 1.12 its products, too (documentation of torch.backends). Large
// language models are trained in 16 bits.
std::string usual_precision(const RunTraining& run) {
  if (run.row.in_16_bits) {
    return "fp16";
  }
  const bool as_left = run.images || run.framework.name == "pytorch-2021";
  const auto better = [&](const char* wanted, const char* other) {
    return run.setting.precisions.contains(wanted) ? wanted : other;
  };
  return as_left ? better("tf32", "fp32") : better("bf16", "fp16");
}

// MLPerf's runs that train adapters hold frozen weights, and what SwiGLU keeps, in 8 bits: FP8_PARAMS and
// FP8_ACTIVATION of its implementations by NVIDIA and AMD. Of mxfp8 the optimiser gathers 16 bits
// (reuse_grad_buf_for_mxfp8_param_ag).
void write_held_in_8_bits(RunTraining& run, bool mxfp8) {
  const bool adapters = run.row.mentions("MLPerf") && trains_adapters(run.row);
  const std::string note = lower_case(run.row.flag("note")); // by MLPerf's name, or by Megatron Core's
  const bool params = has(note, "fp8_params=true") || has(note, "fp8_param_gather=true");
  if (adapters || params) {
    run.line("  fp8_weights: true");
  }
  run.gathers_8_bits = params && !mxfp8;
  if (adapters) {
    run.line("  fp8_activations: true");
    run.assume("frozen weights and inputs of SwiGLU in 8 bits");
  }
}

std::string write_fp8(RunTraining& run, const std::string& words, const std::string& recipe) {
  const std::string all = words + " " + recipe;
  const bool blocks = has(all, "mxfp8") || has(all, "fp8-mx");
  const bool own_blocks = has(all, "blockwise") || has(all, "fp8-sc") || has(all, "subchannel");
  const bool rows = has(all, "rowwise");
  const bool unstated = !rows && !blocks && !own_blocks && !has(all, "delayed");
  // torchao's default, by which TorchTitan and FSDP have their products in 8 bits
  const bool by_torchao = unstated && (run.is_torchtitan() || run.framework.name == "fsdp");
  const bool tensor = by_torchao || has(all, "tensorwise") || has(all, "fp8-cs") || has(all, "current");
  run.line("  precision: bf16");
  run.line(std::string("  fp8: ") + (blocks       ? "mxfp8"
                                     : own_blocks ? "blockwise"
                                     : rows       ? "rowwise"
                                     : tensor     ? "tensorwise"
                                                  : "delayed"));
  if (unstated && !tensor) {
    run.assume("delayed scales of products in 8 bits");
  } else if (by_torchao && !has(all, "tensorwise")) {
    run.assume("scales of whole tensors of products in 8 bits");
  }
  write_held_in_8_bits(run, blocks);
  return "";
}

} // namespace

std::string write_precision(RunTraining& run) {
  const std::string words = plain_words(run.row.precision);
  const std::string recipe = plain_words(run.row.flag("fp8_recipe"));
  const bool of_amd = has(words, "mxfp4") || has(recipe, "mxfp4"); // 4 bits in blocks of 32, which no fit has
  if (!of_amd && (has(words, "fp4") || has(recipe, "fp4"))) {
    run.line("  precision: bf16");
    run.line("  fp8: nvfp4");
    return "";
  }
  if (has(words, "fp8") || has(words, "float8")) {
    return write_fp8(run, words, recipe);
  }
  if (words.empty()) {
    const std::string usual = usual_precision(run);
    run.line("  precision: " + usual);
    run.assume("precision " + usual);
    return "";
  }
  constexpr std::array kKnown = {Alias{"bf16", "bf16"},    Alias{"bfloat16", "bf16"}, Alias{"fp16", "fp16"},
                                 Alias{"float16", "fp16"}, Alias{"half", "fp16"},     Alias{"tf32", "tf32"},
                                 Alias{"fp32", "fp32"},    Alias{"float32", "fp32"},  Alias{"single", "fp32"},
                                 Alias{"16-mixed", "fp16"}};
  if (words == "amp" || words.starts_with("mixed")) { // PyTorch's torch.cuda.amp, and NVIDIA's apex
    run.line("  precision: fp16");
    run.assume("fp16, as mixed precision is unless a row says bf16");
    return "";
  }
  const auto known =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Alias& one) { return has(words, one.theirs); });
  if (known == kKnown.end()) {
    return "the precision '" + excerpt(run.row.precision) +
           "' is not modelled; allowed: bf16, fp16, tf32, fp32, fp8, mxfp8, nvfp4";
  }
  run.line("  precision: " + std::string(known->ours));
  return "";
}

} // namespace stagecraft
