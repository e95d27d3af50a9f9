// The results of sweeps, read for the report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/report/page/sweep_page.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

/// Every point of a file of results. Where a first pass screened them, the feasible ones are those of the second.
SweepResults read_sweep_results(SweepStore& store);

} // namespace stagecraft
