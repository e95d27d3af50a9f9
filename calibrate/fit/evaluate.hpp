// A table of measured kernels beside what a device's fits say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/platform/platform.hpp"

#include "calibrate/fit/kernel_tables.hpp"

namespace stagecraft::fit {

struct PredictedRow {
  std::string kernel; ///< for people
  std::string source; ///< FitSource's name, or "roofline" where the fits say nothing
  Seconds measured, predicted;

  double error() const { return predicted / measured - 1; }
};

/// One row per row of the table that can be predicted: a collective that was never measured has none, a kernel without
/// a fit has the roofline of the device's rates.
std::vector<PredictedRow> evaluate(const DeviceType& type, const KernelTable& table);

/// The measured kernels of the device's own file, each by the fits alone, not by its own measurement.
std::vector<PredictedRow> evaluate_measured(const DeviceType& type);

} // namespace stagecraft::fit
