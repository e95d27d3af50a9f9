// Platforms written out in tests: a text of links and networks round made-up devices, and the shipped folders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
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

/// Times of collectives that a device type "m" has been given: up to 100 kB the first, then 1 GB takes so much more.
struct Measured {
  const char* op;
  int devices;
  double first, per_gigabyte; ///< seconds
};
inline constexpr std::array kMeasured = {
    Measured{"all-reduce", 2, 10e-6, 0.2},     Measured{"all-reduce", 4, 30e-6, 0.3},
    Measured{"all-reduce", 8, 50e-6, 0.1},     Measured{"reduce-scatter", 2, 5e-6, 0.1},
    Measured{"reduce-scatter", 8, 40e-6, 0.2}, Measured{"all-gather", 2, 5e-6, 0.1},
    Measured{"all-gather", 8, 40e-6, 0.2},     Measured{"all-to-all", 2, 5e-6, 0.1},
    Measured{"all-to-all", 8, 20e-6, 0.2}};
inline double seconds_of(const Measured& measured, double bytes) {
  return measured.first + std::max(0.0, bytes - 100e3) / 1e9 * measured.per_gigabyte;
}

/// The device type "m", of vendor one, as a list item of `device_types`.
inline std::string measured_type_text() {
  std::string text = type_text("m", "one");
  text.resize(text.size() - 2); // its last brace
  text += ", fits: {collectives: [";
  for (const Measured& one : kMeasured) {
    const std::string first = std::to_string(one.first * 1e6) + " us";
    const std::string start = std::to_string((one.first - one.per_gigabyte * 1e-4) * 1e6) + " us";
    text += std::string("{op: ") + one.op + ", devices: " + std::to_string(one.devices) +
            ", segments: [{upto: 100 kB, start: " + first + ", seconds_per_byte: 0}, {start: " + start +
            ", seconds_per_byte: " + std::to_string(one.per_gigabyte) + "e-9}]}, ";
  }
  return text + "]}}\n";
}

/// A list item of `nodes`: `rest` holds the keys after the host, in flow style.
inline std::string node_text(const std::string& name, const std::string& rest) {
  return "  - {name: " + name +
         ", host: {cores: 8, core_speed: 1 GFLOP/s, memory: 1 GiB, memory_bandwidth: 100 GB/s, disk_bandwidth: 1 GB/s,"
         " power: {idle: 10 W, core_busy: 2 W, core_spin: 1 W}}, " +
         rest + "}\n";
}

/// A platform with these nodes (see node_text); devices "a" are of vendor one, "b" of vendor two, and of "m", of vendor
/// one, collectives were measured.
inline Platform platform_of(const std::string& nodes, const std::string& network = "") {
  const std::string text = "name: test\ndevice_types:\n" + type_text("a", "one") + type_text("b", "two") +
                           measured_type_text() + "nodes:\n" + nodes +
                           (network.empty() ? "" : "network: {" + network + "}\n");
  return load_platform(yaml::parse(text, "test.yaml"), shipped_types());
}

} // namespace stagecraft::test
