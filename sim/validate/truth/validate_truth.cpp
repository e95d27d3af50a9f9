// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/validate_truth.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/system/file.hpp"
#include "sim/study/take_config.hpp"
#include "sim/validate/truth/baselines.hpp"
#include "sim/validate/truth/convergence.hpp"
#include "sim/validate/truth/intervals.hpp"
#include "sim/validate/truth/open_cells.hpp"
#include "sim/validate/truth/predict_truth.hpp"
#include "sim/validate/truth/truth_study.hpp"
#include "sim/validate/truth/what_ifs.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> tables_at(const fs::path& path) { return files_at(path, is_truth_table); }

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

// A row, and the study that predicts it: the number of a study, or why there is none.
struct AskedRow {
  TruthRow row;
  std::variant<std::size_t, Infeasible> study;
  std::string framework = {};
  std::vector<std::string> assumed = {};
  std::vector<std::size_t> others = {};        ///< studies of other choices that its source leaves open
  std::optional<std::size_t> base = {};        ///< the study whose figure the row's is a part of
  std::optional<TrainingLength> training = {}; ///< of a row that measured a whole one
};

FamilyTraits traits_of(const AskedRow& asked) {
  return {.time = asked.row.known->kind == FigureKind::time,
          .power = asked.row.known->kind == FigureKind::power,
          .mixture = asked.row.sizes.experts > 0,
          .several_nodes = asked.row.nodes > 1,
          .framework = asked.framework};
}

// What exchanges its rows for those of other models: its architecture and sizes.
std::string model_of(const TruthRow& row) {
  const TruthSizes& sizes = row.sizes;
  return plain_words(row.model) + " " + std::to_string(sizes.layers) + " " + std::to_string(sizes.hidden) + " " +
         std::to_string(sizes.heads);
}

const std::string kErrorsHead =
    "# How far off predictions of measured runs were: `stagecraft validate TABLES --errors FILE`, docs/validation.md.\n"
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

