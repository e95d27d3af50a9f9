// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/asked_rows.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/validate/truth/open_cells.hpp"
#include "sim/validate/truth/rows/truth_study.hpp"

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

void recompute_to_fit(AskedRows& asked, std::vector<TruthPrediction>& predictions, const ValidateOptions& options) {
  struct Choice {
    AskedRow* row;
    std::size_t study; // among the new ones
  };
  std::vector<Choice> choices;
  std::vector<std::string> studies;
  StudyNumbers number_of(studies);
  const auto lacking = [](const TruthPrediction& prediction) {
    const auto* run = std::get_if<PredictedRun>(&prediction);
    return run == nullptr ? std::numeric_limits<double>::infinity() : run->lacking;
  };
  for (AskedRow& one : asked.rows) {
    const auto* own = std::get_if<std::size_t>(&one.study);
    if (own == nullptr || one.row.known->kind == FigureKind::verdict || !recompute_stated(one.row).empty() ||
        lacking(predictions[*own]) <= 0) {
      continue;
    }
    TruthRow again = one.row;
    again.recompute = "full";
    if (auto study = truth_study(again, options.shipped); std::holds_alternative<TruthStudy>(study)) {
      choices.push_back({&one, number_of(std::get<TruthStudy>(study).text)});
    }
  }
  const std::vector<TruthPrediction> more = predict_studies(studies, options);
  const std::size_t before = asked.studies.size();
  for (const Choice& choice : choices) {
    AskedRow& row = *choice.row;
    const double lacked = lacking(predictions[std::get<std::size_t>(row.study)]);
    if (lacking(more[choice.study]) < lacked) {
      row.study = before + choice.study;
      row.chosen_to_fit = true;
      std::replace(row.assumed.begin(), row.assumed.end(), std::string(kNothingRecomputed),
                   "blocks are recomputed, without which a device lacks " + to_text(Bytes{lacked}));
    }
  }
  asked.studies.insert(asked.studies.end(), studies.begin(), studies.end());
  predictions.insert(predictions.end(), more.begin(), more.end());
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
