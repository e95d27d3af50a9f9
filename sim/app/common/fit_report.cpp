// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/fit_report.hpp"

#include <nlohmann/json.hpp>

#include "sim/app/common/output.hpp"
#include "sim/base/format/schema.hpp"

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/residual_plot.hpp"

namespace stagecraft {

using fit::PredictedRow;

Table table_of_fits(const KernelFits& fits) {
  Table table{{{"fit"},
               {"form"},
               {"points", Align::right},
               {"MAPE", Align::right},
               {"median", Align::right},
               {"p90", Align::right},
               {"bias", Align::right},
               {"held back"}},
              {}};
  const auto add = [&](const std::string& name, const std::string& form, const FitError& error) {
    table.rows.push_back({{name}, {form}});
    if (error.points > 0) {
      for (const std::string& cell : {std::to_string(error.points), percent(error.mean, 1), percent(error.median, 1),
                                      percent(error.p90, 1), percent(error.bias, 1), error.scheme}) {
        table.rows.back().push_back({cell});
      }
    }
  };
  for (const KernelFit& fit : fits.kernels) {
    fit.grid     ? add(fit.name, "grid of " + std::to_string(fit.grid->values.size()), fit.grid->error)
    : fit.family ? add(fit.name, "family", fit.family->error)
                 : add(fit.name, "line of " + std::to_string(fit.line->segments.size()), fit.line->error);
  }
  for (const CopyFit& fit : fits.copies) {
    add("copy " + fit.from + " to " + fit.to + (fit.memory.empty() ? "" : ", " + fit.memory) +
            (fit.both_ways ? ", both ways" : ""),
        "line of " + std::to_string(fit.line.segments.size()), fit.line.error);
  }
  for (const CollectiveFit& fit : fits.collectives) {
    add(fit.op + " of " + std::to_string(fit.devices), "line of " + std::to_string(fit.line.segments.size()),
        fit.line.error);
  }
  for (const DispatchFit& fit : fits.dispatches) {
    add(fit.op + " on " + std::to_string(fit.nodes) + (fit.nodes == 1 ? " node, " : " nodes, ") +
            std::to_string(fit.processors) + " multiprocessors",
        "line", fit.error);
  }
  if (fits.power) {
    add("power", "sum below a cap", fits.power->error);
  }
  return table;
}

nlohmann::ordered_json json_of_fits(const std::string& name, const KernelFits& fits) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto add = [&](const std::string& fit, const char* form, const FitError& error) {
    rows.push_back({{"fit", fit},
                    {"form", form},
                    {"points", error.points},
                    {"mape", error.mean},
                    {"median_ape", error.median},
                    {"p90_ape", error.p90},
                    {"bias", error.bias},
                    {"scheme", error.scheme}});
  };
  for (const KernelFit& fit : fits.kernels) {
    fit.grid     ? add(fit.name, "grid", fit.grid->error)
    : fit.family ? add(fit.name, "family", fit.family->error)
                 : add(fit.name, "line", fit.line->error);
  }
  for (const CopyFit& fit : fits.copies) {
    add("copy/" + fit.from + "/" + fit.to + (fit.memory.empty() ? "" : "/" + fit.memory), "line", fit.line.error);
  }
  for (const CollectiveFit& fit : fits.collectives) {
    add(fit.op + "/" + std::to_string(fit.devices), "line", fit.line.error);
  }
  for (const DispatchFit& fit : fits.dispatches) {
    add(fit.op + "/" + std::to_string(fit.nodes) + "/" + std::to_string(fit.processors), "line", fit.error);
  }
  return {{"schema", kSchema}, {"device", name}, {"measured", fits.measured.size()}, {"fits", rows}};
}

FitError error_of(const std::vector<PredictedRow>& rows) {
  std::vector<double> errors;
  for (const PredictedRow& row : rows) {
    errors.push_back(row.error());
  }
  return fit::error_of(errors, "");
}

nlohmann::ordered_json json_of_rows(const std::vector<PredictedRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PredictedRow& row : rows) {
    list.push_back({{"kernel", row.kernel},
                    {"source", row.source},
                    {"measured", row.measured.value},
                    {"predicted", row.predicted.value},
                    {"error", row.error()}});
  }
  return list;
}

namespace {

std::vector<Cell> cells_of(const std::string& name, const std::vector<PredictedRow>& rows) {
  const FitError error = error_of(rows);
  return {{name},
          {std::to_string(error.points)},
          {percent(error.mean, 2)},
          {percent(error.median, 2)},
          {percent(error.p90, 2)},
          {percent(error.bias, 2)}};
}

} // namespace

std::string text_of(const std::vector<PredictedTable>& tables, bool all_rows) {
  Table sums{{{"table"},
              {"rows", Align::right},
              {"MAPE", Align::right},
              {"median", Align::right},
              {"p90", Align::right},
              {"bias", Align::right}},
             {}};
  Table single{{{"kernel"}, {"by"}, {"measured", Align::right}, {"predicted", Align::right}, {"error", Align::right}},
               {}};
  for (const PredictedTable& table : tables) {
    sums.rows.push_back(cells_of(table.kind, table.rows));
    for (const PredictedRow& row : table.rows) {
      single.rows.push_back(
          {{row.kernel}, {row.source}, {to_text(row.measured)}, {to_text(row.predicted)}, {percent(row.error(), 1)}});
    }
  }
  return (all_rows ? to_text(single, use_color()) + "\n" : "") + to_text(sums, use_color());
}

void draw_errors(const std::string& folder, const std::string& title, const std::string& name,
                 const std::vector<PredictedRow>& rows) {
  if (!folder.empty()) {
    draw_figures(folder, {fit::residual_figure(rows, title, name)});
  }
}

} // namespace stagecraft
