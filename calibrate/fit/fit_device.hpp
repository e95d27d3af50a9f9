// From all that was measured of one device to its fits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/platform/measurements.hpp"
#include "sim/platform/platform.hpp"

#include "calibrate/fit/blocks.hpp"
#include "calibrate/fit/kernel_tables.hpp"

namespace stagecraft::fit {

/// Everything measured, of files of measurements and of foreign tables.
struct FitInput {
  KernelSamples kernels;
  std::vector<MeasuredCopy> copies;
  std::vector<MeasuredCollective> collectives;
  std::vector<MeasuredPower> power;
};

/// Adds what a file of measurements holds; its kernels of the burst regime.
void add(FitInput& input, const Measurements& measurements);
/// Adds what a table holds.
void add(FitInput& input, const KernelTable& table);

struct FitOptions {
  double hold_out = 0; ///< this share of the shapes is kept from the fits, by blocks, and tells their errors
  CrossValidation validation;
  std::function<void(std::size_t done, std::size_t all)> progress; ///< may be empty
};

/// Fits every kind of kernel, copy, collective, and power. `type` gives the rooflines that grids stand over;
/// `processors` shares out tiles. Throws InputError, without a place, for a kernel ten times faster than the device's
/// nominal peak or memory.
KernelFits fit_device(const FitInput& input, const DeviceType& type, double processors, const FitOptions& options);

} // namespace stagecraft::fit
