// The file of measurements, written line by line as they are made. A run continues a file that was cut off.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/gpu/sweep/point.hpp"
#include "calibrate/gpu/sweep/statistics.hpp"

namespace stagecraft::gpu {

/// Keys and values as written in the file; the writer quotes values that YAML would misread.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The current time as files write it: 2026-01-31T12:00:00Z.
std::string utc_now();

/// The part of the file before the measurements.
struct Header {
  Facts device, host, software, method;
};

/// One measured time.
struct Timing {
  Summary seconds;
  int dropped = 0;     ///< samples dropped because the device was throttled
  double clock = 0;    ///< of the multiprocessors, Hz; 0: unknown
  double call = 0;     ///< of one call on the host, seconds; 0: not measured
  std::string variant; ///< the library's implementation
};

/// One measured interference: the time of a kernel beside copies, and what both do alone.
struct Interference {
  Timing beside;
  double alone = 0;                       ///< seconds of the kernel
  double beside_rate = 0, rate_alone = 0; ///< of the copies, bytes per second
};

/// One measured power.
struct PowerReading {
  double watts = 0, seconds = 0;
  double flops = 0, bytes = 0; ///< per second, done by the kernel; 0 without a kernel
  double clock = 0;            ///< Hz
};

class MeasurementFile {
public:
  /// A file to be written to `path`. If there is a file of the same device already, its lines are kept, except a last
  /// line that was cut off. Throws std::invalid_argument with place and reason if it is no file of measurements, has
  /// another version, or is of another device.
  MeasurementFile(std::string path, Header header);

  bool has(const Point& point) const;
  std::size_t size() const { return known_.size(); }

  /// Adds a line and writes the whole file anew, so that it can always be read.
  void add(const Point& point, const Timing& timing);
  void add(const Point& point, const Interference& interference);
  void add(const Point& point, const PowerReading& reading);
  void add_sentinel(const std::string& when, const Kernel& kernel, double seconds);
  /// Notes under `method` what is missing and why.
  void leave_out(const std::string& what);
  /// Adds another note under `method`, or replaces the text of an existing key.
  void note(const std::string& key, const std::string& text);
  void finish(double seconds);

private:
  void read(const std::string& text);
  void add_line(const std::string& section, const std::string& identity, const std::string& rest);
  void write() const;

  std::string path_;
  Header header_;
  std::map<std::string, std::vector<std::string>> lines_; ///< lines of each section, without indent
  std::set<std::string> known_;                           ///< section and identity of each point measured so far
  int left_out_ = 0;
  double earlier_ = 0, duration_ = 0; ///< seconds of earlier runs, and of all runs
  bool complete_ = false;
};

/// A time in a fitting unit: "12.3456 us".
std::string time_text(double seconds);

/// A value that YAML reads back unchanged: quoted unless it is plainly one word or quantity.
std::string quoted(const std::string& text);

} // namespace stagecraft::gpu
