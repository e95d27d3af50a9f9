// Measurements and machine descriptions from other tools, turned into our own files. A format is one file, one row of
// the table and one CMake line. docs/formats/foreign-measurements.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/platform/platform.hpp"

namespace stagecraft::foreign {

/// What a format may need besides the file.
struct ForeignOptions {
  std::optional<DeviceType> device; ///< the device that was measured, or that the machine has
  std::string device_file; ///< name of a device file beside the one to be written; "" if the device is in the catalogue
  std::string collective;  ///< the collective that was measured, by our name for it; "" as the file says
  int ranks = 0;           ///< number of ranks; 0: as the file says
  bool collectives = false; ///< for a trace: keep collectives, although their times include waiting for other ranks
  std::optional<BytesPerSecond> nvlink;  ///< reached by one link in one direction
  std::optional<BytesPerSecond> pcie;    ///< reached by one slot in one direction
  int nodes = 1;                         ///< number of such machines
  std::optional<BytesPerSecond> network; ///< reached by one network card; needed for several nodes
};

/// One of our files, as text.
struct ForeignText {
  std::string text;
  std::vector<std::string> remarks; ///< what was left out, and why
};

struct ForeignFormat {
  std::string_view name, help;
  ForeignText (*read)(std::string_view text, const std::string& file, const ForeignOptions& options);
  std::array<std::string_view, 5> flags; ///< command-line flags that it uses; ends at the first empty one
};

/// The table of formats: nccl-tests, nvidia-smi-topo, kineto.
std::span<const ForeignFormat> foreign_formats();

/// Turns output of NVIDIA's nccl-tests, text or JSON, into a file of measurements. All times are those of the devices
/// of one node: InputError if the ranks are on several hosts, or if the bandwidths do not fit the collective and its
/// number of ranks.
ForeignText import_nccl_tests(std::string_view text, const std::string& file, const ForeignOptions& options);

/// Turns output of `nvidia-smi topo -m` into a platform file with one kind of node.
ForeignText import_topology(std::string_view text, const std::string& file, const ForeignOptions& options);

/// Turns a trace of PyTorch's profiler (Kineto) into a file of measurements: the operators with recorded shapes, each
/// with the time of all its kernels. InputError if nothing is left to write.
ForeignText import_kineto(std::string_view text, const std::string& file, const ForeignOptions& options);

} // namespace stagecraft::foreign
