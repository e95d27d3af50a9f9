// One SQLite file of ours: its connection, statements as they are made, and what to say when it refuses. Nothing else
// knows SQLite (docs/decisions/0012-sqlite.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/digest.hpp"

struct sqlite3; // SQLite's own, which no caller sees
struct sqlite3_stmt;

namespace stagecraft {

class SqliteFile;

/// A statement of a file: values go in, rows come out. It is the file's, and lives as long.
class SqliteStatement {
public:
  /// A value for parameter `at`, from 1. Texts, digests and bytes must live until the statement is carried out, but for
  /// a copy.
  void set(int at, std::int64_t value);
  void set(int at, double value);
  void set(int at, std::string_view text);
  void set(int at, const Digest& digest);
  void set_copy(int at, const Digest& digest);
  void set_bytes(int at, std::string_view bytes);
  void set_null(int at);
  /// The parameter called `name`, as ":limit"; 0 where there is none.
  int place(const std::string& name) const;

  /// Carries the statement out as far as its next row; false: it has no more. Throws as SqliteFile does.
  bool step();
  /// Ends it before its last row: nobody waits for it any more.
  void reset();

  /// Column `at` of the row, from 0.
  std::int64_t integer(int at) const;
  double real(int at) const;
  std::string text(int at) const;
  std::string bytes(int at) const;
  Digest digest(int at) const; ///< zeros where there is none
  bool is_null(int at) const;

private:
  friend class SqliteFile;
  SqliteStatement(SqliteFile& file, const std::string& words);

  struct Finalize {
    void operator()(sqlite3_stmt* made) const;
  };
  SqliteFile* file_;
  std::unique_ptr<sqlite3_stmt, Finalize> made_;
};

/// What a file must be, and what is made where it is absent.
struct SqliteFormat {
  std::int32_t application = 0; ///< SQLite's application_id
  int schema = 0;               ///< user_version
  std::string tables;           ///< statements that make them
};

class SqliteFile {
public:
  enum class Mode { write, read };
  /// Opens a file, for writing makes it where it is absent; for reading it may lie where nothing can be written.
  /// Whatever is refused, here and below, throws InputError with the file's name, and ends a transaction without it.
  SqliteFile(const std::filesystem::path& path, Mode mode, const SqliteFormat& format);
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  /// Carries out a statement without values or rows.
  void execute(const std::string& words);
  /// A statement for these words, ready for values; made once.
  SqliteStatement& statement(std::string_view words);
  /// The first column of a statement's first row; 0 where there is none.
  std::int64_t number(std::string_view words);
  /// The first column of all rows.
  std::vector<std::string> texts(std::string_view words);
  /// Rows that the last statement changed.
  std::uint64_t changes() const;
  /// The number of the row that was inserted last.
  std::int64_t last_row() const;

  /// Makes the tables of another file, which is only read, known as NAME.TABLE until `detach NAME`.
  void attach(const std::filesystem::path& path, std::string_view name);

  /// Begins a transaction where none is open.
  void begin();
  /// Ends it where one is: safe from any end of this process.
  void commit();

private:
  friend class SqliteStatement;
  void check(int result);
  std::string reason(int result) const;
  [[noreturn]] void fail(int result, const std::string& why);
  void prepare(Mode mode, const SqliteFormat& format);

  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> connection_;
  bool writing_ = false;
  std::map<std::string, SqliteStatement, std::less<>> statements_; // which go before the connection
};

} // namespace stagecraft
