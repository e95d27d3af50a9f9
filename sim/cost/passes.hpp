// The time of an operator from the times of its passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cost/cost_model.hpp"

namespace stagecraft {

/// Whether two operators do the same work in each pass.
bool same_passes(const Operator& a, const Operator& b);

/// What is moved to take apart the packed sequences of so many samples, besides all else.
Bytes unpacked_bytes(const Pass& pass, double samples, Precision precision);

/// What a pass computes takes at such a rate, by its operations or by the instructions of its kernels.
Seconds computing_time(const Pass& pass, FlopsPerSecond rate, const DeviceType& type, double samples);

/// The time of a pass on one device of a group, from its shapes and no fit: depthwise_time(), else roofline_time().
std::optional<Seconds> time_from_shapes(const Operator& what, const Pass& pass, KernelPass which,
                                        const DeviceType& type, double samples, Precision precision,
                                        const Shard& shard);

/// Calls `time_of(pass, which)` for each pass; nothing where one of them has no time.
template <class TimeOf> std::optional<OperatorTime> time_of_passes(const Operator& what, TimeOf time_of) {
  const std::optional<Seconds> forward = time_of(what.forward, KernelPass::forward);
  const std::optional<Seconds> input = time_of(what.backward_input, KernelPass::backward_input);
  const std::optional<Seconds> weight = time_of(what.backward_weight, KernelPass::backward_weight);
  if (!forward || !input || !weight) {
    return std::nullopt;
  }
  return OperatorTime{*forward, *input, *weight};
}

} // namespace stagecraft
