// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/validate_truth.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "sim/base/named_table.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/system/file_names.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/keys/take_config.hpp"
#include "sim/validate/truth/asked_rows.hpp"
#include "sim/validate/truth/baselines.hpp"
#include "sim/validate/truth/intervals.hpp"
#include "sim/validate/truth/rows/truth_flags.hpp"
#include "sim/validate/truth/study/truth_device.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/validate/truth/what_ifs.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> tables_at(const fs::path& path) { return files_at(path, is_truth_table); }

// Each table once, in the order in which they are given.
std::vector<fs::path> tables_of(std::span<const fs::path> paths) {
  std::vector<fs::path> tables;
  std::set<fs::path> seen;
  for (const fs::path& path : paths) {
    for (const fs::path& table : tables_at(path)) {
      if (!seen.insert(fs::weakly_canonical(table)).second) {
        throw InputError({table.string()}, "the table is given twice; allowed: each table once");
      }
      tables.push_back(table);
    }
  }
  return tables;
}

struct FilterColumn {
  std::string_view name;
  std::string (*text)(const TruthRow& row);
};
constexpr std::array kFilterColumns = {
    FilterColumn{"case", [](const TruthRow& row) { return row.case_name; }},
    FilterColumn{"set", [](const TruthRow& row) { return row.set; }},
    FilterColumn{"model", [](const TruthRow& row) { return row.model; }},
    FilterColumn{"gpu", [](const TruthRow& row) { return row.gpu; }},
    FilterColumn{"metric", [](const TruthRow& row) { return row.metric; }},
    FilterColumn{"precision", [](const TruthRow& row) { return row.precision; }},
    FilterColumn{"framework", [](const TruthRow& row) { return std::string(framework_of(row).name); }},
};

bool passes(const TruthRow& row, const std::vector<RowFilter>& filters) {
  return std::all_of(filters.begin(), filters.end(), [&](const RowFilter& filter) {
    const FilterColumn& column = find_by_name(kFilterColumns, filter.column, "column", {"--filter", 0, 0});
    return plain_words(column.text(row)).find(plain_words(filter.text)) != std::string::npos;
  });
}

FamilyTraits traits_of(const AskedRow& asked, const std::vector<TruthPrediction>& predictions) {
  const auto& run = std::get<PredictedRun>(predictions[std::get<std::size_t>(asked.study)]);
  return {.time = asked.row.known->kind == FigureKind::time,
          .power = asked.row.known->kind == FigureKind::power,
          .mixture = asked.row.sizes.experts > 0,
          .attention = run.attention,
          .several_nodes = asked.row.nodes > 1,
          .framework = asked.framework,
          .measured_device = run.measured_device};
}

// What exchanges its rows for those of other models: its architecture and sizes.
std::string model_of(const TruthRow& row) {
  const TruthSizes& sizes = row.sizes;
  return plain_words(row.model) + " " + std::to_string(sizes.layers) + " " + std::to_string(sizes.hidden) + " " +
         std::to_string(sizes.heads);
}

const std::string kErrorsHead =
    "# How far off predictions of measured runs were: `stagecraft validate TABLES --errors FILE`, "
    "docs/validation/intervals.md.\n"
    "# SPDX-License-Identifier: Apache-2.0\n"
    "source: \"facts of published tables; only quantiles of the errors of their predictions stand here\"\n";

// Errors of predictions that no recipe makes slower: all are off to one side, by the median of the models' medians.
std::vector<ErrorFamily> families_without_recipes(std::vector<ScoredPrediction> scored) {
  std::map<std::string, std::vector<double>> of_models;
  std::erase_if(scored, [](const ScoredPrediction& one) { return !one.families.back().starts_with("times"); });
  for (const ScoredPrediction& one : scored) {
    of_models[one.model].push_back(std::log(one.measured / one.predicted));
  }
  std::vector<double> medians;
  for (const auto& [model, errors] : of_models) {
    medians.push_back(quantile(errors, 0.5));
  }
  const double centre = medians.empty() ? 1 : std::exp(quantile(medians, 0.5));
  for (ScoredPrediction& one : scored) {
    one.predicted *= centre;
  }
  std::vector<ErrorFamily> families = error_families_of(scored);
  std::erase_if(families, [](const ErrorFamily& family) { return family.name.find(" by ") != std::string::npos; });
  for (ErrorFamily& family : families) {
    family.centre = centre;
  }
  return families;
}

