// Which fits hold for a kernel, and which stand for one that was not measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {

/// The fit of a kernel's op, pass, precision and variant; null where there is none.
const KernelFit* find_fit(const KernelFits& fits, const Kernel& kernel, std::string_view variant);

/// The multiprocessors of the device, of which features ask.
double processors_of(const KernelFits& fits);

/// How many times as much `kernel` does as one that it resembles: in FLOPs, or in bytes where memory binds it.
double more_work(const Kernel& kernel, const Kernel& like);

/// The format in which a device multiplies as fast: the other one of 16 bits, and of formats with 8 bits and scales of
/// blocks that with a scale for each tensor.
std::optional<Precision> like_format(Precision precision);

/// The op that moves the same data, whose times stand for one that was not measured.
std::optional<KernelOp> like_op(KernelOp op);

/// How a pass without fits compares with the forward one: as measured for this precision, or for any.
PassRatio pass_ratio(const KernelFits& fits, const Kernel& kernel);

} // namespace stagecraft
