// The lists of a file of a real run whose rows are told by position: one table of columns for each, which writes a row
// and reads it back. docs/formats/run.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/schedule/task_graph/task_graph.hpp"
#include "sim/workload/import/json_document.hpp"

namespace stagecraft {

/// How many there are of what a row may name by its number.
struct RunCounts {
  std::int64_t devices = 0, links = 0, legs = 0, works = 0, tasks = 0;
};

/// One value of the file while it is read. What is wrong with it throws InputError with the file, the list and, in a
/// row, its number and column.
class RunCell {
public:
  static constexpr std::size_t kNoRow = std::string::npos;

  /// The referenced texts must outlive it.
  RunCell(const json::Value& value, const std::string& file, std::string_view list, std::size_t row = kNoRow,
          std::string_view column = "")
      : value_(value), file_(file), list_(list), row_(row), column_(column) {}

  /// Of a row of so many columns, the one at `at`; refuses what is no such row.
  RunCell cell(std::size_t at, std::size_t columns, std::string_view name) const;

  const json::Value& value() const { return value_; }
  /// At least 0; where the file says null, `otherwise`.
  double number(double otherwise) const;
  /// At least 0; null is infinity.
  double number() const;
  std::int32_t index(std::int64_t low, std::int64_t high) const;
  std::string text() const;
  /// A list of so many.
  const json::Value& list(std::size_t size) const;
  [[noreturn]] void fail(const std::string& what) const;

private:
  const json::Value& value_;
  const std::string& file_;
  std::string_view list_;
  std::size_t row_;
  std::string_view column_;
};

template <class Row> struct RunColumn {
  std::string_view name, unit;
  nlohmann::ordered_json (*write)(const Row& row);
  void (*read)(const RunCell& cell, const RunCounts& counts, Row& row);
};

template <class Row> using RunColumns = std::span<const RunColumn<Row>>;

/// A tie of the graph with the task that it starts from.
struct RunTie {
  TaskId task = 0, to = 0;
  std::int32_t iterations = 0;
};

/// How many times as long a work takes while another device does the other.
struct RunContention {
  std::int64_t work = 0, other = 0;
  double times = 1;
};

RunColumns<Link> link_columns();          ///< platform.links
RunColumns<Work> work_columns();          ///< graph.works
RunColumns<Leg> leg_columns();            ///< graph.legs
RunColumns<RunTie> tie_columns();         ///< graph.ties
RunColumns<PathCost> part_columns();      ///< parts.legs
RunColumns<RunContention> pair_columns(); ///< parts.contention

/// A list of the columns' values, of any row above.
template <class Row> nlohmann::ordered_json write_row(RunColumns<Row> columns, const Row& row);

/// What the columns do not say keeps its default.
template <class Row> Row read_row(RunColumns<Row> columns, const RunCell& cell, const RunCounts& counts) {
  Row row;
  for (std::size_t at = 0; at < columns.size(); ++at) {
    columns[at].read(cell.cell(at, columns.size(), columns[at].name), counts, row);
  }
  return row;
}

} // namespace stagecraft
