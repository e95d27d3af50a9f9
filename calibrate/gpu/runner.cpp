// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/runner.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <new>
#include <optional>

#include "calibrate/gpu/device/power.hpp"
#include "calibrate/gpu/kernels/host_launches.hpp"
#include "calibrate/gpu/kernels/interference.hpp"
#include "calibrate/gpu/kernels/launches.hpp"
#include "calibrate/gpu/kernels/operation.hpp"
#include "calibrate/gpu/links/collectives.hpp"
#include "calibrate/gpu/links/copies.hpp"
#include "calibrate/gpu/output/unended.hpp"
#include "calibrate/gpu/pipelines/partitions.hpp"
#include "calibrate/gpu/progress.hpp"
#include "calibrate/gpu/sweep/budget.hpp"

namespace stagecraft::gpu {
namespace {

constexpr double kForSentinels = 6; // seconds of the budget kept for the sentinels, all three times
constexpr double kSettle = 2;       // seconds of work until power and temperature are stable
constexpr double kBusySeconds = 5;  // seconds for a reading of power, if there is time
constexpr double kLeastBusy = 3;
constexpr double kSustainedSeconds = 1;
constexpr double kWarmSample = 20e-6; // seconds; a sample consists of many runs

Header header_of(const Session& session, const std::string& name) {
  const DeviceFacts& facts = session.facts;
  Header header;
  header.device = {{"name", name},
                   {"vendor", "nvidia"},
                   {"description", facts.description},
                   {"kind", "gpu"},
                   {"memory", memory_text(facts.memory)},
                   {"processors", std::to_string(facts.processors)},
                   {"cache", memory_text(facts.cache)}};
  header.host = describe_host();
  header.software = describe_software(session);
  header.method = {
      {"timer", "event"}, {"warm_up", "3"}, {"cache", "flushed"}, {"data", "gaussian"}, {"started", utc_now()}};
  return header;
}

Header partition_header(Header header, const std::string& name, int processors, const std::string& description) {
  for (auto& [key, value] : header.device) {
    value = key == "name"          ? name + "-sm" + std::to_string(processors)
            : key == "description" ? std::to_string(processors) + " multiprocessors of " + description
            : key == "kind"        ? "gpu-partition"
            : key == "processors"  ? std::to_string(processors)
                                   : value;
  }
  return header;
}

// Whether a kernel's work is arithmetic rather than moving memory.
bool is_arithmetic(const Kernel& kernel) { return kernel.op == Op::gemm || kernel.op == Op::attention; }

// What a copy or a forward pass over its rows reads and writes.
double moved_by(const Kernel& kernel) {
  return 2.0 * static_cast<double>(bytes_of(kernel.precision) * kernel.shape[0] * kernel.shape[1]);
}

/// Counts points left out by reason, so that each reason is reported once.
class LeftOut {
public:
  void add(const std::string& reason) { ++counts_[reason]; }
  std::vector<std::string> texts(const std::string& group) const {
    std::vector<std::string> texts;
    for (const auto& [reason, count] : counts_) {
      texts.push_back(group + ": " + std::to_string(count) + (count == 1 ? " point: " : " points: ") + reason);
    }
    return texts;
  }

private:
  std::map<std::string, int> counts_;
};

class MeasurementRun {
public:
  MeasurementRun(const Options& options, const std::vector<Group>& groups, const std::atomic<bool>& stop);
  Ended run();

private:
  /// What the points of a group are measured with: the whole device, or a partition with its own file.
  struct Place {
    Sampler& sampler;
    MeasurementFile& file;
    Partition* partition;
  };

  double now() const;
  void run_sentinels(const std::string& when);
  void run_group(const Group& group, double deadline);
  void run_partition(const Group& group, double deadline);
  void run_points(const Group& group, double deadline, const Place& place);
  void run_point(const Point& point, double deadline, const Place& place);
  Timing measure(const KernelPoint& point, const Place& place);
  void measure_power(const PowerPoint& point, double deadline, const Place& place);
  PowerReading work_for_power(const PowerPoint& point, double seconds, const Place& place, PowerMeter& meter);
  void note_limits();
  void note_state(const std::string& when);
  void report(const std::string& group, const LeftOut& left_out, MeasurementFile& file);

