// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/sampler.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "calibrate/gpu/sweep/statistics.hpp"

namespace stagecraft::gpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long long kMostBlocked = 100'000'000; // nanoseconds after which a held stream goes on by itself
constexpr int kMostTimedOut = 2;                // timed-out samples of a point after which its stream is no longer held
constexpr double kShortestStamped = 50e-6;      // seconds; in less, two readings of clocks are too inaccurate
constexpr double kThrottled = 0.9; // share of the reference clock below which the device counts as throttled
constexpr int kMostDropped = 8;    // samples dropped per point at most; after them the device will not get faster
constexpr int kMostRuns = 100;     // runs per sample at most; a stream's queue has room for about a thousand commands
constexpr double kSlow = 0.5;      // seconds; a run that takes longer is warmed up only once

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median_of(std::vector<double> values) { return values.empty() ? 0 : summarize(std::move(values)).median; }

// Releases the blocker, also when an exception is thrown.
struct Release {
  Blocker& blocker;
  ~Release() { blocker.release(); }
};

} // namespace

void wait_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::shared_ptr<CUstream_st> make_stream() {
  cudaStream_t made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return {made, [](cudaStream_t one) { cudaStreamDestroy(one); }};
}

Event::Event() {
  cudaEvent_t made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaEventCreate(&made));
  event_ = std::shared_ptr<CUevent_st>(made, [](cudaEvent_t one) { cudaEventDestroy(one); });
}

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  STAGECRAFT_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return static_cast<double>(milliseconds) / 1e3;
}

Blocker::Blocker() = default;

void Blocker::hold(cudaStream_t stream) {
  *flag_.host() = 0;
  block(flag_.device(), kMostBlocked, timed_out_.device(), stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
}

Sampler::Sampler(cudaStream_t stream, double cache)
    : stream_(stream), flush_bytes_(static_cast<std::size_t>(2 * cache)) {
  void* made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaMalloc(&made, std::max<std::size_t>(flush_bytes_, 1)));
  flush_ = std::shared_ptr<void>(made, [](void* one) { cudaFree(one); });
  find_reference_clock();
}

// Clock during the last sample: cycles over nanoseconds, if both readings come from the same multiprocessor.
double Sampler::clock() const {
  const auto nanoseconds = static_cast<double>(last_.host()->nanoseconds - first_.host()->nanoseconds);
  const auto cycles = static_cast<double>(last_.host()->cycles - first_.host()->cycles);
  const bool same = first_.host()->processor == last_.host()->processor;
  return same && nanoseconds * 1e-9 >= kShortestStamped && cycles > 0 ? cycles / nanoseconds * 1e9 : 0;
}

void Sampler::find_reference_clock() {
  constexpr int kRampUp = 300, kReadings = 60;
  constexpr long long kMillisecond = 1'000'000;
  std::vector<double> clocks;
  for (int i = 0; i < kRampUp + kReadings; ++i) {
    read_clocks(first_.device(), stream_);
    spin(kMillisecond, stream_);
    read_clocks(last_.device(), stream_);
    STAGECRAFT_CUDA_CHECK(cudaGetLastError());
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream_));
    if (i >= kRampUp && clock() > 0) {
      clocks.push_back(clock());
    }
  }
  reference_clock_ = median_of(clocks);
}

Sampler::Sample Sampler::take(const Launch& launch, const Method& method, int runs) {
  const int timed_out = blocker_.timed_out();
  {
    const Release release{blocker_};
    if (method.block) {
      blocker_.hold(stream_);
    }
    if (method.flush) {
      STAGECRAFT_CUDA_CHECK(cudaMemsetAsync(flush_.get(), 1, flush_bytes_, stream_));
    }
    read_clocks(first_.device(), stream_);
    begin_.record(stream_);
    for (int i = 0; i < runs; ++i) {
      launch(stream_);
    }
    end_.record(stream_);
    read_clocks(last_.device(), stream_);
    STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  }
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream_));
  Sample sample;
  sample.seconds = seconds_between(begin_, end_) / runs;
  sample.clock = clock();
  sample.valid = blocker_.timed_out() == timed_out;
  return sample;
}

