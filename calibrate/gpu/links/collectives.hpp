// Collectives of NCCL over the devices of this machine, one process for all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrate/gpu/device/nccl.hpp"
#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// Measures collectives; communicators are made at the first point of each number of devices.
class CollectiveBench {
public:
  explicit CollectiveBench(const std::vector<std::string>& folders);
  ~CollectiveBench();

  /// By wall time over several in a row, as nccl-tests does. DeviceError says why one cannot be had.
  Timing measure(const CollectivePoint& point);

private:
  struct Ranks;

  void enqueue(const CollectivePoint& point) const;
  void synchronize() const;

  Nccl nccl_;
  std::unique_ptr<Ranks> ranks_;
};

} // namespace stagecraft::gpu
