// The lists in the file of a real run whose rows have no keys, only positions. Each list has one table of columns,
// which writes a row and reads it back. docs/formats/run.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/format/json.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// The counts of the things that a row may name by number.
struct RunCounts {
  std::int64_t devices = 0, links = 0, legs = 0, works = 0, tasks = 0;
};

/// One value of the file while it is read. A bad value throws InputError with its place, the list and, in a row,
/// the row's number and the column.
class RunCell {
public:
  static constexpr std::size_t kNoRow = std::string::npos;

  /// The referenced texts must outlive it.
  RunCell(const json::Value& value, const json::Source& source, std::string_view list, std::size_t row = kNoRow,
          std::string_view column = "")
      : value_(value), source_(source), list_(list), row_(row), column_(column) {}

  /// The value at `at` in a row of `columns` columns; throws where it is not such a row.
  RunCell cell(std::size_t at, std::size_t columns, std::string_view name) const;

  const json::Value& value() const { return value_; }
  /// A number of at least 0, or `otherwise` where the file says null.
  double number(double otherwise) const;
  /// A number of at least 0; null is infinity.
  double number() const;
  std::int32_t index(std::int64_t low, std::int64_t high) const;
  std::string text() const;
  /// A list with `size` values.
  const json::Value& list(std::size_t size) const;
  [[noreturn]] void fail(const std::string& what) const;

private:
  const json::Value& value_;
  const json::Source& source_;
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

/// A tie of the graph, with the task that it starts from.
struct RunTie {
  TaskId task = 0, to = 0;
  std::int32_t iterations = 0;
};

/// How many times as long a work takes while another device does work `other`.
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

/// Writes any row above as a list of its columns' values.
template <class Row> nlohmann::ordered_json write_row(RunColumns<Row> columns, const Row& row);

/// Reads a row back. A member without a column keeps its default.
template <class Row> Row read_row(RunColumns<Row> columns, const RunCell& cell, const RunCounts& counts) {
  Row row;
  for (std::size_t at = 0; at < columns.size(); ++at) {
    columns[at].read(cell.cell(at, columns.size(), columns[at].name), counts, row);
  }
  return row;
}

} // namespace stagecraft
