// Batch norms whose kernel does what follows them (docs/model.md, "Norms that do what follows them").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// The model in which a rectified linear unit behind a batch norm, a sum behind one, and a rectified linear unit behind
/// such a sum are part of the norm's kernel: cuDNN's for channels last. Of a sum it reads what is added, and backward
/// it writes that gradient. What other operators read, too, is a kernel of its own.
ModelGraph with_fused_norms(ModelGraph model);

} // namespace stagecraft
