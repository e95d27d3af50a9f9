// Runs a sweep on one device: group by group within the budget, each result written as it comes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "calibrate/gpu/sweep/options.hpp"
#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::gpu {

/// Why a run ended.
enum class Ended { done, interrupted };

/// Measures `groups` on the device that `options` name, into its file and, of partitions, into files beside it. Ends
/// early, with what was measured written, when `stop` is set. Throws std::invalid_argument for a file that cannot go
/// on, DeviceError where the device is lost.
Ended run_sweep(const Options& options, const std::vector<Group>& groups, const std::atomic<bool>& stop);

/// The machine as the sweep sees it; what is usual where there is no device to ask.
Machine describe_machine(int device);

/// "h200.yaml" and 16 -> "h200.sm16.yaml".
std::string partition_path(const std::string& path, int processors);

} // namespace stagecraft::gpu
