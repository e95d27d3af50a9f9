// What the computations of a pipeline launch on a stream: their kernels, prepared, as one graph if possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/kernels/operation.hpp"
#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// The kernels of one computation, in order.
class LaneWork {
public:
  /// Prepares the kernels beside those prepared earlier, for a stream of `processors` multiprocessors (0: all).
  /// DeviceError names the kernel that cannot run.
  LaneWork(Session& session, const std::vector<RepeatedKernel>& kernels, cudaStream_t stream, int processors);

  /// Runs the kernels once and captures them into a graph, which is launched by one command. If the driver refuses,
  /// they are launched one by one as before.
  void capture(cudaStream_t stream);

  void launch(cudaStream_t stream) const;
  /// The number of commands that launch() enqueues.
  int commands() const { return graph_ ? 1 : kernels_; }
  bool captured() const { return graph_ != nullptr; }

private:
  std::vector<std::pair<Launch, int>> launches_;
  int kernels_ = 0;
  std::shared_ptr<CUgraphExec_st> graph_;
};

/// What `launch` enqueues, as a graph; nothing if the driver refuses.
std::shared_ptr<CUgraphExec_st> capture_graph(cudaStream_t stream, const Launch& launch);

} // namespace stagecraft::gpu
