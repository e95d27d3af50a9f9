// Decoders of language models: each family's config.json as a Decoder.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/decoder.hpp"
#include "sim/workload/import/hugging_face.hpp"
#include "sim/workload/training/experts.hpp"

namespace stagecraft::hugging_face {
namespace {

constexpr const char* kNeoxRotary = "rotary_pct";

// Sizes under the names that nearly all families use.
void read_sizes(Config& config, Decoder& d) {
  d.layers.resize(config.size("num_hidden_layers", kMostLayers));
  d.hidden = config.size("hidden_size", kMostHidden);
  d.intermediate = config.size("intermediate_size", kMostIntermediate);
  d.heads = config.size("num_attention_heads", kMostHeads);
}

// Heads of queries and of keys and values, and their width: `width` where the file gives none, a share of the hidden
// size where that is 0. Where the number of key and value heads is missing, only some families have as many as heads;
// the others mean the number of one of their models.
void read_heads(Config& config, Decoder& d, int width, bool may_be_missing) {
  if (!may_be_missing && !config.has("num_key_value_heads")) {
    throw config.error("", "missing key 'num_key_value_heads'; allowed: a number, or null for as many as heads");
  }
  d.key_value_heads = config.size("num_key_value_heads", d.heads, d.heads);
  if (d.heads % d.key_value_heads != 0) {
    throw config.error("num_key_value_heads", std::to_string(d.key_value_heads) + " does not divide the " +
                                                  std::to_string(d.heads) + " attention heads; allowed: a divisor");
  }
  d.head_width = config.size("head_dim", kMostHeadWidth, width);
}

void set_windows(Decoder& d, int window, int first = 0) {
  for (int layer = first; layer < static_cast<int>(d.layers.size()); ++layer) {
    d.layers[layer].window = window;
  }
}

// Which layers have the window, where the file lists it.
void read_layer_types(Config& config, Decoder& d, int window) {
  const json::Value* types = config.given("layer_types");
  if (types == nullptr) {
    return;
  }
  if (!types->is_array() || types->size() != d.layers.size()) {
    throw config.error("layer_types", "must be an array of " + std::to_string(d.layers.size()) +
                                          " texts, one for each of num_hidden_layers");
  }
  for (std::size_t i = 0; i < types->size(); ++i) {
    const json::Value& type = (*types)[i];
    if (type != "full_attention" && type != "sliding_attention") {
      throw config.error("layer_types[" + std::to_string(i) + "]",
                         "is " + excerpt(on_one_line(type.dump())) + "; allowed: full_attention, sliding_attention");
    }
    d.layers[i].window = type == "sliding_attention" ? window : 0;
  }
}

// The window where the key stands alone: of all layers, or none where it is null.
void read_window(Config& config, Decoder& d, int otherwise) {
  const bool absent = !config.has("sliding_window");
  const int window = config.size("sliding_window", kMostSequence, absent ? otherwise : 0);
  set_windows(d, window);
  read_layer_types(config, d, window);
}

// Qwen: layers from max_window_layers on have the window, if it is switched on.
void read_switched_window(Config& config, Decoder& d) {
  constexpr int kWindow = 4096, kFirst = 28;
  const int window = config.size("sliding_window", kMostSequence, kWindow);
  const bool on = config.flag("use_sliding_window", false);
  const json::Value* from = config.given("max_window_layers");
  const int first = from != nullptr && *from == 0 ? 0 : config.size("max_window_layers", kMostSequence, kFirst);
  if (on) {
    set_windows(d, window, first);
  }
  read_layer_types(config, d, window);
}

// Llama and what follows its block: RMS norms, rotary embedding, grouped queries, a gated feed-forward part.
void read_llama_like(Config& config, Decoder& d, int head_width = 0, bool key_value_heads_may_be_missing = false) {
  read_sizes(config, d);
  read_heads(config, d, head_width, key_value_heads_may_be_missing);
  d.activation = config.activation("hidden_act", "silu", !d.gated);
  d.tied = config.flag("tie_word_embeddings", false);
}

void read_attention_bias(Config& config, Decoder& d) {
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", false);
}

void read_llama(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  read_attention_bias(config, d);
  d.mlp_bias = config.flag("mlp_bias", false);
}

void read_mistral(Config& config, Decoder& d) {
  constexpr int kWindow = 4096;
  read_llama_like(config, d);
  read_window(config, d, kWindow);
}

void read_qwen2(Config& config, Decoder& d) {
  read_llama_like(config, d);
  read_switched_window(config, d);
  d.qkv_bias = true;
}

void read_qwen3(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 128;
  read_llama_like(config, d, kHeadWidth);
  read_switched_window(config, d);
  read_attention_bias(config, d);
  d.query_key_norm = true;
}

// The number of experts under the family's name for it, and how many of them a token goes to.
void read_experts(Config& config, Decoder& d, const char* count, int many, int top) {
  d.experts.count = config.size(count, kMostExperts, many);
  d.experts.top = config.size("num_experts_per_tok", kMostExperts, top);
  if (d.experts.top > d.experts.count) {
    throw config.error(config.has("num_experts_per_tok") ? "num_experts_per_tok" : count,
                       "a token cannot go to " + std::to_string(d.experts.top) + " of " +
                           std::to_string(d.experts.count) + " experts; allowed: at most to all of them");
  }
}

void read_mixtral(Config& config, Decoder& d) {
  constexpr int kExperts = 8, kTop = 2;
  read_llama_like(config, d);
  read_window(config, d, 0);
  read_experts(config, d, "num_local_experts", kExperts, kTop);
  d.experts.intermediate = d.intermediate;
  for (DecoderLayer& layer : d.layers) {
    layer.sparse = true;
  }
}

// Qwen: every decoder_sparse_step-th layer has experts, but for those in mlp_only_layers.
void read_sparse_step(Config& config, Decoder& d) {
  const int step = config.size("decoder_sparse_step", kMostLayers, 1);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i].sparse = (i + 1) % step == 0;
  }
  const json::Value* dense = config.given("mlp_only_layers");
  for (std::size_t i = 0; dense != nullptr && i < dense->size(); ++i) {
    const json::Value* layer = dense->is_array() ? &(*dense)[i] : nullptr;
    if (layer == nullptr || !layer->is_number_integer() || *layer < 0 || *layer >= d.layers.size()) {
      throw config.error("mlp_only_layers",
                         "must be an array of numbers of layers, from 0 to " + std::to_string(d.layers.size() - 1));
    }
    d.layers[layer->get<std::size_t>()].sparse = false;
  }
}

