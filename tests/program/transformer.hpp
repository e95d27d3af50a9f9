// Small transformers for the interpreter: signatures of real layers, and their computations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/model_graph.hpp"
#include "sim/workload/signature.hpp"
#include "tests/program/interpreter.hpp"

namespace stagecraft::testing {

struct TransformerSizes {
  int blocks = 2, hidden = 8, heads = 4, key_value_heads = 2, intermediate = 12, words = 16, tokens = 4, samples = 4;
  bool gated = true; ///< SwiGLU with RMS norms, as Llama; otherwise GELU with biases and positions, as GPT-2
  bool fused = true; ///< gates and values from one product; otherwise from two, multiplied: two readers of one norm
  bool tied = false; ///< the head's weight is the embedding's
  int adapters = 0;  ///< rank of those beside products inside blocks, whose own weights are frozen; 0: none
  int experts = 0; ///< a gated mixture of so many, of which a token goes to two, beside a part that all share; 0: none
  bool expert_bias = false;   ///< of the products of experts
  bool plain_experts = false; ///< GELU between these products, which reads no weights of rows, in place of the gate
  bool state_space = false;   ///< a state space in place of attention, whose heads are in key_value_heads groups, and a
                              ///< norm over the features of each
  bool latent = false;        ///< latent attention, with heads of hidden / heads features, half as many of them rotary
  bool joins = false; ///< behind the blocks, the state lies beside the embedding, and a product joins them, as where
                      ///< further tokens are predicted
};

struct Transformer {
  std::vector<Signature> operators;
  Inputs inputs; ///< with random parameters and data
};
Transformer make_transformer(const TransformerSizes& sizes);
/// The same with keys and values of attention apart, as ranks that share tokens need it.
Transformer with_keys_apart(const Transformer& model, const TransformerSizes& sizes);
/// The model as a graph whose operators are one stage.
ModelGraph graph_of(const Transformer& model);

} // namespace stagecraft::testing
