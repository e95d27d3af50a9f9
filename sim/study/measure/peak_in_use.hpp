// The nominal peak of what a run uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/schedule/task_graph/task_graph.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// A device type's matrix peak in a precision; 0 where it is not known, or there is no precision.
FlopsPerSecond peak_of(const DeviceType& type, std::optional<Precision> precision);

/// What the devices in use compute together, each by its peak in the training's precision or, where that is higher, in
/// `also`. 0 where the former is not known of one.
FlopsPerSecond peak_in_use(const Study& study, const TaskGraph& graph, std::optional<Precision> also = {});

} // namespace stagecraft
