// Device files with fits, as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/platform/kernel_fits.hpp"
#include "sim/platform/measurements.hpp"

namespace stagecraft::fit {

/// The section `fits:` of a device file. Logarithms have three decimals, a thousandth of the time.
std::string fits_text(const KernelFits& fits, const std::vector<std::string>& provenance);

/// The section `measurements:`, which holds these documents.
std::string measurements_text(const std::vector<yaml::Node>& documents);

/// A device file with its sections `measurements` and `fits` replaced by `sections`, its name by `name`, and its origin
/// by `measured` where kernels were; the rest as it stands.
std::string with_sections(const std::string& device_file, const std::string& name, const std::string& sections,
                          bool kernels_measured);

/// A device file for a device that has no data sheet: the best rates measured stand for its peaks.
std::string device_text(const Measurements& measurements);

} // namespace stagecraft::fit
