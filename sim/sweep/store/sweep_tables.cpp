// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/sweep_tables.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace stagecraft {
namespace {

constexpr const char* kTables = R"(
create table sweeps (
  id integer primary key, digest blob not null unique, name text not null, program text not null,
  document text not null, settings text not null, keys text not null, goal text not null, screen text not null,
  study_folder text not null,
  shipped_folder text not null);
create table files (
  sweep integer not null references sweeps(id), path text not null, digest blob not null,
  primary key (sweep, path)) without rowid;
create table contents (digest blob primary key, bytes blob not null);
create table also (
  sweep integer not null references sweeps(id), point integer not null, number integer not null, run integer not null,
  primary key (sweep, point)) without rowid;
create view members as
  select sweep, id as point, number, run from points union all select sweep, point, number, run from also;
)";

std::string create_points() {
  std::string text = "create table points (id integer primary key, key blob not null unique, sweep integer not null "
                     "references sweeps(id), number integer not null, run integer not null, settings text not null, "
                     "strategy text not null, schedule text not null, micro_batches integer not null, recompute text "
                     "not null, engine text not null, status text not null, ran text not null, reason text not null";
  for (const Metric& figure : figures()) {
    text += ", " + std::string(figure.name) + " real";
  }
  return text + ");";
}

std::optional<PointStatus> status_of(const std::string& name) {
  const auto found = std::find_if(kAllStatuses.begin(), kAllStatuses.end(),
                                  [&](PointStatus status) { return name_of(status) == name; });
  return found == kAllStatuses.end() ? std::nullopt : std::optional(*found);
}

} // namespace

SqliteFormat sweep_format() {
  return {.application = 0x53746763 /* "Stgc" */,
          .schema = 6,
          .tables = create_points() + kTables,
          .json = {{"points", "settings", "object"}, {"sweeps", "settings", "object"}, {"sweeps", "keys", "array"}}};
}

std::string point_columns(const std::string& prefix) {
  std::string text;
  for (const char* column : {"number", "run", "settings", "strategy", "schedule", "micro_batches", "recompute",
                             "engine", "status", "ran", "reason"}) {
    text += (text.empty() ? "" : ", ") + prefix + column;
  }
  for (const Metric& figure : figures()) {
    text += ", " + prefix + std::string(figure.name);
  }
  return text;
}

std::string point_assignments(const std::string& row) {
  std::string words;
  const auto add = [&](std::string_view column) {
    words +=
        (words.empty() ? "" : ", ") + std::string(column) + " = " + (row.empty() ? "?" : row + std::string(column));
  };
  for (const char* column : {"status", "ran", "reason"}) {
    add(column);
  }
  for (const Metric& figure : figures()) {
    add(figure.name);
  }
  return words;
}

std::string point_insertion(std::size_t points) {
  std::string row = ", (?, ?";
  for (std::size_t i = 0; i < kPlainPointColumns + kFigures; ++i) {
    row += ", ?";
  }
  row += ")";
  std::string rows;
  for (std::size_t i = 0; i < points; ++i) {
    rows += row;
  }
  return "insert or ignore into points (key, sweep, " + point_columns("") + ") values " + rows.substr(2);
}

int set_point_result(SqliteStatement& statement, int at, const PointView& row) {
  statement.set(at++, name_of(row.status));
  statement.set(at++, row.order);
  statement.set(at++, row.reason);
  for (const double figure : row.figures) {
    if (row.status == PointStatus::feasible && std::isfinite(figure)) {
      statement.set(at++, figure);
    } else {
      statement.set_null(at++);
    }
  }
  return at;
}

int set_point(SqliteStatement& insertion, int at, std::int64_t sweep, const PointView& row) {
  insertion.set_copy(at++, row.key); // the view goes before the statement is carried out
  insertion.set(at++, sweep);
  insertion.set(at++, static_cast<std::int64_t>(row.number));
  insertion.set(at++, static_cast<std::int64_t>(row.run));
  insertion.set(at++, row.settings);
  insertion.set(at++, row.strategy);
  insertion.set(at++, row.schedule);
  insertion.set(at++, static_cast<std::int64_t>(row.micro_batches));
  insertion.set(at++, row.recompute);
  insertion.set(at++, row.engine);
  return set_point_result(insertion, at, row);
}

PointRow point_at(const SqliteStatement& statement, int at) {
  PointRow row;
  row.key = statement.digest(at++);
  row.number = static_cast<std::uint64_t>(statement.integer(at++, 0, std::numeric_limits<std::int64_t>::max()));
  row.run = static_cast<std::uint32_t>(statement.integer(at++, 0, std::numeric_limits<std::uint32_t>::max()));
  row.settings = statement.text(at++);
  row.strategy = statement.text(at++);
  row.schedule = statement.text(at++);
  row.micro_batches = static_cast<int>(statement.integer(at++, 0, std::numeric_limits<int>::max()));
  row.recompute = statement.text(at++);
  row.engine = statement.text(at++);
  const std::optional<PointStatus> status = status_of(statement.text(at));
  if (!status) {
    statement.refuse(at, "feasible, infeasible, failed");
  }
  row.status = *status;
  ++at;
  row.order = statement.text(at++);
  row.reason = statement.text(at++);
  for (double& figure : row.figures) {
    figure = statement.is_null(at) ? std::nan("") : statement.real(at);
    ++at;
  }
  return row;
}

} // namespace stagecraft
