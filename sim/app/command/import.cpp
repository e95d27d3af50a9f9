// stagecraft import: foreign models, schedules, measurements and machines.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/schedule_text.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/app/run/model_summary.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/schedule/format/schedule_file.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft {
namespace {

struct ImportCommand {
  std::string format, file; ///< the arguments FORMAT and FILE, not --format
  ModelReading reading;
  ScheduleTextOptions schedule;
  std::string device;
  std::string collective; ///< the collective that nccl-tests measured
  int ranks = 0;          ///< 0: as the file says
  bool collectives = false;
  std::string nvlink, pcie, network; ///< bandwidths, which a matrix of links does not have
  int nodes = 0;                     ///< 0: one
  OutputOptions output;
};

// Flags that say how to read measurements and machines of other tools.
void add_foreign_flags(Flags& flags, ImportCommand& options) {
  constexpr int kMostRanks = 1 << 20, kMostNodes = 100'000;
  flags.add("--device", &options.device,
            "the device that was measured or that the machine has: a name in platforms/devices, or a file",
            {.name = "NAME"});
  flags.add("--collective", &options.collective,
            "the collective that was measured, where the file does not say it: all-reduce, …", {.name = "NAME"});
  flags.add("--ranks", &options.ranks, "number of ranks that took part, where the file does not list them",
            {.check = whole_number(2, kMostRanks)});
  flags.add("--collectives", &options.collectives, "take the collectives of a trace too: the least time of each size");
  flags.add("--nvlink", &options.nvlink, "bandwidth of one NVLink in one direction", {.name = "'B/s'"});
  flags.add("--pcie", &options.pcie, "bandwidth of a PCIe slot in one direction", {.name = "'B/s'"});
  flags.add("--nodes", &options.nodes, "number of machines like the one that the matrix describes",
            {.check = whole_number(1, kMostNodes)});
  flags.add("--network", &options.network, "with --nodes: bandwidth of a network card in one direction",
            {.name = "'B/s'"});
}

void add_flags(Flags& flags, ImportCommand& options) {
  flags.add("FORMAT", &options.format, "see `list formats` and `list measurement-formats`; or schedule",
            {.required = true});
  flags.add("FILE", &options.file, "the file", {.required = true});
  add_reading_flags(flags, options.reading);
  add_schedule_text_flags(flags, options.schedule);
  add_foreign_flags(flags, options);
  add_output_flags(flags, options.output, {"table", "json", "csv"});
}

// Converts a schedule of any dialect to the dialect asked for.
ExitStatus import_schedule(const ImportCommand& options) {
  const ScheduleFile read = read_schedule(read_file(options.file), options.file);
  if (const std::vector<ScheduleDefect> defects = find_defects(read); !defects.empty()) {
    throw InputError(place_of(defects.front(), read, options.file), join(schedule_defects(read), "; "));
  }
  if (options.output.format == "json") {
    nlohmann::ordered_json json = {{"schema", kSchema},
                                   {"schedule", read.schedule.name},
                                   {"dialect", read.dialect},
                                   {"stages", read.schedule.stages},
                                   {"micro_batches", read.schedule.micro_batches},
                                   {"orders", nlohmann::ordered_json::array()}};
    for (const auto& order : read.schedule.orders) {
      json["orders"].push_back(tokens(order));
    }
    emit(options.output, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return kDone;
  }
  const std::string written = schedule_text(read.schedule, options.schedule);
  remark("read as '" + read.dialect + "'\n");
  emit(options.output, written);
  return kDone;
}

// A flag that only some formats use, and whether it was given.
struct Heeded {
  std::string_view name;
  bool given;
};

void refuse_unheeded(const foreign::ForeignFormat& format, const ImportCommand& options) {
  const std::vector<Heeded> flags = {
      {"--device", !options.device.empty()}, {"--collective", !options.collective.empty()},
      {"--ranks", options.ranks > 0},        {"--collectives", options.collectives},
      {"--nvlink", !options.nvlink.empty()}, {"--pcie", !options.pcie.empty()},
      {"--nodes", options.nodes > 0},        {"--network", !options.network.empty()}};
  for (const Heeded& flag : flags) {
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

foreign::ForeignOptions foreign_options(const ImportCommand& options, const DeviceTypeSource& types) {
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

// Converts a file of another tool to one of Stagecraft's, which it reads back as a check before writing it.
ExitStatus import_foreign(const foreign::ForeignFormat& format, const ImportCommand& options) {
  refuse_unheeded(format, options);
  if (options.output.format != "table") {
    throw InputError({"--format", 0, 0}, "'" + std::string(format.name) + "' becomes YAML; allowed: none");
  }
  const DeviceTypeSource types = device_types_in(shipped_folder() / "platforms" / "devices");
  const std::string text = read_file(options.file);
  check_utf8(text, options.file);
  const foreign::ForeignText read = format.read(text, options.file, foreign_options(options, types));
  const yaml::Node document = yaml::parse(read.text, options.file + ", converted");
  if (document.find("nodes") != nullptr) {
    load_platform(document, types);
  } else {
    read_measurements(document);
  }
  for (const std::string& said : options.output.quiet ? std::vector<std::string>() : read.remarks) {
    remark(said + "\n");
  }
  emit(options.output, read.text);
  return kDone;
}

// A model as a table or as JSON, or, into a file that ends so, as a workload file of ours.
ExitStatus import_foreign_model(const ModelFormat& format, ImportCommand options) {
  if (options.output.format == "csv") {
    throw InputError({"--format", 0, 0}, "a model has no CSV; allowed: table, json");
  }
  const std::filesystem::path file = options.output.file;
  if (yaml::is_named_yaml(file)) {
    if (options.output.format == "json") {
      throw InputError({"-o " + options.output.file, 0, 0},
                       "JSON is asked for; allowed: another ending than " + file.extension().string());
    }
    emit(options.output,
         import_workload(format, read_file(options.file), options.file, import_options(options.reading)));
    return kDone;
  }
  options.output.format = file.extension() == ".json" ? "json" : options.output.format;
  emit_model(options.output,
             import_model(format, read_file(options.file), options.file, import_options(options.reading)), {},
             options.output.format != "json");
  return kDone;
}

template <class Table> const auto* row_called(const Table& table, const std::string& name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == name; });
  return found != table.end() ? &*found : nullptr;
}

ExitStatus run(const ImportCommand& options) {
  if (options.format == "schedule") {
    return import_schedule(options);
  }
  if (const foreign::ForeignFormat* format = row_called(foreign::foreign_formats(), options.format)) {
    return import_foreign(*format, options);
  }
  if (const ModelFormat* format = row_called(model_formats(), options.format)) {
    return import_foreign_model(*format, options);
  }
  std::vector<std::string> known = names_of(model_formats());
  for (const std::string& name : names_of(foreign::foreign_formats())) {
    known.push_back(name);
  }
  known.emplace_back("schedule");
  throw InputError({"import", 0, 0}, unknown_name("format", options.format, known));
}

} // namespace

Job command_import(Flags& flags) { return make_job<ImportCommand>(flags, add_flags, run); }

} // namespace stagecraft
