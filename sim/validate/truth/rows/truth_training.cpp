// How a row's run trained: its degrees, batch, precision and recompute in a study's words, the rest by its framework.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "sim/base/count_of.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/rows/truth_study.hpp"
#include "sim/workload/training/block_operators.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/every_second_product.hpp"
#include "sim/workload/training/latent_product.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

constexpr double kPercents = 100;

// What a source calls something, and a study.
struct Alias {
  std::string_view theirs, ours;
};

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

// From its container 26.02 on Megatron-Bridge's performance recipes have `moe_token_dispatcher_type = "flex"` with
// DeepEP's or HybridEP's kernels (src/megatron/bridge/perf_recipes).
constexpr int kFlexible = 2602;

// 2602 of "26.02 NeMo Container", the first two numbers of two digits with a point between them; 0: none.
int container_of(const TruthRow& row) {
  constexpr int kYear = 100;
  const auto is_digit = [&](std::size_t at) {
    return at < row.table.size() && std::isdigit(static_cast<unsigned char>(row.table[at])) != 0;
  };
  for (std::size_t point = 2; point < row.table.size(); ++point) {
    if (row.table[point] == '.' && is_digit(point - 2) && is_digit(point - 1) && is_digit(point + 1) &&
        is_digit(point + 2) && (point == 2 || !is_digit(point - 3)) && !is_digit(point + 3)) {
      return kYear * std::atoi(row.table.c_str() + point - 2) + std::atoi(row.table.c_str() + point + 1);
    }
  }
  return 0;
}

// The training while it is written.
class TrainingText {
public:
  TrainingText(const TruthRow& row, const TruthFramework& framework, const TrainingSetting& setting)
      : row_(row), framework_(framework), setting_(setting), images_(setting.model != nullptr && setting.model->images),
        stages_(setting.model == nullptr ? "" : setting.model->layers), tensor_(std::max(row.degrees.tensor, 1)),
        pipeline_(std::max(row.degrees.pipeline, 1)), context_(std::max(row.degrees.context, 1)) {
    const int replicas = setting.devices / std::max(1, tensor_ * pipeline_);
    if (is_maxtext() && row.degrees.context == 0 && row.global_batch > 0 && replicas > row.global_batch &&
        replicas % row.global_batch == 0) {
      context_ = replicas / row.global_batch;
      assume("sequences shared by " + count_of(context_, "chip") + ", of which there are more than sequences");
    }
  }

  std::variant<StudyPart, Infeasible> write() {
    line("training:");
    line("  framework: " + std::string(framework_.name));
    if (const std::string attention = attention_stated(row_, framework_); !attention.empty()) {
      line("  attention: " + attention);
    }
    write_image_layout();
    for (const auto step : {&TrainingText::write_optimizer, &TrainingText::write_epoch, &TrainingText::write_precision,
                            &TrainingText::write_flags, &TrainingText::write_recompute, &TrainingText::write_degrees,
                            &TrainingText::write_batch, &TrainingText::write_schedule}) {
      if (std::string reason = (this->*step)(); !reason.empty()) {
        return Infeasible{std::move(reason)};
      }
    }
    return StudyPart{std::move(text_), std::move(assumed_)};
  }

private:
  void line(const std::string& text) { text_ += text + "\n"; }
  void assume(const std::string& what) { assumed_.push_back(what); }

  // Optimisers by the states that each keeps of a weight.
  std::string write_optimizer() {
    struct Name {
      std::string_view theirs, ours;
    };
    constexpr std::array kNames = {Name{"", ""},         Name{"adam", "adam"},     Name{"adamw", "adam"},
                                   Name{"lamb", "lamb"}, Name{"adadelta", "adam"}, Name{"momentum", "momentum"},
                                   Name{"sgd", "sgd"}};
    const auto known = std::find_if(kNames.begin(), kNames.end(),
                                    [&](const Name& one) { return one.theirs == plain_words(row_.optimizer); });
    if (known == kNames.end()) {
      return "the optimizer '" + excerpt(row_.optimizer) + "' is not modelled";
    }
    const std::string usual = images_ ? "momentum" : "adam";
    if (!known->ours.empty() || !framework_.own_optimizer) {
      line("  optimizer: " + (known->ours.empty() ? usual : std::string(known->ours)));
    }
    return "";
  }

