// A small pipeline of two partitions for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/pipelines/carry_out.hpp"

namespace stagecraft::test {

using gpu::LaneSpan;
using gpu::Pipeline;
using gpu::PipelineTie;
using gpu::PipelineWork;

/// Two devices, two micro-batches, GPipe: F0 F1 B1 B0 on each, with copies forth and back and a join at the end. Tasks
/// 0-3 and 4-7 are those of the devices, 8-11 the copies F0 F1 B1 B0, 12 the join.
inline gpu::Pipeline two_stages(int iterations = 2,
                                const std::string& kernel = "gemm forward bf16 batch=1 m=1024 n=1024 k=1024") {
  const gpu::Kernel product = gpu::parse_kernel(kernel);
  const auto compute = [&](int device, int times) {
    PipelineWork work;
    work.kind = PipelineWork::Kind::compute;
    work.device = device;
    work.kernels = {{product, times}};
    return work;
  };
  const auto copy = [](int from, int to) {
    PipelineWork work;
    work.kind = PipelineWork::Kind::copy;
    work.device = from;
    work.to = to;
    work.channel = from;
    work.bytes = 1 << 20;
    return work;
  };
  Pipeline pipeline;
  pipeline.name = "two stages";
  pipeline.iterations = iterations;
  pipeline.devices = {{"gpu/0", 64, 0}, {"gpu/1", 32, 0}};
  pipeline.channels = 2;
  pipeline.works = {compute(0, 4), compute(0, 8), compute(1, 4), compute(1, 8), copy(0, 1), copy(1, 0), {}};
  pipeline.work = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6};
  pipeline.names = {"F0@0", "F1@0",   "B1@0",   "B0@0",   "F0@1",   "F1@1", "B1@1",
                    "B0@1", "T0@0>1", "T1@0>1", "T1@1>0", "T0@1>0", "J"};
  pipeline.after = {{8}, {9}, {12}, {12}, {6, 7}, {6}, {10, 12}, {11, 12}, {4, 9}, {5}, {2, 11}, {3}, {}};
  pipeline.after[4] = {7};
  pipeline.programs = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  pipeline.ties = {{12, 0, 1}, {12, 4, 1}}; // a barrier
  return pipeline;
}

/// What is wrong with the times of a pipeline: the order on a device, inputs, or ties; "" if nothing is.
inline std::string broken_order(const Pipeline& pipeline, const std::vector<LaneSpan>& spans) {
  const std::size_t tasks = pipeline.work.size();
  if (spans.size() != tasks * static_cast<std::size_t>(pipeline.iterations)) {
    return "not every task ran";
  }
  for (std::size_t entry = 0; entry < spans.size(); ++entry) {
    for (const int next : pipeline.after[entry % tasks]) {
      if (spans[entry - entry % tasks + static_cast<std::size_t>(next)].start < spans[entry].finish) {
        return pipeline.names[static_cast<std::size_t>(next)] + " did not wait for " + pipeline.names[entry % tasks];
      }
    }
  }
  for (const PipelineTie& tie : pipeline.ties) {
    const std::size_t ahead = static_cast<std::size_t>(tie.iterations) * tasks;
    for (std::size_t base = 0; base + ahead < spans.size(); base += tasks) {
      if (spans[base + ahead + static_cast<std::size_t>(tie.to)].start <
          spans[base + static_cast<std::size_t>(tie.from)].finish) {
        return "a tie is broken";
      }
    }
  }
  for (const std::vector<int>& program : pipeline.programs) {
    std::int64_t free = 0;
    for (std::size_t base = 0; base < spans.size(); base += tasks) {
      for (const int task : program) {
        const LaneSpan& span = spans[base + static_cast<std::size_t>(task)];
        if (span.start < free) {
          return pipeline.names[static_cast<std::size_t>(task)] + " is out of its device's order";
        }
        free = span.finish;
      }
    }
  }
  return "";
}

} // namespace stagecraft::test
