// Copies between the devices of a pipeline: within the GPU, through pinned host memory, or as slow as a link.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/buffers.hpp"
#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// Memory at both ends of a channel, and the enqueuing of its copies.
class Channel {
public:
  /// For copies of at most `bytes`. Ends on the host get pinned memory.
  Channel(std::int64_t bytes, bool from_host, bool to_host);

  /// Enqueues a copy; one that imitates a link begins at *start and checks *stop.
  void copy(const PipelineWork& work, const long long* start, const int* stop, cudaStream_t stream) const;
  /// Copies at once, between two ends on the host.
  void copy_here(const PipelineWork& work) const;

private:
  bool from_host_, to_host_;
  std::shared_ptr<void> from_, to_, between_; ///< between: pinned memory, for copies through the host
};

} // namespace stagecraft::gpu
