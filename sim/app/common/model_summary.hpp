// A summary of a model: its operators, their sums, and what was measured of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/common/output.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Writes the sums as JSON, or as text with a table of the operators.
void emit_model(const OutputOptions& options, const ModelGraph& model);

} // namespace stagecraft
