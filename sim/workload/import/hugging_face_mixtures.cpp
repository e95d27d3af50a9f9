// Mixtures of experts since Mixtral: each family's config.json as a Decoder.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "sim/workload/import/hugging_face_readers.hpp"

namespace stagecraft::hugging_face {
namespace {

void make_all_sparse(Decoder& d) {
  for (DecoderLayer& layer : d.layers) {
    layer.sparse = true;
  }
}

// Phi-3.5 MoE: Mixtral's block behind layer normalizations.
void read_phimoe(Config& config, Decoder& d) {
  constexpr int kMany = 16, kTop = 2;
  read_llama_like(config, d);
  read_window(config, d, 0);
  d.norm = "layer_norm";
  read_attention_bias(config, d);
  d.head_bias = config.flag("lm_head_bias", false);
  read_experts(config, d, "num_local_experts", kMany, kTop);
  d.experts.intermediate = d.intermediate;
  make_all_sparse(d);
  config.given("input_jitter_noise");
  d.dropout = config.drops("hidden_dropout", 0);
}

void read_granitemoe(Config& config, Decoder& d) {
  constexpr int kMany = 8, kTop = 2;
  read_llama_like(config, d, 0, true);
  read_attention_bias(config, d);
  read_experts(config, d, "num_local_experts", kMany, kTop);
  d.experts.intermediate = d.intermediate;
  make_all_sparse(d);
}

// Granite 4 without state spaces, and what came before: one shared expert of a size of its own.
void read_granitemoeshared(Config& config, Decoder& d) {
  constexpr int kShared = 1024;
  read_granitemoe(config, d);
  const json::Value* none = config.given("shared_intermediate_size");
  d.experts.shared =
      none != nullptr && *none == 0 ? 0 : config.size("shared_intermediate_size", kMostIntermediate, kShared);
}

// dots.llm1: norms of queries and keys, and the experts of DeepSeek-V3 in one group.
void read_dots1(Config& config, Decoder& d) {
  read_llama_like(config, d, 0, true);
  read_attention_bias(config, d);
  d.query_key_norm = true;
  read_routed_experts(config, d);
  read_expert_groups(config, d, 1, 1);
  d.experts.router_bias = true;
  config.given("sliding_window");
  config.given("max_window_layers");
  read_layer_types(config, d, 0);
}

// ERNIE 4.5: from one layer to another every so many has experts, and shared ones of the same size.
void read_ernie_moe(Config& config, Decoder& d) {
  constexpr int kMany = 64, kTop = 6, kInside = 1536, kShared = 2, kMostShared = 64;
  read_llama_like(config, d);
  d.qkv_bias = d.projection_bias = d.mlp_bias = config.flag("use_bias", false);
  d.tied = config.flag("tie_word_embeddings", true);
  d.experts.count = config.size("moe_num_experts", kMostExperts, kMany);
  d.experts.top = config.size("moe_k", kMostExperts, kTop);
  if (d.experts.top > d.experts.count) {
    throw config.error("moe_k", "is more than all experts; allowed: at most all of them");
  }
  d.experts.intermediate = config.size("moe_intermediate_size", kMostIntermediate, kInside);
  const json::Value* none = config.given("moe_num_shared_experts");
  d.experts.shared = (none != nullptr && *none == 0 ? 0 : config.size("moe_num_shared_experts", kMostShared, kShared)) *
                     d.experts.intermediate;
  d.experts.router_bias = true;
  const int most = static_cast<int>(d.layers.size());
  const json::Value* from = config.given("moe_layer_start_index");
  const int first = from != nullptr && *from == 0 ? 0 : config.size("moe_layer_start_index", most, 1);
  const json::Value* to = config.given("moe_layer_end_index");
  const int last = to == nullptr || *to == -1 ? most - 1 : config.size("moe_layer_end_index", most);
  const int step = config.size("moe_layer_interval", kMostLayers, 1);
  for (int i = first; i <= std::min(last, most - 1); ++i) {
    d.layers[static_cast<std::size_t>(i)].sparse = (i + 1) % step == 0;
  }
  for (const char* other : {"moe_capacity", "moe_gate", "moe_use_aux_free", "moe_aux_loss_lambda", "moe_norm_min"}) {
    config.given(other);
  }
}

// A number, or a list of one for each layer that are all the same, as Hunyuan's files have it.
int same_of_all(Config& config, const std::string& key, int most, int layers, int otherwise) {
  const json::Value* value = config.given(key);
  if (value == nullptr || !value->is_array()) {
    return config.size(key, most, otherwise);
  }
  const auto fits = [&](const json::Value& one) {
    return one.is_number_integer() && one >= 1 && one <= most && one == value->front();
  };
  if (static_cast<int>(value->size()) < layers || !std::all_of(value->begin(), value->end(), fits)) {
    throw config.error(key, "must be a number from 1 to " + std::to_string(most) + ", or such a number " +
                                std::to_string(layers) + " times; layers that differ are not modelled");
  }
  return value->front().get<int>();
}

// Hunyuan A13B: a shared expert beside those that a router chooses, in every layer.
void read_hunyuan_moe(Config& config, Decoder& d) {
  constexpr int kMany = 64, kTop = 8, kMostShared = 64;
  read_llama_like(config, d);
  read_attention_bias(config, d);
  d.query_key_norm = config.flag("use_qk_norm", true);
  const int layers = static_cast<int>(d.layers.size());
  d.experts.count = same_of_all(config, "num_experts", kMostExperts, layers, kMany);
  d.experts.top = same_of_all(config, "moe_topk", kMostExperts, layers, kTop);
  if (d.experts.top > d.experts.count) {
    throw config.error("moe_topk", "is more than all experts; allowed: at most all of them");
  }
  d.experts.intermediate = same_of_all(config, "moe_intermediate_size", kMostIntermediate, layers, d.intermediate);
  d.experts.shared = config.flag("use_mixed_mlp_moe", true)
                         ? same_of_all(config, "num_shared_expert", kMostShared, layers, 1) * d.intermediate
                         : 0;
  make_all_sparse(d);
  for (const char* other :
       {"attention_head_dim", "use_cla", "cla_share_factor", "org_vocab_size", "norm_type", "mlp_bias",
        "capacity_factor", "moe_drop_tokens", "moe_layer_num_skipped", "moe_random_routing_dropped_token",
        "group_limited_greedy", "routed_scaling_factor", "use_mla"}) {
    config.given(other);
  }
}

// Llama 4: a shared expert beside the routed ones, in every so many layers; the others are larger. Every fourth layer
// has no positions and sees all tokens, the others those of their chunk, which is counted as a window.
void read_llama4(Config& config, Decoder& d) {
  constexpr int kMany = 16, kTop = 1, kInside = 8192, kDense = 16384, kChunk = 8192, kInterval = 4;
  read_llama_like(config, d, 0, true);
  read_attention_bias(config, d);
  read_experts(config, d, "num_local_experts", kMany, kTop);
  d.experts.intermediate = d.experts.shared = config.size("intermediate_size", kMostIntermediate, kInside);
  d.intermediate = config.size("intermediate_size_mlp", kMostIntermediate, kDense);
  const int step = config.size("interleave_moe_layer_step", kMostLayers, 1);
  const int chunk = config.size("attention_chunk_size", kMostSequence, kChunk);
  const json::Value* turns = config.given("no_rope_layers"); // 1 where a layer turns, in spite of the name
  const bool listed = turns != nullptr && turns->is_array() && turns->size() == d.layers.size();
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i].sparse = (i + 1) % static_cast<std::size_t>(step) == 0;
    d.layers[i].turns = listed ? (*turns)[i] == 1 : (i + 1) % kInterval != 0;
    d.layers[i].window = d.layers[i].turns ? chunk : 0;
  }
  for (const char* other : {"use_qk_norm", "moe_layers", "attn_temperature_tuning", "attn_scale", "floor_scale",
                            "layer_types", "for_llm_compressor", "no_rope_layer_interval"}) {
    config.given(other);
  }
}

