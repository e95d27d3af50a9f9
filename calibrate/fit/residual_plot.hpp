// A chart of errors over times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/system/figure.hpp"

#include "calibrate/fit/evaluate.hpp"

namespace stagecraft::fit {

/// Errors in percent over measured times on a logarithmic axis, one series per source.
Figure residual_figure(const std::vector<PredictedRow>& rows, const std::string& title, const std::string& name);

} // namespace stagecraft::fit
