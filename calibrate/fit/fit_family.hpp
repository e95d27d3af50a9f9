// Fitting sums of features with coefficients that are not negative.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "sim/platform/kernel_fits.hpp"

#include "calibrate/fit/sample.hpp"

namespace stagecraft::fit {

/// One way of sum(coefficient x feature) with the least relative errors: non-negative least squares of rows divided by
/// their times, reweighted a few times towards absolute errors. Features that get 0 are left out.
KernelFamily fit_family(const KernelSamples& samples, const std::vector<std::string_view>& features, double processors);

} // namespace stagecraft::fit
