// The tables of a file of sweeps' results, and how a point stands in them. docs/formats/sweep.md describes each column.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "sim/sweep/store/sqlite_file.hpp"
#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

/// The file's marks and tables.
SqliteFormat sweep_format();

/// The columns of the table `points` after id, key and sweep, each with this prefix, as "p.": first the plain ones,
/// then one for each of figures().
std::string point_columns(const std::string& prefix);
constexpr int kPlainPointColumns = 11;

/// A statement that inserts so many points at once and leaves those that are there. (One that could fail half-way, as
/// an upsert can, would keep a journal of its own: three times the bytes.)
std::string point_insertion(std::size_t points);
/// Binds a whole point to the parameters of point_insertion() from `at` on; gives the first parameter after it.
int set_point(SqliteStatement& insertion, int at, std::int64_t sweep, const PointView& row);

/// Words that assign each column of what became of a point: from the row `row`, as "excluded.", or, "", parameters.
std::string point_assignments(const std::string& row);
/// Binds what became of a point to the parameters of point_assignments("") from `at` on; gives the first one after it.
int set_point_result(SqliteStatement& statement, int at, const PointView& row);

/// The point in a row whose columns from `at` on are key and point_columns().
PointRow point_at(const SqliteStatement& statement, int at);

} // namespace stagecraft