  // Of what the host does once an epoch, an iteration's part.
  std::string write_epoch() {
    const bool of_epochs = row_.metric == "epoch_seconds" || row_.metric == "average_power";
    if (of_epochs && row_.epoch_host_seconds > 0) {
      const double iterations = static_cast<double>(row_.epoch_samples) / row_.global_batch;
      line("  step_overhead: " + std::to_string(1e6 * row_.epoch_host_seconds / iterations) + " us");
      assume(to_text(Seconds{row_.epoch_host_seconds}) + " of the host for the samples of an epoch");
    }
    return "";
  }

  // What a run is computed in that says nothing of it. Scripts leave 32 bits as they are: PyTorch's convolutions then
  // use TF32 where there is any, and until its version 1.12 its products, too (documentation of torch.backends). Large
  // language models are trained in 16 bits.
  std::string usual_precision() const {
    if (row_.in_16_bits) {
      return "fp16";
    }
    const bool as_left = images_ || framework_.name == "pytorch-2021";
    const auto better = [&](const char* wanted, const char* other) {
      return setting_.precisions.contains(wanted) ? wanted : other;
    };
    return as_left ? better("tf32", "fp32") : better("bf16", "fp16");
  }

  std::string write_precision() {
    const std::string words = plain_words(row_.precision);
    const std::string recipe = plain_words(row_.flag("fp8_recipe"));
    if (has(words, "fp4") || has(recipe, "fp4")) {
      line("  precision: bf16");
      line("  fp8: nvfp4");
      return "";
    }
    if (has(words, "fp8") || has(words, "float8")) {
      return write_fp8(words, recipe);
    }
    if (words.empty()) {
      const std::string usual = usual_precision();
      line("  precision: " + usual);
      assume("precision " + usual);
      return "";
    }
    constexpr std::array kKnown = {Alias{"bf16", "bf16"},    Alias{"bfloat16", "bf16"}, Alias{"fp16", "fp16"},
                                   Alias{"float16", "fp16"}, Alias{"half", "fp16"},     Alias{"tf32", "tf32"},
                                   Alias{"fp32", "fp32"},    Alias{"float32", "fp32"},  Alias{"single", "fp32"}};
    const auto known =
        std::find_if(kKnown.begin(), kKnown.end(), [&](const Alias& one) { return has(words, one.theirs); });
    if (known == kKnown.end()) {
      return "the precision '" + excerpt(row_.precision) +
             "' is not modelled; allowed: bf16, fp16, tf32, fp32, fp8, mxfp8, nvfp4";
    }
    line("  precision: " + std::string(known->ours));
    return "";
  }

  std::string write_fp8(const std::string& words, const std::string& recipe) {
    const std::string all = words + " " + recipe;
    const bool blocks = has(all, "mxfp8") || has(all, "fp8-mx");
    const bool own_blocks = has(all, "blockwise") || has(all, "fp8-sc") || has(all, "subchannel");
    const bool rows = has(all, "rowwise");
    const bool unstated = !rows && !blocks && !own_blocks && !has(all, "delayed");
    // torchao's default, by which TorchTitan and FSDP have their products in 8 bits
    const bool by_torchao = unstated && (is_torchtitan() || framework_.name == "fsdp");
    const bool tensor = by_torchao || has(all, "tensorwise") || has(all, "fp8-cs") || has(all, "current");
    line("  precision: bf16");
    line(std::string("  fp8: ") + (blocks       ? "mxfp8"
                                   : own_blocks ? "blockwise"
                                   : rows       ? "rowwise"
                                   : tensor     ? "tensorwise"
                                                : "delayed"));
    if (unstated && !tensor) {
      assume("delayed scales of products in 8 bits");
    } else if (by_torchao && !has(all, "tensorwise")) {
      assume("scales of whole tensors of products in 8 bits");
    }
    write_held_in_8_bits(blocks);
    return "";
  }

