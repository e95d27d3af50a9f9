// Fitting residuals over a roofline on a tensor grid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"

#include "calibrate/fit/forms/sample.hpp"

namespace stagecraft::fit {

/// An axis whose nodes are not chosen yet.
struct AxisForm {
  std::string_view feature;
  int nodes = 1; ///< nodes at most; never more than the samples have values
};

/// The axes, corrections and smoothness of a grid to be fitted.
struct GridForm {
  std::vector<AxisForm> axes;
  std::vector<std::string_view> corrections; ///< names of features
  double smoothness = 0.03;                  ///< weight of squared second differences along each axis
};

/// The grid with about the least absolute errors of ln(time), by least squares reweighted a few times. Smoothness, and
/// a small pull towards 0 where nothing is known, are part of what is minimised. Needs at least one sample.
ResidualGrid fit_grid(const KernelSamples& samples, const GridForm& form, const Roofline& base, double processors);

/// The id of the feature called `name`; std::logic_error if there is none.
FeatureId feature_called(std::string_view name);

} // namespace stagecraft::fit