Timing sample_until_enough(const std::function<double()>& sample, const StopRule& rule) {
  std::vector<double> seconds;
  const Clock::time_point start = Clock::now();
  for (int taken = 0; !enough(rule, seconds, since(start)) && taken < 2 * rule.most; ++taken) {
    if (const double one = sample(); one >= 0) {
      seconds.push_back(one);
    }
  }
  if (seconds.empty()) {
    throw DeviceError("no sample ended in time");
  }
  Timing timing;
  timing.seconds = summarize(seconds);
  return timing;
}

Timing Sampler::measure(const Launch& launch, const Method& asked, const StopRule& rule) {
  Method method = asked;
  method.block = false;
  Sample warm_up = take(launch, method, method.runs);
  for (int i = 1; i < 3 && warm_up.seconds * method.runs < kSlow; ++i) {
    warm_up = take(launch, method, method.runs);
  }
  method.block = asked.block;
  const double single = std::max(warm_up.seconds, 1e-9);
  const int runs =
      std::max(method.runs, std::min(kMostRuns, static_cast<int>(std::ceil(method.least_seconds / single))));
  Timing timing;
  std::vector<double> seconds, clocks;
  int timed_out = 0;
  const Clock::time_point start = Clock::now();
  while (!enough(rule, seconds, since(start))) {
    const Sample sample = take(launch, method, runs);
    if (!sample.valid) {
      method.block = method.block && ++timed_out < kMostTimedOut;
      continue;
    }
    const bool throttled = sample.clock > 0 && sample.clock < kThrottled * reference_clock_;
    if (throttled && method.drop_throttled && timing.dropped < kMostDropped) {
      ++timing.dropped;
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(2 * timing.dropped, 10)));
      continue;
    }
    seconds.push_back(sample.seconds);
    if (sample.clock > 0) {
      clocks.push_back(sample.clock);
    }
  }
  timing.seconds = summarize(seconds);
  timing.clock = median_of(clocks);
  return timing;
}

Timing Sampler::measure_sustained(const Launch& launch, double settle, double seconds,
                                  const std::function<void()>& began) {
  constexpr double kBatchSeconds = 0.02;
  Method method;
  method.block = method.flush = false;
  const Sample single = take(launch, method, 1);
  const int runs =
      std::clamp(static_cast<int>(kBatchSeconds / std::max(take(launch, method, 1).seconds, 1e-9)), 1, 5 * kMostRuns);
  static_cast<void>(single); // not used: its run loads what the kernel needs
  // Two batches are in flight: while one runs, the next waits behind it, so that the device is never idle.
  std::array<Event, 3> events;
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  double begun = -1;
  events[0].record(stream_);
  for (std::size_t batch = 0;; ++batch) {
    for (int i = 0; i < runs; ++i) {
      launch(stream_);
    }
    events[(batch + 1) % 3].record(stream_);
    if (batch == 0) {
      continue;
    }
    // The batch before this one has ended: its time is between the events before and after it.
    STAGECRAFT_CUDA_CHECK(cudaEventSynchronize(events[batch % 3].get()));
    const double now = since(start);
    if (begun < 0 && now >= settle) {
      begun = now;
      read_clocks(first_.device(), stream_);
      if (began) {
        began();
      }
    } else if (begun >= 0) {
      samples.push_back(seconds_between(events[(batch + 2) % 3], events[batch % 3]) / runs);
    }
    if (begun >= 0 && now - begun >= seconds && samples.size() >= 3) {
      break;
    }
  }
  read_clocks(last_.device(), stream_);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream_));
  Timing timing;
  timing.seconds = summarize(samples);
  timing.clock = clock();
  return timing;
}

} // namespace stagecraft::gpu
