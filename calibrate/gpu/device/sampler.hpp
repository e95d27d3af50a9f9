// Timing on one stream: warm-up, a flushed cache, a blocked stream so that launching costs nothing, samples until the
// median is known well enough, and the clock during each sample.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

#include "calibrate/gpu/device/buffers.hpp"
#include "calibrate/gpu/output/measurement_file.hpp"

namespace stagecraft::gpu {

/// Enqueues one run of what is to be measured.
using Launch = std::function<void(cudaStream_t)>;

/// A stream of its own, which waits for no other.
std::shared_ptr<CUstream_st> make_stream();
/// Lets the device do what it does meanwhile.
void wait_for(double seconds);

/// An event that is destroyed with its owner.
class Event {
public:
  Event();
  cudaEvent_t get() const { return event_.get(); }
  void record(cudaStream_t stream) const { STAGECRAFT_CUDA_CHECK(cudaEventRecord(event_.get(), stream)); }

private:
  std::shared_ptr<CUevent_st> event_;
};

/// Seconds between two events that have happened.
double seconds_between(const Event& begin, const Event& end);

/// Holds a stream from construction until release() or destruction, or until a time-out on the device.
class Blocker {
public:
  Blocker();
  void hold(cudaStream_t stream);
  void release() { *flag_.host() = 1; }
  /// How often the device stopped waiting, because something in between waited for the device.
  int timed_out() const { return *timed_out_.host(); }

private:
  Shared<int> flag_, timed_out_;
};

/// How a sample is taken.
struct Method {
  bool flush = true;        ///< flush the cache before each run
  bool block = true;        ///< hold the stream while it is filled
  int runs = 1;             ///< runs per sample, one after another
  double least_seconds = 0; ///< least length of a sample, reached by more runs
  bool drop_throttled = true;
};

/// Takes samples, in seconds, until `rule` says that they are enough; negative ones do not count.
Timing sample_until_enough(const std::function<double()>& sample, const StopRule& rule);

class Sampler {
public:
  /// Samples on `stream`; `cache` is the size in bytes of the last-level cache, which is flushed.
  Sampler(cudaStream_t stream, double cache);

  /// Measures `launch`, in seconds per run.
  Timing measure(const Launch& launch, const Method& method, const StopRule& rule = {});

  /// Seconds per run after the same has run for `settle` seconds, sampled for `seconds`; calls `began` when sampling
  /// begins.
  Timing measure_sustained(const Launch& launch, double settle, double seconds,
                           const std::function<void()>& began = {});

  /// The blocker that holds the stream, for samples that use several streams.
  Blocker& blocker() { return blocker_; }
  /// Clock of a busy device that is not throttled, Hz; 0: unknown.
  double reference_clock() const { return reference_clock_; }
  cudaStream_t stream() const { return stream_; }

private:
  struct Sample {
    double seconds = 0, clock = 0;
    bool valid = true;
  };

  Sample take(const Launch& launch, const Method& method, int runs);
  void find_reference_clock();
  double clock() const;

  cudaStream_t stream_;
  std::shared_ptr<void> flush_;
  std::size_t flush_bytes_ = 0;
  Event begin_, end_;
  Blocker blocker_;
  Shared<Stamp> first_, last_;
  double reference_clock_ = 0;
};

} // namespace stagecraft::gpu
