// Other people's tables of measured kernels: CSV whose columns are found by name. docs/formats/kernel-tables.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/platform/fits/measurements.hpp"

#include "calibrate/fit/forms/sample.hpp"

namespace stagecraft::fit {

/// What the rows of a table measure.
enum class TableKind { gemm, attention, convolution, linear, memory_bound, nccl };

struct TableKindRow {
  std::string_view name, help;
  TableKind kind;
};
inline constexpr std::array kTableKinds = {
    TableKindRow{"gemm", "m, n, k, latency_ms", TableKind::gemm},
    TableKindRow{"attention", "batch_size, isl, num_heads, num_key_value_heads, head_dim, latency: forward",
                 TableKind::attention},
    TableKindRow{"convolution", "batch, in_channels, out_channels, kernel, input_size, stride, padding, latency_ms",
                 TableKind::convolution},
    TableKindRow{"linear", "b, m, n, k, latency_ms", TableKind::linear},
    TableKindRow{"memory-bound", "op, rows, columns, latency_ms", TableKind::memory_bound},
    TableKindRow{"nccl", "collective, dtype, num_gpus, message_elements, latency_ms", TableKind::nccl},
};

/// The rows of one device: kernels, or collectives in a table of kind `nccl`.
struct KernelTable {
  KernelSamples kernels;
  std::vector<MeasuredCollective> collectives;
  std::string device; ///< the device's name in the table; "" if it has no such column
};

/// Reads the rows of one device: the one called `select`; without `select`, the one whose name shares most words with
/// `device_name`, among them the family, if the table has several. InputError for impossible values, and if no device
/// or more than one could be meant.
KernelTable read_kernel_table(TableKind kind, const std::filesystem::path& file, const std::string& device_name,
                              const std::string& select);
/// The same with the text of `file`.
KernelTable read_kernel_table(TableKind kind, std::string_view text, const std::string& file,
                              const std::string& device_name, const std::string& select);

} // namespace stagecraft::fit
