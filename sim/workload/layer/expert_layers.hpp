// A mixture of experts in four kinds of layers: the router, the way of tokens to experts and back, and the experts'
// products. docs/formats/workload.md has the equations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

/// Chooses experts for each token: reads [s, f], writes [s, top]. An element stands for the expert's number and its
/// weight.
Shape router_shape(Layer&);
LayerCost router_cost(const Layer&);
LayerKernels router_kernels(const Layer&);
Signature router_signature(const Layer&, std::int64_t samples);

/// Sorts tokens by expert: reads [s, f] and choices, writes [rows, f], a row for each choice that is kept.
Shape dispatch_shape(Layer&);
LayerCost dispatch_cost(const Layer&);
LayerKernels dispatch_kernels(const Layer&);
Signature dispatch_signature(const Layer&, std::int64_t samples);

/// Each expert's own product with its rows, as one grouped kernel: reads [rows, in] and choices, writes [rows, f].
Shape expert_linear_shape(Layer&);
LayerCost expert_linear_cost(const Layer&);
LayerKernels expert_linear_kernels(const Layer&);
Signature expert_linear_signature(const Layer&, std::int64_t samples);

/// Adds up the rows of each token: reads [rows, f] and choices, writes [s, f].
Shape combine_shape(Layer&);
LayerCost combine_cost(const Layer&);
LayerKernels combine_kernels(const Layer&);
Signature combine_signature(const Layer&, std::int64_t samples);

/// Rows that experts process of a sequence of `tokens`, each of which chose `top` of layer.experts. Without a capacity
/// all are kept. With one an expert takes at most capacity * tokens * top / experts rows, rounded up; the i-th expert
/// is chosen in proportion to i^-skew, and what is above its capacity is dropped (Fedus et al. 2022, section 2.2). With
/// `padded` each expert processes as many rows as its capacity.
std::int64_t expert_rows(const Layer& layer, std::int64_t tokens, std::int64_t top);

/// Lets an operator between products of experts know whose row is which: one that works on each row by itself, has no
/// weights and reads no choices gets those that the maker of its rows read. Where ranks share experts, rows then stay
/// with the rank of their expert. All other operators stay as they are.
void keep_with_expert(Signature& signature, const Signature& maker);

} // namespace stagecraft
