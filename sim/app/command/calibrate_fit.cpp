// stagecraft calibrate fit: measurements to a device file with fits.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/command/calibrate.hpp"
#include "sim/app/common/calibration_files.hpp"
#include "sim/app/common/fit_report.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/base/system/file.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/keys/inputs.hpp"

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/forms/fit_dispatch.hpp"
#include "calibrate/fit/write_device.hpp"

namespace stagecraft {
namespace {

struct CalibrateFitCommand {
  std::vector<std::string> raw; ///< files of measurements
  TableOptions tables;
  std::string device;
  int processors = 0; ///< 0: as the measurements or the device file say
  double hold_out = 0;
  std::string seed;
  std::vector<std::string> provenance;
  std::vector<std::string> dispatches; ///< tables of DeepEP's kernels
  std::string port, nic;               ///< through which these were measured
};

void add_flags(Flags& flags, CalibrateFitCommand& options, OutputOptions& output) {
  constexpr int kMostProcessors = 1 << 20;
  constexpr double kMostHeldOut = 0.9;
  add_output_flags(flags, output, {"table", "json"});
  flags.add("RAW", &options.raw, "files of measurements", {.name = "FILE"});
  add_table_flags(flags, options.tables);
  flags.add("--deepep", &options.dispatches,
            "tables of DeepEP's kernels: node_num, hidden_size, num_token, num_topk, num_experts, dispatch_sms, "
            "dispatch_transmit_us, …; needs --port and --nic",
            {.name = "CSV"});
  flags.add("--port", &options.port, "bandwidth of a device's port inside a node, for --deepep", {.name = "B/s"});
  flags.add("--nic", &options.nic, "bandwidth of a device's NIC, for --deepep", {.name = "B/s"});
  flags.add("--device", &options.device, "the data sheet to start from: a name in platforms/devices, or a file",
            {.name = "BASE"});
  flags.add("--processors", &options.processors, "number of the device's multiprocessors, where no file says it",
            {.check = whole_number(1, kMostProcessors)});
  flags.add("--hold-out", &options.hold_out, "keep this share of the shapes from the fits, to tell the fits' errors",
            {.check = number(0, kMostHeldOut)});
  flags.add("--seed", &options.seed, "seed of the choice of what is held out", {.name = "N"});
  flags.add("--provenance", &options.provenance,
            "a sentence for readers: where the measurements come from; may be repeated", {.name = "TEXT"});
}

struct Sources {
  fit::FitInput input;
  std::vector<yaml::Node> documents;
  std::vector<std::string> provenance;
  std::optional<Measurements> first;
};

Sources read_sources(const CalibrateFitCommand& options) {
  Sources sources{.provenance = options.provenance};
  for (const std::string& file : options.raw) {
    sources.documents.push_back(yaml::load(file));
    const Measurements measurements = read_measurements(sources.documents.back());
    fit::add(sources.input, measurements);
    sources.provenance.push_back(std::filesystem::path(file).filename().string() +
                                 (measurements.provenance.empty() ? "" : ": " + measurements.provenance));
    if (!sources.first) {
      sources.first = measurements;
    }
  }
  return sources;
}

// The data sheet as text: from --device, from the shipped device that the measurements name, or from the measurements.
std::string data_sheet(const CalibrateFitCommand& options, const Sources& sources) {
  if (!options.device.empty()) {
    return read_file(device_file(options.device));
  }
  if (!sources.first) {
    throw InputError({"calibrate fit", 0, 0}, "tables do not say what the device is; allowed: --device with a name in "
                                              "platforms/devices, or a file");
  }
  const std::filesystem::path shipped = devices_folder() / (sources.first->device.name + ".yaml");
  return std::filesystem::exists(shipped) ? read_file(shipped) : fit::device_text(*sources.first);
}

double processors_of(const CalibrateFitCommand& options, const Sources& sources, const DeviceType& base) {
  if (options.processors > 0) {
    return options.processors;
  }
  if (sources.first && sources.first->device.processors > 0) {
    return sources.first->device.processors;
  }
  return base.fits ? base.fits->processors : 1;
}

std::vector<DispatchFit> fits_of_dispatches(const CalibrateFitCommand& options, Sources& sources) {
  if (options.dispatches.empty()) {
    return {};
  }
  if (options.port.empty() || options.nic.empty()) {
    throw InputError({"calibrate fit", 0, 0},
                     "--deepep needs the bandwidths that its tables were measured at; allowed: --port and --nic");
  }
  std::vector<fit::MeasuredDispatch> measured;
  for (const std::string& file : options.dispatches) {
    const auto of_table = fit::read_dispatch_table(read_file(file), file);
    measured.insert(measured.end(), of_table.begin(), of_table.end());
    sources.provenance.push_back(std::filesystem::path(file).filename().string());
  }
  return fit::fit_dispatches(measured, {parse_quantity<BytesPerSecond>(options.port, {"--port", 0, 0}),
                                        parse_quantity<BytesPerSecond>(options.nic, {"--nic", 0, 0})});
}

ExitStatus run(const CalibrateFitCommand& options, const OutputOptions& output) {
  Sources sources = read_sources(options);
  const std::string sheet = data_sheet(options, sources);
  const yaml::Node document = yaml::parse(sheet, options.device.empty() ? "data sheet" : options.device);
  const DeviceType base = load_device_type(document, device_types_in(devices_folder()));
  for (const NamedTable& table : read_tables(options.tables, base.name)) {
    fit::add(sources.input, table.table);
    sources.provenance.push_back(std::filesystem::path(table.file).filename().string() +
                                 (table.table.device.empty() ? "" : ", " + table.table.device));
  }
  std::vector<DispatchFit> dispatches = fits_of_dispatches(options, sources);
  if (sources.input.kernels.empty() && sources.input.collectives.empty() && sources.input.copies.empty() &&
      dispatches.empty()) {
    throw InputError({"calibrate fit", 0, 0},
                     "nothing to fit; allowed: files of measurements, or tables as --gemm CSV");
  }
  Progress progress(output.quiet);
  fit::FitOptions fit_options{.hold_out = options.hold_out};
  fit_options.validation.seed =
      options.seed.empty() ? 1 : static_cast<std::uint64_t>(parse_integer(options.seed, 0, 1 << 30, {"--seed", 0, 0}));
  fit_options.progress = [&](std::size_t done, std::size_t all) { progress.show(done, all); };
  KernelFits fits = fit::fit_device(sources.input, base, processors_of(options, sources, base), fit_options);
  fits.dispatches = std::move(dispatches);
  const std::string sections = (sources.documents.empty() ? "" : fit::measurements_text(sources.documents)) +
                               fit::fits_text(fits, sources.provenance);
  const std::string name = output.file.empty() ? base.name : std::filesystem::path(output.file).stem().string();
  const std::string text = fit::with_sections(sheet, name, sections, !fits.kernels.empty());
  load_device_type(yaml::parse(text, "the new device file"), device_types_in(devices_folder()));
  if (!output.file.empty()) {
    write_file(output.file, text);
  }
  print(output.format == "json" ? json_of_fits(name, fits).dump(2) + "\n"
        : output.file.empty()   ? text
                                : to_text(table_of_fits(fits), use_color()));
  return kDone;
}

} // namespace

Job calibrate_fit(Flags& flags, OutputOptions& output) {
  const auto options = std::make_shared<CalibrateFitCommand>();
  add_flags(flags, *options, output);
  return [options, &output] { return run(*options, output); };
}

} // namespace stagecraft
