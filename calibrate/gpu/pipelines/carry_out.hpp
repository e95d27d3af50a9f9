// A pipeline carried out on lanes, and its parts measured alone: what predicts it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "calibrate/gpu/pipelines/pipeline_parts.hpp"

namespace stagecraft::gpu {

/// What came of it. docs/formats/pipeline.md; seconds.
struct CarriedOut {
  std::string pipeline; ///< digest_of() its file
  std::string failure;  ///< why it ended early; "" where it did not, and only then the rest is there
  Facts conditions;     ///< for readers
  MeasuredParts parts;
  std::vector<LaneSpan> spans; ///< [iteration * tasks + task], from the beginning of the run
};

/// The steps of all iterations in an order in which they can be handed to lanes; joins are no steps.
struct StepOrder {
  std::vector<LaneStep> steps;
  std::vector<int> entries;             ///< [step]: iteration * tasks + task
  std::vector<std::vector<int>> joined; ///< [entry]: of a join, the steps that it joins
};

/// std::invalid_argument where tasks wait for each other in a circle.
StepOrder order_steps(const Pipeline& pipeline);

/// Runs it so many times, and measures its parts before the first run and after each, so that a device that grows warm
/// is the same to both. Medians of the parts count, and the run of the median time. `told` hears what is being done.
/// std::runtime_error with task, device and cause where a step fails; std::invalid_argument as order_steps().
CarriedOut carry_out(const Pipeline& pipeline, Lanes& lanes, int runs,
                     const std::function<void(const std::string&)>& told = {});

/// The file of times: text and back. parse_times() refuses as parse_pipeline() does.
std::string to_text(const CarriedOut& carried);
CarriedOut parse_times(const std::string& text, const std::string& file);

} // namespace stagecraft::gpu
