// Runs a list of files of pipelines, and writes a file of times for each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "calibrate/gpu/pipelines/carry_out.hpp"
#include "calibrate/gpu/sweep/options.hpp"

namespace stagecraft::gpu {

/// Makes the lanes for a pipeline; throws if it cannot run on this device.
using MakeLanes = std::function<std::unique_ptr<Lanes>(const Pipeline&)>;

/// The outcome for a list of pipelines.
struct PipelinesEnd {
  int done = 0, failed = 0, left = 0; ///< left: not run, because time ran out or the run was interrupted
};

/// Runs the files of the options. A pipeline whose times exist already is not run again. A failure is written to the
/// file of times, and the next pipeline follows. `told` is called with a line for each. Throws std::invalid_argument,
/// before anything runs, for a file that cannot be read.
PipelinesEnd carry_out_files(const Options& options, const MakeLanes& make, const std::atomic<bool>& stop,
                             const std::function<void(const std::string&)>& told);

/// The times of a pipeline given as text, or its failure.
CarriedOut carry_out_text(const std::string& text, const std::string& name, int runs, const MakeLanes& make);

/// Where the times of a.pipeline go: to a.times beside it, or in a folder.
std::string times_path(const std::string& pipeline, const std::string& folder);

} // namespace stagecraft::gpu
