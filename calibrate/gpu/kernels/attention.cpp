// Fused attention by cuDNN. A backward pass uses what a forward pass of the same shape has left.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>

#include "calibrate/gpu/kernels/attention_graph.hpp"
#include "calibrate/gpu/kernels/operation.hpp"

namespace stagecraft::gpu {
namespace {

/// Scalars in host memory that plans read at each run.
struct Scalars {
  float scale, one = 1, minus_infinity = -1e30F;
};

/// Everything that launches need; they keep it alive.
struct Attention {
  Scalars scalars;
  DnnPlan plan;
};

struct Memory {
  void *q, *k, *v, *o, *stats;
};

std::size_t values(const Kernel& kernel, std::size_t heads) {
  return static_cast<std::size_t>(kernel.shape[0] * kernel.shape[1] * kernel.shape[heads] * kernel.shape[4]);
}

Memory take_memory(Session& session, const Kernel& kernel, cudaStream_t stream) {
  const auto heads = static_cast<std::int64_t>(values(kernel, 2)),
             shared = static_cast<std::int64_t>(values(kernel, 3));
  Memory memory{};
  memory.q = session.arena.take_gaussian(kernel.precision, heads, stream);
  memory.k = session.arena.take_gaussian(kernel.precision, shared, stream);
  memory.v = session.arena.take_gaussian(kernel.precision, shared, stream);
  memory.o = session.arena.take_gaussian(kernel.precision, heads, stream);
  memory.stats =
      session.arena.take_gaussian(Precision::fp32, kernel.shape[0] * kernel.shape[1] * kernel.shape[2], stream);
  return memory;
}

DnnTarget target_of(Session& session) {
  DnnTarget target;
  target.handle = session.dnn_handle();
  target.dnn = &session.dnn;
  target.workspace = session.workspace.size();
  return target;
}

Scalars scalars_of(const Kernel& kernel) { return {1 / std::sqrt(static_cast<float>(kernel.shape[4]))}; }

std::shared_ptr<Attention> forward_from(Session& session, const Kernel& kernel, const Memory& memory, bool whole) {
  DnnGraph graph(session.dnn);
  const AttentionForward at = whole ? add_attention(graph, kernel) : add_attention_parts(graph, kernel);
  auto made = std::make_shared<Attention>(Attention{scalars_of(kernel), DnnPlan(target_of(session), graph, true)});
  std::vector<std::pair<DnnTensor, void*>> pointers = {{at.q, memory.q},         {at.k, memory.k},
                                                       {at.v, memory.v},         {at.o, memory.o},
                                                       {at.stats, memory.stats}, {at.scale, &made->scalars.scale}};
  if (at.minus_infinity.id > 0) {
    pointers.emplace_back(at.minus_infinity, &made->scalars.minus_infinity);
  }
  session.workspace.reset();
  made->plan.bind(pointers, session.workspace.take(made->plan.workspace()));
  return made;
}

// Tries the parts first, which every version of cuDNN 9 fuses, masked or not; then the whole operation.
std::shared_ptr<Attention> forward(Session& session, const Kernel& kernel, const Memory& memory) {
  try {
    return forward_from(session, kernel, memory, false);
  } catch (const DeviceError& error) {
    if (kernel.shape[5] > 0 || error.sticky()) {
      throw;
    }
  }
  return forward_from(session, kernel, memory, true);
}

std::shared_ptr<Attention> backward(Session& session, const Kernel& kernel, const Memory& memory, cudaStream_t stream) {
  DnnGraph graph(session.dnn);
  const AttentionBackward at = add_attention_backward(graph, kernel);
  auto made = std::make_shared<Attention>(Attention{scalars_of(kernel), DnnPlan(target_of(session), graph, true)});
  const auto stored = static_cast<std::size_t>(bytes_of(kernel.precision));
  const auto taken = [&](std::size_t heads, std::size_t bytes) {
    return session.arena.take(values(kernel, heads) * bytes);
  };
  void* d_o = session.arena.take_gaussian(kernel.precision, static_cast<std::int64_t>(values(kernel, 2)), stream);
  void* sums =
      session.arena.take(static_cast<std::size_t>(kernel.shape[0] * kernel.shape[1] * kernel.shape[2]) * sizeof(float));
  void* dq_sums = taken(2, sizeof(float));
  STAGECRAFT_CUDA_CHECK(cudaMemsetAsync(dq_sums, 0, values(kernel, 2) * sizeof(float), stream));
  std::vector<std::pair<DnnTensor, void*>> pointers = {{at.q, memory.q},
                                                       {at.k, memory.k},
                                                       {at.v, memory.v},
                                                       {at.o, memory.o},
                                                       {at.d_o, d_o},
                                                       {at.stats, memory.stats},
                                                       {at.sums, sums},
                                                       {at.dq_sums, dq_sums},
                                                       {at.dq, taken(2, stored)},
                                                       {at.dk, taken(3, stored)},
                                                       {at.dv, taken(3, stored)},
                                                       {at.scale, &made->scalars.scale},
                                                       {at.one, &made->scalars.one}};
  if (at.minus_infinity.id > 0) {
    pointers.emplace_back(at.minus_infinity, &made->scalars.minus_infinity);
  }
  session.workspace.reset();
  made->plan.bind(pointers, session.workspace.take(made->plan.workspace()));
  return made;
}

} // namespace

Operation prepare_attention(Session& session, const Kernel& kernel, cudaStream_t stream) {
  if (kernel.pass == Pass::backward_weight || bytes_of(kernel.precision) != 2) {
    throw DeviceError("fused attention is forward and backward-input, in fp16 and bf16");
  }
  const dnn::Handle handle = session.dnn_handle();
  const Memory memory = take_memory(session, kernel, stream);
  const Cudnn* dnn = &session.dnn;
  const auto run = [=](const DnnPlan& plan, cudaStream_t on) {
    if (dnn->set_stream(handle, on) != 0) {
      throw DeviceError("cudnnSetStream failed");
    }
    plan.run(handle);
  };
  std::shared_ptr<Attention> made = forward(session, kernel, memory);
  if (kernel.pass == Pass::backward_input) {
    run(made->plan, stream);
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream)); // the workspace is used again
    made = backward(session, kernel, memory, stream);
  }
  return {[=](cudaStream_t on) { run(made->plan, on); }, made->plan.variant()};
}

} // namespace stagecraft::gpu
