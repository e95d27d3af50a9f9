// Rows of measured figures with the studies that predict them, and their predictions once these are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/report/validation.hpp"
#include "sim/validate/truth/convergence.hpp"
#include "sim/validate/truth/predict_truth.hpp"

namespace stagecraft {

/// A row, and the study that predicts it: the number of a study, or why there is none.
struct AskedRow {
  TruthRow row;
  std::variant<std::size_t, Infeasible> study;
  std::string framework = {};
  std::vector<std::string> assumed = {};
  std::vector<std::size_t> others = {};        ///< studies of other choices that its source leaves open
  std::optional<std::size_t> base = {};        ///< the study whose figure the row's is a part of
  std::optional<TrainingLength> training = {}; ///< of a row that measured a whole one
  bool chosen_to_fit = false;                  ///< its study recomputes what it does, that it may fit
  int recomputed = 0;                          ///< so many blocks of each stage, where it does
};

/// Each study once, and which one each row asks for.
struct AskedRows {
  std::vector<AskedRow> rows;
  std::vector<std::string> studies;
};
AskedRows ask_rows(std::vector<TruthRow> rows, const std::filesystem::path& shipped);

/// Gives each run of which nothing says what it recomputes, and that a device lacks memory for, the study in which its
/// blocks run again, where this takes less: it ran. Where the framework can recompute some blocks of a stage, these are
/// as few as make it fit. Adds these studies, and their predictions.
void recompute_to_fit(AskedRows& asked, std::vector<TruthPrediction>& predictions, const ValidateOptions& options);

/// Why a row is not predicted; "": it is. `predictions`: of AskedRows::studies, here as below.
std::string why_not(const AskedRow& asked, const std::vector<TruthPrediction>& predictions);

/// The row with its prediction. Its study, and the one that it is compared with, were predicted.
ValidationRow predicted_row(const AskedRow& asked, const std::vector<TruthPrediction>& predictions);

/// Widens the interval of a row by what its source leaves open.
void widen_interval(ValidationRow& row, const AskedRow& asked, const std::vector<TruthPrediction>& predictions);

} // namespace stagecraft