  const Options& options_;
  const std::vector<Group>& groups_;
  const std::atomic<bool>& stop_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Progress progress_;
  Session session_;
  std::shared_ptr<CUstream_st> stream_;
  Sampler sampler_;
  std::string name_;
  Header header_;
  MeasurementFile file_;
  Unended unended_;
  std::optional<CopyBench> copies_;
  std::optional<CollectiveBench> collectives_;
  std::optional<InterferenceBench> interference_;
};

MeasurementRun::MeasurementRun(const Options& options, const std::vector<Group>& groups, const std::atomic<bool>& stop)
    : options_(options), groups_(groups), stop_(stop), progress_(stderr, isatty(STDERR_FILENO) != 0, options.budget),
      session_(options.device, library_folders(options.libraries)), stream_(make_stream()),
      sampler_(stream_.get(), session_.facts.cache), name_(options.name.empty() ? session_.facts.name : options.name),
      header_(header_of(session_, name_)), file_(options.out, header_), unended_(options.out) {}

double MeasurementRun::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Ended MeasurementRun::run() {
  progress_.say(session_.facts.description + ", " + std::to_string(session_.facts.processors) +
                " multiprocessors; into " + options_.out +
                (file_.size() > 0 ? ", which has " + std::to_string(file_.size()) + " measurements already" : ""));
  if (!session_.nvml.problem().empty()) {
    file_.leave_out("power: NVML: " + session_.nvml.problem());
  }
  std::vector<double> weights;
  for (const Group& group : groups_) {
    weights.push_back(group.points.empty() ? 0 : group.weight);
  }
  const Budget budget(options_.budget - kForSentinels, weights);
  note_limits();
  note_state("at_start");
  run_sentinels("start");
  for (std::size_t i = 0; i < groups_.size() && !stop_; ++i) {
    if (i == groups_.size() / 2) {
      run_sentinels("middle");
    }
    if (!groups_[i].points.empty()) {
      run_group(groups_[i], budget.deadline(i, now()));
    }
  }
  if (stop_) {
    progress_.say("interrupted; run again with the same --out to go on");
    return Ended::interrupted;
  }
  run_sentinels("end");
  file_.finish(now());
  progress_.say("done in " + clock_text(now()) + ": " + std::to_string(file_.size()) + " measurements in " +
                options_.out);
  return Ended::done;
}

void MeasurementRun::run_sentinels(const std::string& when) {
  const Place place{sampler_, file_, nullptr};
  for (const Kernel& kernel : sentinels()) {
    try {
      file_.add_sentinel(when, kernel, measure(KernelPoint{kernel, Regime::burst}, place).seconds.median);
    } catch (const DeviceError& error) {
      if (error.sticky()) {
        throw;
      }
      file_.leave_out("sentinel " + to_text(kernel) + ": " + error.what());
    }
  }
}

void MeasurementRun::run_group(const Group& group, double deadline) {
  if (group.processors > 0) {
    run_partition(group, deadline);
  } else {
    run_points(group, deadline, {sampler_, file_, nullptr});
  }
  copies_.reset(); // frees their memory too
  interference_.reset();
  note_state("after_" + group.name + (group.processors > 0 ? "_" + std::to_string(group.processors) : ""));
}

void MeasurementRun::note_limits() {
  const auto megahertz = [](double hertz) { return std::to_string(std::lround(hertz / 1e6)) + " MHz"; };
  const auto nanoseconds = [](double seconds) { return std::to_string(std::lround(seconds * 1e9)) + " ns"; };
  file_.note("reference_clock", megahertz(sampler_.reference_clock()));
  file_.note("empty_kernel", nanoseconds(sampler_.measure(launch_empty, Method()).seconds.median));
  if (const auto most = session_.nvml.most_clock()) {
    file_.note("most_clock", megahertz(*most));
  }
  if (const auto limit = session_.nvml.power_limit()) {
    file_.note("power_limit", std::to_string(std::lround(*limit)) + " W");
  }
}

void MeasurementRun::note_state(const std::string& when) {
  if (const std::string state = session_.nvml.state(); !state.empty()) {
    file_.note(when, state);
  }
}

void MeasurementRun::run_partition(const Group& group, double deadline) {
  try {
    Partition partition(session_.device, group.processors);
    Sampler sampler(partition.stream(), session_.facts.cache);
    MeasurementFile file(partition_path(options_.out, group.processors),
                         partition_header(header_, name_, group.processors, session_.facts.description));
    const double begun = now();
    run_points(group, deadline, {sampler, file, &partition});
    if (!stop_) {
      file.finish(now() - begun);
    }
  } catch (const DeviceError& error) {
    if (error.sticky()) {
      throw;
    }
    LeftOut left_out;
    left_out.add(error.what());
    report(group.name + " of " + std::to_string(group.processors), left_out, file_);
  }
}

void MeasurementRun::run_points(const Group& group, double deadline, const Place& place) {
  const double begun = now();
  LeftOut left_out;
  std::size_t done = 0, seen = 0;
  for (const Point& point : group.points) {
    if (stop_) {
      break;
    }
    progress_.show(group.name, ++seen, group.points.size(), now());
    if (place.file.has(point)) {
      ++done;
      continue;
    }
    const std::string place_and_point = group.name + " " + std::to_string(group.processors) + ": " + to_text(point);
    if (unended_.has(place_and_point)) {
      left_out.add("it, or others like it, did not end in an earlier run: " + to_text(point));
      continue;
    }
    if (now() >= deadline) {
      left_out.add("no time left");
      continue;
    }
    unended_.begin(place_and_point);
    try {
      run_point(point, deadline, place);
      ++done;
    } catch (const DeviceError& error) {
      if (error.sticky()) {
        throw DeviceError(to_text(point) + ": " + error.what(), true);
      }
      left_out.add(error.what());
    } catch (const std::bad_alloc&) {
      left_out.add("does not fit into host memory");
    }
    unended_.end();
  }
  progress_.say(group.name + (group.processors > 0 ? " of " + std::to_string(group.processors) : "") + ": " +
                std::to_string(done) + " of " + std::to_string(group.points.size()) + " points, " +
                clock_text(now() - begun));
  report(group.name, left_out, place.file);
}

void MeasurementRun::report(const std::string& group, const LeftOut& left_out, MeasurementFile& file) {
  for (const std::string& text : left_out.texts(group)) {
    progress_.say("  left out: " + text);
    file.leave_out(text);
  }
}

void MeasurementRun::run_point(const Point& point, double deadline, const Place& place) {
  if (const auto* kernel = std::get_if<KernelPoint>(&point)) {
    place.file.add(point, measure(*kernel, place));
  } else if (const auto* copy = std::get_if<CopyPoint>(&point)) {
    if (!copies_) {
      session_.arena.reset();
      copies_.emplace(session_, place.sampler);
    }
    place.file.add(point, copies_->measure(*copy));
  } else if (const auto* collective = std::get_if<CollectivePoint>(&point)) {
    if (!collectives_) {
      collectives_.emplace(session_.folders);
    }
    place.file.add(point, collectives_->measure(*collective));
  } else if (const auto* host = std::get_if<HostPoint>(&point)) {
    place.file.add(point, measure_host(session_.device, *host));
  } else if (const auto* beside = std::get_if<InterferencePoint>(&point)) {
    if (!interference_) {
      interference_.emplace(session_, place.sampler);
    }
    place.file.add(point, interference_->measure(*beside));
  } else {
    measure_power(std::get<PowerPoint>(point), deadline, place);
  }
}

Timing MeasurementRun::measure(const KernelPoint& point, const Place& place) {
  if (point.kernel.op == Op::launch) {
    return measure_launch(place.sampler, point.regime);
  }
  const int processors = place.partition == nullptr ? 0 : place.partition->processors();
  const Operation operation = prepare(session_, point.kernel, place.sampler.stream(), processors);
  Method method;
  Timing timing;
  switch (point.regime) {
  case Regime::sustained:
    timing = place.sampler.measure_sustained(operation.launch, kSettle, kSustainedSeconds);
    break;
  case Regime::warm:
    method.flush = false;
    method.least_seconds = kWarmSample;
    timing = place.sampler.measure(operation.launch, method);
    break;
  case Regime::contended: {
    const std::int64_t bytes = std::int64_t{128} << 20;
    void* from = session_.arena.take(static_cast<std::size_t>(bytes));
    void* to = session_.arena.take(static_cast<std::size_t>(bytes));
    operation.launch(place.sampler.stream()); // loads the kernel while nothing else runs
    STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(place.sampler.stream()));
    const Partition::Busy busy(*place.partition, from, to, bytes);
    timing = place.sampler.measure(operation.launch, method);
    if (busy.gave_up()) {
      throw DeviceError("the other multiprocessors did not copy memory at the same time");
    }
    break;
  }
  default:
    timing = place.sampler.measure(operation.launch, method);
  }
  timing.variant = operation.variant;
  return timing;
}

void MeasurementRun::measure_power(const PowerPoint& point, double deadline, const Place& place) {
  if (!session_.nvml.power() && !session_.nvml.energy()) { // before seconds are spent on it
    throw DeviceError("the driver does not give the power");
  }
  const double seconds = std::clamp(deadline - now() - kSettle, kLeastBusy, kBusySeconds);
  PowerMeter meter(session_.nvml);
  STAGECRAFT_CUDA_CHECK(cudaDeviceSynchronize());
  PowerReading reading = work_for_power(point, seconds, place, meter);
  const std::optional<double> watts = meter.stop();
  if (!watts) {
    throw DeviceError("the driver does not give the power");
  }
  reading.watts = *watts;
  reading.seconds = meter.seconds();
  reading.clock = meter.clock();
  place.file.add(point, reading);
}

// Brings the device into the state, and starts the meter when it has settled.
PowerReading MeasurementRun::work_for_power(const PowerPoint& point, double seconds, const Place& place,
                                            PowerMeter& meter) {
  PowerReading reading;
  if (point.state == PowerState::busy) {
    const Operation operation = prepare(session_, point.kernel, place.sampler.stream());
    Timing timing = place.sampler.measure_sustained(operation.launch, kSettle, seconds, [&] { meter.start(); });
    timing.variant = operation.variant;
    (is_arithmetic(point.kernel) ? reading.flops : reading.bytes) =
        (is_arithmetic(point.kernel) ? flops_of(point.kernel) : moved_by(point.kernel)) / timing.seconds.median;
    place.file.add(KernelPoint{point.kernel, Regime::sustained}, timing);
    return reading;
  }
  const Shared<int> flag, timed_out;
  if (point.state == PowerState::blocked) {
    const auto most = static_cast<long long>((kSettle + seconds + 1) * 1e9);
    wait_as_collective(flag.device(), most, timed_out.device(), place.sampler.stream());
    STAGECRAFT_CUDA_CHECK(cudaGetLastError());
  }
  wait_for(kSettle);
  meter.start();
  wait_for(seconds);
  *flag.host() = 1;
  STAGECRAFT_CUDA_CHECK(cudaStreamSynchronize(place.sampler.stream()));
  if (*timed_out.host() != 0) {
    throw DeviceError("the waiting kernel ended by itself");
  }
  return reading;
}

} // namespace

Ended run_sweep(const Options& options, const std::vector<Group>& groups, const std::atomic<bool>& stop) {
  return MeasurementRun(options, groups, stop).run();
}

Machine describe_machine(int device) {
  Machine machine;
  const int devices = count_devices().devices;
  if (devices > device) {
    const DeviceFacts facts = describe_device(device);
    machine.devices = devices;
    machine.processors = facts.processors;
    machine.memory = facts.free_memory;
  }
  return machine;
}

std::string partition_path(const std::string& path, int processors) {
  const std::string part = ".sm" + std::to_string(processors);
  const std::size_t dot = path.rfind('.');
  const bool has_ending = dot != std::string::npos && path.find('/', dot) == std::string::npos;
  return has_ending ? path.substr(0, dot) + part + path.substr(dot) : path + part;
}

} // namespace stagecraft::gpu
