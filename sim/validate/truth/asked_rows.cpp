// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/asked_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>

#include "sim/validate/truth/open_cells.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

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

AskedRow ask_row(TruthRow row, const fs::path& shipped, StudyNumbers& number_of) {
  fill_published_sizes(row);
  FilledCells filled = fill_open_cells(row);
  auto study = truth_study(row, shipped);
  if (auto* reason = std::get_if<Infeasible>(&study)) {
    return {std::move(row), std::move(*reason)};
  }
  auto& made = std::get<TruthStudy>(study);
  AskedRow asked{std::move(row), number_of(made.text), made.framework, std::move(made.assumed)};
  for (const std::string& flag : asked.row.flags_not_known) {
    asked.assumed.push_back("that " + flag + " of flags.csv, which is not known here, changes nothing");
  }
  if (!filled.assumed.empty()) {
    asked.assumed.push_back(std::move(filled.assumed));
  }
  if (leaves_recompute_open(asked.row)) {
    TruthRow again = asked.row;
    again.recompute = "full";
    filled.others.push_back(std::move(again));
    asked.assumed.emplace_back("that its interval spans a run whose blocks all run again, too");
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

// Whether a table's FLOPs are those of all that ran, as the formula of Narayanan et al. 2021 counts them.
bool counts_recompute(const TruthRow& row) {
  return row.mentions("count recompute") || row.mentions("counts recompute") || row.mentions("hardware FLOP");
}

// What a run gives for the row's figure.
double figure_of_row(const AskedRow& asked, const PredictedRun& run) {
  PredictedRun parts = run.of(timed_parts(asked.row));
  if (counts_recompute(asked.row) && run.mfu > 0) {
    parts.model_flops *= run.hfu / run.mfu;
  }
  if (asked.training) {
    parts.training = seconds_to_train(*asked.training, run);
  }
  return asked.row.known->predict(parts);
}

} // namespace

AskedRows ask_rows(std::vector<TruthRow> rows, const fs::path& shipped) {
  AskedRows asked;
  StudyNumbers number_of(asked.studies);
  for (TruthRow& row : rows) {
    asked.rows.push_back(ask_row(std::move(row), shipped, number_of));
  }
  return asked;
}

namespace {

// A run that a device lacks memory for though nothing says what it recomputes, and the least that makes it fit.
struct Misfit {
  AskedRow* row;
  int all;                   // blocks of a stage
  double lacked;             // bytes, where nothing runs again
  double lacks_with_all = 0; // where all blocks do
  int blocks = 0;            // of each stage that are tried
};

double lacking(const TruthPrediction& prediction) {
  const auto* run = std::get_if<PredictedRun>(&prediction);
  return run == nullptr ? std::numeric_limits<double>::infinity() : run->lacking;
}

int blocks_of_stage(const TruthRow& row) {
  const int flagged = std::atoi(row.flag("vp").c_str());
  const int chunks = std::max(row.degrees.interleave > 0 ? row.degrees.interleave : flagged, 1);
  const int stages = std::max(row.degrees.pipeline, 1) * chunks;
  return std::max((row.sizes.layers + stages - 1) / stages, 1);
}

std::vector<Misfit> misfits_of(AskedRows& asked, const std::vector<TruthPrediction>& predictions) {
  std::vector<Misfit> misfits;
  for (AskedRow& one : asked.rows) {
    const auto* own = std::get_if<std::size_t>(&one.study);
    if (own != nullptr && one.row.known->kind != FigureKind::verdict && recompute_stated(one.row).empty() &&
        lacking(predictions[*own]) > 0) {
      const int all = blocks_of_stage(one.row);
      misfits.push_back({.row = &one, .all = all, .lacked = lacking(predictions[*own]), .blocks = all});
    }
  }
  return misfits;
}

// Predicts each with so many blocks run again. Takes that where it takes less memory, and returns what a device then
// lacks; infinity where it cannot be.
std::vector<double> take_blocks(const std::vector<Misfit*>& misfits, AskedRows& asked,
                                std::vector<TruthPrediction>& predictions, const ValidateOptions& options) {
  std::vector<std::string> studies;
  StudyNumbers number_of(studies);
  std::vector<std::optional<std::size_t>> numbers;
  for (const Misfit* one : misfits) {
    TruthRow again = one->row->row;
    again.recompute = one->blocks < one->all ? "first " + std::to_string(one->blocks) + " blocks" : "full";
    auto study = truth_study(again, options.shipped);
    const auto* made = std::get_if<TruthStudy>(&study);
    numbers.push_back(made == nullptr ? std::nullopt : std::optional(number_of(made->text)));
  }
  const std::vector<TruthPrediction> more = predict_studies(studies, options);
  std::vector<double> lacks;
  for (std::size_t at = 0; at < misfits.size(); ++at) {
    const Misfit& one = *misfits[at];
    lacks.push_back(numbers[at] ? lacking(more[*numbers[at]]) : std::numeric_limits<double>::infinity());
    if (lacks.back() < one.lacked && (lacks.back() <= 0 || one.blocks == one.all)) {
      one.row->study = asked.studies.size() + *numbers[at];
      one.row->chosen_to_fit = true;
      one.row->recomputed = one.blocks;
    }
  }
  asked.studies.insert(asked.studies.end(), studies.begin(), studies.end());
  predictions.insert(predictions.end(), more.begin(), more.end());
  return lacks;
}

// Of blocks that keep about the same, how many of each stage make it fit.
int fewest_blocks(const Misfit& one) {
  return std::max(static_cast<int>(std::ceil(one.all * one.lacked / (one.lacked - one.lacks_with_all))), 1);
}

void say_blocks(const Misfit& one) {
  const int some = one.row->recomputed;
  const std::string what = some < one.all
                               ? std::to_string(some) + " of " + std::to_string(one.all) + " blocks of each stage are"
                               : "blocks are";
  std::replace(one.row->assumed.begin(), one.row->assumed.end(), std::string(kNothingRecomputed),
               what + " recomputed, without which a device lacks " + to_text(Bytes{one.lacked}));
}

} // namespace

void recompute_to_fit(AskedRows& asked, std::vector<TruthPrediction>& predictions, const ValidateOptions& options) {
  std::vector<Misfit> misfits = misfits_of(asked, predictions);
  std::vector<Misfit*> tried;
  std::transform(misfits.begin(), misfits.end(), std::back_inserter(tried), [](Misfit& one) { return &one; });
  const std::vector<double> with_all = take_blocks(tried, asked, predictions, options);
  tried.clear();
  for (std::size_t at = 0; at < misfits.size(); ++at) {
    Misfit& one = misfits[at];
    one.lacks_with_all = with_all[at];
    one.blocks = with_all[at] <= 0 && framework_of(one.row->row).some_blocks ? fewest_blocks(one) : one.all;
    if (one.blocks < one.all) {
      tried.push_back(&one);
    }
  }
  while (!tried.empty()) { // one more of each that does not fit yet
    const std::vector<double> lacks = take_blocks(tried, asked, predictions, options);
    std::vector<Misfit*> still;
    for (std::size_t at = 0; at < tried.size(); ++at) {
      if (lacks[at] > 0 && ++tried[at]->blocks < tried[at]->all) {
        still.push_back(tried[at]);
      }
    }
    tried = std::move(still);
  }
  for (const Misfit& one : misfits) {
    if (one.row->chosen_to_fit) {
      say_blocks(one);
    }
  }
}

std::string why_not(const AskedRow& asked, const std::vector<TruthPrediction>& predictions) {
  const auto reason_of_study = [&](std::size_t study) {
    const auto* reason = std::get_if<Infeasible>(&predictions[study]);
    return reason == nullptr ? std::string() : reason->reason;
  };
  if (const auto* reason = std::get_if<Infeasible>(&asked.study)) {
    return reason->reason;
  }
  std::string why = reason_of_study(std::get<std::size_t>(asked.study));
  if (why.empty() && asked.base) {
    why = reason_of_study(*asked.base);
    const auto* base = std::get_if<PredictedRun>(&predictions[*asked.base]);
    if (base != nullptr && figure_of_row(asked, *base) <= 0) {
      why = "the run that it is compared with keeps nothing";
    }
  }
  return why;
}

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

void widen_interval(ValidationRow& row, const AskedRow& asked, const std::vector<TruthPrediction>& predictions) {
  const double low = row.low / row.predicted, high = row.high / row.predicted;
  for (const std::size_t other : asked.others) {
    if (const auto* run = std::get_if<PredictedRun>(&predictions[other]); run != nullptr && row.high > 0) {
      const double figure = figure_of_row(asked, *run);
      row.low = std::min(row.low, figure * low);
      row.high = std::max(row.high, figure * high);
    }
  }
}

} // namespace stagecraft