  // MLPerf's runs that train adapters hold frozen weights, and what SwiGLU keeps, in 8 bits: FP8_PARAMS and
  // FP8_ACTIVATION of its implementations by NVIDIA and AMD. Of mxfp8 the optimiser gathers 16 bits
  // (reuse_grad_buf_for_mxfp8_param_ag).
  void write_held_in_8_bits(bool mxfp8) {
    const bool adapters = row_.mentions("MLPerf") && trains_adapters(row_);
    const std::string note = lower_case(row_.flag("note")); // by MLPerf's name, or by Megatron Core's
    const bool params = has(note, "fp8_params=true") || has(note, "fp8_param_gather=true");
    if (adapters || params) {
      line("  fp8_weights: true");
    }
    gathers_8_bits_ = params && !mxfp8;
    if (adapters) {
      line("  fp8_activations: true");
      assume("frozen weights and inputs of SwiGLU in 8 bits");
    }
  }

  // NVIDIA's examples train ResNet-50 in fp16 with channels last (PyTorch: `memory_format: nhwc` of AMP in configs.yml;
  // MXNet: `--conv-layout NHWC` of float16 in its runner), in all else with channels first, their frameworks' default.
  // A row that states a layout has that.
  void write_image_layout() {
    if (!images_ || row_.mentions("NCHW") || row_.mentions("channels first") || row_.mentions("channels-first")) {
      return;
    }
    const bool stated = row_.mentions("NHWC") || row_.mentions("channels last") || row_.mentions("channels-last");
    if (stated || (row_.mentions("DeepLearningExamples") && has(plain_words(row_.precision), "fp16"))) {
      line("  image_layout: channels-last");
    }
  }

  // What flags say of how tokens reach experts, else the row's words, else the recipes of its release; "" if none do.
  std::string token_dispatcher() {
    if (std::string dispatcher = row_.flag("dispatcher"); !dispatcher.empty()) {
      return dispatcher;
    }
    if (row_.mentions("HybridEP")) {
      return "hybridep";
    }
    if (row_.mentions("DeepEP")) {
      return "deepep";
    }
    if (framework_.name != "megatron-bridge" || row_.degrees.expert <= 1 || container_of(row_) < kFlexible) {
      return "";
    }
    assume("tokens go to experts by HybridEP, as in the performance recipes of that release");
    return "hybridep";
  }

  // How tokens reach experts, what is left to hosts, graphs of kernels, which the host launches at once, and whether
  // replicas reduce gradients beside the last backward.
  std::string write_flags() {
    if (const std::string dispatcher = token_dispatcher(); dispatcher == "hybridep" || dispatcher == "deepep") {
      line("  token_dispatcher: " + dispatcher);
    }
    const bool mixture = row_.sizes.experts > 0 || (setting_.model != nullptr && setting_.model->mixture);
    if (const std::string choice = row_.flag("expert_choice"); !choice.empty() && mixture) {
      line("  expert_choice: " + choice);
    }
    write_captured();
    if (row_.flag("overlap_grad_reduce") == "false") {
      line("  gradient_bucket: none");
    }
    if (tensor_ > 1 && (row_.flag("tp_comm_overlap") == "true" || row_.mentions("async_TP=True"))) {
      line("  pipelined_exchange: true");
    }
    return write_offload();
  }

  std::string write_offload() {
    const std::string words = row_.flag("cpu_offload");
    const int share = number_after(words, "optimizer ");
    if (words.starts_with("optimizer") && share > 0 && share <= kPercents) {
      line("  offload: {optimizer: " + std::to_string(share / kPercents) + ", gradients: true}");
    } else if (const int layers = number_after(words, "activations of "); layers > 0) {
      line("  offload: {activations: " + std::to_string(layers) + "}");
    } else if (!words.empty() && !says_no(words) && !words.starts_with("n/a")) {
      return "what is left to hosts, '" + excerpt(words) +
             "', is not modelled; allowed: none, optimizer 50 %, activations of 40 layers";
    }
    return "";
  }

  // "transformer_engine: attn, moe_router" names modules; "local: per layer" captures layers as they are.
  void write_captured() {
    const std::string graphs = row_.flag("cuda_graphs");
    const std::string named = modules_named(graphs, kCapturedModules);
    const std::string modules = has(graphs, "per layer") ? "layer" + (named.empty() ? "" : ", " + named) : named;
    std::vector<std::string> parts;
    if (!modules.empty()) {
      parts.push_back("captured: [" + modules + "]");
    }
    if (framework_.name == "megatron-bridge" && row_.mentions("performance summary")) { // apply_rope_fusion in all
      parts.push_back("types: {" + std::string(kLatentProduct) +
                      ": {forward: " + std::to_string(static_cast<int>(kFusedLatentProduct.forward)) +
                      ", backward: " + std::to_string(static_cast<int>(kFusedLatentProduct.backward)) + "}}");
    }
    if (!parts.empty()) {
      line("  launches: {" + join(parts, ", ") + "}");
    }
  }