BoundedRows bounded_rows(const std::vector<ValidationRow>& rows, const std::vector<const AskedRow*>& asked) {
  BoundedRows bounded;
  for (const bool open : {false, true}) {
    for (std::size_t at = 0; at < rows.size(); ++at) {
      if (has_families(asked[at]->row.known->kind) && asked[at]->others.empty() != open) {
        bounded.all.push_back(
            {model_of(asked[at]->row), families_of(traits_of(*asked[at])), rows[at].measured, rows[at].predicted});
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
                                       const std::vector<ErrorFamily>& shipped, bool without_recipes) {
  BoundedRows bounded = bounded_rows(rows, asked);
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
    } else if (const auto family = narrowest_family(shipped, traits_of(*asked[at]))) {
      row.family = family->name;
      row.low = row.predicted / family->factor;
      row.high = row.predicted * family->factor;
    }
  }
  return without_recipes ? families_without_recipes(std::move(bounded.closed)) : error_families_of(bounded.closed);
}

// Each study once, and which one each row asks for.
struct Asked {
  std::vector<AskedRow> rows;
  std::vector<std::string> studies;
};

// Studies by their text, in order of first appearance.
class StudyNumbers {
public:
  explicit StudyNumbers(std::vector<std::string>& studies) : studies_(studies) {}

  std::size_t operator()(const std::string& text) {
    const auto [slot, is_new] = numbers_.try_emplace(text, studies_.size());
    if (is_new) {
      studies_.push_back(text);
    }
    return slot->second;
  }

private:
  std::vector<std::string>& studies_;
  std::map<std::string, std::size_t> numbers_;
};

// Asks for what the row's figure needs beside its own study. Infeasible where there is no such thing.
std::optional<Infeasible> ask_beside(AskedRow& asked, const fs::path& shipped, StudyNumbers& number_of) {
  const TruthMetric& metric = *asked.row.known;
  if (metric.kind == FigureKind::training) {
    auto length = training_length(asked.row);
    if (auto* reason = std::get_if<Infeasible>(&length)) {
      return std::move(*reason);
    }
    asked.training = std::get<TrainingLength>(std::move(length));
    asked.assumed.push_back(asked.training->assumed);
  }
  if (metric.base != nullptr) {
    auto study = truth_study(metric.base(asked.row), shipped);
    if (auto* reason = std::get_if<Infeasible>(&study)) {
      return std::move(*reason);
    }
    asked.base = number_of(std::get<TruthStudy>(study).text);
    if (*asked.base == std::get<std::size_t>(asked.study)) {
      return Infeasible{"it is the run that others are compared with"};
    }
  }
  return std::nullopt;
}

AskedRow ask(TruthRow row, const fs::path& shipped, StudyNumbers& number_of) {
  fill_published_sizes(row);
  FilledCells filled = fill_open_cells(row);
  auto study = truth_study(row, shipped);
  if (auto* reason = std::get_if<Infeasible>(&study)) {
    return {std::move(row), std::move(*reason)};
  }
  auto& made = std::get<TruthStudy>(study);
  AskedRow asked{std::move(row), number_of(made.text), made.framework, std::move(made.assumed)};
  if (!filled.assumed.empty()) {
    asked.assumed.push_back(std::move(filled.assumed));
  }
  for (const TruthRow& other : filled.others) {
    if (auto other_study = truth_study(other, shipped); std::holds_alternative<TruthStudy>(other_study)) {
      asked.others.push_back(number_of(std::get<TruthStudy>(other_study).text));
    }
  }
  if (auto reason = ask_beside(asked, shipped, number_of)) {
    asked.study = std::move(*reason);
  }
  return asked;
}

Asked ask(std::vector<TruthRow> rows, const fs::path& shipped) {
  Asked asked;
  StudyNumbers number_of(asked.studies);
  for (TruthRow& row : rows) {
    asked.rows.push_back(ask(std::move(row), shipped, number_of));
  }
  return asked;
}

// What the row's note says that its time is of.
TimedParts timed_parts(const TruthRow& row) {
  const auto notes = [&](std::string_view words) { return row.note.find(words) != std::string::npos; };
  return notes("forward only") ? TimedParts::forward : notes("no optimizer") ? TimedParts::passes : TimedParts::all;
}

// Of each table, how far measurements of one configuration are from the median of the others, in the median.
std::map<std::string, double> noise_of(const std::vector<AskedRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const TruthRow*>> equal;
  for (const AskedRow& asked : rows) {
    if (std::holds_alternative<std::size_t>(asked.study) && asked.row.known->kind == FigureKind::time) {
      equal[{configuration_of(asked.row), asked.row.metric}].push_back(&asked.row);
    }
  }
  std::map<std::string, std::vector<double>> errors;
  for (const auto& [configuration, measured] : equal) {
    for (const TruthRow* one : measured) {
      std::vector<double> others;
      for (const TruthRow* other : measured) {
        if (other != one) {
          others.push_back(other->value);
        }
      }
      if (!others.empty()) {
        errors[one->set].push_back(std::abs(quantile(others, 0.5) / one->value - 1));
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

// Whether the row says that its run fitted or not: it says so itself, or the whole run was measured; on a device of
// known memory.
bool tells_whether_it_fits(const TruthRow& row, const fs::path& shipped) {
  const FigureKind kind = row.known->kind;
  const bool ran = kind == FigureKind::time || kind == FigureKind::power || kind == FigureKind::training ||
                   row.known->key == "peak_memory_bytes";
  const bool whole = timed_parts(row) == TimedParts::all && !row.metric.starts_with("layer_");
  return (kind == FigureKind::verdict || (ran && whole)) && !leaves_memory_open(row, shipped);
}

// What a run gives for the row's figure.
double figure_of_row(const AskedRow& asked, const PredictedRun& run) {
  PredictedRun parts = run.of(timed_parts(asked.row));
  if (asked.training) {
    parts.training = seconds_to_train(*asked.training, run);
  }
  return asked.row.known->predict(parts);
}

// Why a row is not predicted; "": it is.
std::string why_not(const AskedRow& asked, const std::vector<TruthPrediction>& predictions) {
  const auto reason_of_study = [&](std::size_t study) {
    const auto* reason = std::get_if<Infeasible>(&predictions[study]);
    return reason == nullptr ? std::string() : reason->reason;
  };
  if (const auto* reason = std::get_if<Infeasible>(&asked.study)) {
    return reason->reason;
  }
  const std::string own = reason_of_study(std::get<std::size_t>(asked.study));
  return own.empty() && asked.base ? reason_of_study(*asked.base) : own;
}

// The row with its prediction. Its study, and the one that it is compared with, were predicted.
ValidationRow predicted_row(const AskedRow& asked, const std::vector<TruthPrediction>& predictions) {
  const auto run_of = [&](std::size_t study) -> const PredictedRun& {
    return std::get<PredictedRun>(predictions[study]);
  };
  const PredictedRun& run = run_of(std::get<std::size_t>(asked.study));
  const double whole = asked.base ? figure_of_row(asked, run_of(*asked.base)) : 1;
  ValidationRow row{.case_name = asked.row.case_name,
                    .metric = std::string(asked.row.known->key),
                    .group = asked.row.set,
                    .measured = asked.row.value,
                    .predicted = figure_of_row(asked, run) / whole,
                    .assumed = asked.assumed,
                    .beside = asked.row.known->kind == FigureKind::training};
  if (run.lacking > 0) {
    row.assumed.push_back("that it fits, though a device lacks " + to_text(Bytes{run.lacking}));
  }
  return row;
}

// Widens the interval of a row by what its source leaves open.
void widen(ValidationRow& row, const AskedRow& asked, const std::vector<TruthPrediction>& predictions) {
  const double low = row.low / row.predicted, high = row.high / row.predicted;
  for (const std::size_t other : asked.others) {
    if (const auto* run = std::get_if<PredictedRun>(&predictions[other]); run != nullptr && row.high > 0) {
      const double figure = figure_of_row(asked, *run);
      row.low = std::min(row.low, figure * low);
      row.high = std::max(row.high, figure * high);
    }
  }
}

// The study of each row that has one, to be looked at and run alone.
void write_studies(const Asked& asked, const fs::path& folder) {
  fs::create_directories(folder);
  for (const AskedRow& one : asked.rows) {
    if (const auto* study = std::get_if<std::size_t>(&one.study)) {
      write_file((folder / (one.row.case_name + ".yaml")).string(), asked.studies[*study]);
    }
  }
}

} // namespace

bool is_truth(const fs::path& path) { return !tables_at(path).empty(); }

Validation validate_truth(const fs::path& path, const ValidateOptions& options) {
  Validation validation{.source = "tables of measured runs"};
  std::vector<TruthRow> rows;
  for (const fs::path& file : tables_at(path)) {
    validation.inputs.push_back(file.string());
    for (TruthRow& row : read_truth(file)) {
      if (passes(row, options.filters)) {
        rows.push_back(std::move(row));
      }
    }
  }
  const Asked asked = ask(std::move(rows), options.shipped);
  if (!options.studies.empty()) {
    write_studies(asked, options.studies);
  }
  const std::vector<TruthPrediction> predictions = predict_studies(asked.studies, options);
  const std::vector<CalibratedModel> calibrated = calibrated_models(options.shipped);
  std::vector<SpeedRow> speeds;
  std::vector<const AskedRow*> scored;
  std::vector<ComparedRun> compared;
  std::set<std::size_t> judged; // studies whose runs are known to have fitted or not
  for (const AskedRow& one : asked.rows) {
    if (const std::string reason = why_not(one, predictions); !reason.empty()) {
      validation.skipped.push_back({one.row.case_name, reason});
      continue;
    }
    const std::size_t study = std::get<std::size_t>(one.study);
    const auto& run = std::get<PredictedRun>(predictions[study]);
    const FigureKind kind = one.row.known->kind;
    if (tells_whether_it_fits(one.row, options.shipped) && judged.insert(study).second) {
      const bool fitted = kind != FigureKind::verdict || one.row.value == 0;
      validation.verdicts.push_back({one.row.case_name, one.row.set, fitted, run.lacking <= 0});
    }
    if (kind == FigureKind::verdict) {
      continue;
    }
    const bool is_scored = !rests_on_speed(kind) || !is_calibrated(one.row, calibrated);
    (is_scored ? validation.rows : validation.calibration).push_back(predicted_row(one, predictions));
    if (is_scored) {
      scored.push_back(&one);
    }
    if (kind == FigureKind::time && is_scored) {
      speeds.push_back({&one.row, &run});
      compared.push_back({&one.row, run.of(timed_parts(one.row))});
    }
  }
  const bool without_recipes = std::any_of(options.settings.begin(), options.settings.end(), [](const Setting& one) {
    return one.key == "training.framework" && one.value == kNoFramework;
  });
  const std::vector<ErrorFamily> families = add_intervals(
      validation.rows, scored, shipped_error_families({.study = {}, .shipped = options.shipped}), without_recipes);
  for (std::size_t at = 0; at < scored.size(); ++at) {
    widen(validation.rows[at], *scored[at], predictions);
  }
  if (!options.errors.empty()) {
    write_file(options.errors, kErrorsHead + error_families_text(families));
  }
  validation.baselines = baselines_of(speeds);
  validation.noise = noise_of(asked.rows);
  validation.what_ifs = what_ifs_of(compared, validation.noise);
  validation.rankings = rankings_of(compared);
  validation.notes = sentences_of(validation.what_ifs, validation.rankings);
  return validation;
}

} // namespace stagecraft
