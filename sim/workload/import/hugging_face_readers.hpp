// Parts of config.json that most families of decoders share, and how a family's Decoder becomes a workload file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "sim/workload/import/decoder.hpp"
#include "sim/workload/import/hugging_face.hpp"

namespace stagecraft::hugging_face {

/// Sizes under the names that nearly all families use.
void read_sizes(Config& config, Decoder& d);
/// Heads of queries and of keys and values, and their width: `width` where the file gives none, a share of the hidden
/// size where that is 0. Where the number of key and value heads is missing, only some families have as many as heads;
/// the others mean the number of one of their models.
void read_heads(Config& config, Decoder& d, int width, bool may_be_missing);
/// Llama and what follows its block: RMS norms, rotary embedding, grouped queries, a gated feed-forward part.
void read_llama_like(Config& config, Decoder& d, int head_width = 0, bool key_value_heads_may_be_missing = false);
void read_attention_bias(Config& config, Decoder& d);

/// The window of the layers from `first` on.
void set_windows(Decoder& d, int window, int first = 0);
/// Which layers have the window, where the file lists it.
void read_layer_types(Config& config, Decoder& d, int window);
/// The window where the key stands alone: of all layers, or none where it is null; `otherwise` where it is missing.
void read_window(Config& config, Decoder& d, int otherwise);

/// The number of experts under the family's name for it, and how many of them a token goes to.
void read_experts(Config& config, Decoder& d, const char* count, int many, int top);

/// The keys of a Mamba-2 part whose names differ by family.
struct StateSpaceNames {
  const char *state, *bias, *activation;
};
/// What a Mamba-2 part (Dao and Gu 2024) has beside its heads and their width, which are known.
void read_state_space(Config& config, const StateSpaceNames& names, DecoderStateSpace& s);

/// The groups into which a router divides the experts, and of how many a token's are.
void read_expert_groups(Config& config, Decoder& d, int many, int top);
/// DeepSeek's experts: in every `moe_layer_freq`-th layer from `first_k_dense_replace` on, with shared ones of the same
/// size.
void read_routed_experts(Config& config, Decoder& d);
/// DeepSeek's layers behind the others that predict further tokens, which have the last one's parts.
void read_mtp_layers(Config& config, Decoder& d);

/// Names of keys in which families differ.
struct Names {
  const char* hidden = "hidden_size";
  const char* positions = "max_position_embeddings";
  const char* rotary = kRotary;
  int spare_positions = 0; ///< learned ones that no token stands at
};
inline constexpr Names kUsual;

/// The width of a head where none is given, and whether a rotary embedding can turn it in pairs. InputError.
void complete_heads(Config& config, const Names& names, Decoder& d);

/// Family::write() of a family whose config.json `read` knows.
template <void (*read)(Config&, Decoder&), const Names& names = kUsual>
Written write(Config& config, std::string_view /*architecture*/, const ImportOptions& options) {
  Decoder decoder;
  read(config, decoder);
  decoder.vocabulary = config.size("vocab_size", kMostVocabulary);
  complete_heads(config, names, decoder);
  const int learned = decoder.positions - (decoder.positions > 0 ? names.spare_positions : 0);
  decoder.sequence = config.sequence(names.positions, options, learned);
  const int further = decoder.further;
  decoder.further = std::min(further, options.mtp_layers.value_or(further));
  return {workload_of(decoder), std::to_string(decoder.sequence) + " tokens", further};
}

} // namespace stagecraft::hugging_face
