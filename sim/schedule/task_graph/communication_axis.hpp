// The kind of parallelism that makes a communication.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// The axis of devices along which something is sent, the innermost first.
enum class CommunicationAxis : std::uint8_t {
  tensor,  ///< what tensor-parallel groups exchange
  context, ///< what ranks that share tokens exchange
  expert,  ///< what goes to experts and back
  data,    ///< gradients and parameters of replicas
  pipeline ///< activations and gradients between stages
};
inline constexpr std::array<std::string_view, 5> kCommunicationAxes = {"tensor", "context", "expert", "data",
                                                                       "pipeline"};

/// The name of an axis in results, traces and reports.
constexpr std::string_view name_of(CommunicationAxis axis) {
  return kCommunicationAxes.at(static_cast<std::size_t>(axis));
}

/// The axis of what devices of a stage exchange in its passes.
constexpr CommunicationAxis communication_axis(Axis axis) {
  switch (axis) {
  case Axis::context:
  case Axis::heads:
    return CommunicationAxis::context;
  case Axis::experts:
    return CommunicationAxis::expert;
  default:
    return CommunicationAxis::tensor;
  }
}

/// The axis of what a work sends; none for computations, joins, what a loader does and what is left to hosts.
inline std::optional<CommunicationAxis> axis_of(const Work& work) {
  if (!work.transfers()) {
    return std::nullopt;
  }
  if (work.kind == TaskKind::transfer) {
    return CommunicationAxis::pipeline;
  }
  if (is_collective(work.kind)) {
    return CommunicationAxis::data;
  }
  if (work.kind != TaskKind::exchange) {
    return std::nullopt;
  }
  return communication_axis(work.axis);
}

} // namespace stagecraft