void read_qwen2_moe(Config& config, Decoder& d) {
  constexpr int kExperts = 60, kTop = 4, kInside = 1408, kShared = 5632;
  read_qwen2(config, d);
  read_experts(config, d, "num_experts", kExperts, kTop);
  d.experts.intermediate = config.size("moe_intermediate_size", kMostIntermediate, kInside);
  d.experts.shared = config.size("shared_expert_intermediate_size", kMostIntermediate, kShared);
  d.experts.shared_gate = true;
  read_sparse_step(config, d);
}

void read_qwen3_moe(Config& config, Decoder& d) {
  constexpr int kExperts = 128, kTop = 8, kInside = 768;
  read_llama_like(config, d);
  read_switched_window(config, d);
  read_attention_bias(config, d);
  d.query_key_norm = true;
  read_experts(config, d, "num_experts", kExperts, kTop);
  d.experts.intermediate = config.size("moe_intermediate_size", kMostIntermediate, kInside);
  read_sparse_step(config, d);
}

// Without layer_types every other layer has the window, the first one too.
void read_gpt_oss(Config& config, Decoder& d) {
  constexpr int kExperts = 128, kTop = 4, kWindow = 128, kHeadWidth = 64;
  read_llama_like(config, d, kHeadWidth);
  const int window = config.size("sliding_window", kMostSequence, kWindow);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i] = {i % 2 == 0 ? window : 0, true};
  }
  read_layer_types(config, d, window);
  config.given("experts_per_token"); // another name of num_experts_per_tok in the published files
  read_experts(config, d, "num_local_experts", kExperts, kTop);
  d.experts.intermediate = d.intermediate;
  d.experts.router_bias = d.experts.bias = true;
  d.sinks = true;
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", true);
}

