// Decoders of language models with layer normalizations: each family's config.json as a Decoder.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/workload/import/hugging_face_readers.hpp"

namespace stagecraft::hugging_face {
namespace {

constexpr const char* kNeoxRotary = "rotary_pct";

void set_all_biases(Decoder& d, bool has) { d.qkv_bias = d.projection_bias = d.mlp_bias = has; }

// Layer normalizations, and a feed-forward part without a gate; sizes under their usual names.
void read_ungated(Config& config, Decoder& d, const char* activation, bool key_value_heads_may_be_missing) {
  d.gated = false;
  d.norm = "layer_norm";
  read_sizes(config, d);
  read_heads(config, d, 0, key_value_heads_may_be_missing);
  d.activation = config.activation("hidden_act", activation, !d.gated);
}

void read_gpt_neox(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  read_sizes(config, d);
  d.key_value_heads = d.heads;
  d.activation = config.activation("hidden_act", "gelu", !d.gated);
  d.rotary = config.rotary(kNeoxRotary, 0.25);
  d.parallel = config.flag("use_parallel_residual", true);
  d.tied = config.flag("tie_word_embeddings", false);
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", true);
  d.mlp_bias = true;
  d.dropout = d.embedding_dropout = config.drops("hidden_dropout", 0);
}

void read_gpt2(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  d.rotary = 0;
  d.layers.resize(config.size("n_layer", kMostLayers));
  d.hidden = config.size("n_embd", kMostHidden);
  d.intermediate = config.size("n_inner", kMostIntermediate, 4 * d.hidden);
  d.heads = d.key_value_heads = config.size("n_head", kMostHeads);
  d.positions = config.size("n_positions", kMostSequence);
  d.activation = config.activation("activation_function", "gelu_new", !d.gated);
  d.tied = config.flag("tie_word_embeddings", true);
  set_all_biases(d, true);
  d.dropout = config.drops("resid_pdrop", 0.1);
  d.embedding_dropout = config.drops("embd_pdrop", 0.1);
}

// OPT (Zhang et al. 2022): as GPT-2 with ReLU; its table of positions has two rows more.
constexpr Names kOpt{.spare_positions = 2};

void read_opt(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  d.rotary = 0;
  d.layers.resize(config.size("num_hidden_layers", kMostLayers));
  d.hidden = config.size("hidden_size", kMostHidden);
  d.intermediate = config.size("ffn_dim", kMostIntermediate);
  d.heads = d.key_value_heads = config.size("num_attention_heads", kMostHeads);
  d.positions = config.size("max_position_embeddings", kMostSequence - kOpt.spare_positions) + kOpt.spare_positions;
  d.activation = config.activation("activation_function", "relu", !d.gated);
  d.tied = config.flag("tie_word_embeddings", true);
  set_all_biases(d, config.flag("enable_bias", true));
  d.dropout = config.drops("dropout", 0.1);
  if (!config.flag("do_layer_norm_before", true)) {
    throw config.error("do_layer_norm_before", "says that norms stand behind both parts, which is not modelled of this "
                                               "family; allowed: true");
  }
  if (!config.flag("layer_norm_elementwise_affine", true)) {
    throw config.error("layer_norm_elementwise_affine",
                       "says that norms have no parameters, which is not modelled; allowed: "
                       "true");
  }
  if (config.size("word_embed_proj_dim", kMostHidden, d.hidden) != d.hidden) {
    throw config.error("word_embed_proj_dim",
                       "is another size than hidden_size, which is not modelled; allowed: the same");
  }
}

// Phi-1 to Phi-2: both parts read one norm, and the head has a bias.
void read_phi(Config& config, Decoder& d) {
  read_ungated(config, d, "gelu_new", true);
  d.rotary = config.rotary(kRotary, 0.5);
  d.parallel = d.one_norm = true;
  d.head_bias = true;
  set_all_biases(d, true);
  d.tied = config.flag("tie_word_embeddings", false);
  d.dropout = config.drops("resid_pdrop", 0);
  d.embedding_dropout = config.drops("embd_pdrop", 0);
}

// The new architecture of Falcon has groups of queries and a norm for each part; the old one key and value head, or as
// many as heads, and one norm.
void read_falcon(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  d.layers.resize(config.size("num_hidden_layers", kMostLayers));
  d.hidden = config.size("hidden_size", kMostHidden);
  d.intermediate = config.size("ffn_hidden_size", kMostIntermediate, 4 * d.hidden);
  d.heads = config.size("num_attention_heads", kMostHeads);
  const bool is_new = config.flag("new_decoder_architecture", false);
  const bool shares_one = config.flag("multi_query", true);
  const int groups = config.size("num_kv_heads", d.heads, d.heads);
  d.key_value_heads = is_new ? groups : shares_one ? 1 : d.heads;
  if (d.heads % d.key_value_heads != 0) {
    throw config.error("num_kv_heads", std::to_string(groups) + " does not divide the " + std::to_string(d.heads) +
                                           " attention heads; allowed: a divisor");
  }
  d.activation = config.activation("activation", "gelu", !d.gated);
  d.parallel = config.flag("parallel_attn", true) || is_new;
  constexpr int kMostNorms = 2;
  d.one_norm = d.parallel && config.size("num_ln_in_parallel_attn", kMostNorms, is_new ? kMostNorms : 1) == 1;
  set_all_biases(d, config.flag("bias", false));
  d.tied = config.flag("tie_word_embeddings", true);
  d.dropout = config.drops("hidden_dropout", 0);
}

void read_starcoder2(Config& config, Decoder& d) {
  read_ungated(config, d, "gelu_pytorch_tanh", false);
  read_window(config, d, 0);
  set_all_biases(d, config.flag("use_bias", true));
  d.tied = config.flag("tie_word_embeddings", true);
  d.dropout = config.drops("residual_dropout", 0);
  d.embedding_dropout = config.drops("embedding_dropout", 0);
}

void read_stablelm(Config& config, Decoder& d) {
  d.norm = "layer_norm";
  read_llama_like(config, d);
  d.rotary = config.rotary(kRotary, 0.25);
  d.qkv_bias = config.flag("use_qkv_bias", false);
  d.parallel = d.one_norm = config.flag("use_parallel_residual", false);
  d.dropout = config.drops("hidden_dropout", 0);
}

// Nemotron of 2024: squared ReLU without a gate.
void read_nemotron(Config& config, Decoder& d) {
  read_ungated(config, d, "relu2", true);
  d.rotary = config.rotary(kRotary, 0.5);
  read_attention_bias(config, d);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.tied = config.flag("tie_word_embeddings", false);
}

// GPT-J: both parts read one norm, biases in the feed-forward part and the head alone; so many features of a head turn.
void read_gptj(Config& config, Decoder& d) {
  constexpr int kTurned = 64;
  read_gpt2(config, d);
  d.positions = 0;
  config.given("n_positions"); // the longest, and nothing learned
  d.qkv_bias = d.projection_bias = false;
  d.head_bias = true;
  d.parallel = d.one_norm = true;
  d.tied = config.flag("tie_word_embeddings", false);
  const int turned = config.size("rotary_dim", kMostHeadWidth, kTurned);
  d.rotary = std::min(1.0, static_cast<double>(turned) * d.heads / d.hidden);
}

// StarCoder of 2023: GPT-2 with one key and value head.
void read_gpt_bigcode(Config& config, Decoder& d) {
  read_gpt2(config, d);
  d.activation = config.activation("activation_function", "gelu_pytorch_tanh", !d.gated);
  d.key_value_heads = config.flag("multi_query", true) ? 1 : d.heads;
}

// BLOOM (2022): a norm behind the embedding; biases of attention by distance, which are added within its kernel, stand
// in place of positions.
constexpr Names kBloom{.positions = "seq_length"};

void read_bloom(Config& config, Decoder& d) {
  d.gated = false;
  d.norm = "layer_norm";
  d.rotary = 0;
  d.layers.resize(config.size(config.has("n_layer") ? "n_layer" : "num_hidden_layers", kMostLayers));
  d.hidden = config.size(config.has("n_embed") ? "n_embed" : "hidden_size", kMostHidden);
  d.heads = d.key_value_heads = config.size(config.has("n_head") ? "n_head" : "num_attention_heads", kMostHeads);
  for (const char* other : {"hidden_size", "num_hidden_layers", "num_attention_heads", "n_inner",
                            "masked_softmax_fusion", "bias_dropout_fusion", "offset_alibi", "skip_bias_add",
                            "skip_bias_add_qkv", "slow_but_exact", "unk_token_id"}) {
    config.given(other);
  }
  d.intermediate = 4 * d.hidden;
  d.activation = "gelu_tanh";
  d.embedding_norm = true;
  set_all_biases(d, true);
  d.tied = config.flag("tie_word_embeddings", true);
  d.dropout = config.drops("hidden_dropout", 0);
  if (config.flag("apply_residual_connection_post_layernorm", false)) {
    throw config.error("apply_residual_connection_post_layernorm",
                       "says that the sum takes what the norm gives, which is not modelled; allowed: false");
  }
}

// MPT (MosaicML 2023): no bias anywhere, and biases of attention by distance, or learned positions.
constexpr Names kMpt{"d_model", "max_seq_len"};

void read_mpt(Config& config, Decoder& d) {
  constexpr int kRatio = 4, kMostRatio = 64;
  d.gated = false;
  d.norm = "layer_norm";
  d.rotary = 0;
  d.activation = "gelu";
  d.layers.resize(config.size("n_layers", kMostLayers));
  d.hidden = config.size("d_model", kMostHidden);
  d.heads = config.size("n_heads", kMostHeads);
  d.intermediate = config.size("expansion_ratio", kMostRatio, kRatio) * d.hidden;
  Config attention = config.inner("attn_config");
  const std::string kind = attention.text("attn_type", "multihead_attention");
  if (kind != "multihead_attention" && kind != "multiquery_attention" && kind != "grouped_query_attention") {
    throw attention.error("attn_type", "is not modelled; allowed: multihead_attention, multiquery_attention, "
                                       "grouped_query_attention");
  }
  d.key_value_heads = kind == "multihead_attention"    ? d.heads
                      : kind == "multiquery_attention" ? 1
                                                       : attention.size("kv_n_heads", d.heads);
  if (d.heads % d.key_value_heads != 0) {
    throw attention.error("kv_n_heads",
                          "does not divide the " + std::to_string(d.heads) + " attention heads; allowed: a divisor");
  }
  if (!attention.flag("alibi", false) && config.flag("learned_pos_emb", true)) {
    d.positions = config.size("max_seq_len", kMostSequence);
  }
  d.norm_bias = !config.flag("no_bias", true);
  set_all_biases(d, d.norm_bias);
  d.tied = config.flag("tie_word_embeddings", true);
  for (const char* other : {"emb_pdrop", "resid_pdrop", "embedding_fraction", "init_config", "init_device",
                            "logit_scale", "norm_type", "verbose", "tokenizer_name", "learned_pos_emb"}) {
    config.given(other);
  }
}

// DBRX (Databricks 2024): a mixture in each layer, behind norms without a bias.
constexpr Names kDbrx{"d_model", "max_seq_len"};

void read_dbrx(Config& config, Decoder& d) {
  constexpr int kMany = 4, kTop = 1, kInside = 3584;
  d.norm = "layer_norm";
  d.norm_bias = false;
  d.layers.assign(static_cast<std::size_t>(config.size("n_layers", kMostLayers)), {.sparse = true});
  d.hidden = config.size("d_model", kMostHidden);
  d.heads = config.size("n_heads", kMostHeads);
  Config attention = config.inner("attn_config"), experts = config.inner("ffn_config");
  d.key_value_heads = attention.size("kv_n_heads", d.heads, 1);
  if (d.heads % d.key_value_heads != 0) {
    throw attention.error("kv_n_heads",
                          "does not divide the " + std::to_string(d.heads) + " attention heads; allowed: a divisor");
  }
  d.experts = {.count = experts.size("moe_num_experts", kMostExperts, kMany),
               .top = experts.size("moe_top_k", kMostExperts, kTop),
               .intermediate = experts.size("ffn_hidden_size", kMostIntermediate, kInside)};
  if (d.experts.top > d.experts.count) {
    throw experts.error("moe_top_k", "is more than all experts; allowed: at most all of them");
  }
  d.intermediate = d.experts.intermediate;
  d.tied = config.flag("tie_word_embeddings", false);
  d.dropout = config.drops("resid_pdrop", 0);
  d.embedding_dropout = config.drops("emb_pdrop", 0);
}

// Command R: both parts read one norm without a bias. Its larger sizes have norms of whole queries and keys.
void read_cohere(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  d.norm = "layer_norm";
  d.norm_bias = false;
  d.parallel = d.one_norm = true;
  read_attention_bias(config, d);
  d.tied = config.flag("tie_word_embeddings", true);
  if (config.flag("use_qk_norm", false)) {
    throw config.error("use_qk_norm",
                       "says that the model has norms of whole queries and keys, which are not modelled; "
                       "allowed: false");
  }
}

// Command R7B and A: three layers of four have the window, and they alone turn.
void read_cohere2(Config& config, Decoder& d) {
  constexpr int kWindow = 4096, kPattern = 4;
  read_cohere(config, d);
  const int window = config.size("sliding_window", kMostSequence, kWindow);
  const int pattern = config.size("sliding_window_pattern", kMostLayers, kPattern);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i].window = (i + 1) % static_cast<std::size_t>(pattern) != 0 ? window : 0;
  }
  read_layer_types(config, d, window);
  for (DecoderLayer& layer : d.layers) {
    layer.turns = layer.window > 0;
  }
  config.given("order_of_interleaved_layers");
  config.given("rotary_pct");
  config.given("position_embedding_type");
}