  std::string write_recompute() {
    const std::string words = recompute_stated(row_);
    if (words.empty() && is_maxtext()) {
      write_maxtext_policy();
    } else if (words.empty()) {
      assume(std::string(kNothingRecomputed));
    } else if (is_torchgpipe() && says_blocks(words)) { // what a partition is given is kept, whatever its layers
      const bool but_last = has(words, "except last") || has(words, "except_last");
      line("  recompute: {what: full, except_last: " + std::string(but_last ? "true" : "false") + "}");
    } else if (const int first = number_after(words, "first "); first > 0) {
      line("  recompute: {first: " + std::to_string(first) + "}");
    } else if (says_blocks(words)) {
      line("  recompute: blocks");
    } else if (words.starts_with("selective") || words.starts_with("sel")) {
      write_selective(words);
    } else if (!says_no(words)) {
      return "the recompute '" + excerpt(words) + "' is not modelled; allowed: none, selective, full, first N blocks";
    }
    return "";
  }

  static bool says_no(const std::string& words) {
    return words == "none" || words == "no" || words == "false" || words == "off" || words == "0" ||
           words.starts_with("no ");
  }
  // "full", and what people call it who know no other kind.
  static bool says_blocks(const std::string& words) {
    return words.starts_with("full") || words == "yes" || words == "true" || words == "on" || words == "1" ||
           words.starts_with("block") || words.starts_with("uniform") ||
           (has(words, "checkpoint") && !says_no(words) && !has(words, "selective"));
  }

  bool is_maxtext() const { return framework_.name == "maxtext"; }

  // The recipes that MaxText's figures come from keep what goes into a block, and without experts queries, keys and
  // values (AI-Hypercomputer/maxtext, benchmarks/maxtext_trillium_model_configs.py, and AI-Hypercomputer/tpu-recipes).
  // XLA leaves out what backward does not read again, as an MLP's last product.
  void write_maxtext_policy() {
    if (row_.sizes.layers == 0 || row_.sizes.experts > 0) {
      line("  recompute: blocks");
      assume("blocks run again, as in MaxText's own recipes");
      return;
    }
    constexpr std::array<std::string_view, 2> kProducts = {"projection", "expand"};
    line("  recompute: {kinds: [attention, normalization, elementwise], operators: [" +
         join(in_all_blocks(row_.sizes.layers, kProducts)) + "]}");
    const bool on_host = setting_.device == "tpu-v5e" || setting_.device == "tpu-v6e";
    if (on_host) { // chips of 16 and 32 GB
      line("  offload: {activations: all}");
    }
    assume(std::string("queries, keys and values are kept") + (on_host ? " on the host" : "") +
           ", and what else of a block backward reads runs again, as in MaxText's own recipes");
  }

  bool is_torchgpipe() const { return row_.mentions("torchgpipe"); }
  // Its pipelines have two stages of each rank where schedules interleave them; those of 2024 as many micro-batches as
  // ranks (pytorch/torchtitan at 9dec370, torchtitan/parallelisms/pipelining_utils.py).
  bool is_torchtitan() const { return framework_.name.starts_with("torchtitan"); }

  void write_selective(const std::string& words) {
    if (is_torchtitan() || framework_.name == "fsdp") {
      const std::string operators =
          is_torchtitan() ? ", operators: [" + join(every_second_product(row_.sizes.layers)) + "]" : "";
      line("  recompute: {kinds: [normalization, elementwise]" + operators + "}");
      return;
    }
    const std::string modules = modules_named(words, kRecomputeModules);
    if (!modules.empty() || words == "selective") { // Megatron-LM's default
      line("  recompute: {modules: [" + (modules.empty() ? "core_attn" : modules) + "]}");
    }
  }

  // Those of the modules that the words name, as a list of YAML has them.
  static std::string modules_named(const std::string& words, std::span<const ModuleRow> modules) {
    std::string named;
    for (const ModuleRow& row : modules) {
      named += has_word(words, row.name) ? (named.empty() ? "" : ", ") + std::string(row.name) : "";
    }
    return named;
  }

