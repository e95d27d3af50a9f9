// SPDX-License-Identifier: Apache-2.0
#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft::foreign {
namespace {

constexpr std::array kForeignFormats = {
    ForeignFormat{"nccl-tests",
                  "times of collectives by NVIDIA's nccl-tests, text or JSON, to a file of measurements",
                  import_nccl_tests,
                  {"--device", "--collective", "--ranks"}},
    ForeignFormat{"nvidia-smi-topo",
                  "matrix of `nvidia-smi topo -m`, to a platform file",
                  import_topology,
                  {"--device", "--nvlink", "--pcie", "--nodes", "--network"}},
    ForeignFormat{"kineto",
                  "trace of PyTorch's profiler with shapes, to a file of measurements",
                  import_kineto,
                  {"--device", "--collectives"}},
};

} // namespace

std::span<const ForeignFormat> foreign_formats() { return kForeignFormats; }

} // namespace stagecraft::foreign
