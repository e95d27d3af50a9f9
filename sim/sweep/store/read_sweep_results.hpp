// The results of sweeps, read for the report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/report/page/sweep/sweep_page.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

/// Reads every point of a file of results. After a first pass, only the feasible points of the second pass count.
SweepResults read_sweep_results(SweepStore& store);

} // namespace stagecraft