  // Whether the words, which blanks, commas, colons and pluses part, have one that is the module's name.
  static bool has_word(const std::string& words, std::string_view name) {
    const auto parts = [](char c) { return std::string_view(" ,:+").find(c) != std::string_view::npos; };
    for (std::size_t at = words.find(name); at != std::string::npos; at = words.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at == 0 || parts(words[at - 1])) && (end == words.size() || parts(words[end]))) {
        return true;
      }
    }
    return false;
  }

  // What replicas share, as degree `zero`, and among how many.
  std::string write_sharing() {
    const std::string words = plain_words(row_.zero);
    const bool part = has(row_.flag("fsdp"), "optim_grads_params");
    // What stands in parentheses says the stage of names that leave it open.
    int zero = part ? 3 : has(row_.zero, "ZeRO-2") ? 2 : zero_of(words);
    if (zero < 0 && has(row_.zero, "ZeRO-1")) {
      zero = 1;
    }
    if (zero < 0 && says_no(words)) {
      zero = 0;
    }
    if (zero < 0 && !states_nothing(words)) {
      return "the zero_stage '" + excerpt(row_.zero) +
             "' is not modelled; allowed: 0 to 3, or words such as ddp, distributed optimizer, ZeRO-2, fsdp";
    }
    if (const std::string flag = row_.flag("distributed_optimizer"); zero < 0 && !flag.empty()) {
      zero = flag.starts_with("true") ? 1 : 0;
    }
    if (zero >= 0) {
      line("    zero: " + std::to_string(zero));
    }
    if (zero == 1 && gathers_8_bits_) {
      line("    quantized_weights: fp8");
    }
    if (const std::string beside = row_.flag("overlap_param_gather"); zero == 1 && !beside.empty()) {
      line(std::string("    gather: ") + (beside == "true" ? "before-use" : "after-step"));
      if (beside == "true" && framework_.name == "megatron-lm-2025") { // whose recipe gathers after the step
        line("    late_experts: true");
      }
    }
    const int degree = number_after(words, "degree ");
    const int shard = has(words, "hsdp")                          ? row_.devices_per_node
                      : has(words, "groups of ")                  ? number_after(words, "groups of ")
                      : has(words, "fsdp2 degree ") && degree > 0 ? degree
                                                                  : 0;
    const int replicas = setting_.devices / (tensor_ * pipeline_);
    if (zero >= 1 && shard > 0 && shard < replicas && replicas % shard == 0) {
      line("    shard: " + std::to_string(shard));
    } else if (zero < 0 && is_maxtext() && setting_.slice < replicas && setting_.slice > 0 &&
               replicas % setting_.slice == 0) { // its dcn_data_parallelism takes what is left
      line("    shard: " + std::to_string(setting_.slice));
      assume("weights shared within each slice");
    }
    return "";
  }

  // By the words of Megatron-LM's --cp-comm-type.
  void write_context_rule() {
    constexpr std::array kRules = {Alias{"a2a+p2p", "both"}, Alias{"a2a", "all-to-all"},
                                   Alias{"all_gather", "all-gather"}, Alias{"p2p", "ring"}};
    const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                   [&](const Alias& one) { return one.theirs == row_.flag("cp_comm_type"); });
    if (rule != kRules.end()) {
      line("    context_rule: " + std::string(rule->ours));
    }
  }

  // Kernels that send tokens to other ranks' experts have something to do where ranks share experts: all of a stage,
  // where a row says no number, as configurations of NeMo Automodel have it (examples/llm_benchmark/gpt_oss, ep_size).
  int expert_ranks() {
    if (const int launched = number_after(row_.flag("expert_parallel"), ""); launched > 0 && row_.degrees.expert == 0) {
      return launched;
    }
    const int ranks = setting_.devices / pipeline_, experts = row_.sizes.experts;
    if (row_.degrees.expert > 0 || experts == 0 || experts % ranks != 0 ||
        !(row_.mentions("DeepEP") || row_.mentions("HybridEP"))) {
      return row_.degrees.expert;
    }
    assume("experts shared by all " + count_of(ranks, "rank") + " of a stage");
    return ranks;
  }

  std::string write_degrees() {
    line("  parallel:");
    line("    tensor: " + std::to_string(tensor_));
    line("    pipeline: " + std::to_string(pipeline_));
    if (context_ > 1) {
      line("    context: " + std::to_string(context_));
      write_context_rule();
    }
    const bool mixture = row_.sizes.experts > 0 || (setting_.model != nullptr && setting_.model->mixture);
    if (const int expert = expert_ranks(); expert > 1 && mixture) {
      line("    expert: " + std::to_string(expert));
    }
    const std::string flag = row_.flag("sequence_parallel");
    if (row_.degrees.sequence || !flag.empty()) {
      line(std::string("    sequence: ") + (row_.degrees.sequence.value_or(flag == "true") ? "true" : "false"));
    }
    const int model = tensor_ * pipeline_ * context_;
    if (setting_.devices % model != 0) {
      return "its degrees, " + std::to_string(model) + " in all, do not divide " + count_of(setting_.devices, "device");
    }
    replicas_ = setting_.devices / model;
    if (row_.degrees.data > 0 && row_.degrees.data != replicas_ && row_.degrees.data != replicas_ * context_) {
      return "data_parallel " + std::to_string(row_.degrees.data) + " and its other degrees do not make " +
             count_of(setting_.devices, "device");
    }
    if (std::string reason = write_sharing(); !reason.empty()) {
      return reason;
    }
    write_interleave();
    return "";
  }

  void write_interleave() {
    interleave_ = row_.degrees.interleave;
    const bool interleaves = has(row_.schedule, "interleaved") && pipeline_ > 1;
    if (interleave_ == 1 && interleaves) { // one stage of each rank is no interleaving
      interleave_ = 0;
    }
    const std::string flag = row_.flag("vp");
    if (interleave_ == 0 && !flag.empty()) {
      interleave_ = std::atoi(flag.c_str());
    }
    if (interleave_ == 0 && interleaves) {
      interleave_ = usual_interleave();
      assume(std::to_string(interleave_) + " stages of each rank");
    }
    if (!stages_.empty() && pipeline_ > 1) {
      line("    layers: \"" + stages_ + "\"");
    }
    if (interleave_ > 1 && pipeline_ > 1) {
      line("    interleave: " + std::to_string(interleave_));
      write_layers();
    }
  }

  // As few as divide the layers of a rank; or, where layers do not divide but with an embedding and a head as two more
  // do, a stage for each of all these.
  int usual_interleave() const {
    const int layers = row_.sizes.layers, of_rank = layers / pipeline_;
    if (is_torchtitan()) {
      return 2;
    }
    if (layers % pipeline_ != 0 && (layers + 2) % pipeline_ == 0) {
      return (layers + 2) / pipeline_;
    }
    int stages = 2;
    while (stages < of_rank && of_rank % stages != 0) {
      ++stages;
    }
    return std::max(1, std::min(stages, of_rank));
  }

  // Where there are two stages more than layers, what stands before them and what comes after are stages of their own.
  void write_layers() {
    const int layers = row_.sizes.layers;
    if (layers + 2 == pipeline_ * interleave_) {
      line("    layers: \"E|(t|)*" + std::to_string(layers) + "L\"");
      assume("the embedding and the head as stages of their own");
    }
  }

  // Whether tokens go to experts beside the passes of another micro-batch.
  bool overlaps_experts() const { return row_.flag("moe_a2a_overlap") == "true"; }

  // Where a row states none: one in a pipeline; else four, or as many as the batch is a multiple of, and of no more
  // tokens than four sequences of 4,096 have.
  int usual_micro_batch(int batch) const {
    constexpr int kUsual = 4, kTokens = 4 * 4096;
    if (pipeline_ > 1 && framework_.name == "torchtitan-2024" && batch % (pipeline_ * replicas_) == 0) {
      return batch / (pipeline_ * replicas_);
    }
    int size = pipeline_ > 1 ? 1 : kUsual;
    while (size > 1 && (batch % (size * replicas_) != 0 || 1LL * size * row_.sizes.sequence > kTokens)) {
      size /= 2;
    }
    return size;
  }

  // Of a table that gives batches of a device: what replicas accumulate, in whole micro-batches.
  // More samples than a study takes, which it refuses, where the product is too large for one.
  static int most_batch(long long samples) {
    return static_cast<int>(std::min<long long>(samples, std::numeric_limits<int>::max()));
  }

  int batch_of_replicas() {
    int each = static_cast<int>(row_.micro_batch);
    if (each == 0 && images_) {
      constexpr int kUsual = 128;
      each = kUsual;
      assume("128 images of each device");
    }
    return most_batch(1LL * each * std::max(1, each > 0 ? row_.accumulated / each : 0) * replicas_);
  }

  // What a device holds at most does not depend on how many micro-batches follow once its pipeline is full.
  int batch_that_fills() {
    constexpr int kTurns = 4;
    const int size = std::max(1, static_cast<int>(row_.micro_batch));
    assume(std::to_string(kTurns * pipeline_) + " micro-batches, which fill the pipeline");
    return most_batch(1LL * kTurns * pipeline_ * size * replicas_);
  }

  int stated_batch() {
    if (row_.global_batch > 0) {
      return row_.global_batch;
    }
    return row_.metric.starts_with("layer_")               ? static_cast<int>(row_.micro_batch)
           : row_.metric == "throughput"                   ? batch_of_replicas()
           : row_.metric == "peak_memory" && pipeline_ > 1 ? batch_that_fills()
                                                           : 0;
  }

  std::string write_batch() {
    int stated = stated_batch();
    if (stated == 0) {
      return "the row states no global batch";
    }
    int size = static_cast<int>(row_.micro_batch);
    if (const int launched = number_after(row_.flag("micro_batch_size"), ""); launched > 0 && row_.micro_batch == 0) {
      size = launched;
      assume(count_of(size, "sample") + " in a micro-batch, as the script says that ran it");
    }
    if (const int launched = number_after(row_.flag("micro_batches"), ""); launched > 0) {
      size = std::max(1, stated / (replicas_ * launched));
      assume(count_of(launched, "micro-batch") + ", as the script says that ran it");
    }
    const long long chunks = row_.micro_batch > 0 ? std::llround(stated / (row_.micro_batch * replicas_)) : 0;
    if (chunks > 0 && size < row_.micro_batch) { // the mean of what torch.chunk makes: the last is smaller
      ++size;
      stated = most_batch(chunks * size * replicas_);
      assume(count_of(chunks, "micro-batch") + " of " + count_of(size, "sample"));
    } else if (size == 0 && (images_ || is_maxtext())) { // one pass an iteration, unless a configuration says more
      size = std::max(1, stated / replicas_);
    } else if (size == 0) {
      size = usual_micro_batch(stated);
      assume(count_of(size, "sample") + " in a micro-batch");
    }
    if (stated % (1LL * size * replicas_) != 0) {
      return "global_batch " + std::to_string(stated) + " is no multiple of micro_batch " + std::to_string(size) +
             " x " + count_of(replicas_, "replica");
    }
    line("  global_batch: " + std::to_string(stated));
    line("  micro_batch_size: " + std::to_string(size));
    write_fills(stated / (size * replicas_));
    return "";
  }

  // PyTorch's pipelines run once for each local batch, of which the notes of TorchTitan and NeMo Automodel say how many
  // an iteration has, or how many samples it is.
  void write_fills(int micro_batches) {
    const std::string_view name = framework_.name;
    if (pipeline_ == 1 || !(name.starts_with("torchtitan") || name.starts_with("automodel"))) {
      return;
    }
    const int stated = number_after(row_.note, "GA="), local = number_after(row_.note, "local batch=");
    const int in_local = local / std::max(1, static_cast<int>(row_.micro_batch));
    const int fills = stated > 0 ? stated : in_local > 0 ? micro_batches / in_local : 1;
    if (fills > 1 && micro_batches % fills == 0) {
      line("  pipeline_fills: " + std::to_string(fills));
    }
  }

  // Whether a schedule's words say no more than its name: "interleaved 1f1b schedule", and not "no-1f1b".
  static bool is_usual_name(const std::string& words, std::string_view name) {
    std::string rest = words;
    for (const std::string_view usual :
         {name, std::string_view("interleaved"), std::string_view("ed"), std::string_view("1f1b"),
          std::string_view("non-"), std::string_view("pipeline"), std::string_view("schedule"),
          std::string_view("fill-drain"), std::string_view("flush")}) {
      for (std::size_t at = rest.find(usual); at != std::string::npos; at = rest.find(usual)) {
        rest.erase(at, usual.size());
      }
    }
    return rest.find_first_not_of(" -_,") == std::string::npos;
  }

  std::string write_schedule() {
    const std::string words = plain_words(row_.schedule);
    // The first that fits. Without a schedule of its own for replicas, DualPipe is run as it is cut in half.
    constexpr std::array kNames = {Alias{"interleav", "interleaved"},
                                   Alias{"eager-1f1b", "eager-1f1b"},
                                   Alias{"1f1b", "1f1b"},
                                   Alias{"pipedream-flush", "1f1b"},
                                   Alias{"dapple", "1f1b"},
                                   Alias{"gpipe", "gpipe"},
                                   Alias{"afab", "gpipe"}, // all forwards, then all backwards, as nanotron calls it
                                   Alias{"zb-h1", "zb-h1"},
                                   Alias{"zb-1p", "zb-h1"},
                                   Alias{"zb-h2", "zb-h2"},
                                   Alias{"zb-2p", "zb-h2"},
                                   Alias{"zb-v", "zb-v"},
                                   Alias{"zbv", "zb-v"},
                                   Alias{"v-half", "v-half"},
                                   Alias{"v-min", "v-min"},
                                   Alias{"zbb", "zb-h1"}, // Primus' name of Zero Bubble's first
                                   Alias{"zero bubble", "zb-h1"},
                                   Alias{"zero-bubble", "zb-h1"},
                                   Alias{"dualpipe-v", "dualpipe-v"},
                                   Alias{"dualpipev", "dualpipe-v"},
                                   Alias{"dualpipe", "dualpipe"},
                                   Alias{"breadth-first", "breadth-first"},
                                   Alias{"chimera", "chimera"},
                                   Alias{"hanayo", "hanayo"}};
    std::string_view schedule = interleave_ > 1 && pipeline_ > 1 ? "interleaved" : "1f1b";
    const auto found =
        std::find_if(kNames.begin(), kNames.end(), [&](const Alias& one) { return has(words, one.theirs); });
    const bool silent = states_nothing(words);
    if (found == kNames.end() && pipeline_ == 1 && !silent) {
      assume("nothing of the schedule '" + excerpt(row_.schedule) + "', which is not known, in one stage");
    } else if (found != kNames.end() && pipeline_ > 1 && !is_usual_name(words, found->theirs)) {
      assume("the schedule '" + excerpt(row_.schedule) + "' as " + std::string(found->ours));
    }
    if (found != kNames.end() && pipeline_ > 1) {
      const bool without = found->ours == "interleaved" && interleave_ == 1; // as its script says
      schedule = found->ours == "1f1b" || without ? schedule : found->ours;
    } else if (pipeline_ > 1 && !silent) {
      std::string names;
      for (const Alias& one : kNames) {
        names += (names.empty() ? "" : ", ") + std::string(one.ours.starts_with(one.theirs) ? one.ours : one.theirs);
      }
      return "the schedule '" + excerpt(row_.schedule) + "' is not modelled; allowed: " + names;
    }
    if (overlaps_experts() && (schedule == "1f1b" || schedule == "interleaved")) { // Megatron-Core's combined 1F1B
      schedule = schedule == "1f1b" ? "combined-1f1b" : "combined-interleaved";
    }
    const bool by_time = is_torchgpipe() && pipeline_ > 1 && stages_.empty();
    if (by_time) {
      assume("stages of about the same time, as torchgpipe's balance_by_time makes them");
    }
    line(std::string("compare: {strategies: [") + (by_time ? "block-partition" : "mesh") + "], schedules: [" +
         std::string(schedule) + "]}");
    return "";
  }

  const TruthRow& row_;
  const TruthFramework& framework_;
  const TrainingSetting& setting_;
  bool images_;
  std::string stages_;          ///< the layers of each, where the row states them
  bool gathers_8_bits_ = false; ///< weights, by the note of its flags
  int tensor_, pipeline_, context_, replicas_ = 1, interleave_ = 1;
  std::string text_;
  std::vector<std::string> assumed_;
};

} // namespace

std::string recompute_stated(const TruthRow& row) {
  const std::string words = plain_words(row.recompute);
  return words.empty() || words == "unknown" ? plain_words(row.flag("recompute")) : words;
}

std::variant<StudyPart, Infeasible> truth_training(const TruthRow& row, const TruthFramework& framework,
                                                   const TrainingSetting& setting) {
  return TrainingText(row, framework, setting).write();
}

} // namespace stagecraft
