// Which forms a kernel's time may take, and which of them fits best.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/blocks.hpp"
#include "calibrate/fit/fit_grid.hpp"

namespace stagecraft::fit {

/// One form to try: a grid, else a sum of features, else a line by bytes, of so many segments or, of 0, straight from
/// each size to the next.
struct KernelForm {
  std::string name;
  std::optional<GridForm> grid;
  std::vector<std::string_view> family;
  int segments = 0;
};

/// Those that suit an op and so many samples. The first has one coefficient, which a single sample tells.
std::vector<KernelForm> forms_for(KernelOp op, std::size_t samples);

/// Fits one form to samples of one kind of kernel; its error is left empty.
KernelFit fit_form(const KernelSamples& samples, const KernelForm& form, const Roofline& base, double processors);

/// How long `fit` says a kernel takes, whatever its form.
Seconds time_by(const KernelFit& fit, const Kernel& kernel, double processors);

/// The form of the least error at shapes held back, fitted to all samples, which are of one op, pass, precision and
/// variant; too short by a factor counts as much as too long. Where too few shapes can be held back it is the first of
/// the forms. The error written into it is at shapes held back by other draws than those that chose the form.
KernelFit fit_kernel(const KernelSamples& samples, const Roofline& base, double processors,
                     const CrossValidation& validation);

} // namespace stagecraft::fit
