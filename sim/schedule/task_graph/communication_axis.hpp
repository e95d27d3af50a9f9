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
  data,    ///< gradients and parameters of replicas
  pipeline ///< activations and gradients between stages
};
inline constexpr std::array<std::string_view, 3> kCommunicationAxes = {"tensor", "data", "pipeline"};

/// The name of an axis in results, traces and reports.
constexpr std::string_view name_of(CommunicationAxis axis) {
  return kCommunicationAxes.at(static_cast<std::size_t>(axis));
}

/// The axis of what a work sends; none for computations, joins and what a loader does.
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
  return work.kind == TaskKind::exchange ? std::optional(CommunicationAxis::tensor) : std::nullopt;
}

} // namespace stagecraft
