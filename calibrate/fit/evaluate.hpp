// Compares a table of measured kernels with what a device's fits predict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/platform/platform.hpp"

#include "calibrate/fit/kernel_tables.hpp"

namespace stagecraft::fit {

struct PredictedRow {
  std::string kernel; ///< the kernel in words
  std::string source; ///< name of the FitSource, or "roofline" where no fit applies
  Seconds measured, predicted;

  double error() const { return predicted / measured - 1; }
};

/// One row for each row of the table that can be predicted. A kernel without a fit is predicted by the roofline of the
/// device's rates; a collective that was never measured is left out.
std::vector<PredictedRow> evaluate(const DeviceType& type, const KernelTable& table);

/// The measured kernels of the device's own file, predicted by the fits, without the measurement of the kernel itself.
std::vector<PredictedRow> evaluate_measured(const DeviceType& type);

} // namespace stagecraft::fit
