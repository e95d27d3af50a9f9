// The file of measurements while it grows: each line is written as it is measured, and a file that was cut off goes on.
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

/// Keys and values as they stand in the file; the writer quotes what YAML would misread.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The time of day as files say it: 2026-01-31T12:00:00Z.
std::string utc_now();

/// What stands before the measurements.
struct Header {
  Facts device, host, software, method;
};

/// One measured time.
struct Timing {
  Summary seconds;
  int dropped = 0;     ///< samples thrown away because the device was throttled
  double clock = 0;    ///< of the multiprocessors, in Hz; 0 where unknown
  std::string variant; ///< how a library did it
};

/// One measured power.
struct PowerReading {
  double watts = 0, seconds = 0;
  double flops = 0, bytes = 0; ///< per second, of the kernel; 0 where it has none
  double clock = 0;            ///< Hz
};

class MeasurementFile {
public:
  /// A file that will be written to `path`. Where one of the same device stands there already, its lines are kept; a
  /// last line that was cut off is not. Throws std::invalid_argument, with place and reason, for a file that is not
  /// one of measurements, is of another version, or of another device.
  MeasurementFile(std::string path, Header header);

  bool has(const Point& point) const;
  std::size_t size() const { return known_.size(); }

  /// Each of these writes the file anew, whole: at any moment it is a document that can be read.
  void add(const Point& point, const Timing& timing);
  void add(const Point& point, const PowerReading& reading);
  void add_sentinel(const std::string& when, const Kernel& kernel, double seconds);
  /// Notes under `method` what is missing and why.
  void leave_out(const std::string& what);
  /// Notes anything else there; a key that is there already gets the new text.
  void note(const std::string& key, const std::string& text);
  void finish(double seconds);

private:
  void read(const std::string& text);
  void add_line(const std::string& section, const std::string& identity, const std::string& rest);
  void write() const;

  std::string path_;
  Header header_;
  std::map<std::string, std::vector<std::string>> lines_; ///< of each section, without indent
  std::set<std::string> known_;                           ///< section and identity of what is measured
  int left_out_ = 0;
  double earlier_ = 0, duration_ = 0; ///< seconds of the runs before this one, and of all
  bool complete_ = false;
};

/// A time in a fitting unit, "12.3456 us".
std::string time_text(double seconds);

/// A value as YAML reads it back: quoted where it is not plainly one word or quantity.
std::string quoted(const std::string& text);

} // namespace stagecraft::gpu
