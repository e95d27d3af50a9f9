// stagecraft calibrate: measurements to device files, and what those predict.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/app/options.hpp"
#include "sim/app/progress.hpp"
#include "sim/base/file.hpp"
#include "sim/base/schema.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/report/table.hpp"
#include "sim/study/inputs.hpp"

#include "calibrate/fit/evaluate.hpp"
#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/residual_plot.hpp"
#include "calibrate/fit/write_device.hpp"

namespace stagecraft {
namespace {

using fit::KernelTable;
using fit::PredictedRow;

std::filesystem::path devices_folder() { return shipped_folder() / "platforms" / "devices"; }

// A file, or a name in platforms/devices.
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

struct NamedTable {
  std::string kind, file;
  KernelTable table;
};

std::vector<NamedTable> read_tables(const Options& options, const std::string& device_name) {
  std::vector<NamedTable> tables;
  for (const fit::TableKindRow& row : fit::kTableKinds) {
    const std::string kind(row.name);
    for (const std::string& file : options.tables.at(kind)) {
      tables.push_back({kind, file, fit::read_kernel_table(row.kind, file, device_name, options.select)});
    }
  }
  return tables;
}

// fit

struct Sources {
  fit::FitInput input;
  std::vector<yaml::Node> documents;
  std::vector<std::string> provenance;
  std::optional<Measurements> first;
};

Sources read_sources(const Options& options) {
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

// The data sheet as text: that of --device, of the shipped device of the measurements' name, or what they tell.
std::string data_sheet(const Options& options, const Sources& sources) {
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

double processors_of(const Options& options, const Sources& sources, const DeviceType& base) {
  if (options.processors > 0) {
    return options.processors;
  }
  if (sources.first && sources.first->device.processors > 0) {
    return sources.first->device.processors;
  }
  return base.fits ? base.fits->processors : 1;
}

Table table_of_fits(const KernelFits& fits) {
  Table table{{{"fit"},
               {"form"},
               {"points", Align::right},
               {"MAPE", Align::right},
               {"median", Align::right},
               {"p90", Align::right},
               {"bias", Align::right},
               {"held back"}},
              {}};
  const auto add = [&](const std::string& name, const std::string& form, const FitError& error) {
    table.rows.push_back({{name}, {form}});
    if (error.points > 0) {
      for (const std::string& cell : {std::to_string(error.points), percent(error.mean, 1), percent(error.median, 1),
                                      percent(error.p90, 1), percent(error.bias, 1), error.scheme}) {
        table.rows.back().push_back({cell});
      }
    }
  };
  for (const KernelFit& fit : fits.kernels) {
    fit.grid     ? add(fit.name, "grid of " + std::to_string(fit.grid->values.size()), fit.grid->error)
    : fit.family ? add(fit.name, "family", fit.family->error)
                 : add(fit.name, "line of " + std::to_string(fit.line->segments.size()), fit.line->error);
  }
  for (const CopyFit& fit : fits.copies) {
    add("copy " + fit.from + " to " + fit.to + (fit.memory.empty() ? "" : ", " + fit.memory) +
            (fit.both_ways ? ", both ways" : ""),
        "line of " + std::to_string(fit.line.segments.size()), fit.line.error);
  }
  for (const CollectiveFit& fit : fits.collectives) {
    add(fit.op + " of " + std::to_string(fit.devices), "line of " + std::to_string(fit.line.segments.size()),
        fit.line.error);
  }
  if (fits.power) {
    add("power", "sum below a cap", fits.power->error);
  }
  return table;
}

nlohmann::ordered_json json_of_fits(const std::string& name, const KernelFits& fits) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto add = [&](const std::string& fit, const char* form, const FitError& error) {
    rows.push_back({{"fit", fit},
                    {"form", form},
                    {"points", error.points},
                    {"mape", error.mean},
                    {"median_ape", error.median},
                    {"p90_ape", error.p90},
                    {"bias", error.bias},
                    {"scheme", error.scheme}});
  };
  for (const KernelFit& fit : fits.kernels) {
    fit.grid     ? add(fit.name, "grid", fit.grid->error)
    : fit.family ? add(fit.name, "family", fit.family->error)
                 : add(fit.name, "line", fit.line->error);
  }
  for (const CopyFit& fit : fits.copies) {
    add("copy/" + fit.from + "/" + fit.to + (fit.memory.empty() ? "" : "/" + fit.memory), "line", fit.line.error);
  }
  for (const CollectiveFit& fit : fits.collectives) {
    add(fit.op + "/" + std::to_string(fit.devices), "line", fit.line.error);
  }
  return {{"schema", kSchema}, {"device", name}, {"measured", fits.measured.size()}, {"fits", rows}};
}

int fit_command(const Options& options) {
  Sources sources = read_sources(options);
  const std::string sheet = data_sheet(options, sources);
  const yaml::Node document = yaml::parse(sheet, options.device.empty() ? "data sheet" : options.device);
  const DeviceType base = load_device_type(document, device_types_in(devices_folder()));
  for (const NamedTable& table : read_tables(options, base.name)) {
    fit::add(sources.input, table.table);
    sources.provenance.push_back(std::filesystem::path(table.file).filename().string() +
                                 (table.table.device.empty() ? "" : ", " + table.table.device));
  }
  if (sources.input.kernels.empty() && sources.input.collectives.empty() && sources.input.copies.empty()) {
    throw InputError({"calibrate fit", 0, 0},
                     "nothing to fit; allowed: files of measurements, or tables as --gemm CSV");
  }
  Progress progress(options.quiet);
  fit::FitOptions fit_options{.hold_out = options.hold_out};
  fit_options.validation.seed =
      options.seed.empty() ? 1 : static_cast<std::uint64_t>(parse_integer(options.seed, 0, 1 << 30, {"--seed", 0, 0}));
  fit_options.progress = [&](std::size_t done, std::size_t all) { progress.show(done, all); };
  const KernelFits fits = fit::fit_device(sources.input, base, processors_of(options, sources, base), fit_options);
  const std::string sections = (sources.documents.empty() ? "" : fit::measurements_text(sources.documents)) +
                               fit::fits_text(fits, sources.provenance);
  const std::string name = options.output.empty() ? base.name : std::filesystem::path(options.output).stem().string();
  const std::string text = fit::with_sections(sheet, name, sections, !fits.kernels.empty());
  load_device_type(yaml::parse(text, "the new device file"), device_types_in(devices_folder()));
  if (options.output.empty()) {
    print(text);
    return kDone;
  }
  write_file(options.output, text);
  print(options.format == "json" ? json_of_fits(name, fits).dump(2) + "\n" : to_text(table_of_fits(fits), use_color()));
  return kDone;
}

// predict

FitError error_of(const std::vector<PredictedRow>& rows) {
  std::vector<double> errors;
  for (const PredictedRow& row : rows) {
    errors.push_back(row.error());
  }
  return fit::error_of(errors, "");
}

nlohmann::ordered_json json_of(const std::vector<PredictedRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PredictedRow& row : rows) {
    list.push_back({{"kernel", row.kernel},
                    {"source", row.source},
                    {"measured", row.measured.value},
                    {"predicted", row.predicted.value},
                    {"error", row.error()}});
  }
  return list;
}

nlohmann::ordered_json json_of(const std::string& device, const std::vector<std::string>& inputs,
                               const std::vector<PredictedRow>& rows) {
  const FitError error = error_of(rows);
  return {{"schema", kSchema},  {"device", device},           {"inputs", inputs},     {"rows", json_of(rows)},
          {"mape", error.mean}, {"median_ape", error.median}, {"p90_ape", error.p90}, {"bias", error.bias}};
}

std::vector<Cell> cells_of(const std::string& name, const std::vector<PredictedRow>& rows) {
  const FitError error = error_of(rows);
  return {{name},
          {std::to_string(error.points)},
          {percent(error.mean, 2)},
          {percent(error.median, 2)},
          {percent(error.p90, 2)},
          {percent(error.bias, 2)}};
}

struct Prediction {
  std::string kind;
  std::vector<PredictedRow> rows;
};

std::string text_of(const std::vector<Prediction>& predictions, bool all_rows) {
  Table sums{{{"table"},
              {"rows", Align::right},
              {"MAPE", Align::right},
              {"median", Align::right},
              {"p90", Align::right},
              {"bias", Align::right}},
             {}};
  Table single{{{"kernel"}, {"by"}, {"measured", Align::right}, {"predicted", Align::right}, {"error", Align::right}},
               {}};
  for (const Prediction& prediction : predictions) {
    sums.rows.push_back(cells_of(prediction.kind, prediction.rows));
    for (const PredictedRow& row : prediction.rows) {
      single.rows.push_back(
          {{row.kernel}, {row.source}, {to_text(row.measured)}, {to_text(row.predicted)}, {percent(row.error(), 1)}});
    }
  }
  return (all_rows ? to_text(single, use_color()) + "\n" : "") + to_text(sums, use_color());
}

void draw(const Options& options, const std::string& title, const std::string& name,
          const std::vector<PredictedRow>& rows) {
  if (options.figures.empty()) {
    return;
  }
  draw_figures(options, {fit::residual_figure(rows, title, name)});
}

int predict_command(const Options& options) {
  const std::filesystem::path file = device_file(options.device);
  const DeviceType type = load_device(file);
  std::vector<std::string> inputs = {input_name(file)};
  std::vector<Prediction> predictions;
  std::vector<PredictedRow> all;
  for (const NamedTable& table : read_tables(options, type.name)) {
    inputs.push_back(table.file);
    predictions.push_back({table.kind, fit::evaluate(type, table.table)});
    const std::vector<PredictedRow>& rows = predictions.back().rows;
    const std::size_t given = table.table.kernels.size() + table.table.collectives.size();
    if (rows.size() < given && !options.quiet) {
      remark(table.file + ": " + std::to_string(given - rows.size()) + " of " + std::to_string(given) +
             " rows are of kernels that the device knows nothing of\n");
    }
    all.insert(all.end(), rows.begin(), rows.end());
    draw(options, type.name + ", " + table.kind, type.name + "-" + table.kind, rows);
  }
  if (predictions.empty()) {
    throw InputError({"calibrate predict", 0, 0}, "no table; allowed: --gemm CSV and the like");
  }
  emit(options, {.table = [&] { return text_of(predictions, options.all_rows); },
                 .json = [&] { return json_of(type.name, inputs, all).dump(2) + "\n"; },
                 .csv = {}});
  return all.empty() ? kNothingFeasible : kDone;
}

// show

int show_command(const Options& options) {
  const std::filesystem::path file = device_file(options.device);
  const DeviceType type = load_device(file);
  const KernelFits fits = type.fits ? *type.fits : KernelFits{};
  const std::vector<PredictedRow> rows = fit::evaluate_measured(type);
  emit(options, {.table =
                     [&] {
                       std::string text = type.name + ": " + std::to_string(fits.measured.size()) +
                                          " kernels measured in the file, " + std::to_string(fits.kernels.size()) +
                                          " kinds of kernels fitted\n\n" + to_text(table_of_fits(fits), use_color());
                       return rows.empty() ? text : text + "\n" + text_of({{"measured, by the fits", rows}}, false);
                     },
                 .json =
                     [&] {
                       nlohmann::ordered_json json = json_of_fits(type.name, fits);
                       json["inputs"] = {input_name(file)};
                       json["rows"] = json_of(rows);
                       return json.dump(2) + "\n";
                     },
                 .csv = {}});
  if (!options.figures.empty() && rows.empty()) {
    remark(
        "no pictures: the file holds no measurements to compare with; `calibrate predict --figures` draws those of a "
        "table\n");
  } else {
    draw(options, type.name + ", measured kernels by the fits", type.name + "-measured", rows);
  }
  return kDone;
}

} // namespace

int command_calibrate(const Options& options) {
  return options.calibrate_action == "fit"       ? fit_command(options)
         : options.calibrate_action == "predict" ? predict_command(options)
         : options.calibrate_action == "show"    ? show_command(options)
                                                 : command_measure(options);
}

} // namespace stagecraft
