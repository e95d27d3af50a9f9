// How much a model computes, as people compare runs of different models by it: tokens, and the FLOPs of its products.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Tokens of a sample: the most that any of its tables of words or positions is asked for. 0 for a model that looks
/// nothing up, and for one whose file gives no shapes.
double tokens_of(const ModelGraph& model);

/// FLOPs of one sample as Chowdhery et al. 2022 (PaLM, appendix B) count them: three times those of the forward
/// products, where attention looks at every pair of a query and a key. That is 6 N + 12 L H Q T for each token of a
/// dense transformer: what runs again, and what a mask leaves out, makes no difference. Where attention has a window, a
/// query looks at as many keys as that has, and where a sample is packed of documents, at those of its own.
Flops model_flops(const ModelGraph& model);

/// FLOPs of one sample in an operator's forward products, counted likewise: of an attention without its mask. 0 for
/// kernels that are no products.
Flops product_flops(const Operator& op);

} // namespace stagecraft
