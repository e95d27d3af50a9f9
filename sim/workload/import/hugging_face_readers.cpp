// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/hugging_face_readers.hpp"

#include <nlohmann/json.hpp>

#include "sim/base/utf8.hpp"

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
