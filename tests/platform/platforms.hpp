// Platforms written out in tests: a text of links and networks round made-up devices, and the shipped folders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/platform/load_platform.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::test {

inline std::filesystem::path platforms_folder() { return test::source_dir() / "platforms"; }

inline DeviceTypeSource shipped_types() { return device_types_in(platforms_folder() / "devices"); }

/// The .yaml files of a folder, by name.
inline std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A device type of one TFLOP/s and 1 GB/s, as a list item of `device_types`.
inline std::string type_text(const std::string& name, const std::string& vendor) {
  return "  - {name: " + name + ", vendor: " + vendor +
         ", origin: made-up, memory: 1 GiB, memory_bandwidth: 1 GB/s, launch_overhead: 0, power: {idle: 0, busy: 0},"
         " peak: {fp32: 1 TFLOP/s}, vector: 1 TFLOP/s}\n";
}

/// A list item of `nodes`: `rest` holds the keys after the host, in flow style.
inline std::string node_text(const std::string& name, const std::string& rest) {
  return "  - {name: " + name +
         ", host: {cores: 8, core_speed: 1 GFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s, disk_bandwidth: 1 GB/s,"
         " power: {idle: 10 W, core_busy: 2 W, core_spin: 1 W}}, " +
         rest + "}\n";
}

/// A platform with these nodes (see node_text); devices "a" are of vendor one, "b" of vendor two.
inline Platform platform_of(const std::string& nodes, const std::string& network = "") {
  const std::string text = "name: test\ndevice_types:\n" + type_text("a", "one") + type_text("b", "two") + "nodes:\n" +
                           nodes + (network.empty() ? "" : "network: {" + network + "}\n");
  return load_platform(yaml::parse(text, "test.yaml"), shipped_types());
}

} // namespace stagecraft::test
