// Host threads that are a device of a pipeline, and the arithmetic that they do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "calibrate/gpu/pipelines/pipeline.hpp"

namespace stagecraft::gpu {

/// A kernel in fp32 with operands of its own. A product runs as it is; convolutions and attention as a product with as
/// many operations; everything else as a pass over as many values.
class HostKernel {
public:
  explicit HostKernel(const Kernel& kernel);

  /// Does the share of thread `part` of `parts`.
  void run(int part, int parts) const;

  /// The last result, for tests: c[i] or y[i].
  const std::vector<float>& result() const { return result_; }
  const std::vector<float>& first() const { return first_; }
  const std::vector<float>& second() const { return second_; }

private:
  void multiply(std::int64_t begin, std::int64_t end) const; // rows, counted through all products
  void pass(std::int64_t begin, std::int64_t end) const;

  bool product_ = false;
  std::int64_t batch_ = 1, m_ = 1, n_ = 1, k_ = 1; ///< of a product; a pass has m values
  std::vector<float> first_, second_;
  mutable std::vector<float> result_;
};

/// Threads that work together. The calling thread is the first of them.
class HostTeam {
public:
  /// std::runtime_error if the system gives no more threads.
  explicit HostTeam(int threads);
  ~HostTeam();
  HostTeam(const HostTeam&) = delete;
  HostTeam& operator=(const HostTeam&) = delete;

  /// Calls `share(part, parts)` on every thread; returns when all are done.
  void run(const std::function<void(int, int)>& share);

private:
  void serve(int part, int parts);
  void end();

  std::vector<std::thread> others_;
  std::mutex mutex_;
  std::condition_variable begin_, done_;
  const std::function<void(int, int)>* share_ = nullptr; ///< nothing: the threads end
  int round_ = 0, left_ = 0;
};

} // namespace stagecraft::gpu
