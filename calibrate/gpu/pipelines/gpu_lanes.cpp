// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/gpu_lanes.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <thread>

#include "calibrate/gpu/pipelines/channel.hpp"
#include "calibrate/gpu/pipelines/host_lane.hpp"
#include "calibrate/gpu/pipelines/lane_work.hpp"
#include "calibrate/gpu/pipelines/partitions.hpp"

namespace stagecraft::gpu {
namespace {

constexpr long long kLongestWait = 20'000'000'000; // nanoseconds for which the GPU waits for a host thread
constexpr int kMostQueued = 800;                   // commands in a stream, whose queue has room for about a thousand
constexpr int kMostStreams = 30;                   // streams that do not share a queue of the device, less two to spare
constexpr std::size_t kWorkspace = std::size_t{512} << 20;

std::shared_ptr<CUstream_st> plain_stream() {
  cudaStream_t made = nullptr;
  STAGECRAFT_CUDA_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return {made, [](cudaStream_t one) { cudaStreamDestroy(one); }};
}

// One value per step, in pinned memory that host and device see.
class PinnedTimes {
public:
  void clear(std::size_t count) {
    if (count > count_) {
      void* made = nullptr;
      STAGECRAFT_CUDA_CHECK(
          cudaHostAlloc(&made, count * sizeof(long long), cudaHostAllocMapped | cudaHostAllocPortable));
      memory_ = std::shared_ptr<void>(made, [](void* one) { cudaFreeHost(one); });
      count_ = count;
      void* seen = nullptr;
      STAGECRAFT_CUDA_CHECK(cudaHostGetDevicePointer(&seen, made, 0));
      device_ = static_cast<long long*>(seen);
    }
    std::fill_n(host(), count, 0);
  }
  volatile long long* host() const { return static_cast<volatile long long*>(memory_.get()); }
  long long* device() const { return device_; }

private:
  std::shared_ptr<void> memory_;
  long long* device_ = nullptr;
  std::size_t count_ = 0;
};

// A stream, and the number of commands enqueued since it was held.
struct StreamLane {
  std::shared_ptr<CUstream_st> stream;
  std::optional<Arena> workspace;
  int commands = 0;
};

struct HostDevice {
  std::unique_ptr<HostTeam> team;
  std::vector<std::vector<std::pair<HostKernel, int>>> works; // [work]
};

class GpuLanes : public Lanes {
public:
  GpuLanes(const Pipeline& pipeline, Session& session);
  ~GpuLanes() override { session_.arena.reset(); }
  GpuLanes(const GpuLanes&) = delete;
  GpuLanes& operator=(const GpuLanes&) = delete;

  std::vector<LaneSpan> run(const std::vector<LaneStep>& steps) override;
  Facts conditions() const override;

private:
  bool on_host(int lane) const { return streams_[static_cast<std::size_t>(lane)].stream == nullptr; }
  void make_streams();
  void make_channels();
  void make_works();
  std::set<int> processors_seen(cudaStream_t stream, bool in_graph);
  void look_at_partitions();
  void find_offset(HostRun& run);
  void gather();
  void hold();
  void hand_over(const std::vector<LaneStep>& steps, HostRun& run);
  void enqueue(const std::vector<LaneStep>& steps, int number, const std::vector<char>& heard);
  void let_go(HostRun& run);
  void abandon();
  void work_on_host(const LaneStep& step);
  void synchronize();

