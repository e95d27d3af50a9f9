// Copies of a pipeline between its devices: within the GPU, through pinned memory of the host, or shaped to a link.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/buffers.hpp"
#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// Memory at both ends of a channel, and what enqueues its copies.
class Channel {
public:
  /// For copies of at most so many bytes. An end on the host has pinned memory there.
  Channel(std::int64_t bytes, bool from_host, bool to_host);

  /// Enqueues a copy; a shaped one begins at *start and looks at *stop.
  void copy(const PipelineWork& work, const long long* start, const int* stop, cudaStream_t stream) const;
  /// Between two ends on the host: makes it at once.
  void copy_here(const PipelineWork& work) const;

private:
  bool from_host_, to_host_;
  std::shared_ptr<void> from_, to_, between_; ///< between: pinned memory, where a copy goes through the host
};

} // namespace stagecraft::gpu
