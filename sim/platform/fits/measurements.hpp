// What a harness measured on one device, before any fit: docs/formats/measurements.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/base/kernel/kernel.hpp"
#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {

/// Quartiles of repeated measurements of one time.
struct SampledTime {
  Seconds median;
  std::optional<Seconds> q1, q3, least;
  int samples = 1;

  /// Relative standard deviation from the quartiles, (q3 - q1) / 1.349 / median; 0 where there are none.
  double spread() const;
};

/// The conditions of a measurement: how hot the device was, and who launched.
enum class Regime { burst, sustained, warm, graph, event, contended };

struct MeasuredRow {
  Kernel kernel;
  SampledTime time;
  Regime regime = Regime::burst;
  std::string variant; ///< the implementation that a library chose
  Where where;
};

struct MeasuredCopy {
  std::string from, to, memory;
  bool both_ways = false;
  Bytes size;
  SampledTime time;
  Where where;
};

struct MeasuredCollective {
  std::string op;
  int devices = 2;
  Bytes size;
  bool in_place = false; ///< the result overwrites the input
  SampledTime time;
  Where where;
};

/// What the host's work for the device costs: launches, events, graphs.
struct MeasuredHost {
  std::string op; ///< "launch", "event" or "graph"
  int threads = 1, streams = 1;
  int nodes = 0;               ///< kernels of a graph; 0 without one
  SampledTime time;            ///< of one, where many follow one another, until the device has done them
  std::optional<Seconds> call; ///< of one call on the host
  Where where;
};

/// A kernel beside copies that run without a pause.
struct MeasuredInterference {
  Kernel kernel;
  std::string beside;                     ///< what copies: "host-to-device", "16-blocks", …
  SampledTime time;                       ///< of the kernel beside them
  Seconds alone;                          ///< of the kernel
  BytesPerSecond beside_rate, rate_alone; ///< of the copies: beside the kernel, and without it
  std::string variant;                    ///< the implementation that a library chose
  Where where;
};

struct MeasuredPower {
  std::string state; ///< "idle", "blocked", a kernel or a kernel kind
  Watts power;
  Seconds duration;
  FlopsPerSecond flops;     ///< 0 for a state without arithmetic
  BytesPerSecond bandwidth; ///< 0 where it was not given
  Where where;
};

struct MeasuredSentinel {
  std::string when;
  Kernel kernel;
  Seconds median;
};

/// The device as the harness reported it.
struct MeasuredDevice {
  std::string name, vendor, description, kind;
  Bytes memory;
  int processors = 0; ///< multiprocessors; 0: not given
  Bytes cache;        ///< 0: not given
};

struct Measurements {
  MeasuredDevice device;
  std::vector<MeasuredRow> measured;
  std::vector<MeasuredCopy> copies;
  std::vector<MeasuredCollective> collectives;
  std::vector<MeasuredHost> host;
  std::vector<MeasuredInterference> interference;
  std::vector<MeasuredPower> power;
  std::vector<MeasuredSentinel> sentinels;
  std::string provenance; ///< software, method and host, for people
  /// What a time between two events contains that is not the kernel: that of an empty kernel so measured, less what it
  /// takes in a graph. 0 where the file does not say.
  Seconds between_events;
};

/// Reads a whole file of measurements. InputError for a file that was cut off or has another schema, and for values
/// that no device can have: times of 0, quartiles out of order, sizes of 0, more than 1e17 FLOP/s or 1e15 B/s.
Measurements read_measurements(const yaml::Node& document);

/// The time of the kernel itself, at least a fifth of what was measured.
Seconds kernel_time(const Measurements& measurements, const MeasuredRow& row);

/// The kernels measured in the burst regime with the default implementation, sorted, for KernelFits::measured. Of
/// several measurements of one shape, the median.
std::vector<MeasuredKernel> measured_kernels(const Measurements& measurements);

} // namespace stagecraft
