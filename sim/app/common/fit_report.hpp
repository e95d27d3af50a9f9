// How well fits agree with measurements, as tables, JSON and figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/report/table.hpp"

#include "calibrate/fit/evaluate.hpp"

namespace stagecraft {

/// The fits of a device and their errors.
Table table_of_fits(const KernelFits& fits);
nlohmann::ordered_json json_of_fits(const std::string& device, const KernelFits& fits);

/// Rows of one table, measured and predicted.
struct PredictedTable {
  std::string kind;
  std::vector<fit::PredictedRow> rows;
};

FitError error_of(const std::vector<fit::PredictedRow>& rows);
nlohmann::ordered_json json_of_rows(const std::vector<fit::PredictedRow>& rows);
/// The errors of each table; with `all_rows`, followed by every row.
std::string text_of(const std::vector<PredictedTable>& tables, bool all_rows);

/// Draws the errors of the rows into a folder; does nothing where `folder` is "".
void draw_errors(const std::string& folder, const std::string& title, const std::string& name,
                 const std::vector<fit::PredictedRow>& rows);

} // namespace stagecraft