  const Pipeline& pipeline_;
  Session& session_;
  std::vector<StreamLane> streams_; // [lane]; without a stream on the host
  std::shared_ptr<CUstream_st> control_ = plain_stream();
  std::vector<std::optional<LaneWork>> works_;   // [work]
  std::vector<std::optional<Channel>> channels_; // [channel]
  std::vector<HostDevice> host_devices_;         // [device]
  bool graphs_ = true, released_early_ = false;
  PinnedTimes start_, finish_;
  Shared<int> stop_, timed_out_;
  Shared<long long> ping_;
  std::vector<Event> events_; // [step]
  Event rest_, begin_;
  Blocker blocker_;
  double clock_width_ = 0; // nanoseconds that the comparison of the two clocks took
  Facts conditions_;
};

GpuLanes::GpuLanes(const Pipeline& pipeline, Session& session) : pipeline_(pipeline), session_(session) {
  session_.arena.reset();
  make_streams();
  look_at_partitions();
  make_channels();
  make_works();
  STAGECRAFT_CUDA_CHECK(cudaDeviceSynchronize());
}

// Copies use the multiprocessors that are left over, so that they take none from computations.
void GpuLanes::make_streams() {
  constexpr int kUnit = 8;
  if (const std::string reason = why_no_partitions(pipeline_, session_.facts.processors, kUnit); !reason.empty()) {
    throw std::invalid_argument(pipeline_.name + ": " + reason);
  }
  std::vector<int> sizes;
  for (const PipelineDevice& device : pipeline_.devices) {
    if (!device.on_host() && !is_whole(device, session_.facts.processors)) {
      sizes.push_back(device.processors);
    }
  }
  std::optional<Partitions> partitions;
  if (!sizes.empty()) {
    partitions.emplace(session_.device, sizes);
  }
  streams_.resize(pipeline_.devices.size() + static_cast<std::size_t>(pipeline_.channels));
  std::size_t part = 0;
  std::string text;
  for (std::size_t device = 0; device < pipeline_.devices.size(); ++device) {
    const PipelineDevice& one = pipeline_.devices[device];
    if (!one.on_host()) {
      const bool whole = is_whole(one, session_.facts.processors);
      streams_[device].stream = whole ? plain_stream() : partitions->stream(part++);
      streams_[device].workspace.emplace(kWorkspace);
    }
    text += (text.empty() ? "" : ", ") + (one.on_host()        ? std::to_string(one.threads) + " threads of the host"
                                          : one.processors > 0 ? std::to_string(one.processors)
                                                               : "all");
  }
  const bool rest = partitions && partitions->rest() > 0;
  for (const PipelineWork& work : pipeline_.works) {
    StreamLane* lane = work.kind == PipelineWork::Kind::copy
                           ? &streams_[pipeline_.devices.size() + static_cast<std::size_t>(work.channel)]
                           : nullptr;
    const auto host = [&](int device) { return pipeline_.devices[static_cast<std::size_t>(device)].on_host(); };
    if (lane != nullptr && lane->stream == nullptr && !(host(work.device) && host(work.to))) {
      lane->stream = rest ? partitions->stream(sizes.size()) : plain_stream();
    }
  }
  const auto count =
      std::count_if(streams_.begin(), streams_.end(), [](const StreamLane& lane) { return lane.stream != nullptr; });
  if (count > kMostStreams) {
    throw std::invalid_argument(pipeline_.name + ": " + std::to_string(count) +
                                " devices and channels on the GPU; allowed: " + std::to_string(kMostStreams));
  }
  conditions_.emplace_back("device", session_.facts.description);
  conditions_.emplace_back("multiprocessors",
                           text + (rest ? "; " + std::to_string(partitions->rest()) + " for copies" : ""));
}

// The multiprocessors on which a stream's kernels really run.
std::set<int> GpuLanes::processors_seen(cudaStream_t stream, bool in_graph) {
  session_.arena.reset();
  constexpr std::size_t kBytes = sizeof(int) * kMostProcessors;
  auto* seen = static_cast<int*>(session_.arena.take(kBytes));
  STAGECRAFT_CUDA_CHECK(cudaMemsetAsync(seen, 0, kBytes, stream));
  if (in_graph) {
    const std::shared_ptr<CUgraphExec_st> graph =
        capture_graph(stream, [&](cudaStream_t on) { mark_processors(seen, on); });
    if (!graph) {
      return {-1};
    }
    STAGECRAFT_CUDA_CHECK(cudaGraphLaunch(graph.get(), stream));
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream));
  } else {
    mark_processors(seen, stream);
  }
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  std::vector<int> marks(kMostProcessors, 0);
  STAGECRAFT_CUDA_CHECK(cudaMemcpyAsync(marks.data(), seen, kBytes, cudaMemcpyDefault, stream));
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(stream));
  std::set<int> found;
  for (int processor = 0; processor < kMostProcessors; ++processor) {
    if (marks[static_cast<std::size_t>(processor)] == 1) {
      found.insert(processor);
    }
  }
  return found;
}

