// The signatures of all operators of a model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/workload/model_graph.hpp"
#include "sim/workload/signature.hpp"

namespace stagecraft {

/// For each operator of the model its own signature; or, where any of them has none, what their amounts and kinds tell,
/// so that neighbours agree about their tensors. An operator with weights is then a product of features in and features
/// out, one without weights may work on any part of the features or needs all of them, and no one knows of tokens.
std::vector<Signature> signatures_of(const ModelGraph& model);

/// Whether an operator has weights that devices may divide: matrix kinds, embeddings and operators of unknown kind.
bool has_weights(const Operator& op);

} // namespace stagecraft
