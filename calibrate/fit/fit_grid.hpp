// Fitting residuals over a roofline on a tensor grid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "sim/platform/kernel_fits.hpp"

#include "calibrate/fit/sample.hpp"

namespace stagecraft::fit {

/// One axis before it has nodes.
struct AxisForm {
  std::string_view feature;
  int nodes = 1; ///< at most; no more than the samples have values
};

/// What a grid depends on.
struct GridForm {
  std::vector<AxisForm> axes;
  std::vector<std::string_view> corrections; ///< features
  double smoothness = 0.03;                  ///< weight of the squared second differences along each axis
};

/// The grid that minimises the absolute errors of ln(time), nearly: squares reweighted a few times, + smoothness +
/// a little towards 0 where nothing is known. At least one sample.
ResidualGrid fit_grid(const KernelSamples& samples, const GridForm& form, const Roofline& base, double processors);

/// The id of a feature; std::logic_error where there is none.
FeatureId feature_called(std::string_view name);

} // namespace stagecraft::fit
