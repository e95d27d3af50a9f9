// Files that calibration reads: device files, and tables of measured kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/app/common/flags.hpp"
#include "sim/platform/platform.hpp"

#include "calibrate/fit/kernel_tables.hpp"

namespace stagecraft {

/// The folder of the shipped device files.
std::filesystem::path devices_folder();
/// The shipped device file with this name, or the file with this path. InputError where there is neither.
std::filesystem::path device_file(const std::string& name);
DeviceType load_device(const std::filesystem::path& file);

/// The tables that flags name.
struct TableOptions {
  std::map<std::string, std::vector<std::string>> files; ///< by the kind of table
  std::string select;                                    ///< the device, for tables that hold several
};

/// Adds a flag for each kind of table, such as --gemm, and --select.
void add_table_flags(Flags& flags, TableOptions& options);

/// A table of measured kernels, and where it comes from.
struct NamedTable {
  std::string kind, file;
  fit::KernelTable table;
};

/// Reads the tables. From a table with several devices it takes the one that --select names, or else `device_name`.
std::vector<NamedTable> read_tables(const TableOptions& options, const std::string& device_name);

/// The kernels of a file of measurements, of a cool device, as a table for each kind, pass and precision.
std::vector<NamedTable> tables_of_measurements(const std::string& file);

} // namespace stagecraft
