// stagecraft calibrate predict: tables of measured kernels beside the predictions of a device file.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/app/command/calibrate.hpp"
#include "sim/app/common/calibration_files.hpp"
#include "sim/app/common/fit_report.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/format/schema.hpp"

#include "calibrate/fit/evaluate.hpp"

namespace stagecraft {
namespace {

using fit::PredictedRow;

struct CalibratePredictCommand {
  std::string device;
  TableOptions tables;
  std::vector<std::string> measured;
  bool all_rows = false;
  std::string figures;
};

void add_flags(Flags& flags, CalibratePredictCommand& options, OutputOptions& output) {
  add_output_flags(flags, output, {"table", "json"});
  flags.add("DEVICE", &options.device, "a name in platforms/devices, or a file", {.required = true});
  flags.add("--measured", &options.measured, "a file of measurements, as `calibrate` writes it", {.name = "FILE"});
  add_table_flags(flags, options.tables);
  flags.add("--all", &options.all_rows, "print every row of the table");
  add_figures_flag(flags, options.figures, "the errors as SVG");
}

nlohmann::ordered_json json_of_tables(const std::string& device, const std::vector<std::string>& inputs,
                                      const std::vector<PredictedRow>& rows) {
  const FitError error = error_of(rows);
  return {{"schema", kSchema},  {"device", device},           {"inputs", inputs},     {"rows", json_of_rows(rows)},
          {"mape", error.mean}, {"median_ape", error.median}, {"p90_ape", error.p90}, {"bias", error.bias}};
}

std::vector<NamedTable> read_all(const CalibratePredictCommand& options, const std::string& device_name) {
  std::vector<NamedTable> tables;
  for (const std::string& file : options.measured) {
    for (NamedTable& table : tables_of_measurements(file)) {
      tables.push_back(std::move(table));
    }
  }
  for (NamedTable& table : read_tables(options.tables, device_name)) {
    tables.push_back(std::move(table));
  }
  return tables;
}

ExitStatus run(const CalibratePredictCommand& options, const OutputOptions& output) {
  const std::filesystem::path file = device_file(options.device);
  const DeviceType type = load_device(file);
  std::vector<std::string> inputs = {input_name(file)};
  std::vector<PredictedTable> predictions;
  std::vector<PredictedRow> all;
  for (const NamedTable& table : read_all(options, type.name)) {
    if (table.file != inputs.back()) {
      inputs.push_back(table.file);
    }
    predictions.push_back({table.kind, fit::evaluate(type, table.table)});
    const std::vector<PredictedRow>& rows = predictions.back().rows;
    const std::size_t given = table.table.kernels.size() + table.table.collectives.size();
    if (rows.size() < given && !output.quiet) {
      remark(table.file + ": " + std::to_string(given - rows.size()) + " of " + std::to_string(given) +
             " rows are of kernels that the device knows nothing of\n");
    }
    all.insert(all.end(), rows.begin(), rows.end());
    std::string name = type.name + "-" + table.kind;
    std::replace(name.begin(), name.end(), ' ', '-');
    draw_errors(options.figures, type.name + ", " + table.kind, name, rows);
  }
  if (predictions.empty()) {
    throw InputError({"calibrate predict", 0, 0},
                     "no measured times; allowed: --measured FILE, --gemm CSV and the like");
  }
  emit(output, {.table = [&] { return text_of(predictions, options.all_rows); },
                .json = [&] { return json_of_tables(type.name, inputs, all).dump(2) + "\n"; },
                .csv = {}});
  return all.empty() ? kNothingFeasible : kDone;
}

} // namespace

Job calibrate_predict(Flags& flags, OutputOptions& output) {
  const auto options = std::make_shared<CalibratePredictCommand>();
  add_flags(flags, *options, output);
  return [options, &output] { return run(*options, output); };
}

} // namespace stagecraft
