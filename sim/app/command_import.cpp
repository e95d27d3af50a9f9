// stagecraft import: foreign models, schedules, measurements and machines.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/app/options.hpp"
#include "sim/base/file.hpp"
#include "sim/base/schema.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/platform/measurements.hpp"
#include "sim/schedule/format/schedule_file.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft {
namespace {

// A schedule of any dialect, in the dialect asked for.
int import_schedule(const Options& options) {
  const ScheduleFile read = read_schedule(read_file(options.file), options.file);
  const std::vector<std::string> defects = schedule_defects(read);
  if (!defects.empty()) {
    throw InputError({options.file, 0, 0}, join(defects, "; "));
  }
  if (options.format == "json") {
    nlohmann::ordered_json json = {{"schema", kSchema},
                                   {"schedule", read.schedule.name},
                                   {"dialect", read.dialect},
                                   {"stages", read.schedule.stages},
                                   {"micro_batches", read.schedule.micro_batches},
                                   {"orders", nlohmann::ordered_json::array()}};
    for (const auto& order : read.schedule.orders) {
      json["orders"].push_back(tokens(order));
    }
    emit(options, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return kDone;
  }
  const auto written = to_csv(read.schedule, options.dialect, options.messages);
  if (const Infeasible* reason = std::get_if<Infeasible>(&written)) {
    throw InputError({"--dialect", 0, 0}, reason->reason);
  }
  remark("read as '" + read.dialect + "'\n");
  emit(options, std::get<std::string>(written));
  return kDone;
}

// Flags that only some formats heed, and what was given for them.
struct Flag {
  std::string_view name;
  bool given;
};

void refuse_unheeded(const foreign::ForeignFormat& format, const Options& options) {
  const std::vector<Flag> flags = {{"--device", !options.device.empty()}, {"--collective", !options.collective.empty()},
                                   {"--ranks", options.ranks > 0},        {"--collectives", options.collectives},
                                   {"--nvlink", !options.nvlink.empty()}, {"--pcie", !options.pcie.empty()},
                                   {"--nodes", options.nodes > 0},        {"--network", !options.network.empty()}};
  for (const Flag& flag : flags) {
    if (flag.given && std::find(format.flags.begin(), format.flags.end(), flag.name) == format.flags.end()) {
      std::vector<std::string> heeded;
      for (const std::string_view name : format.flags) {
        if (!name.empty()) {
          heeded.emplace_back(name);
        }
      }
      throw InputError({std::string(flag.name), 0, 0},
                       "'" + std::string(format.name) + "' does not heed it; allowed: " + join(heeded));
    }
  }
}

std::optional<BytesPerSecond> bandwidth_of(const std::string& text, const char* flag) {
  if (text.empty()) {
    return std::nullopt;
  }
  const auto bandwidth = parse_quantity<BytesPerSecond>(text, {flag, 0, 0});
  if (bandwidth.value <= 0) {
    throw InputError({flag, 0, 0}, "'" + text + "'; allowed: more than 0");
  }
  return bandwidth;
}

foreign::ForeignOptions foreign_options(const Options& options, const DeviceTypeSource& types) {
  foreign::ForeignOptions read{.collective = options.collective,
                               .ranks = options.ranks,
                               .collectives = options.collectives,
                               .nvlink = bandwidth_of(options.nvlink, "--nvlink"),
                               .pcie = bandwidth_of(options.pcie, "--pcie"),
                               .nodes = std::max(1, options.nodes),
                               .network = bandwidth_of(options.network, "--network")};
  if (!options.device.empty()) {
    const bool is_file = std::filesystem::is_regular_file(options.device);
    read.device_file = is_file ? std::filesystem::path(options.device).filename().string() : "";
    read.device =
        load_device_type(is_file ? yaml::load(options.device) : types(options.device, {"--device", 0, 0}), types);
  }
  return read;
}

// The text is one of our files, which is read before anyone gets it.
int import_foreign(const foreign::ForeignFormat& format, const Options& options) {
  refuse_unheeded(format, options);
  if (options.format != "table") {
    throw InputError({"--format", 0, 0}, "'" + std::string(format.name) + "' becomes YAML; allowed: none");
  }
  const DeviceTypeSource types = device_types_in(shipped_folder() / "platforms" / "devices");
  const foreign::ForeignText read = format.read(read_file(options.file), options.file, foreign_options(options, types));
  const yaml::Node document = yaml::parse(read.text, options.output.empty() ? "the new file" : options.output);
  if (document.find("nodes") != nullptr) {
    load_platform(document, types);
  } else {
    read_measurements(document);
  }
  for (const std::string& text : options.quiet ? std::vector<std::string>() : read.remarks) {
    remark(text + "\n");
  }
  emit(options, read.text);
  return kDone;
}

int import_foreign_model(const ModelFormat& format, const Options& options) {
  if (options.format == "csv") {
    throw InputError({"--format", 0, 0}, "a model has no CSV; allowed: table, json");
  }
  emit_model(options, import_model(format, read_file(options.file), options.file, import_options(options)));
  return kDone;
}

template <class Table> const auto* row_called(const Table& table, const std::string& name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == name; });
  return found != table.end() ? &*found : nullptr;
}

} // namespace

int command_import(const Options& options) {
  if (options.what == "schedule") {
    return import_schedule(options);
  }
  if (const foreign::ForeignFormat* format = row_called(foreign::foreign_formats(), options.what)) {
    return import_foreign(*format, options);
  }
  if (const ModelFormat* format = row_called(model_formats(), options.what)) {
    return import_foreign_model(*format, options);
  }
  std::vector<std::string> known = names_of(model_formats());
  for (const std::string& name : names_of(foreign::foreign_formats())) {
    known.push_back(name);
  }
  known.emplace_back("schedule");
  throw InputError({"import", 0, 0}, unknown_name("format", options.what, known));
}

} // namespace stagecraft