// Checks that partitions do not overlap, and that graphs stay within them; otherwise kernels are launched one by one.
void GpuLanes::look_at_partitions() {
  std::set<int> taken;
  std::size_t shared = 0;
  std::string counts;
  for (std::size_t device = 0; device < pipeline_.devices.size(); ++device) {
    if (on_host(static_cast<int>(device))) {
      continue;
    }
    const cudaStream_t stream = streams_[device].stream.get();
    processors_seen(stream, false); // the first call loads the kernel
    const std::set<int> own = processors_seen(stream, false), by_graph = processors_seen(stream, true);
    graphs_ = graphs_ && std::includes(own.begin(), own.end(), by_graph.begin(), by_graph.end());
    for (const int processor : own) {
      shared += taken.insert(processor).second ? 0 : 1;
    }
    counts += (counts.empty() ? "" : ", ") + std::to_string(own.size());
  }
  session_.arena.reset();
  conditions_.emplace_back("multiprocessors_seen", counts);
  conditions_.emplace_back("multiprocessors_shared", std::to_string(shared));
  conditions_.emplace_back("launches", graphs_ ? "a graph per computation" : "one by one");
}

void GpuLanes::make_channels() {
  channels_.resize(static_cast<std::size_t>(pipeline_.channels));
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    const PipelineWork* first = nullptr;
    std::int64_t most = 0;
    for (const PipelineWork& work : pipeline_.works) {
      if (work.kind == PipelineWork::Kind::copy && work.channel == static_cast<int>(channel)) {
        first = first == nullptr ? &work : first;
        most = std::max(most, work.bytes);
      }
    }
    if (first != nullptr) {
      channels_[channel].emplace(most, on_host(first->device), on_host(first->to));
    }
  }
}

void GpuLanes::make_works() {
  const Arena shared = session_.workspace; // each device gets a workspace of its own, since they run at the same time
  works_.resize(pipeline_.works.size());
  host_devices_.resize(pipeline_.devices.size());
  try {
    for (std::size_t number = 0; number < pipeline_.works.size(); ++number) {
      const PipelineWork& work = pipeline_.works[number];
      if (work.kind != PipelineWork::Kind::compute) {
        continue;
      }
      const auto device = static_cast<std::size_t>(work.device);
      const PipelineDevice& one = pipeline_.devices[device];
      if (one.on_host()) {
        HostDevice& host = host_devices_[device];
        host.works.resize(pipeline_.works.size());
        host.team = host.team ? std::move(host.team) : std::make_unique<HostTeam>(one.threads);
        for (const RepeatedKernel& kernel : work.kernels) {
          host.works[number].emplace_back(HostKernel(kernel.kernel), kernel.times);
        }
        continue;
      }
      StreamLane& lane = streams_[device];
      session_.workspace = *lane.workspace;
      const int processors = is_whole(one, session_.facts.processors) ? 0 : one.processors;
      works_[number].emplace(session_, work.kernels, lane.stream.get(), processors);
      STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(lane.stream.get()));
      if (graphs_) {
        works_[number]->capture(lane.stream.get());
      }
    }
  } catch (...) {
    session_.workspace = shared;
    throw;
  }
  session_.workspace = shared;
}

