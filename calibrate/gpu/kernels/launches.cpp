// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/launches.hpp"

#include <memory>

namespace stagecraft::gpu {
namespace {

constexpr int kLaunches = 200;

Timing per_launch(Timing timing, int launches) {
  for (double* value : {&timing.seconds.median, &timing.seconds.q1, &timing.seconds.q3, &timing.seconds.least}) {
    *value /= launches;
  }
  return timing;
}

Method method_of(bool block) {
  Method method;
  method.flush = method.drop_throttled = false;
  method.block = block;
  return method;
}

Timing one_after_the_other(Sampler& sampler) {
  const Launch launches = [](cudaStream_t stream) {
    for (int i = 0; i < kLaunches; ++i) {
      launch_empty(stream);
    }
  };
  return per_launch(sampler.measure(launches, method_of(false)), kLaunches);
}

} // namespace

std::shared_ptr<CUgraphExec_st> capture_empty(int kernels, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  launch_empty(stream); // loads the kernel before the capture
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream));
  STAGECRAFT_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kernels; ++i) {
    launch_empty(stream);
  }
  STAGECRAFT_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  const cudaError_t made = cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphDestroy(graph);
  STAGECRAFT_CUDA_CHECK(made);
  return {ready, [](cudaGraphExec_t one) { cudaGraphExecDestroy(one); }};
}

namespace {

Timing in_a_graph(Sampler& sampler) {
  const std::shared_ptr<CUgraphExec_st> graph = capture_empty(kLaunches, sampler.stream());
  const Launch launch = [&](cudaStream_t stream) { STAGECRAFT_CUDA_CHECK(cudaGraphLaunch(graph.get(), stream)); };
  return per_launch(sampler.measure(launch, method_of(false)), kLaunches);
}

Timing after_an_event(Sampler& sampler) {
  constexpr int kTurns = 50; // six commands each, which fit into the queue of a held stream
  const std::shared_ptr<CUstream_st> keep = make_stream();
  cudaStream_t other = keep.get();
  const Event there, back;
  const Launch turns = [&](cudaStream_t stream) {
    for (int i = 0; i < kTurns; ++i) {
      there.record(stream);
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(other, there.get(), 0));
      launch_empty(other);
      back.record(other);
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(stream, back.get(), 0));
      launch_empty(stream);
    }
  };
  return per_launch(sampler.measure(turns, method_of(true)), 2 * kTurns);
}

} // namespace

Timing measure_launch(Sampler& sampler, Regime regime) {
  return regime == Regime::graph   ? in_a_graph(sampler)
         : regime == Regime::event ? after_an_event(sampler)
                                   : one_after_the_other(sampler);
}

} // namespace stagecraft::gpu
