// Whether kernels compute what they must: each runs once on small shapes and is compared with plain loops on the host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "calibrate/gpu/device/session.hpp"

namespace stagecraft::gpu {

/// How the checks went.
struct Checked {
  int right = 0, wrong = 0;
  int left_out = 0; ///< could not be run
};

/// Checks every memory-bound kernel in its passes and precisions, with rows that vectors divide and rows that they do
/// not, and matrix products in every precision and layout. `say` gets a line for each.
Checked check_kernels(Session& session, cudaStream_t stream, const std::function<void(const std::string&)>& say);

} // namespace stagecraft::gpu
