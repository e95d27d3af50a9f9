// A model summed up: its operators, their sums, and what was measured of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/common/output.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Writes the sums as JSON, or with a table of the operators as text.
void emit_model(const OutputOptions& options, const ModelGraph& model);

} // namespace stagecraft
