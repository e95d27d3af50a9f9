// The interface to what does the work of a real run. A backend is one file and one row of backends().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/timeline/part_times.hpp"

#include "calibrate/cpu/profile.hpp"
#include "calibrate/pipeline/clock.hpp"

namespace stagecraft::pipeline {

/// One task of one iteration, while it runs.
struct Job {
  TaskId task = 0;
  int iteration = 0;
  Nanoseconds start = 0;
  std::int32_t number = 0; ///< number of the task's work in the graph
  const Work& work;
};

/// Does the tasks of a graph, and of graphs with the same works. Functions that fail throw std::runtime_error with the
/// cause, which ends the run.
class Backend {
public:
  virtual ~Backend() = default;

  /// Called first on the thread of each device, and on that of each channel, in every run.
  virtual void enter_device(int /*device*/) noexcept {}
  virtual void enter_channel(int /*channel*/) noexcept {}

  /// Does a computation; returns when it is done. Each device has a thread of its own that calls this.
  virtual void compute(const Job& job) = 0;
  /// Carries the bytes of a transfer; returns when the last has arrived. Each channel has a thread of its own that
  /// calls this.
  virtual void transfer(const Job& job, int channel) = 0;
  /// Called from any thread when the run has failed: makes running calls return soon.
  void interrupt() {
    stopped_.store(true);
    interrupted();
  }

  /// The largest share of a device's computing time that something else took in the last run; 0 if unknown.
  virtual double disturbance() const { return 0; }
  /// Facts about how the backend works, for the record of a run: names and values.
  virtual std::vector<std::pair<std::string, std::string>> conditions() const { return {}; }

protected:
  virtual void interrupted() {}
  const std::atomic<bool>& stopped() const { return stopped_; }

private:
  std::atomic<bool> stopped_ = false;
};

/// The run that a backend is made for. Everything referred to must outlive it.
struct Setting {
  const TaskGraph& graph;
  const Platform& platform;
  const Channels& channels;
  /// [work]: the kernels of its tasks, for a backend that really computes; empty: none.
  std::span<const std::vector<cpu::KernelRun>> kernels = {};
  std::span<const double> speeds = {}; ///< [device of the graph], as a share of a whole device; empty: all 1
};

struct BackendRow {
  std::string_view name, help;
  bool emulates;     ///< tasks take the times that their works say, so times may be scaled
  bool shares_links; ///< transfers contend for links
  /// Throws Unavailable if this machine does not grant what the backend needs. nullptr: another program does the whole
  /// run, see gpu_pipeline.hpp.
  std::unique_ptr<Backend> (*make)(const Setting& setting);
  /// Measures the parts of a run alone, never the run itself. Throws what execute() throws.
  PartTimes (*measure)(const Setting& setting, Backend& backend, bool real_time);
  /// Devices compute on cores of their own, on which they also wait; transfers have priority over them.
  bool holds_cores = false;

  bool runs_elsewhere() const { return make == nullptr; }
};
std::span<const BackendRow> backends();

/// This machine lacks something that a backend needs.
class Unavailable : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

std::unique_ptr<Backend> make_sleeping(const Setting& setting);
std::unique_ptr<Backend> make_emulated(const Setting& setting);
std::unique_ptr<Backend> make_cpu(const Setting& setting);

} // namespace stagecraft::pipeline