// Widths of latent attention. Without q_lora_rank queries are made of the token itself.
void read_latent(Config& config, Decoder& d) {
  constexpr int kMostRank = 1 << 16;
  DecoderLatent& latent = d.latent;
  const json::Value* rank = config.given("q_lora_rank");
  latent.query_rank = rank == nullptr ? 0 : config.size("q_lora_rank", kMostRank);
  latent.key_value_rank = config.size("kv_lora_rank", kMostRank);
  latent.without_rotary = config.size("qk_nope_head_dim", kMostHeadWidth);
  latent.rotary = config.size("qk_rope_head_dim", kMostHeadWidth);
  latent.value = config.size("v_head_dim", kMostHeadWidth);
  config.given("num_key_value_heads"); // as many as heads
  config.given("head_dim");
  d.key_value_heads = d.heads;
  d.head_width = latent.without_rotary + latent.rotary;
  d.rotary = 0; // a part of latent attention
}

// A token's experts are of so many groups at most, of the many into which a router divides them.
void read_expert_groups(Config& config, Decoder& d, int many, int top) {
  d.experts.groups = config.size("n_group", kMostExpertGroups, many);
  d.experts.top_groups = config.size("topk_group", d.experts.groups, std::min(top, d.experts.groups));
  const int open = d.experts.count / d.experts.groups * d.experts.top_groups;
  if (d.experts.count % d.experts.groups != 0 || open < d.experts.top) {
    throw config.error(config.has("n_group") ? "n_group" : "n_routed_experts",
                       "a token cannot go to " + std::to_string(d.experts.top) + " of " +
                           std::to_string(d.experts.count) + " experts in " + std::to_string(d.experts.top_groups) +
                           " of " + std::to_string(d.experts.groups) +
                           " groups; allowed: groups of equally many experts, enough of them in those that are chosen");
  }
}

void read_deepseek(Config& config, Decoder& d) {
  read_sizes(config, d);
  read_latent(config, d);
  d.activation = config.activation("hidden_act", "silu", !d.gated);
  read_attention_bias(config, d);
  d.tied = config.flag("tie_word_embeddings", false);
  const json::Value* first = config.given("first_k_dense_replace");
  const bool from_start = first != nullptr && *first == 0;
  const int dense = from_start ? 0 : config.size("first_k_dense_replace", kMostLayers);
  const int step = config.size("moe_layer_freq", kMostLayers, 1);
  config.size("n_routed_experts", kMostExperts);
  read_experts(config, d, "n_routed_experts", 1, 1);
  const int inside = config.size("moe_intermediate_size", kMostIntermediate);
  d.experts.intermediate = inside;
  constexpr int kMostShared = 64;
  d.experts.shared =
      config.given("n_shared_experts") == nullptr ? 0 : config.size("n_shared_experts", kMostShared) * inside;
  for (int i = dense; i < static_cast<int>(d.layers.size()); ++i) {
    d.layers[i].sparse = i % step == 0;
  }
}

// Version 3 corrects the choice of experts by a bias for each; its last layers, which predict further tokens, are no
// part of the model of transformers.
void read_deepseek_v3(Config& config, Decoder& d) {
  constexpr int kGroups = 8, kTopGroups = 4;
  read_deepseek(config, d);
  read_expert_groups(config, d, kGroups, kTopGroups);
  d.experts.router_bias = true;
}

void read_gemma(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 256;
  read_sizes(config, d);
  read_heads(config, d, kHeadWidth, false);
  config.given("hidden_act"); // GELU whatever it says: the first files had a wrong one
  d.activation = config.activation("hidden_activation", "gelu_pytorch_tanh", !d.gated);
  read_attention_bias(config, d);
  d.tied = config.flag("tie_word_embeddings", true);
}

