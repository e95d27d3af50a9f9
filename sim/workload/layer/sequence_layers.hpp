// Layers that mix or extend the tokens of a sequence otherwise than attention: learned tokens and positions, short
// convolutions, state spaces. docs/formats/workload.md has the equations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

/// Puts learned tokens before those of [s, f] and adds a learned position to each (Dosovitskiy et al. 2021).
Shape learned_tokens_shape(Layer&);
LayerCost learned_tokens_cost(const Layer&);
Signature learned_tokens_signature(const Layer&, std::int64_t samples);

/// Each feature of [s, f] is convolved over the last tokens.
Shape short_convolution_shape(Layer&);
LayerCost short_convolution_cost(const Layer&);
Signature short_convolution_signature(const Layer&, std::int64_t samples);

/// A selective state space in chunks (Dao, Gu 2024, section 6): reads values [s, heads * p], the vectors B and C
/// [s, 2 * groups * n] and time steps [s, heads]; writes [s, heads * p].
Shape state_space_shape(Layer&);
LayerCost state_space_cost(const Layer&);
Signature state_space_signature(const Layer&, std::int64_t samples);

} // namespace stagecraft
