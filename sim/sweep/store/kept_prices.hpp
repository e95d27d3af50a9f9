// The prices in the files that sweeps read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/platform/price.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

/// The prices of device types and hosts in the files that a sweep read (0: all sweeps of the store), each once. Files
/// that are not kept, or say nothing of prices, add none.
std::vector<NamedPrice> kept_prices(SweepStore& store, std::int64_t sweep);

} // namespace stagecraft
