// What kernels draw of the power that a device draws when it is full.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cost/cost_model.hpp"
#include "sim/cost/streams.hpp"

namespace stagecraft {

/// Of the power beyond idle that large products draw, the part that a kernel draws which fills the memory alone.
inline constexpr double kMemoryPower = 0.7;

/// The part of a kernel's time in which its device draws idle power, as good as: beyond that, energy goes by the
/// operations that it does and the bytes that it moves, not by time (Choi, Bedard, Fowler, Vuduc 2013, "A roofline
/// model of energy"). 0 where the pass gives neither.
Seconds at_rest(const Pass& pass, KernelKind kind, const DeviceType& type, double samples, Precision precision,
                Seconds time, std::optional<Precision> products = std::nullopt);

/// Seconds of forward and of both gradients at rest.
struct RestOfPasses {
  Seconds forward, backward;

  RestOfPasses& operator+=(const RestOfPasses& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

/// at_rest() of a device's part of an operator, one kernel after another.
RestOfPasses rest_of(const Operator& op, const Shard& shard, const DeviceType& type, double samples,
                     Precision precision, const OperatorTime& time);

} // namespace stagecraft
