// Decoders of single laboratories, as Llama but for a few keys: each family's config.json as a Decoder.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/workload/import/hugging_face_readers.hpp"

namespace stagecraft::hugging_face {
namespace {

void set_all_biases_to(Decoder& d, bool has) { d.qkv_bias = d.projection_bias = d.mlp_bias = has; }

void read_internlm2(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  d.qkv_bias = d.projection_bias = config.flag("bias", false);
  config.given("attn_implementation");
}

void read_internlm3(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  d.projection_bias = d.mlp_bias = config.flag("bias", false);
  d.qkv_bias = config.flag("qkv_bias", false);
}

// The 13B alone gives no longest position: it has none, but biases of attention by distance.
void read_baichuan(Config& config, Decoder& d) {
  if (!config.has("max_position_embeddings")) {
    throw config.error("", "missing key 'max_position_embeddings': Baichuan without it has biases of attention by "
                           "distance, which are not modelled; allowed: a length");
  }
  read_llama_like(config, d, 0, true);
  config.given("model_max_length");
  config.given("z_loss_weight");
}

void read_ernie(Config& config, Decoder& d) {
  read_llama_like(config, d);
  set_all_biases_to(d, config.flag("use_bias", false));
  d.tied = config.flag("tie_word_embeddings", true);
}

// GLM-4 of 2024: half of a head turns.
void read_glm(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 128;
  read_llama_like(config, d, kHeadWidth);
  d.rotary = config.rotary(kRotary, 0.5);
  d.qkv_bias = config.flag("attention_bias", false);
}

// GLM-4 of 2025: norms behind both parts, too.
void read_glm4(Config& config, Decoder& d) {
  read_glm(config, d);
  d.norms_behind = true;
}

void read_hunyuan(Config& config, Decoder& d) {
  read_llama_like(config, d);
  read_attention_bias(config, d);
  d.query_key_norm = config.flag("use_qk_norm", true);
  for (const char* other :
       {"attention_head_dim", "use_cla", "cla_share_factor", "org_vocab_size", "norm_type", "mlp_bias", "rope_type"}) {
    config.given(other);
  }
}

// ChatGLM 2 and 3, by names of their own.
Written write_chatglm(Config& config, std::string_view /*architecture*/, const ImportOptions& options) {
  static constexpr Names kNames{"hidden_size", "seq_length"};
  Decoder d;
  d.layers.resize(config.size("num_layers", kMostLayers));
  d.hidden = config.size("hidden_size", kMostHidden);
  d.intermediate = config.size("ffn_hidden_size", kMostIntermediate);
  d.heads = config.size("num_attention_heads", kMostHeads);
  const int groups = config.size("multi_query_group_num", d.heads, 1);
  d.key_value_heads = config.flag("multi_query_attention", false) ? groups : d.heads;
  if (d.heads % d.key_value_heads != 0) {
    throw config.error("multi_query_group_num",
                       "does not divide the " + std::to_string(d.heads) + " attention heads; allowed: a divisor");
  }
  d.head_width = config.size("kv_channels", kMostHeadWidth, 0);
  d.rotary = 0.5;
  d.norm = config.flag("rmsnorm", true) ? "rms_norm" : "layer_norm";
  set_all_biases_to(d, config.flag("add_bias_linear", false));
  d.qkv_bias = config.flag("add_qkv_bias", false) || d.mlp_bias;
  d.dropout = config.drops("hidden_dropout", 0);
  d.tied = config.flag("tie_word_embeddings", false);
  d.vocabulary = config.size("padded_vocab_size", kMostVocabulary);
  for (const char* other :
       {"vocab_size", "apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm",
        "attention_softmax_in_fp32", "bias_dropout_fusion", "fp32_residual_connection", "interleaved_qkv",
        "layernorm_epsilon", "original_rope", "post_layer_norm", "quantization_bit", "rope_ratio"}) {
    config.given(other);
  }
  complete_heads(config, kNames, d);
  d.sequence = config.sequence(kNames.positions, options);
  return {workload_of(d), std::to_string(d.sequence) + " tokens"};
}

// Mamba-2 (Dao and Gu 2024): nothing but state spaces, which have no positions and no longest sequence.
Written write_mamba2(Config& config, std::string_view /*architecture*/, const ImportOptions& options) {
  constexpr int kExpand = 2, kMostExpand = 256, kWidth = 64;
  Decoder d;
  d.layers.assign(static_cast<std::size_t>(config.size("num_hidden_layers", kMostLayers)),
                  {.part = DecoderPart::state_space});
  d.hidden = config.size("hidden_size", kMostHidden);
  DecoderStateSpace& s = d.state_space;
  s.head_width = config.size("head_dim", kMostHeadWidth, kWidth);
  const int inner = config.size("expand", kMostExpand, kExpand) * d.hidden;
  if (inner % s.head_width != 0) {
    throw config.error("hidden_size", std::to_string(inner) + " features inside do not split into heads of " +
                                          std::to_string(s.head_width) + "; allowed: a multiple of head_dim");
  }
  s.heads = config.size("num_heads", kMostHeads, inner / s.head_width);
  if (s.heads * s.head_width != inner) {
    throw config.error("num_heads", std::to_string(s.heads) + " heads of " + std::to_string(s.head_width) +
                                        " are not the " + std::to_string(inner) +
                                        " features inside; allowed: expand x hidden_size / head_dim");
  }
  read_state_space(config, {"state_size", "use_bias", "hidden_act"}, s);
  d.tied = config.flag("tie_word_embeddings", false);
  d.vocabulary = config.size("vocab_size", kMostVocabulary);
  for (const char* other : {"rms_norm", "norm_before_gate", "time_step_rank", "use_mambapy", "hidden_dropout"}) {
    config.given(other);
  }
  if (!options.sequence) {
    throw config.error("", "a state space has no longest sequence, and there is no --seq N; allowed: --seq N");
  }
  d.sequence = *options.sequence;
  return {workload_of(d), std::to_string(d.sequence) + " tokens"};
}

constexpr std::array kLaboratories = {
    Family{"internlm2", {"InternLM2ForCausalLM"}, write<read_internlm2>},
    Family{"internlm3", {"InternLM3ForCausalLM"}, write<read_internlm3>},
    Family{"baichuan", {"BaichuanForCausalLM", "BaiChuanForCausalLM"}, write<read_baichuan>},
    Family{"ernie4_5", {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"}, write<read_ernie>},
    Family{"glm", {"GlmForCausalLM"}, write<read_glm>},
    Family{"glm4", {"Glm4ForCausalLM"}, write<read_glm4>},
    Family{"hunyuan_v1_dense", {"HunYuanDenseV1ForCausalLM"}, write<read_hunyuan>},
    Family{"chatglm", {"ChatGLMModel", "ChatGLMForConditionalGeneration"}, write_chatglm},
    Family{"mamba2", {"Mamba2ForCausalLM"}, write_mamba2},
};

} // namespace

std::span<const Family> laboratory_families() { return kLaboratories; }

} // namespace stagecraft::hugging_face
