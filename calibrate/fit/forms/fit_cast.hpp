// Casts that were timed together with products.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/fit/forms/sample.hpp"

namespace stagecraft::fit {

/// Seconds that products take more for each element of their first operand because it is cast to the format in the same
/// measurement: a product of [m, k] and [k, n] takes as long alone as one of [n, k] and [k, m], so what the one with
/// the larger first operand takes longer is its cast. The median of such pairs; 0 for formats of 16 bits and more, and
/// where there are too few pairs.
double fit_cast(const KernelSamples& samples);

} // namespace stagecraft::fit
