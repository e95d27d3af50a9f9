// One SQLite file of ours: its connection, statements as they are made, and what to say when it refuses. The only place
// but sweep_store.cpp that knows SQLite.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/digest.hpp"

namespace stagecraft {

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
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  /// Carries out a statement without values or rows.
  void execute(const std::string& words);
  /// A statement for these words, ready for values; made once.
  sqlite3_stmt* statement(std::string_view words);
  /// Carries out a statement as far as its next row; false: it has no more.
  bool step(sqlite3_stmt* statement);
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
  void check(int result);
  std::string reason(int result) const;
  [[noreturn]] void fail(int result, const std::string& why);
  void prepare(Mode mode, const SqliteFormat& format);
  void close();

  std::filesystem::path path_;
  sqlite3* connection_ = nullptr;
  bool writing_ = false;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

/// A value for the statement's parameter `at`, from 1. Texts and digests must live until it is carried out.
void set_parameter(sqlite3_stmt* statement, int at, const Digest& digest);
void set_parameter(sqlite3_stmt* statement, int at, std::string_view text);
void set_parameter(sqlite3_stmt* statement, int at, std::int64_t value);

/// The column `at`, from 0, of the statement's row.
std::string text_at(sqlite3_stmt* statement, int at);
Digest digest_at(sqlite3_stmt* statement, int at);

} // namespace stagecraft
