// The computations of transformer layers in doubles, forward and backward, on whatever part of the tensors there is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/program/interpreter.hpp"

namespace stagecraft::testing {

Math linear_math();
/// With an adapter: parameters are the frozen weights, A and B.
Math adapted_linear_math();
Math rms_norm_math();
Math grouped_rms_norm_math(std::int64_t width); ///< over so many features at a time
/// A state space of heads, so many of which share what they write to and read from states of `state` numbers. Its
/// parameters are of each head: decay, skip, bias of the time step.
Math state_space_math(std::int64_t width, std::int64_t state, std::int64_t heads_of_group);
Math gelu_math();
Math add_math();
Math multiply_math();
Math gated_math();
/// Causal, without positions. `queries_per_key`: query heads that share a key and value head. Keys and values may be an
/// input of their own.
Math attention_math(std::int64_t width, std::int64_t queries_per_key);
/// Hands out the keys and values that lie beside queries.
Math keys_math(std::int64_t width, std::int64_t queries_per_key);
/// Causal, of queries, keys beside values, and one rotary key that is not turned: widths of a head.
Math latent_attention_math(std::int64_t without_rotary, std::int64_t rotary, std::int64_t value);
Math slice_math(std::int64_t begin, std::int64_t end);
Math concat_math(); ///< of two inputs, features beside features
/// An element of its output is the number of an expert plus the expert's weight, which is less than 1.
Math router_math(std::int64_t top);
Math dispatch_math();
/// Leaves rows out whose choice is negative: they are with other ranks.
Math expert_linear_math();
Math weighted_gated_math(); ///< rows times the weights that their choices have
Math combine_math();
Math embedding_math();
Math cross_entropy_math();

} // namespace stagecraft::testing
