// Writes files of measurements: docs/formats/measurements.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/platform/fits/measurements.hpp"

namespace stagecraft::foreign {

/// Names with texts, for the sections `software` and `method`.
using FreeTexts = std::vector<std::pair<std::string, std::string>>;

/// A GPU named by its driver: "NVIDIA H200" is called nvidia-h200.
MeasuredDevice device_called(const std::string& description, Bytes memory);

/// Median, quartiles and minimum of the samples.
SampledTime sampled(std::vector<double> seconds);

/// The text of a file of measurements: its device, kernels and collectives.
std::string measurements_text(const Measurements& measurements, const FreeTexts& software, const FreeTexts& method);

} // namespace stagecraft::foreign