// Measures the GPU's clock less the host's, by the quickest of several exchanges.
void GpuLanes::find_offset(HostRun& run) {
  constexpr int kExchanges = 40;
  clock_width_ = 1e18;
  for (int i = 0; i < kExchanges; ++i) {
    const auto host = [] {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
    const long long before = host();
    stamp_time(ping_.device(), control_.get());
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(control_.get()));
    const long long after = host();
    if (static_cast<double>(after - before) < clock_width_) {
      clock_width_ = static_cast<double>(after - before);
      run.offset = *ping_.host() - (before + (after - before) / 2);
    }
  }
}

Facts GpuLanes::conditions() const {
  Facts facts = conditions_;
  facts.emplace_back("clocks_compared_within", std::to_string(std::llround(clock_width_)) + " ns");
  facts.emplace_back("handed_over", released_early_ ? "while it ran: queues were full" : "before it began");
  return facts;
}

// Makes the control stream wait until the last run has ended on all streams.
void GpuLanes::gather() {
  for (StreamLane& lane : streams_) {
    if (lane.stream) {
      rest_.record(lane.stream.get());
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(control_.get(), rest_.get(), 0));
    }
  }
}

// Makes every stream wait until the host releases it, so that launching does not delay the first steps.
void GpuLanes::hold() {
  blocker_.hold(control_.get());
  begin_.record(control_.get());
  for (StreamLane& lane : streams_) {
    lane.commands = 0;
    if (lane.stream) {
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(lane.stream.get(), begin_.get(), 0));
    }
  }
}

void GpuLanes::enqueue(const std::vector<LaneStep>& steps, int number, const std::vector<char>& heard) {
  const LaneStep& step = steps[static_cast<std::size_t>(number)];
  StreamLane& lane = streams_[static_cast<std::size_t>(step.lane)];
  const cudaStream_t stream = lane.stream.get();
  for (const int before : step.after) {
    const int other = steps[static_cast<std::size_t>(before)].lane;
    if (other == step.lane) {
      continue;
    }
    if (on_host(other)) {
      await_time(finish_.device() + before, stop_.device(), kLongestWait, timed_out_.device(), stream);
    } else {
      STAGECRAFT_CUDA_CHECK(cudaStreamWaitEvent(stream, events_[static_cast<std::size_t>(before)].get(), 0));
    }
    ++lane.commands;
  }
  stamp_time(start_.device() + number, stream);
  if (step.work >= 0) {
    const auto work = static_cast<std::size_t>(step.work);
    const PipelineWork& one = pipeline_.works[work];
    if (one.kind == PipelineWork::Kind::copy) {
      channels_[static_cast<std::size_t>(one.channel)]->copy(one, start_.device() + number, stop_.device(), stream);
      lane.commands += 2;
    } else {
      works_[work]->launch(stream);
      lane.commands += works_[work]->commands();
    }
  }
  stamp_time(finish_.device() + number, stream);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  lane.commands += 2;
  if (heard[static_cast<std::size_t>(number)] != 0) {
    events_[static_cast<std::size_t>(number)].record(stream);
    ++lane.commands;
  }
}

void GpuLanes::work_on_host(const LaneStep& step) {
  if (step.work < 0) {
    return;
  }
  const auto number = static_cast<std::size_t>(step.work);
  const PipelineWork& work = pipeline_.works[number];
  if (work.kind == PipelineWork::Kind::copy) {
    channels_[static_cast<std::size_t>(work.channel)]->copy_here(work);
    return;
  }
  const HostDevice& device = host_devices_[static_cast<std::size_t>(work.device)];
  for (const auto& [kernel, times] : device.works[number]) {
    for (int time = 0; time < times; ++time) {
      device.team->run([&one = kernel](int part, int parts) { one.run(part, parts); });
    }
  }
}

void GpuLanes::synchronize() {
  for (const StreamLane& lane : streams_) {
    if (lane.stream) {
      STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(lane.stream.get()));
    }
  }
}

// Marks the steps that a step on another stream waits for.
std::vector<char> heard_steps(const std::vector<LaneStep>& steps) {
  std::vector<char> heard(steps.size(), 0);
  for (const LaneStep& step : steps) {
    for (const int before : step.after) {
      if (steps[static_cast<std::size_t>(before)].lane != step.lane) {
        heard[static_cast<std::size_t>(before)] = 1;
      }
    }
  }
  return heard;
}

