// Flags that several commands have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "sim/app/options.hpp"

namespace stagecraft {

/// A whole number in [low, high]. CLI11 alone reads 010 as 8; leading zeros are refused, as in files.
CLI::Validator whole_number(int low, int high);
/// A time without a unit.
CLI::Validator plain_time();

/// --format, -o, --quiet.
void add_common(CLI::App& command, Options& options, const std::vector<std::string>& formats = {"table", "json"});
/// The same, --set and the flags that stand for its commonest keys.
void add_study_flags(CLI::App& command, Options& options, const std::vector<std::string>& formats = {"table", "json"});
/// How often the cost model's errors are drawn.
void add_confidence_flag(CLI::App& command, Options& options);
/// How a foreign model is read.
void add_import_flags(CLI::App& command, Options& options);
/// MODEL and --platform, or --devices.
void add_model_flags(CLI::App& command, Options& options, bool required);
void add_plan_format(CLI::App& command, Options& options);
/// --plan or --strategy.
void add_plan_choice(CLI::App& command, Options& options);
/// How a run is fitted to a GPU.
void add_gpu_run_flags(CLI::App& command, Options& options);
/// Dialects of schedules in CSV.
void add_dialect_flags(CLI::App& command, Options& options);
/// How foreign measurements are read.
void add_foreign_flags(CLI::App& command, Options& options);

} // namespace stagecraft