void read_phi3(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  read_window(config, d, 0);
  d.rotary = config.rotary(kRotary, 1);
  d.dropout = config.drops("resid_pdrop", 0);
  d.embedding_dropout = config.drops("embd_pdrop", 0);
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
  d.qkv_bias = d.projection_bias = d.mlp_bias = true;
  d.dropout = config.drops("resid_pdrop", 0.1);
  d.embedding_dropout = config.drops("embd_pdrop", 0.1);
}
// A text with a letter for each layer: M a state space, * attention, - a feed-forward part, E a mixture of experts.
void read_pattern(Config& config, Decoder& d) {
  const std::string key = "hybrid_override_pattern";
  if (config.given(key) == nullptr) {
    throw config.error("", "missing key '" + key + "'; allowed: a text with M, *, - or E for each layer");
  }
  const std::string pattern = config.text(key, "");
  if (pattern.size() != d.layers.size()) {
    throw config.error(key, "has " + std::to_string(pattern.size()) + " letters; allowed: one for each of the " +
                                std::to_string(d.layers.size()) + " layers");
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i];
    if (std::string_view("M*-E").find(letter) == std::string_view::npos) {
      throw config.error(key, "has '" + excerpt(on_one_line(std::string(1, letter))) + "'; allowed: M, *, - and E");
    }
    d.layers[i] = {.sparse = letter == 'E',
                   .part = letter == 'M'   ? DecoderPart::state_space
                           : letter == '*' ? DecoderPart::attention
                                           : DecoderPart::feed_forward};
  }
}

void read_state_space(Config& config, Decoder& d) {
  constexpr int kHeads = 128, kWidth = 64, kState = 128, kGroups = 8, kTaps = 4, kChunk = 256, kMostTaps = 256;
  DecoderStateSpace& s = d.state_space;
  s.heads = config.size("mamba_num_heads", kMostHeads, kHeads);
  s.head_width = config.size("mamba_head_dim", kMostHeadWidth, kWidth);
  s.state = config.size("ssm_state_size", kMostHeadWidth, kState);
  s.groups = config.size("n_groups", s.heads, kGroups);
  s.taps = config.size("conv_kernel", kMostTaps, kTaps);
  s.chunk = config.size("chunk_size", kMostSequence, kChunk);
  s.bias = config.flag("mamba_proj_bias", false);
  s.convolution_bias = config.flag("use_conv_bias", true);
  config.given("expand"); // what heads and their width make
  if (const std::string activation = config.activation("mamba_hidden_act", "silu", false); activation != "silu") {
    throw config.error("mamba_hidden_act", "is '" + activation + "'; allowed: silu");
  }
  if (s.heads % s.groups != 0) {
    throw config.error("n_groups", std::to_string(s.groups) + " does not divide the " + std::to_string(s.heads) +
                                       " heads of a state space; allowed: a divisor");
  }
}

// Nemotron-H and what follows it (NVIDIA 2025): hybrids without positions, squared ReLU without a gate.
void read_nemotron_h(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 128, kTop = 2, kInside = 7688, kShared = 7688;
  d.gated = false;
  d.rotary = 0;
  read_sizes(config, d);
  read_heads(config, d, kHeadWidth, false);
  d.activation = config.activation("mlp_hidden_act", "relu2", true);
  read_attention_bias(config, d);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.tied = config.flag("tie_word_embeddings", false);
  read_pattern(config, d);
  read_state_space(config, d);
  d.dropout = config.drops("hidden_dropout", 0);
  config.given("n_shared_experts");      // one, of a size of its own
  config.given("partial_rotary_factor"); // no head turns, whatever it says
  if (std::any_of(d.layers.begin(), d.layers.end(), [](const DecoderLayer& layer) { return layer.sparse; })) {
    config.size("n_routed_experts", kMostExperts);
    read_experts(config, d, "n_routed_experts", 1, kTop);
    read_expert_groups(config, d, 1, 1);
    d.experts.intermediate = config.size("moe_intermediate_size", kMostIntermediate, kInside);
    d.experts.shared = config.size("moe_shared_expert_intermediate_size", kMostIntermediate, kShared);
    d.experts.router_bias = true;
  }
}

