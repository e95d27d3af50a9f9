// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/hugging_face_readers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/base/utf8.hpp"
#include "sim/workload/training/experts.hpp"

namespace stagecraft::hugging_face {

void read_sizes(Config& config, Decoder& d) {
  d.layers.resize(config.size("num_hidden_layers", kMostLayers));
  d.hidden = config.size("hidden_size", kMostHidden);
  d.intermediate = config.size("intermediate_size", kMostIntermediate);
  d.heads = config.size("num_attention_heads", kMostHeads);
}

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

void set_windows(Decoder& d, int window, int first) {
  for (int layer = first; layer < static_cast<int>(d.layers.size()); ++layer) {
    d.layers[layer].window = window;
  }
}

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

void read_window(Config& config, Decoder& d, int otherwise) {
  const bool absent = !config.has("sliding_window");
  const int window = config.size("sliding_window", kMostSequence, absent ? otherwise : 0);
  set_windows(d, window);
  read_layer_types(config, d, window);
}

void read_llama_like(Config& config, Decoder& d, int head_width, bool key_value_heads_may_be_missing) {
  read_sizes(config, d);
  read_heads(config, d, head_width, key_value_heads_may_be_missing);
  d.activation = config.activation("hidden_act", "silu", !d.gated);
  d.tied = config.flag("tie_word_embeddings", false);
}

void read_attention_bias(Config& config, Decoder& d) {
  d.qkv_bias = d.projection_bias = config.flag("attention_bias", false);
}

void read_experts(Config& config, Decoder& d, const char* count, int many, int top) {
  d.experts.count = config.size(count, kMostExperts, many);
  d.experts.top = config.size("num_experts_per_tok", kMostExperts, top);
  if (d.experts.top > d.experts.count) {
    throw config.error(config.has("num_experts_per_tok") ? "num_experts_per_tok" : count,
                       "a token cannot go to " + std::to_string(d.experts.top) + " of " +
                           std::to_string(d.experts.count) + " experts; allowed: at most to all of them");
  }
}

void read_state_space(Config& config, const StateSpaceNames& names, DecoderStateSpace& s) {
  constexpr int kState = 128, kGroups = 8, kTaps = 4, kChunk = 256, kMostTaps = 256;
  s.state = config.size(names.state, kMostHeadWidth, kState);
  s.groups = config.size("n_groups", s.heads, kGroups);
  s.taps = config.size("conv_kernel", kMostTaps, kTaps);
  s.chunk = config.size("chunk_size", kMostSequence, kChunk);
  s.bias = config.flag(names.bias, false);
  s.convolution_bias = config.flag("use_conv_bias", true);
  if (const std::string activation = config.activation(names.activation, "silu", false); activation != "silu") {
    throw config.error(names.activation, "is '" + activation + "'; allowed: silu");
  }
  if (s.heads % s.groups != 0) {
    throw config.error("n_groups", std::to_string(s.groups) + " does not divide the " + std::to_string(s.heads) +
                                       " heads of a state space; allowed: a divisor");
  }
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

// From layer first_k_dense_replace on every moe_layer_freq-th has experts, and shared ones of the same size.
void read_routed_experts(Config& config, Decoder& d) {
  const json::Value* first = config.given("first_k_dense_replace");
  const bool from_start = first != nullptr && *first == 0;
  const int dense = from_start ? 0 : config.size("first_k_dense_replace", kMostLayers);
  const int step = config.size("moe_layer_freq", kMostLayers, 1);
  config.size("n_routed_experts", kMostExperts); // families mean the numbers of different models by none
  config.size("num_experts_per_tok", kMostExperts);
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

void read_mtp_layers(Config& config, Decoder& d) { d.further = config.count(kMtpLayers, kMostMtpLayers); }

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

} // namespace stagecraft::hugging_face
