// A kernel beside copies that run without a pause: how much each slows the other down.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/device/session.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Measures kernels beside copies; keeps pinned host memory for them.
class InterferenceBench {
public:
  InterferenceBench(Session& session, Sampler& sampler);

  /// DeviceError says why it cannot be measured.
  Interference measure(const InterferencePoint& point);

private:
  Session& session_;
  Sampler& sampler_;
  std::shared_ptr<void> pinned_in_, pinned_out_;
};

} // namespace stagecraft::gpu