// Enqueues the steps. The streams are released when all is enqueued or a queue is full, and also before the first step
// that waits for the host: the host's work leaves enough time to enqueue the rest.
void GpuLanes::hand_over(const std::vector<LaneStep>& steps, HostRun& run) {
  const std::vector<char> heard = heard_steps(steps);
  for (int number = 0; number < static_cast<int>(steps.size()) && !run.stopped; ++number) {
    const LaneStep& step = steps[static_cast<std::size_t>(number)];
    if (on_host(step.lane)) {
      continue;
    }
    const bool full = streams_[static_cast<std::size_t>(step.lane)].commands > kMostQueued;
    const bool waits = std::any_of(step.after.begin(), step.after.end(),
                                   [&](int before) { return on_host(steps[static_cast<std::size_t>(before)].lane); });
    if (!run.released && (full || waits)) {
      released_early_ = released_early_ || full;
      let_go(run);
    }
    try {
      enqueue(steps, number, heard);
    } catch (const DeviceError& error) {
      run.fail(number, error.what());
      *stop_.host() = 1;
    }
  }
  let_go(run);
}

void GpuLanes::let_go(HostRun& run) {
  blocker_.release();
  run.released = true;
}

// Ends what is running, unless the device has failed altogether.
void GpuLanes::abandon() {
  blocker_.release();
  *stop_.host() = 1;
  for (const StreamLane& lane : streams_) {
    if (lane.stream) {
      cudaStreamSynchronize(lane.stream.get());
    }
  }
  cudaGetLastError();
}

// Host threads, which end also when an exception is thrown.
class HostThreads {
public:
  explicit HostThreads(HostRun& run) : run_(run) {}
  ~HostThreads() { join(); }
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

  template <class Serve> void add(const Serve& serve) { threads_.emplace_back(serve); }
  void join() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }
  /// Ends the waiting of threads after the GPU has failed.
  void stop() { run_.stopped = true; }

private:
  HostRun& run_;
  std::vector<std::thread> threads_;
};

std::vector<LaneSpan> GpuLanes::run(const std::vector<LaneStep>& steps) {
  start_.clear(steps.size());
  finish_.clear(steps.size());
  *stop_.host() = 0;
  const int timed_out = *timed_out_.host();
  events_.resize(std::max(events_.size(), steps.size()));
  HostRun run;
  run.times = {start_.host(), finish_.host()};
  HostThreads threads(run);
  try {
    synchronize();
    gather();
    find_offset(run);
    for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
      const bool used = std::any_of(steps.begin(), steps.end(),
                                    [&](const LaneStep& step) { return step.lane == static_cast<int>(lane); });
      if (used && on_host(static_cast<int>(lane))) {
        threads.add([this, &steps, &run, lane] {
          serve_host_lane(
              steps, static_cast<int>(lane), [this](const LaneStep& step) { work_on_host(step); }, run);
          if (run.stopped) {
            *stop_.host() = 1; // releases kernels that wait for this thread
          }
        });
      }
    }
    hold();
    hand_over(steps, run);
    synchronize();
  } catch (...) {
    threads.stop();
    abandon();
    throw;
  }
  threads.join();
  if (run.failed_step() >= 0) {
    throw LaneFailure(run.failed_step(), run.cause());
  }
  if (*timed_out_.host() != timed_out) {
    throw DeviceError("the GPU waited for a thread of the host for 20 s");
  }
  std::vector<LaneSpan> spans;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    spans.push_back({start_.host()[step], finish_.host()[step]});
  }
  return spans;
}

} // namespace

std::unique_ptr<Lanes> make_gpu_lanes(const Pipeline& pipeline, Session& session) {
  return std::make_unique<GpuLanes>(pipeline, session);
}

} // namespace stagecraft::gpu
