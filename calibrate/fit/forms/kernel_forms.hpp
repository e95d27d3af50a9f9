// The forms that a kernel's time may take, and choosing the one that fits best.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/forms/fit_grid.hpp"

namespace stagecraft::fit {

/// One form to try: a grid if there is one, else a sum of features if there are any, else a line in bytes, with
/// `segments` segments or, for 0, straight from each size to the next.
struct KernelForm {
  std::string name;
  std::optional<GridForm> grid;
  std::vector<std::string_view> family;
  int segments = 0;
};

/// The forms that suit an op and a number of samples. The first has only one coefficient, for which a single sample is
/// enough.
std::vector<KernelForm> forms_for(KernelOp op, std::size_t samples);

/// Fits one form to samples of one kind of kernel; leaves the error empty.
KernelFit fit_form(const KernelSamples& samples, const KernelForm& form, const Roofline& base, double processors);

/// The time that a fit of any form predicts.
Seconds time_by(const KernelFit& fit, const Kernel& kernel, double processors);

/// Chooses the form with the least error at shapes held back, and fits it to all samples, which must be of one op,
/// pass, precision and variant. A time too short by some factor counts like one too long by it. If too few shapes can
/// be held back, the first form is taken. The error of the result comes from other draws than those that chose the
/// form.
KernelFit fit_kernel(const KernelSamples& samples, const Roofline& base, double processors,
                     const CrossValidation& validation);

} // namespace stagecraft::fit
