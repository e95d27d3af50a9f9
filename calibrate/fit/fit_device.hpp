// Fits everything that was measured on one device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/platform.hpp"

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/kernel_tables.hpp"

namespace stagecraft::fit {

/// Everything that was measured, from files of measurements and foreign tables.
struct FitInput {
  KernelSamples kernels;
  std::vector<MeasuredCopy> copies;
  std::vector<MeasuredCollective> collectives;
  std::vector<MeasuredPower> power;
};

/// Adds a file of measurements; of its kernels only the burst regime.
void add(FitInput& input, const Measurements& measurements);
/// Adds a table of kernels.
void add(FitInput& input, const KernelTable& table);

struct FitOptions {
  double hold_out = 0; ///< share of the shapes kept from the fits, in blocks; the fits' errors are measured on these
  CrossValidation validation;
  std::function<void(std::size_t done, std::size_t all)> progress; ///< called after each fit; may be empty
};

/// Fits kernels of every kind, copies, collectives, and power. `type` gives the rooflines under the grids; `processors`
/// is the number of multiprocessors that share the tiles. Throws InputError, without a place, for a kernel ten times
/// faster than the device's nominal peak.
KernelFits fit_device(const FitInput& input, const DeviceType& type, double processors, const FitOptions& options);

} // namespace stagecraft::fit
