// Files of pipelines carried out one after the other, each into a file of times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "calibrate/gpu/pipelines/carry_out.hpp"
#include "calibrate/gpu/sweep/options.hpp"

namespace stagecraft::gpu {

/// Lanes for a pipeline; throws where it cannot be had on this device.
using MakeLanes = std::function<std::unique_ptr<Lanes>(const Pipeline&)>;

/// How a list of pipelines ended.
struct PipelinesEnd {
  int done = 0, failed = 0, left = 0; ///< left: no time was left, or it was interrupted
};

/// Carries out each file of the options. One whose times are there already, of this very pipeline, is not run again. A
/// failure goes into its file of times and ends only that pipeline. `told` hears a line for each. Throws
/// std::invalid_argument for a file that cannot be read, before anything has run.
PipelinesEnd carry_out_files(const Options& options, const MakeLanes& make, const std::atomic<bool>& stop,
                             const std::function<void(const std::string&)>& told);

/// The times of one pipeline's text, or its failure.
CarriedOut carry_out_text(const std::string& text, const std::string& name, int runs, const MakeLanes& make);

/// Where the times of a pipeline's file go: a.pipeline beside itself or into a folder, as a.times.
std::string times_path(const std::string& pipeline, const std::string& folder);

} // namespace stagecraft::gpu
