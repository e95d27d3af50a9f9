// NCCL's collectives over the devices of this machine, all in one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrate/gpu/device/nccl.hpp"
#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Measures collectives; makes the communicators for a number of devices when the first point needs them.
class CollectiveBench {
public:
  explicit CollectiveBench(const std::vector<std::string>& folders);
  ~CollectiveBench();

  /// The wall time of several in a row, as nccl-tests measures it. DeviceError says why a collective cannot run.
  Timing measure(const CollectivePoint& point);

private:
  struct Ranks;

  void enqueue(const CollectivePoint& point) const;
  void synchronize() const;

  Nccl nccl_;
  std::unique_ptr<Ranks> ranks_;
};

} // namespace stagecraft::gpu