// Rows whose errors families bound, as predictions; rows that leave choices open come last, and teach no other.
struct BoundedRows {
  std::vector<ScoredPrediction> closed, all;
  std::vector<std::size_t> places; ///< of `all`, among the rows
};

BoundedRows bounded_rows(const std::vector<ValidationRow>& rows, const std::vector<const AskedRow*>& asked,
                         const std::vector<TruthPrediction>& predictions) {
  BoundedRows bounded;
  for (const bool open : {false, true}) {
    for (std::size_t at = 0; at < rows.size(); ++at) {
      if (has_families(asked[at]->row.known->kind) && asked[at]->others.empty() != open) {
        bounded.all.push_back({model_of(asked[at]->row), families_of(traits_of(*asked[at], predictions)),
                               rows[at].measured, rows[at].predicted, asked[at]->row.set});
        bounded.places.push_back(at);
      }
    }
    bounded.closed = open ? bounded.closed : bounded.all;
  }
  return bounded;
}

// Gives each row its interval, from the others; from the errors of shipped families where these have too few models.
// `asked`: of each row.
std::vector<ErrorFamily> add_intervals(std::vector<ValidationRow>& rows, const std::vector<const AskedRow*>& asked,
                                       const std::vector<TruthPrediction>& predictions,
                                       const std::vector<ErrorFamily>& shipped, bool without_recipes) {
  BoundedRows bounded = bounded_rows(rows, asked, predictions);
  std::vector<PredictionInterval> intervals = intervals_of(bounded.closed);
  if (bounded.closed.size() < bounded.all.size()) {
    const std::vector<PredictionInterval> of_all = intervals_of(bounded.all);
    intervals.insert(intervals.end(), of_all.begin() + static_cast<std::ptrdiff_t>(intervals.size()), of_all.end());
  }
  for (std::size_t one = 0; one < bounded.places.size(); ++one) {
    const std::size_t at = bounded.places[one];
    ValidationRow& row = rows[at];
    if (intervals[one].models > 0) {
      row.family = intervals[one].family;
      row.low = intervals[one].low;
      row.high = intervals[one].high;
    } else if (const auto family = narrowest_family(shipped, traits_of(*asked[at], predictions))) {
      row.family = family->name;
      row.low = family->low(row.predicted);
      row.high = family->high(row.predicted);
    }
  }
  return without_recipes ? families_without_recipes(std::move(bounded.closed)) : error_families_of(bounded.closed);
}

// The row's configuration, whoever ran it: `MLPerf Training v5.0 results (NAME/results/…)` says who handed it in.
std::string configuration_by_anyone(TruthRow row) {
  row.source = row.source.substr(0, row.source.find(" results ("));
  return configuration_of(row);
}

// Of each table, how far measurements of one configuration are from the median of the others, in the median. A figure
// that a source states twice is one measurement.
std::map<std::string, double> noise_of(const std::vector<AskedRow>& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, std::set<double>> equal;
  for (const AskedRow& asked : rows) {
    if (std::holds_alternative<std::size_t>(asked.study) && asked.row.known->kind == FigureKind::time) {
      equal[{asked.row.set, configuration_by_anyone(asked.row), asked.row.metric}].insert(asked.row.value);
    }
  }
  std::map<std::string, std::vector<double>> errors;
  for (const auto& [configuration, measured] : equal) {
    for (const double one : measured) {
      std::vector<double> others;
      std::copy_if(measured.begin(), measured.end(), std::back_inserter(others),
                   [&](double other) { return other != one; });
      if (!others.empty()) {
        errors[std::get<0>(configuration)].push_back(std::abs(quantile(others, 0.5) / one - 1));
      }
    }
  }
  std::map<std::string, double> noise;
  for (const auto& [set, of_set] : errors) {
    noise[set] = quantile(of_set, 0.5);
  }
  return noise;
}

