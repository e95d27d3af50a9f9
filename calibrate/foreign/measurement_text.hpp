// Files of measurements, written: docs/formats/measurements.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/platform/measurements.hpp"

namespace stagecraft::foreign {

/// Names and texts, as those of `software` and `method`.
using FreeTexts = std::vector<std::pair<std::string, std::string>>;

/// A GPU by the name that its driver gives it, "NVIDIA H200" called nvidia-h200.
MeasuredDevice device_called(const std::string& description, Bytes memory);

/// The median, the quartiles and the least of samples.
SampledTime sampled(std::vector<double> seconds);

/// A whole file of measurements: its device, kernels and collectives.
std::string measurements_text(const Measurements& measurements, const FreeTexts& software, const FreeTexts& method);

} // namespace stagecraft::foreign
