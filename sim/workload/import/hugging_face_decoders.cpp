// Decoders of language models with RMS norms: each family's config.json as a Decoder.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/hugging_face_readers.hpp"

namespace stagecraft::hugging_face {
namespace {

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
  d.experts.router_bias = d.experts.bias = d.experts.clamped = true;
  d.sinks = d.scaled_rotary = true;
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

void read_deepseek(Config& config, Decoder& d) {
  read_sizes(config, d);
  read_latent(config, d);
  d.activation = config.activation("hidden_act", "silu", !d.gated);
  read_attention_bias(config, d);
  d.tied = config.flag("tie_word_embeddings", false);
  read_routed_experts(config, d);
}

// Version 3 corrects the choice of experts by a bias for each, and may predict further tokens.
void read_deepseek_v3(Config& config, Decoder& d) {
  constexpr int kGroups = 8, kTopGroups = 4;
  read_deepseek(config, d);
  read_expert_groups(config, d, kGroups, kTopGroups);
  d.experts.router_bias = true;
  read_mtp_layers(config, d);
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

// GLM-4.5: groups of queries, of which half of each head turns, and the experts of DeepSeek-V3.
void read_glm4_moe(Config& config, Decoder& d) {
  read_llama_like(config, d);
  d.rotary = config.rotary(kRotary, 0.5);
  d.qkv_bias = config.flag("attention_bias", false);
  d.query_key_norm = config.flag("use_qk_norm", false);
  read_routed_experts(config, d);
  read_expert_groups(config, d, 1, 1);
  d.experts.router_bias = true;
  read_mtp_layers(config, d);
}

// Gemma 2 and 3: a norm before and behind each part, and layers that see a window among those that see all.
void read_gemma_with_windows(Config& config, Decoder& d, int one_in) {
  constexpr int kWindow = 4096;
  read_gemma(config, d);
  d.norms_behind = true;
  const int window = config.size("sliding_window", kMostSequence, kWindow);
  for (int layer = 0; layer < static_cast<int>(d.layers.size()); ++layer) {
    d.layers[layer].window = (layer + 1) % one_in != 0 ? window : 0;
  }
  read_layer_types(config, d, window);
}

void read_gemma2(Config& config, Decoder& d) { read_gemma_with_windows(config, d, 2); }

void read_gemma3(Config& config, Decoder& d) {
  constexpr int kPattern = 6;
  read_gemma_with_windows(config, d, config.size("sliding_window_pattern", kMostLayers, kPattern));
  d.query_key_norm = true;
}

// SmolLM3: every fourth layer, or as the file lists it, has no positions.
void read_smollm3(Config& config, Decoder& d) {
  constexpr int kInterval = 4;
  read_llama_like(config, d);
  read_attention_bias(config, d);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.tied = config.flag("tie_word_embeddings", true);
  const int interval = config.size("no_rope_layer_interval", kMostLayers, kInterval);
  const json::Value* turns = config.given("no_rope_layers"); // 1 where a layer turns, in spite of the name
  const bool listed = turns != nullptr;
  if (listed &&
      (!turns->is_array() || turns->size() != d.layers.size() ||
       std::any_of(turns->begin(), turns->end(), [](const json::Value& one) { return one != 0 && one != 1; }))) {
    throw config.error("no_rope_layers", "must be an array of " + std::to_string(d.layers.size()) +
                                             " numbers, 0 or 1, one for each of num_hidden_layers");
  }
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i].turns = listed ? (*turns)[i] == 1 : (i + 1) % interval != 0;
  }
}

void read_seed_oss(Config& config, Decoder& d) {
  constexpr int kHeadWidth = 128;
  read_llama_like(config, d, kHeadWidth);
  d.qkv_bias = config.flag("attention_bias", true);
  d.projection_bias = config.flag("attention_out_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.dropout = config.drops("residual_dropout", 0.1);
}

void read_phi3(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  read_window(config, d, 0);
  d.rotary = config.rotary(kRotary, 1);
  d.dropout = config.drops("resid_pdrop", 0);
  d.embedding_dropout = config.drops("embd_pdrop", 0);
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
  constexpr int kHeads = 128, kWidth = 64;
  d.state_space.heads = config.size("mamba_num_heads", kMostHeads, kHeads);
  d.state_space.head_width = config.size("mamba_head_dim", kMostHeadWidth, kWidth);
  read_state_space(config, {"ssm_state_size", "mamba_proj_bias", "mamba_hidden_act"}, d.state_space);
  d.state_space.norm_groups = d.state_space.groups; // Zamba2RMSNormGated, Megatron-LM's ExtendedRMSNorm
  config.given("expand");                           // what heads and their width make
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
    if (config.given("moe_latent_size")) { // since Nemotron 3 Super (NVIDIA 2026); null: experts see the whole token
      d.experts.latent = config.size("moe_latent_size", kMostIntermediate);
    }
  }
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
    Family{"kimi_k2", {"DeepseekV3ForCausalLM"}, write<read_deepseek_v3>, kDeepSeek},
    Family{"glm4_moe", {"Glm4MoeForCausalLM"}, write<read_glm4_moe>, kRoutedExperts},
    Family{"gemma", {"GemmaForCausalLM"}, write<read_gemma>},
    Family{"gemma2", {"Gemma2ForCausalLM"}, write<read_gemma2>},
    Family{"gemma3_text", {"Gemma3ForCausalLM"}, write<read_gemma3>},
    Family{"smollm3", {"SmolLM3ForCausalLM"}, write<read_smollm3>},
    Family{"granite", {"GraniteForCausalLM"}, write<read_llama>},
    Family{"seed_oss", {"SeedOssForCausalLM"}, write<read_seed_oss>},
    Family{"phi3", {"Phi3ForCausalLM"}, write<read_phi3>},
};

} // namespace

std::span<const Family> decoder_families() { return kDecoders; }

} // namespace stagecraft::hugging_face