constexpr std::string_view kLocalMixture[] = {"num_local_experts"};
constexpr std::string_view kPlainMixture[] = {"num_experts"};
constexpr std::string_view kRoutedMixture[] = {"n_routed_experts"};

constexpr std::array kMixtures = {
    Family{"phimoe", {"PhimoeForCausalLM", "PhiMoEForCausalLM"}, write<read_phimoe>, kLocalMixture},
    Family{"granitemoe", {"GraniteMoeForCausalLM"}, write<read_granitemoe>, kLocalMixture},
    Family{"granitemoeshared", {"GraniteMoeSharedForCausalLM"}, write<read_granitemoeshared>, kLocalMixture},
    Family{"dots1", {"Dots1ForCausalLM"}, write<read_dots1>, kRoutedMixture},
    Family{"ernie4_5_moe", {"Ernie4_5_MoeForCausalLM"}, write<read_ernie_moe>},
    Family{"hunyuan_v1_moe", {"HunYuanMoEV1ForCausalLM"}, write<read_hunyuan_moe>, kPlainMixture},
    Family{"llama4_text", {"Llama4ForCausalLM"}, write<read_llama4>, kLocalMixture},
};

} // namespace

std::span<const Family> mixture_families() { return kMixtures; }

} // namespace stagecraft::hugging_face