// The models that any shipped recipe rests on.
std::vector<CalibratedModel> calibrated_models(const fs::path& shipped) {
  std::vector<CalibratedModel> models;
  const Folders folders{.study = {}, .shipped = shipped};
  for (const std::string& name : shipped_names(folders, kFrameworksFolder)) {
    const FrameworkRecipe recipe = find_framework(folders, name, {});
    models.insert(models.end(), recipe.calibrated_on.begin(), recipe.calibrated_on.end());
  }
  return models;
}

// Whether a recipe rests on a model of these sizes, in whichever table and framework it ran.
bool is_calibrated(const TruthRow& row, const std::vector<CalibratedModel>& calibrated) {
  return std::any_of(calibrated.begin(), calibrated.end(), [&](const CalibratedModel& model) {
    return model.layers == row.sizes.layers && model.hidden == row.sizes.hidden && model.heads == row.sizes.heads &&
           plain_words(row.model).starts_with(model.architecture);
  });
}

// Whether the row says that its run fitted or not: it says so itself, or a whole iteration was measured.
bool tells_whether_it_fits(const TruthRow& row) {
  const FigureKind kind = row.known->kind;
  const bool ran = of_whole_iterations(*row.known) || kind == FigureKind::power || kind == FigureKind::training ||
                   row.known->key == "peak_memory_bytes";
  return kind == FigureKind::verdict || (ran && timed_parts(row) == TimedParts::all);
}

// The models whose runs taught any shipped device type its power, and the speed of its host.
struct TaughtDevices {
  std::set<std::string> power, times;
};

TaughtDevices models_of_devices(const fs::path& shipped) {
  const fs::path folder = shipped / "platforms" / "devices";
  const DeviceTypeSource source = device_types_in(folder);
  TaughtDevices models;
  for (const fs::path& file : files_at(folder, [](const fs::path& one) { return one.extension() == ".yaml"; })) {
    const DeviceType type = load_device_type(source(file.stem().string(), {}), source);
    models.power.insert(type.power_calibrated_on.begin(), type.power_calibrated_on.end());
    models.times.insert(type.calibrated_on.begin(), type.calibrated_on.end());
  }
  return models;
}

bool is_any_of(const TruthRow& row, const std::set<std::string>& models) {
  return std::any_of(models.begin(), models.end(),
                     [&](const std::string& model) { return plain_words(row.model).starts_with(model); });
}

// The highest power limit that a table states of a device, by both.
using HighestCaps = std::map<std::pair<std::string, std::string>, double>;

// The clocks of a device type under a cap were fitted to how much slower such a model is than under the highest one.
bool taught_devices(const TruthRow& row, const HighestCaps& highest, const TaughtDevices& models) {
  const bool of_power = row.known->kind == FigureKind::power;
  const bool under_a_cap = row.power_cap > 0 && row.power_cap < highest.at({row.set, row.gpu});
  return ((of_power || under_a_cap) && is_any_of(row, models.power)) || (!of_power && is_any_of(row, models.times));
}

// The study of each row that has one, to be looked at and run alone. It says whose it is: a file's name may not.
void write_studies(const AskedRows& asked, const fs::path& folder) {
  make_folder(folder);
  FileNames names;
  for (const AskedRow& one : asked.rows) {
    if (const auto* study = std::get_if<std::size_t>(&one.study)) {
      const std::string whose =
          "# case " + on_one_line(one.row.case_name) + " of " + on_one_line(one.row.set) + ".csv\n";
      write_file((folder / (names.unique(one.row.case_name, one.row.set) + ".yaml")).string(),
                 whose + asked.studies[*study]);
    }
  }
}

// Rows that are scored, in the order of Validation::rows, and what baselines and comparisons see of them.
struct ScoredRows {
  std::vector<const AskedRow*> rows;
  std::vector<SpeedRow> speeds;
  std::vector<ComparedRun> compared;
};

