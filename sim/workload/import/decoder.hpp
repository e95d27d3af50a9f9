// A decoder-only transformer by its sizes, as configurations of other tools give it, and the workload file of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// What a layer of a decoder has: attention and then a feed-forward part, each behind a norm, or one part alone.
enum class DecoderPart { both, attention, feed_forward, state_space };

/// What may differ between the layers of a decoder.
struct DecoderLayer {
  int window = 0;      ///< keys that a query sees; 0: all before it
  bool sparse = false; ///< a mixture of experts in place of the feed-forward part
  DecoderPart part = DecoderPart::both;
  bool turns = true; ///< has a rotary embedding, where the decoder has one
  bool operator==(const DecoderLayer&) const = default;
};

/// Experts of a mixture, and what stands beside them.
struct DecoderExperts {
  int count = 0, top = 0;
  int groups = 1, top_groups = 1; ///< a token goes to experts of so many groups at most
  int intermediate = 0;           ///< features inside an expert
  int latent = 0;                 ///< features of a token that experts see, between two products; 0: all
  int shared = 0;                 ///< features inside the part that every token goes through; 0: there is none
  bool shared_gate = false;       ///< that part is scaled by a logistic function of the token
  bool router_bias = false, bias = false;
  bool clamped = false; ///< both halves of what experts gate are clamped first
};

/// Widths of latent attention; 0: the attention is another one.
struct DecoderLatent {
  int query_rank = 0; ///< 0: queries are made of the token itself
  int key_value_rank = 0;
  int without_rotary = 0, rotary = 0, value = 0; ///< of a head
};

/// A state space as Mamba-2 has it (Dao and Gu 2024); 0 heads: there is none.
struct DecoderStateSpace {
  int heads = 0, head_width = 0, state = 0, groups = 1, taps = 0, chunk = 0;
  bool bias = false, convolution_bias = true; ///< of its products, and of its filters
  int norm_groups = 1;                        ///< of features that the norm behind it takes apart
};

/// A decoder-only transformer, or a hybrid with state spaces.
struct Decoder {
  int hidden = 0, intermediate = 0, vocabulary = 0, sequence = 0;
  int heads = 0, key_value_heads = 0, head_width = 0;
  int positions = 0;          ///< learned ones; 0: none
  double rotary = 1;          ///< fraction of a head's width that turns; 0: no rotary embedding
  bool scaled_rotary = false; ///< what turns is multiplied with a factor, too (Peng et al. 2023, "YaRN", section 3.4)
  std::vector<DecoderLayer> layers;
  DecoderExperts experts;
  DecoderLatent latent;
  DecoderStateSpace state_space;
  std::string norm = "rms_norm", activation = "silu";
  bool norm_bias = true;       ///< of layer normalizations
  bool embedding_norm = false; ///< behind the embedding, too
  bool gated = true, query_key_norm = false, sinks = false;
  bool qkv_bias = false, projection_bias = false, mlp_bias = false;
  bool tied = false;         ///< the head uses the embedding's table
  bool parallel = false;     ///< attention and feed-forward part read the same input, each through its norm
  bool one_norm = false;     ///< where they do: through one norm
  bool norms_behind = false; ///< what each part adds to its input goes through another norm first
  bool head_bias = false;
  bool dropout = false, embedding_dropout = false;
  /// Whether it also predicts the token after the next (DeepSeek-AI 2024, "DeepSeek-V3", 2.2): one more layer as the
  /// last one, from that one's result and the next token's embedding, and the head once more. In one chain: the first
  /// head, which reads the result of the layer before, stands behind it, too.
  bool predicts_further = false;
  /// The same as it was published, so many layers, each of which reads the result of the one before it (tokens further
  /// on, the first the token after the next): the first head stands before them, embeddings and heads are the model's.
  int further = 0;
};

/// The text of a workload file, docs/formats/workload.md. Its operators are called as those of the shipped language
/// models.
std::string workload_of(const Decoder& decoder);

} // namespace stagecraft
