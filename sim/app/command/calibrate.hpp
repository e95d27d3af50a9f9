// The parts of `calibrate`: what it measures, and its actions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/given_study.hpp"

namespace stagecraft {

/// What `calibrate` without an action measures, and how.
struct MeasureOptions {
  std::string backend = "cpu", budget;
  bool quick = false;
  std::vector<std::string> groups;
  std::string shapes, device_name;
  int threads = 1;
  std::string library = "eigen"; ///< library of matrix products
  std::string model;             ///< the model whose operators to measure; none: kernels of every kind
  std::vector<int> sizes;        ///< micro-batch sizes at which to measure the model
  ModelReading reading;
  std::vector<std::string> settings;
  std::string gpu_binary;
};

/// Measures the operators of a model and writes its profile.
ExitStatus measure_workload(const MeasureOptions& options, const OutputOptions& output);

/// The actions. They share `output` with `calibrate`, as its flags may also stand before the action.
Job calibrate_fit(Flags& flags, OutputOptions& output);
Job calibrate_predict(Flags& flags, OutputOptions& output);
Job calibrate_show(Flags& flags, OutputOptions& output);

} // namespace stagecraft
