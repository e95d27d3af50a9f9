// One SQLite file: its connection, its statements, and the errors to throw when it refuses. A file that was there
// already may be a stranger's, so it is checked before anything is read from it. No other code knows SQLite
// (docs/decisions/0012-sqlite.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/system/digest.hpp"

struct sqlite3; // SQLite's own type, which no caller sees
struct sqlite3_stmt;

namespace stagecraft {

class SqliteFile;

/// A statement of a file: values go in, rows come out. The file owns it.
class SqliteStatement {
public:
  /// A value for parameter `at`, from 1. Texts, digests and bytes must live until the statement is carried out, except
  /// with set_copy().
  void set(int at, std::int64_t value);
  void set(int at, double value);
  void set(int at, std::string_view text);
  void set(int at, const Digest& digest);
  void set_copy(int at, const Digest& digest);
  void set_bytes(int at, std::string_view bytes);
  void set_null(int at);
  /// The parameter called `name`, as ":limit"; 0 where there is none.
  int place(const std::string& name) const;

  /// Runs the statement up to its next row; false where there is none. Throws as SqliteFile does.
  bool step();
  /// Ends it before its last row, so that nobody waits for it any more.
  void reset();

  /// Column `at` of the row, from 0. SQLite keeps values of any type in any column, so each getter throws InputError
  /// with the file, the table and the row where the value is of another type than it gives.
  std::int64_t integer(int at) const;
  std::int64_t integer(int at, std::int64_t low, std::int64_t high) const; ///< the same within bounds
  double real(int at) const;                                               ///< an integer is one too
  std::string text(int at) const;                                          ///< UTF-8 without a NUL
  std::string bytes(int at) const;
  Digest digest(int at) const;
  bool is_null(int at) const;
  /// Throws InputError about column `at` of the row.
  [[noreturn]] void refuse(int at, const std::string& allowed) const;

private:
  friend class SqliteFile;
  SqliteStatement(SqliteFile& file, const std::string& words);

  struct Finalize {
    void operator()(sqlite3_stmt* made) const;
  };
  SqliteFile* file_;
  std::unique_ptr<sqlite3_stmt, Finalize> made_;
  std::uint64_t row_ = 0; // of those that it gave, from 1
};

/// A column whose texts are JSON: "object" or "array", of texts alone.
struct SqliteJson {
  std::string table, column, type;
};

/// The format that a file must have, and the tables that a new file gets.
struct SqliteFormat {
  std::int32_t application = 0; ///< SQLite's application_id
  int schema = 0;               ///< user_version
  std::string tables;           ///< statements that make them
  std::vector<SqliteJson> json = {};
};

class SqliteFile {
public:
  enum class Mode { write, read };
  /// Opens a file. For writing, makes it where it is absent; for reading, it may lie where nothing can be written. Any
  /// refusal, here and below, throws InputError with the file's name and rolls back an open transaction.
  SqliteFile(const std::filesystem::path& path, Mode mode, const SqliteFormat& format);
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Carries out a statement without values or rows.
  void execute(const std::string& words);
  /// The statement with these words, ready for values; it is made once.
  SqliteStatement& statement(std::string_view words);
  /// The first column of a statement's first row; 0 where there is none, or no value in it.
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
  /// Ends the open transaction, if any. Its data then survives the death of this process.
  void commit();

private:
  friend class SqliteStatement;
  void check(int result);
  std::string reason(int result) const;
  [[noreturn]] void fail(int result, const std::string& why);
  void prepare(Mode mode, const SqliteFormat& format);
  void trust_nothing();
  void check_content(const SqliteFormat& format);

  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> connection_;
  bool writing_ = false;
  std::map<std::string, SqliteStatement, std::less<>> statements_; // destroyed before the connection
};

} // namespace stagecraft
