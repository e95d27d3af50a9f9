// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/validators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

#include "sim/base/error.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"
#include "sim/validate/truth/validate_truth.hpp"

namespace stagecraft {
namespace {

constexpr std::array kValidators = {
    ValidatorRow{"perseus", "a folder of runs.csv, stages.csv, plans.csv: pipelines at many clocks, time and energy",
                 is_perseus, validate_perseus},
    ValidatorRow{"sailor",
                 "a folder of measured_summary.csv, profiles_simulator.json, llm_info.json: plans that Sailor measured",
                 is_sailor, validate_sailor},
    ValidatorRow{"runs", "a file that `execute` wrote, or a folder of them: real runs beside their prediction", is_runs,
                 validate_runs},
    ValidatorRow{"witness",
                 "a file with the key `witness`, or a folder of them: layers, step and memory in a framework",
                 is_witness, validate_witness},
    ValidatorRow{"truth", "a CSV table of measured runs, or a folder of them: runs that others published", is_truth,
                 [](const std::filesystem::path& path, const ValidateOptions& options) {
                   return validate_truth({&path, 1}, options);
                 }},
};

bool has_no_error(const ValidationRow& row) { return !std::isfinite(row.error()); }

// Rows that have no relative error become skipped cases, so that no mean is infinite because of them.
Validation without_rows_of_nothing(Validation validation) {
  for (const ValidationRow& row : validation.rows) {
    if (has_no_error(row)) {
      validation.skipped.push_back({row.case_name,
                                    row.metric + (row.measured == 0 ? ": measured as 0" : ": not a finite number"),
                                    row.metric, row.group});
    }
  }
  std::erase_if(validation.rows, has_no_error);
  for (auto& [name, rows] : validation.baselines) {
    std::erase_if(rows, has_no_error);
  }
  return validation;
}

// Refuses what is no UTF-8, and a first line without a comma that has what other spreadsheets write in its place.
void check_separators(const std::filesystem::path& path) {
  const std::string text = read_file(path.string());
  check_utf8(text, path.string());
  const std::string header = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t other = header.find_first_of(";\t");
  if (header.find(',') == std::string::npos && other != std::string::npos) {
    throw InputError({path.string(), 1, static_cast<int>(other) + 1},
                     "cells are separated by " + std::string(header[other] == ';' ? "semicolons" : "tabs") +
                         "; allowed: commas");
  }
}

void check_exists(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::exists(path, failure)) {
    return;
  }
  const bool none = !failure || failure == std::errc::no_such_file_or_directory;
  throw InputError({path.string()}, none ? "no such file or folder" : "cannot be read: " + failure.message());
}

} // namespace

std::span<const ValidatorRow> validators() { return kValidators; }

Validation validate(const std::filesystem::path& path, const ValidateOptions& options) {
  check_exists(path);
  std::string known;
  for (const ValidatorRow& row : kValidators) {
    if (row.accepts(path)) {
      return without_rows_of_nothing(row.validate(path, options));
    }
    known += (known.empty() ? "" : "; ") + std::string(row.help);
  }
  if (path.extension() == ".csv") {
    check_separators(path);
    throw InputError({path.string(), 1, 1}, "a table of measured runs needs the columns " +
                                                join(missing_columns(path)) +
                                                ", too; docs/formats/truth.md has them all");
  }
  throw InputError({path.string()}, "no measured runs of a known kind; allowed: " + known);
}

Validation validate(std::span<const std::filesystem::path> paths, const ValidateOptions& options) {
  if (paths.size() == 1) {
    return validate(paths.front(), options);
  }
  for (const std::filesystem::path& path : paths) {
    check_exists(path);
    if (!is_truth(path)) {
      throw InputError({path.string()},
                       "no table of measured runs; allowed beside another path: such tables, and folders of them");
    }
  }
  return without_rows_of_nothing(validate_truth(paths, options));
}

} // namespace stagecraft
