// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/point_lines.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>

#include "sim/base/format/csv.hpp"
#include "sim/sweep/space/sweep_figures.hpp"

namespace stagecraft {

using Json = nlohmann::ordered_json;

namespace {

// A figure of a point: a whole number without a fraction, so that readers take counts for what they are; null where it
// is not known.
Json figure_of(const PointRow& row, double value) {
  constexpr double kExact = 9007199254740992; // 2^53: below it each whole number is a double
  if (row.status != PointStatus::feasible || !std::isfinite(value)) {
    return nullptr;
  }
  return value == std::floor(value) && std::abs(value) < kExact ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

} // namespace

Json json_of(const PointRow& row) {
  Json json;
  json["key"] = to_text(row.key);
  json["settings"] = Json::parse(row.settings);
  json["strategy"] = row.strategy;
  json["schedule"] = row.schedule;
  json["micro_batches"] = row.micro_batches;
  json["recompute"] = row.recompute;
  json["engine"] = row.engine;
  json["feasible"] = row.status == PointStatus::feasible;
  json["status"] = name_of(row.status);
  json["order"] = row.order;
  json["reason"] = row.reason;
  for (std::size_t i = 0; i < kFigures; ++i) {
    json[std::string(figures()[i].name)] = figure_of(row, row.figures.at(i));
  }
  return json;
}

namespace {

constexpr std::string_view kEngineColumn = "engine"; // a column of every point, so an axis `engine` is sweep.engine

} // namespace

std::string csv_head(const std::vector<std::string>& axes) {
  std::string line = "key";
  for (const std::string& axis : axes) {
    line += "," + csv_cell(axis == kEngineColumn ? "sweep." + axis : axis);
  }
  line += ",strategy,schedule,micro_batches,recompute,engine,status,order,reason";
  for (const Metric& figure : figures()) {
    line += "," + std::string(figure.name);
  }
  return line + "\n";
}

std::string csv_line(const PointRow& row, const std::vector<std::string>& axes) {
  const Json settings = Json::parse(row.settings);
  std::string line = to_text(row.key);
  for (const std::string& axis : axes) {
    line += "," + (settings.contains(axis) ? csv_cell(settings[axis].get<std::string>()) : "");
  }
  for (const std::string& text : {row.strategy, row.schedule, std::to_string(row.micro_batches), row.recompute,
                                  row.engine, std::string(name_of(row.status)), row.order, row.reason}) {
    line += "," + csv_cell(text);
  }
  for (const double figure : row.figures) {
    const Json value = figure_of(row, figure);
    line += "," + (value.is_null() ? "" : value.dump());
  }
  return line + "\n";
}

} // namespace stagecraft
