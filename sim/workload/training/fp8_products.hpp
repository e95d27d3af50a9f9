// Linear layers whose products are computed in 8 bits (docs/model.md, "Products in 8 bits").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// Whether such products are those of this operator: of a linear layer in a numbered block, but not of one that routes.
bool has_fp8_products(const Operator& op);

/// The model with these products as the training's recipe says: their format, the casts of inputs and of gradients,
/// what backward keeps in 8 bits, and the copies of weights, which are held all the time. Frozen weights are counted
/// among what the operator holds, in the training's precision, before.
ModelGraph with_fp8_products(ModelGraph model, const Training& training);

} // namespace stagecraft
