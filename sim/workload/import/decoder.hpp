// A dense decoder-only transformer by its sizes, as configurations of other tools give it, and the workload file of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stagecraft {

/// A dense decoder-only transformer.
struct Decoder {
  int layers = 0, hidden = 0, intermediate = 0, vocabulary = 0, sequence = 0;
  int heads = 0, key_value_heads = 0, head_width = 0;
  int positions = 0; ///< learned ones; 0: none
  int window = 0;    ///< keys that a query sees; 0: all before it
  double rotary = 1; ///< fraction of a head's width that turns; 0: no rotary embedding
  std::string norm = "rms_norm", activation = "silu";
  bool gated = true, query_key_norm = false;
  bool qkv_bias = false, projection_bias = false, mlp_bias = false;
  bool tied = false;     ///< the head uses the embedding's table
  bool parallel = false; ///< attention and feed-forward part read the same input, each through its norm
  bool dropout = false, embedding_dropout = false;
};

/// The text of a workload file, docs/formats/workload.md. Its operators are called as those of the shipped language
/// models.
std::string workload_of(const Decoder& decoder);

} // namespace stagecraft
