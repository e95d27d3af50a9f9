// Runs a pipeline on lanes, and measures its parts alone, to predict it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "calibrate/gpu/pipelines/pipeline_parts.hpp"

namespace stagecraft::gpu {

/// The outcome of a run, with times in seconds. docs/formats/pipeline.md.
struct CarriedOut {
  std::string pipeline; ///< digest_of() the pipeline's file
  std::string failure;  ///< why it ended early; "" if it did not, and only then the fields below are set
  Facts conditions;     ///< for people
  MeasuredParts parts;
  std::vector<LaneSpan> spans; ///< [iteration * tasks + task], from the start of the run
};

/// The steps of all iterations in an order in which they can be given to lanes; joins are not steps.
struct StepOrder {
  std::vector<LaneStep> steps;
  std::vector<int> entries;             ///< [step]: iteration * tasks + task
  std::vector<std::vector<int>> joined; ///< [entry]: for a join, the steps that it waits for
};

/// std::invalid_argument if tasks wait for each other in a cycle.
StepOrder order_steps(const Pipeline& pipeline);

/// Runs the pipeline `runs` times, and measures its parts before the first run and after each one, so that a device
/// that warms up is as warm for both. The result has the medians of the parts, and the run of median time. `told` is
/// called with what is being done. std::runtime_error with task, device and cause if a step fails;
/// std::invalid_argument as order_steps().
CarriedOut carry_out(const Pipeline& pipeline, Lanes& lanes, int runs,
                     const std::function<void(const std::string&)>& told = {});

/// The file of times as text, and back. parse_times() throws like parse_pipeline().
std::string to_text(const CarriedOut& carried);
CarriedOut parse_times(const std::string& text, const std::string& file);

} // namespace stagecraft::gpu
