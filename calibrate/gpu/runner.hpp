// Runs a sweep on one device: group by group within the budget, writing each result at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "calibrate/gpu/sweep/options.hpp"
#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::gpu {

/// Why a run ended.
enum class Ended { done, interrupted };

/// Measures `groups` on the device that `options` name. Writes to its file, and for partitions to files beside it. Ends
/// early, with all results written, when `stop` is set. Throws std::invalid_argument for a file that cannot be
/// continued, DeviceError if the device is lost.
Ended run_sweep(const Options& options, const std::vector<Group>& groups, const std::atomic<bool>& stop);

/// The machine that the sweep is planned for; usual values if there is no device to query.
Machine describe_machine(int device);

/// The file of a partition: "h200.yaml" and 16 give "h200.sm16.yaml".
std::string partition_path(const std::string& path, int processors);

} // namespace stagecraft::gpu
