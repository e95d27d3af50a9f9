// stagecraft validate: predict measured runs, and say how far off; or one real run task by task.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/app/options.hpp"
#include "sim/base/file.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/validation_charts.hpp"
#include "sim/validate/run_figures.hpp"
#include "sim/validate/validators.hpp"

namespace stagecraft {
namespace {

int validate_timeline(const Options& options) {
  const RunRecord record = read_run_record(options.file);
  const RunAccuracy accuracy = accuracy_of(record);
  if (!options.trace.empty()) {
    const std::array timelines{NamedTimeline{"measured", record.timeline},
                               NamedTimeline{"predicted", accuracy.prediction}};
    write_file(options.trace, chrome_trace(record.graph, timelines, record.platform));
  }
  draw_figures(options, figures_of(record, accuracy));
  const int width = options.quiet ? 0 : terminal_width() - 28;
  if (options.format == "csv") {
    throw InputError({"--format csv", 0, 0},
                     "a run task by task is a table or JSON; allowed with --timeline: table, json");
  }
  emit(options, {.table = [&] { return to_text(record, accuracy, use_color(), width); },
                 .json = [&] { return to_json(record, accuracy); },
                 .csv = {}});
  return kDone;
}

} // namespace

int command_validate(const Options& options) {
  if (options.timeline) {
    return validate_timeline(options);
  }
  if (!options.trace.empty()) {
    throw InputError({"--trace", 0, 0}, "a trace is of one run; allowed with --timeline");
  }
  const Validation validation = validate(options.file, shipped_folder());
  draw_figures(options, figures_of(charts_of(validation)));
  emit(options, {.table = [&] { return to_text(validation, use_color()); },
                 .json = [&] { return to_json(validation); },
                 .csv = [&] { return to_csv(validation); }});
  return validation.rows.empty() ? kNothingFeasible : kDone;
}

} // namespace stagecraft
