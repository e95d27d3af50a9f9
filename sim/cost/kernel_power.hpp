// What kernels draw of the power that a device draws when it is full.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cost/streams.hpp"

namespace stagecraft {

/// Of the power beyond idle that large products draw, the part that a kernel draws which fills the memory alone.
inline constexpr double kMemoryPower = 0.7;

/// The part of a kernel's time in which its device draws idle power, as good as: beyond that, energy goes by the
/// operations that it does and the bytes that it moves, not by time (Choi, Bedard, Fowler, Vuduc 2013, "A roofline
/// model of energy"). 0 where the pass gives neither.
Seconds at_rest(const Pass& pass, KernelKind kind, const DeviceType& type, double samples, Precision precision,
                Seconds time, std::optional<Precision> products = std::nullopt);

} // namespace stagecraft