// Fills rows, those of models that constants rest on, verdicts, and what is not predicted, of a validation.
ScoredRows score_rows(const AskedRows& asked, const std::vector<TruthPrediction>& predictions, const fs::path& shipped,
                      const HighestCaps& highest, Validation& validation) {
  const std::vector<CalibratedModel> calibrated = calibrated_models(shipped);
  const TaughtDevices devices = models_of_devices(shipped);
  ScoredRows scored;
  std::set<std::size_t> judged; // studies whose runs are known to have fitted or not
  for (const AskedRow& one : asked.rows) {
    if (const std::string reason = why_not(one, predictions); !reason.empty()) {
      validation.skipped.push_back({one.row.case_name, reason, one.row.metric, one.row.set});
      continue;
    }
    const std::size_t study = std::get<std::size_t>(one.study);
    const auto& run = std::get<PredictedRun>(predictions[study]);
    const FigureKind kind = one.row.known->kind;
    const bool is_verdict = kind == FigureKind::verdict;
    if (is_verdict && !leaves_memory_open(one.row, shipped)) {
      validation.verdict_rows.push_back({one.row.case_name, one.row.set, one.row.value == 0, run.lacking <= 0});
    }
    if (tells_whether_it_fits(one.row) && !one.chosen_to_fit && !judged.contains(study)) {
      if (!leaves_memory_open(one.row, shipped)) {
        judged.insert(study);
        const bool fitted = !is_verdict || one.row.value == 0;
        validation.verdicts.push_back({one.row.case_name, one.row.set, fitted, run.lacking <= 0});
      } else if (is_verdict) {
        validation.skipped.push_back({one.row.case_name, "how much memory '" + excerpt(one.row.gpu) + "' has is open",
                                      one.row.metric, one.row.set});
      }
    }
    if (is_verdict) {
      continue;
    }
    const bool taught = is_calibrated(one.row, calibrated) || taught_devices(one.row, highest, devices);
    const bool is_scored = !rests_on_speed(kind) || !taught;
    (is_scored ? validation.rows : validation.calibration).push_back(predicted_row(one, predictions));
    if (is_scored) {
      scored.rows.push_back(&one);
    }
    if (kind == FigureKind::time && is_scored) {
      scored.speeds.push_back({&one.row, &run});
      scored.compared.push_back({&one.row, run.of(timed_parts(one.row))});
    }
  }
  return scored;
}

} // namespace

bool is_truth(const fs::path& path) { return !tables_at(path).empty(); }

Validation validate_truth(std::span<const fs::path> paths, const ValidateOptions& options) {
  Validation validation{.source = "tables of measured runs"};
  std::vector<TruthRow> rows;
  HighestCaps highest;
  std::set<std::string> cases;
  for (const fs::path& file : tables_of(paths)) {
    validation.inputs.push_back(file.string());
    for (TruthRow& row : read_truth(file)) {
      cases.insert(row.case_name);
      double& cap = highest[{row.set, row.gpu}];
      cap = std::max(cap, row.power_cap);
      if (passes(row, options.filters)) {
        rows.push_back(std::move(row));
      }
    }
  }
  AskedRows asked = ask_rows(std::move(rows), options.shipped);
  std::vector<TruthPrediction> predictions = predict_studies(asked.studies, options);
  recompute_to_fit(asked, predictions, options);
  if (!options.studies.empty()) {
    write_studies(asked, options.studies);
  }
  const ScoredRows scored = score_rows(asked, predictions, options.shipped, highest, validation);
  const bool without_recipes = std::any_of(options.settings.begin(), options.settings.end(), [](const Setting& one) {
    return one.key == "training.framework" && one.value == kNoFramework;
  });
  const std::vector<ErrorFamily> families =
      add_intervals(validation.rows, scored.rows, predictions,
                    shipped_error_families({.study = {}, .shipped = options.shipped}), without_recipes);
  for (std::size_t at = 0; at < scored.rows.size(); ++at) {
    widen_interval(validation.rows[at], *scored.rows[at], predictions);
  }
  if (!options.errors.empty()) {
    write_file(options.errors, kErrorsHead + error_families_text(families));
  }
  validation.baselines = baselines_of(scored.speeds);
  validation.noise = noise_of(asked.rows);
  validation.what_ifs = what_ifs_of(scored.compared, validation.noise);
  validation.rankings = rankings_of(scored.compared);
  validation.notes = sentences_of(validation.what_ifs, validation.rankings);
  std::set<fs::path> folders;
  for (const std::string& file : validation.inputs) {
    const fs::path folder = fs::path(file).has_parent_path() ? fs::path(file).parent_path() : fs::path(".");
    if (const std::string note = folders.insert(folder).second ? flags_without_row(folder, cases) : ""; !note.empty()) {
      validation.notes.push_back(note);
    }
  }
  return validation;
}

} // namespace stagecraft
