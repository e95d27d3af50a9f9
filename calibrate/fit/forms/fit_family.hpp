// Fitting sums of features with non-negative coefficients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"

#include "calibrate/fit/forms/sample.hpp"

namespace stagecraft::fit {

/// One sum(coefficient x feature) with least relative errors: non-negative least squares on rows divided by their
/// times, reweighted a few times to approach least absolute errors. Features with coefficient 0 are left out.
KernelFamily fit_family(const KernelSamples& samples, const std::vector<std::string_view>& features, double processors);

} // namespace stagecraft::fit