// Names of keys in which families differ.
struct Names {
  const char* hidden = "hidden_size";
  const char* positions = "max_position_embeddings";
  const char* rotary = kRotary;
};
constexpr Names kUsual, kGpt2{"n_embd", "n_positions"}, kNeox{"hidden_size", "max_position_embeddings", kNeoxRotary};

// The width of a head where none is given, and whether a rotary embedding can turn it in pairs.
void complete_heads(Config& config, const Names& names, Decoder& d) {
  if (d.head_width == 0 && (d.hidden % d.heads != 0 || d.hidden / d.heads > kMostHeadWidth)) {
    throw config.error(names.hidden, std::to_string(d.hidden) + " does not split into " + std::to_string(d.heads) +
                                         " heads of at most " + std::to_string(kMostHeadWidth) +
                                         " features; allowed: a multiple of the number of heads");
  }
  d.head_width = d.head_width == 0 ? d.hidden / d.heads : d.head_width;
  const int turned = static_cast<int>(d.head_width * d.rotary);
  if (d.rotary > 0 && (turned == 0 || turned % 2 != 0)) {
    throw config.error(config.has(names.rotary) ? names.rotary
                       : config.has("head_dim") ? "head_dim"
                                                : names.hidden,
                       "a rotary embedding cannot turn " + std::to_string(turned) + " of the " +
                           std::to_string(d.head_width) + " features of a head; allowed: an even number");
  }
}

template <void (*read)(Config&, Decoder&), const Names& names = kUsual>
Written write(Config& config, std::string_view /*architecture*/, const ImportOptions& options) {
  Decoder decoder;
  read(config, decoder);
  decoder.vocabulary = config.size("vocab_size", kMostVocabulary);
  complete_heads(config, names, decoder);
  decoder.sequence = config.sequence(names.positions, options, decoder.positions);
  return {workload_of(decoder), std::to_string(decoder.sequence) + " tokens"};
}

constexpr std::string_view kLocalExperts[] = {"num_local_experts", "quantization_config"};
constexpr std::string_view kExperts[] = {"num_experts"};
constexpr std::string_view kRoutedExperts[] = {"n_routed_experts"};
constexpr std::string_view kDeepSeek[] = {"n_routed_experts", "kv_lora_rank", "quantization_config"};

constexpr std::array kDecoders = {
    Family{"llama", {"LlamaForCausalLM"}, write<read_llama>},
    Family{"mistral", {"MistralForCausalLM"}, write<read_mistral>},
    Family{"qwen2", {"Qwen2ForCausalLM"}, write<read_qwen2>},
    Family{"qwen3", {"Qwen3ForCausalLM"}, write<read_qwen3>},
    Family{"mixtral", {"MixtralForCausalLM"}, write<read_mixtral>, std::span(kLocalExperts).first(1)},
    Family{"qwen2_moe", {"Qwen2MoeForCausalLM"}, write<read_qwen2_moe>, kExperts},
    Family{"qwen3_moe", {"Qwen3MoeForCausalLM"}, write<read_qwen3_moe>, kExperts},
    Family{"gpt_oss", {"GptOssForCausalLM"}, write<read_gpt_oss>, kLocalExperts},
    Family{"deepseek_v2", {"DeepseekV2ForCausalLM"}, write<read_deepseek>, kDeepSeek},
    Family{"deepseek_v3", {"DeepseekV3ForCausalLM"}, write<read_deepseek_v3>, kDeepSeek},
    Family{"nemotron_h", {"NemotronHForCausalLM"}, write<read_nemotron_h>, kRoutedExperts},
    Family{"gemma", {"GemmaForCausalLM"}, write<read_gemma>},
    Family{"phi3", {"Phi3ForCausalLM"}, write<read_phi3>},
    Family{"gpt2", {"GPT2LMHeadModel"}, write<read_gpt2, kGpt2>},
    Family{"gpt_neox", {"GPTNeoXForCausalLM"}, write<read_gpt_neox, kNeox>},
};

} // namespace

std::span<const Family> decoder_families() { return kDecoders; }

} // namespace stagecraft::hugging_face
