// stagecraft validate: predicts measured runs and says how far off the predictions are; or one real run task by task.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/base/process/worker_pool.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/validation_charts.hpp"
#include "sim/validate/run_figures.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"
#include "sim/validate/truth/validate_truth.hpp"
#include "sim/validate/validators.hpp"

namespace stagecraft {
namespace {

struct ValidateCommand {
  std::vector<std::string> files;
  OutputOptions output;
  bool timeline = false, sailor = false;
  std::string figures, trace, studies, errors, pairs;
  std::vector<std::string> filters, settings;
};

// COLUMN=TEXT
RowFilter filter_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError({"--filter", 0, 0}, "'" + excerpt(text) +
                                             "' has no column; allowed: COLUMN=TEXT, such as "
                                             "model=llama");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_flags(Flags& flags, ValidateCommand& options) {
  flags.add("TRUTH", &options.files,
            "measured runs, a file or a folder; the files tell what measured them; or several tables",
            {.required = true});
  add_result_flags(flags, options.output, {"table", "json", "csv", "html", "md"});
  add_table_flags(flags, options.output);
  flags.add("--timeline", &options.timeline, "compare one run that `execute` wrote, task by task");
  flags.add("--sailor", &options.sailor, "the folder has plans that Sailor measured, and nothing else");
  add_figures_flag(flags, options.figures, "the errors as SVG");
  flags.add("--filter", &options.filters,
            "only rows of tables whose column (case, set, model, gpu, metric, precision, framework) has this text",
            {.name = "COLUMN=TEXT"});
  flags.add("--set", &options.settings, "set a key of the study of each row of tables; may be repeated",
            {.name = "KEY=VALUE"});
  flags.add("--errors", &options.errors,
            "write how far off predictions of tables are, by families of runs, into this file", {.name = "FILE"});
  flags.add("--what-ifs", &options.pairs,
            "write the pairs of rows of tables that differ in one setting as CSV into this file", {.name = "FILE"});
  flags.add("--studies", &options.studies, "write the study that predicts each row of tables into this folder",
            {.name = "DIR"});
  flags.add("--trace", &options.trace,
            "with --timeline: write the measured run above the predicted one as a Chrome/Perfetto trace",
            {.name = "FILE"});
}

// The one file or folder that a flag is about.
const std::string& only_file(const ValidateCommand& options, const char* flag) {
  if (options.files.size() > 1) {
    throw InputError({flag, 0, 0},
                     "it is about one file or folder, and " + std::to_string(options.files.size()) + " are given");
  }
  return options.files.front();
}

// The files that a call reads: those given, of a folder its tables, or all where it has other measurements, and the
// flags beside a table.
std::vector<std::string> inputs_of(const ValidateCommand& options) {
  namespace fs = std::filesystem;
  std::vector<std::string> inputs;
  for (const fs::path path : options.files) {
    std::error_code failure;
    const bool folder = fs::is_directory(path, failure), tables = is_truth(path);
    inputs.push_back(path.string());
    inputs.push_back(((folder ? path : path.parent_path()) / "flags.csv").string());
    for (const fs::path& file : files_at(
             path, tables ? is_truth_table : [](const fs::path&) { return true; })) {
      inputs.push_back(file.string());
    }
  }
  return inputs;
}

// Before anything is predicted: no output replaces an input or another output, and all can be written.
void check_outputs(const ValidateCommand& options) {
  const std::vector<std::string> inputs = inputs_of(options);
  std::set<std::filesystem::path> outputs;
  for (const std::string& output : {options.output.file, options.errors, options.pairs, options.trace}) {
    if (output.empty()) {
      continue;
    }
    keep_inputs(output, inputs);
    check_writable(output);
    std::error_code failure;
    const bool is_stream = std::filesystem::is_other(output, failure);
    if (!is_stream &&
        !outputs.insert(std::filesystem::weakly_canonical(std::filesystem::absolute(output), failure)).second) {
      throw InputError({output, 0, 0}, "two outputs go into this file; allowed: a name for each");
    }
  }
  for (const std::string& folder : {options.studies, options.figures}) {
    if (!folder.empty()) {
      make_folder(folder);
    }
  }
}

ExitStatus validate_timeline(const ValidateCommand& options) {
  const RunRecord record = read_run_record(only_file(options, "--timeline"));
  const RunAccuracy accuracy = accuracy_of(record);
  if (!options.trace.empty()) {
    const std::array timelines{NamedTimeline{"measured", record.timeline},
                               NamedTimeline{"predicted", accuracy.prediction}};
    write_file(options.trace, chrome_trace(record.graph, timelines, record.platform));
  }
  draw_figures(options.figures, figures_of(record, accuracy));
  const int width = options.output.quiet ? 0 : terminal_width() - 28;
  if (options.output.format == "csv") {
    throw InputError({"--format csv", 0, 0},
                     "a run task by task is a table or JSON; allowed with --timeline: table, json");
  }
  emit(options.output, {.table = [&] { return to_text(record, accuracy, use_color(), width); },
                        .json = [&] { return to_json(record, accuracy); },
                        .csv = {}});
  return kDone;
}

ExitStatus run(const ValidateCommand& options) {
  check_outputs(options);
  if (options.timeline) {
    return validate_timeline(options);
  }
  if (!options.trace.empty()) {
    throw InputError({"--trace", 0, 0}, "a trace is of one run; allowed with --timeline");
  }
  if (options.sailor && !is_sailor(only_file(options, "--sailor"))) {
    throw InputError({options.files.front()},
                     "no plans of Sailor's; allowed with --sailor: a folder of measured_summary.csv, "
                     "profiles_simulator.json and llm_info.json");
  }
  check_columns(options.output, header_of_validated_rows());
  Progress progress(options.output.quiet);
  ValidateOptions how{.shipped = shipped_folder(), .workers = cores()};
  how.studies = options.studies;
  how.errors = options.errors;
  how.settings = parse_settings(options.settings);
  how.progress = [&](std::size_t done, std::size_t all) { progress.show(done, all); };
  for (const std::string& filter : options.filters) {
    how.filters.push_back(filter_of(filter));
  }
  const std::vector<std::filesystem::path> paths(options.files.begin(), options.files.end());
  const Validation validation = validate(paths, how);
  if (!options.pairs.empty()) {
    write_file(options.pairs, to_csv(validation.what_ifs));
  }
  draw_figures(options.figures, figures_of(charts_of(validation)));
  emit(options.output, {.table = [&] { return to_text(validation, view_of(options.output)); },
                        .json = [&] { return to_json(validation); },
                        .csv = [&] { return to_csv(validation); }});
  if (const std::string unscored = sentence_on_unscored(validation); !unscored.empty() && !options.output.quiet) {
    remark(unscored + "\n");
  }
  return predicts_any(validation) ? kDone : kNothingFeasible;
}

} // namespace

Job command_validate(Flags& flags) { return make_job<ValidateCommand>(flags, add_flags, run); }

} // namespace stagecraft
