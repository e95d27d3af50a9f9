// A summary of a model: its operators, their sums, and what was measured of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/common/output.hpp"
#include "sim/app/run/device_fits.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Writes the sums as JSON, or as text with tables of the blocks, of the devices on which it fits, where these are
/// given, and of the operators: the first ones, or all. JSON has the names of all operators, or none.
void emit_model(const OutputOptions& options, const ModelGraph& model, const std::optional<DeviceFits>& fits,
                bool all_operators);

} // namespace stagecraft
