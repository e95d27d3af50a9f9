// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/host_launches.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include "calibrate/gpu/kernels/launches.hpp"

namespace stagecraft::gpu {
namespace {

using Clock = std::chrono::steady_clock;
using Streams = std::vector<std::shared_ptr<CUstream_st>>;

constexpr int kLaunches = 500, kEvents = 200, kGraphs = 20; // fewer than fill a stream's queue

constexpr double kMostAwaited = 0.1; // seconds that one thread waits for the others

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// When the calls of one thread began, when the last one returned, and when the device had done what they asked for.
struct Span {
  Clock::time_point begin, called, end;
};

Streams make_streams(int count) {
  Streams streams;
  for (int i = 0; i < count; ++i) {
    streams.push_back(make_stream());
  }
  return streams;
}

// Calls `call(i)` so many times, then waits for the streams.
Span timed(int calls, const Streams& streams, const std::function<void(int)>& call) {
  Span span;
  span.begin = Clock::now();
  for (int i = 0; i < calls; ++i) {
    call(i);
  }
  span.called = Clock::now();
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  for (const auto& stream : streams) {
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  }
  span.end = Clock::now();
  return span;
}

// Takes samples of spans, one for each thread, of `calls` calls each.
Timing sampled(int calls, const std::function<std::vector<Span>()>& spans) {
  std::vector<double> of_call;
  const auto sample = [&] {
    const std::vector<Span> all = spans();
    Clock::time_point begin = all.front().begin, end = all.front().end;
    double calling = 0;
    for (const Span& span : all) {
      begin = std::min(begin, span.begin);
      end = std::max(end, span.end);
      calling += seconds(span.called - span.begin);
    }
    const double count = static_cast<double>(calls) * static_cast<double>(all.size());
    of_call.push_back(calling / count);
    return seconds(end - begin) / count;
  };
  sample(); // loads what is needed
  of_call.clear();
  Timing timing = sample_until_enough(sample, StopRule());
  timing.call = summarize(of_call).median;
  return timing;
}

Timing launches(int device, const HostPoint& point) {
  const int each = std::max(point.streams / point.threads, 1);
  std::vector<Streams> streams;
  for (int thread = 0; thread < point.threads; ++thread) {
    streams.push_back(make_streams(each));
  }
  return sampled(kLaunches, [&] {
    std::atomic<int> ready{0};
    const auto run = [&](const Streams& own) {
      STAGECRAFT_CUDA_CHECK(cudaSetDevice(device));
      const Clock::time_point here = Clock::now();
      for (++ready; ready < point.threads && seconds(Clock::now() - here) < kMostAwaited;) { // all begin at once
      }
      return timed(kLaunches, own, [&](int i) { launch_empty(own[static_cast<std::size_t>(i % each)].get()); });
    };
    std::vector<std::future<Span>> others;
    for (std::size_t thread = 1; thread < streams.size(); ++thread) {
      others.push_back(std::async(std::launch::async, run, std::cref(streams[thread])));
    }
    std::vector<Span> spans = {run(streams.front())};
    for (std::future<Span>& other : others) {
      spans.push_back(other.get());
    }
    return spans;
  });
}

Timing events() {
  const Streams streams = make_streams(2);
  const Event event;
  return sampled(kEvents, [&]() -> std::vector<Span> {
    return {timed(kEvents, streams, [&](int) {
      event.record(streams[0].get());
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(streams[1].get(), event.get(), 0));
    })};
  });
}

Timing graphs(int nodes) {
  const Streams streams = make_streams(1);
  const std::shared_ptr<CUgraphExec_st> graph = capture_empty(nodes, streams[0].get());
  return sampled(kGraphs, [&]() -> std::vector<Span> {
    return {
        timed(kGraphs, streams, [&](int) { STAGECRAFT_CUDA_CHECK(cudaGraphLaunch(graph.get(), streams[0].get())); })};
  });
}

} // namespace

Timing measure_host(int device, const HostPoint& point) {
  return point.op == HostOp::launch  ? launches(device, point)
         : point.op == HostOp::event ? events()
                                     : graphs(point.nodes);
}

} // namespace stagecraft::gpu
