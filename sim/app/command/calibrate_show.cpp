// stagecraft calibrate show: the fits of a device file and their errors.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/command/calibrate.hpp"
#include "sim/app/common/calibration_files.hpp"
#include "sim/app/common/fit_report.hpp"
#include "sim/app/common/program.hpp"

#include "calibrate/fit/evaluate.hpp"

namespace stagecraft {
namespace {

using fit::PredictedRow;

struct CalibrateShowCommand {
  std::string file, figures;
};

void add_flags(Flags& flags, CalibrateShowCommand& options, OutputOptions& output) {
  add_output_flags(flags, output, {"table", "json"});
  flags.add("FILE", &options.file, "a device file, or a name in platforms/devices", {.required = true});
  add_figures_flag(flags, options.figures, "the errors as SVG");
}

ExitStatus run(const CalibrateShowCommand& options, const OutputOptions& output) {
  const std::filesystem::path file = device_file(options.file);
  const DeviceType type = load_device(file);
  const KernelFits fits = type.fits ? *type.fits : KernelFits{};
  const std::vector<PredictedRow> rows = fit::evaluate_measured(type);
  emit(output, {.table =
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
                      json["rows"] = json_of_rows(rows);
                      return json.dump(2) + "\n";
                    },
                .csv = {}});
  if (!options.figures.empty() && rows.empty()) {
    remark(
        "no pictures: the file holds no measurements to compare with; `calibrate predict --figures` draws those of a "
        "table\n");
  } else {
    draw_errors(options.figures, type.name + ", measured kernels by the fits", type.name + "-measured", rows);
  }
  return kDone;
}

} // namespace

Job calibrate_show(Flags& flags, OutputOptions& output) {
  const auto options = std::make_shared<CalibrateShowCommand>();
  add_flags(flags, *options, output);
  return [options, &output] { return run(*options, output); };
}

} // namespace stagecraft
