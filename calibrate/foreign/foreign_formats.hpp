// Measurements and descriptions of machines by other tools, turned into our own files. A format is one file, one row of
// the table and one CMake line. docs/formats/foreign-measurements.md
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

/// What a format may need beside the file.
struct ForeignOptions {
  std::optional<DeviceType> device;     ///< that was measured, or that the machine has
  std::string device_file;              ///< its name, of a file beside the one written; "" where it is in the catalogue
  std::string collective;               ///< that was measured, as our files name it; "" as the file says
  int ranks = 0;                        ///< that took part; 0: as the file says
  bool collectives = false;             ///< of a trace, whose times hold the wait for other ranks
  std::optional<BytesPerSecond> nvlink; ///< reached by one link in one direction
  std::optional<BytesPerSecond> pcie;   ///< reached by one slot in one direction
  int nodes = 1;                        ///< machines of that kind
  std::optional<BytesPerSecond> network; ///< reached by one network card, needed with several nodes
};

/// One of our files, as text.
struct ForeignText {
  std::string text;
  std::vector<std::string> remarks; ///< what was left out, and why
};

struct ForeignFormat {
  std::string_view name, help;
  ForeignText (*read)(std::string_view text, const std::string& file, const ForeignOptions& options);
  std::array<std::string_view, 5> flags; ///< of the command line that it heeds; ends at the first empty one
};

/// nccl-tests, nvidia-smi-topo, kineto.
std::span<const ForeignFormat> foreign_formats();

/// Output of NVIDIA's nccl-tests, text or JSON, as a file of measurements. Every time is that of one node's devices:
/// InputError where the ranks stand on several hosts, and where the bandwidths do not belong to the collective and its
/// number of ranks.
ForeignText import_nccl_tests(std::string_view text, const std::string& file, const ForeignOptions& options);

/// Output of `nvidia-smi topo -m` as a platform file of one kind of node.
ForeignText import_topology(std::string_view text, const std::string& file, const ForeignOptions& options);

/// A trace of PyTorch's profiler (Kineto) as a file of measurements: operators whose shapes were recorded, each with
/// the time of all its kernels. InputError where nothing is left to write.
ForeignText import_kineto(std::string_view text, const std::string& file, const ForeignOptions& options);

} // namespace stagecraft::foreign
