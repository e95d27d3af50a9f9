// Where the readers' files lie, and a folder of their own for those that read from disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "sim/platform/load_platform.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::fuzz {

/// The repository.
inline const std::filesystem::path kRoot = test::source_dir();

/// The shipped device types.
inline DeviceTypeSource shipped_types() { return device_types_in(kRoot / "platforms/devices"); }

/// One of them.
inline DeviceType shipped_type(const std::string& name) {
  return load_device_type(shipped_types()(name, {"fuzz", 0, 0}), shipped_types());
}

/// Throws std::logic_error naming what does not hold: a defect that the fuzzer finds.
inline void require(bool holds, const char* what) { check(holds, what); }

/// An empty folder in memory, removed with this object.
class Folder {
public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace stagecraft::fuzz
