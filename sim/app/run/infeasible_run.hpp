// An infeasible run as the result of a command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/common/output.hpp"
#include "sim/result/run.hpp"

namespace stagecraft {

/// Writes why a run is infeasible: JSON says it in `why_not`, CSV in its column, and a remark says it where a table is
/// asked for.
ExitStatus report_infeasible(const OutputOptions& options, const Run& run, const RunOrigin& origin);

} // namespace stagecraft
