// Points that were begun and never ended: they broke the device, the process or its time. A run that goes on leaves
// them out, so that what comes after them is measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft::gpu {

class Unended {
public:
  /// Reads what earlier runs left in the file beside `out`, if there is one.
  explicit Unended(const std::string& out);

  /// Whether an earlier run began this point and did not end it, or two others that differ from it in sizes alone.
  bool has(const std::string& point) const;
  /// Points that earlier runs did not end.
  std::size_t size() const { return points_.size(); }
  /// Notes that a point begins, and that it has ended. The file goes when nothing is left in it.
  void begin(const std::string& point) const;
  void end() const;

  const std::string& path() const { return path_; }

private:
  void write(const std::string& begun) const;

  std::string path_;
  std::vector<std::string> points_;
};

} // namespace stagecraft::gpu
