// Parts of `fits` of a device file, as several readers need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {

/// How far off a fit is; without a node nothing was held back.
FitError read_error(const yaml::Node* node);

/// Reads `dispatches`: the links through which they were measured, and a fit for each operation, number of nodes and
/// number of multiprocessors.
std::vector<DispatchFit> read_dispatch_fits(const yaml::Node& node);

} // namespace stagecraft
