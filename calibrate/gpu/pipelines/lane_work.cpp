// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/lane_work.hpp"

namespace stagecraft::gpu {

std::shared_ptr<CUgraphExec_st> capture_graph(cudaStream_t stream, const Launch& launch) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  bool whole = true;
  try {
    launch(stream);
  } catch (const DeviceError&) { // the capture is discarded
    whole = false;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  whole = cudaStreamEndCapture(stream, &graph) == cudaSuccess && whole && graph != nullptr;
  whole = whole && cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess;
  if (graph != nullptr) {
    cudaGraphDestroy(graph);
  }
  cudaGetLastError();
  return whole ? std::shared_ptr<CUgraphExec_st>(ready, [](cudaGraphExec_t one) { cudaGraphExecDestroy(one); })
               : nullptr;
}

LaneWork::LaneWork(Session& session, const std::vector<RepeatedKernel>& kernels, cudaStream_t stream, int processors) {
  for (const RepeatedKernel& one : kernels) {
    try {
      launches_.emplace_back(prepare_beside(session, one.kernel, stream, processors).launch, one.times);
    } catch (const DeviceError& error) {
      throw DeviceError(to_text(one.kernel) + ": " + error.what(), error.sticky());
    }
    kernels_ += one.times;
  }
}

void LaneWork::launch(cudaStream_t stream) const {
  if (graph_) {
    STAGECRAFT_CUDA_CHECK(cudaGraphLaunch(graph_.get(), stream));
    return;
  }
  for (const auto& [launch_one, times] : launches_) {
    for (int time = 0; time < times; ++time) {
      launch_one(stream);
    }
  }
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
}

void LaneWork::capture(cudaStream_t stream) {
  launch(stream); // loads what is loaded lazily
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream));
  if (kernels_ > 1) {
    graph_ = capture_graph(stream, [this](cudaStream_t on) { launch(on); });
  }
}

} // namespace stagecraft::gpu