constexpr Names kGpt2{"n_embd", "n_positions"}, kNeox{"hidden_size", "max_position_embeddings", kNeoxRotary};

constexpr std::array kLayerNorms = {
    Family{"gpt2", {"GPT2LMHeadModel"}, write<read_gpt2, kGpt2>},
    Family{"gpt_neox", {"GPTNeoXForCausalLM"}, write<read_gpt_neox, kNeox>},
    Family{"opt", {"OPTForCausalLM"}, write<read_opt, kOpt>},
    Family{"phi", {"PhiForCausalLM"}, write<read_phi>},
    Family{"falcon", {"FalconForCausalLM"}, write<read_falcon>},
    Family{"starcoder2", {"Starcoder2ForCausalLM"}, write<read_starcoder2>},
    Family{"stablelm", {"StableLmForCausalLM"}, write<read_stablelm>},
    Family{"nemotron", {"NemotronForCausalLM"}, write<read_nemotron>},
    Family{"gptj", {"GPTJForCausalLM"}, write<read_gptj, kGpt2>},
    Family{"gpt_bigcode", {"GPTBigCodeForCausalLM"}, write<read_gpt_bigcode, kGpt2>},
    Family{"bloom", {"BloomForCausalLM", "BloomModel"}, write<read_bloom, kBloom>},
    Family{"mpt", {"MPTForCausalLM", "MptForCausalLM"}, write<read_mpt, kMpt>},
    Family{"dbrx", {"DbrxForCausalLM"}, write<read_dbrx, kDbrx>},
    Family{"cohere", {"CohereForCausalLM"}, write<read_cohere>},
    Family{"cohere2", {"Cohere2ForCausalLM"}, write<read_cohere2>},
};

} // namespace

std::span<const Family> layer_norm_families() { return kLayerNorms; }

} // namespace stagecraft::hugging_face
