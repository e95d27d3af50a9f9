// What the computations of a pipeline launch on a stream: their kernels, ready in memory, as one graph where possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/kernels/operation.hpp"
#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// The kernels of one computation, in order.
class LaneWork {
public:
  /// Makes them ready beside those that are, on a stream of so many multiprocessors (0: all). DeviceError names the
  /// kernel that cannot be had.
  LaneWork(Session& session, const std::vector<RepeatedKernel>& kernels, cudaStream_t stream, int processors);

  /// Runs them once, and captures them into a graph, which takes one command to launch; where the driver refuses, they
  /// are launched one by one as before.
  void capture(cudaStream_t stream);

  void launch(cudaStream_t stream) const;
  /// How many commands launch() puts into the stream.
  int commands() const { return graph_ ? 1 : kernels_; }
  bool captured() const { return graph_ != nullptr; }

private:
  std::vector<std::pair<Launch, int>> launches_;
  int kernels_ = 0;
  std::shared_ptr<CUgraphExec_st> graph_;
};

/// What `launch` enqueues as a graph; nothing where the driver refuses.
std::shared_ptr<CUgraphExec_st> capture_graph(cudaStream_t stream, const Launch& launch);

} // namespace stagecraft::gpu
