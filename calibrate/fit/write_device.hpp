// Writes device files with fits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/fits/measurements.hpp"

namespace stagecraft::fit {

/// The section `fits:` of a device file. Logarithms have three decimals, which is a thousandth of the time.
std::string fits_text(const KernelFits& fits, const std::vector<std::string>& provenance);

/// The section `measurements:` with these documents.
std::string measurements_text(const std::vector<yaml::Node>& documents);

/// A device file in which `sections` replace the sections `measurements` and `fits`, `name` replaces its name, and
/// `measured` its origin if kernels were measured; the rest stays.
std::string with_sections(const std::string& device_file, const std::string& name, const std::string& sections,
                          bool kernels_measured);

/// A device file for a device without data sheet, with the best measured rates as its peaks.
std::string device_text(const Measurements& measurements);

} // namespace stagecraft::fit
