// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/calibration_files.hpp"

#include "sim/app/common/program.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/keys/inputs.hpp"

#include "calibrate/fit/fit_device.hpp"

namespace stagecraft {

std::filesystem::path devices_folder() { return shipped_folder() / "platforms" / "devices"; }

std::filesystem::path device_file(const std::string& name) {
  if (std::filesystem::is_regular_file(name)) {
    return name;
  }
  device_types_in(devices_folder())(name, {"calibrate", 0, 0});
  return devices_folder() / (name + ".yaml");
}

DeviceType load_device(const std::filesystem::path& file) {
  return load_device_type(yaml::load(file), device_types_in(devices_folder()));
}

void add_table_flags(Flags& flags, TableOptions& options) {
  for (const fit::TableKindRow& row : fit::kTableKinds) {
    const std::string name(row.name);
    flags.add("--" + name, &options.files[name], "a table of CSV: " + std::string(row.help), {.name = "CSV"});
  }
  flags.add("--select", &options.select, "the device to take from tables that hold several", {.name = "NAME"});
}

std::vector<NamedTable> read_tables(const TableOptions& options, const std::string& device_name) {
  std::vector<NamedTable> tables;
  for (const fit::TableKindRow& row : fit::kTableKinds) {
    const std::string kind(row.name);
    for (const std::string& file : options.files.at(kind)) {
      tables.push_back({kind, file, fit::read_kernel_table(row.kind, file, device_name, options.select)});
    }
  }
  return tables;
}

std::vector<NamedTable> tables_of_measurements(const std::string& file) {
  fit::FitInput measured;
  fit::add(measured, read_measurements(yaml::load(file)));
  std::vector<NamedTable> tables;
  std::map<std::string, std::size_t> known;
  for (const fit::KernelSample& sample : measured.kernels) {
    const Kernel& kernel = sample.kernel;
    const std::string kind = std::string(row_of(kernel.op).name) + " " + std::string(row_of(kernel.pass).name) + " " +
                             std::string(row_of(kernel.precision).name);
    const auto [at, is_new] = known.emplace(kind, tables.size());
    if (is_new) {
      tables.push_back({kind, file, {}});
    }
    tables[at->second].table.kernels.push_back(sample);
  }
  return tables;
}

} // namespace stagecraft
