// The computations of transformer layers in doubles, forward and backward, on whatever part of the tensors there is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/program/interpreter.hpp"

namespace stagecraft::testing {

Math linear_math();
Math rms_norm_math();
Math gelu_math();
Math add_math();
Math multiply_math();
Math gated_math();
/// Causal, without positions. `queries_per_key`: query heads that share a key and value head.
Math attention_math(std::int64_t width, std::int64_t queries_per_key);
Math embedding_math();
Math cross_entropy_math();

} // namespace stagecraft::testing
