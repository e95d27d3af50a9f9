// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/sqlite_file.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

#include "sim/base/error.hpp"
#include "sim/base/limits.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

constexpr const char* kInMemory = ":memory:"; // SQLite's name for a database without a file

// A file with a write-ahead log needs other files beside it, even for reading.
bool may_write(const fs::path& path) {
  return access(path.c_str(), W_OK) == 0 && access(fs::absolute(path).parent_path().c_str(), W_OK) == 0;
}

// The name under which SQLite opens an existing file: its path; or, where nothing can be written and its log is empty,
// a name that says the file does not change (sqlite.org/uri.html).
std::string name_to_read(const fs::path& path) {
  std::string plain = fs::absolute(path).string();
  std::error_code failure;
  const std::uintmax_t waiting = fs::file_size(plain + "-wal", failure);
  if (may_write(path) || (!failure && waiting > 0)) {
    return plain;
  }
  std::string name = "file:";
  for (const char letter : plain) {
    const bool means = letter == '%' || letter == '?' || letter == '#';
    name += !means ? std::string(1, letter) : letter == '%' ? "%25" : letter == '?' ? "%3f" : "%23";
  }
  return name + "?immutable=1";
}

} // namespace

SqliteFile::SqliteFile(const fs::path& path, Mode mode, const SqliteFormat& format) : path_(path) {
  std::error_code failure;
  if (mode == Mode::read && !fs::is_regular_file(path, failure)) {
    throw InputError({path.string(), 0, 0}, "no such file of results");
  }
  const bool writes = mode == Mode::write || may_write(path);
  const int flags = (writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI |
                    (mode == Mode::write ? SQLITE_OPEN_CREATE : 0);
  const std::string name = path == kInMemory     ? kInMemory
                           : mode == Mode::write ? fs::absolute(path).string()
                                                 : name_to_read(path);
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(name.c_str(), &opened, flags, nullptr);
  connection_.reset(opened); // also where opening failed: SQLite reports the error through it
  if (result != SQLITE_OK) {
    const std::string why = opened != nullptr ? sqlite3_errmsg(opened) : "no memory";
    throw InputError({path.string(), 0, 0}, "cannot be opened: " + why);
  }
  prepare(mode, format);
}

void SqliteFile::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

void SqliteFile::execute(const std::string& words) {
  check(sqlite3_exec(connection_.get(), words.c_str(), nullptr, nullptr, nullptr));
}

SqliteStatement& SqliteFile::statement(std::string_view words) {
  auto found = statements_.find(words);
  if (found == statements_.end()) {
    const std::string key(words);
    found = statements_.emplace(key, SqliteStatement(*this, key)).first;
  }
  SqliteStatement& made = found->second;
  made.reset();
  sqlite3_clear_bindings(made.made_.get());
  return made;
}

std::int64_t SqliteFile::number(std::string_view words) {
  SqliteStatement& asked = statement(words);
  const std::int64_t value = asked.step() && !asked.is_null(0) ? asked.integer(0) : 0;
  asked.reset();
  return value;
}

std::vector<std::string> SqliteFile::texts(std::string_view words) {
  std::vector<std::string> all;
  SqliteStatement& asked = statement(words);
  while (asked.step()) {
    all.push_back(asked.text(0));
  }
  return all;
}

std::uint64_t SqliteFile::changes() const { return static_cast<std::uint64_t>(sqlite3_changes64(connection_.get())); }

std::int64_t SqliteFile::last_row() const { return sqlite3_last_insert_rowid(connection_.get()); }

void SqliteFile::attach(const fs::path& path, std::string_view name) {
  SqliteStatement& words = statement("attach ? as " + std::string(name));
  const std::string file = name_to_read(path);
  words.set(1, file);
  words.step();
}

void SqliteFile::begin() {
  if (!writing_) {
    execute("begin immediate");
    writing_ = true;
  }
}

void SqliteFile::commit() {
  if (writing_) {
    writing_ = false;
    execute("commit");
  }
}

void SqliteFile::check(int result) {
  if (result != SQLITE_OK) {
    fail(result, reason(result));
  }
}

std::string SqliteFile::reason(int result) const {
  switch (result & 0xff) {
  case SQLITE_FULL:
    return "the disk is full; every point committed so far is kept: make room and run again";
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return "another process has been writing to it for a minute; allowed: wait for it, or another file and `merge`";
  case SQLITE_NOTADB:
    return "it is no file of results; allowed: a new name, or a file that `sweep` wrote";
  case SQLITE_READONLY:
  case SQLITE_CANTOPEN:
    return "it, or what lies beside it, cannot be opened or written; allowed: a file in a folder of one's own";
  default:
    return sqlite3_errmsg(connection_.get());
  }
}

void SqliteFile::fail(int result, const std::string& why) {
  if (writing_) {
    writing_ = false;
    sqlite3_exec(connection_.get(), "rollback", nullptr, nullptr, nullptr);
  }
  const bool full = (result & 0xff) == SQLITE_IOERR;
  throw InputError({path_.string(), 0, 0}, full ? "cannot be read or written (" + why +
                                                      "); every point committed so far is kept: is the disk full?"
                                                : why);
}

// What a stranger's file could make SQLite do beyond reading its rows.
void SqliteFile::trust_nothing() {
  constexpr int kMebibyte = 1024 * 1024;
  sqlite3_limit(connection_.get(), SQLITE_LIMIT_LENGTH, limits::kFileMebibytes * kMebibyte);
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  execute("pragma trusted_schema = off");
  execute("pragma cell_size_check = on");
}

namespace {

constexpr const char* kSchema = "select type || ' ' || name || ': ' || ifnull(sql, '') from sqlite_schema order by 1";

} // namespace

// Its tables must be those that this program makes, no more: a trigger or a view of another meaning would be run. What
// they hold must be a sound file to SQLite, and JSON where it must.
void SqliteFile::check_content(const SqliteFormat& format) {
  SqliteFile own(kInMemory, Mode::write, format);
  if (texts(kSchema) != own.texts(kSchema)) {
    throw InputError({path_.string(), 0, 0}, "its tables are not those that `sweep` makes");
  }
  const std::vector<std::string> found = texts("pragma quick_check(1)");
  if (found != std::vector<std::string>{"ok"}) {
    throw InputError({path_.string(), 0, 0}, "the file is damaged: " + (found.empty() ? "" : found.front()));
  }
  for (const SqliteJson& column : format.json) {
    SqliteStatement& bad =
        statement("select rowid from " + column.table + " where not json_valid(" + column.column + ") or json_type(" +
                  column.column + ") <> '" + column.type + "' or exists (select 1 from json_each(" + column.column +
                  ") where type <> 'text') limit 1");
    if (bad.step()) {
      const std::string row = std::to_string(bad.integer(0));
      bad.reset();
      throw InputError({path_.string(), 0, 0}, "table " + column.table + ", row " + row + ", column " + column.column +
                                                   ": not what `sweep` writes; allowed: a JSON " + column.type +
                                                   " of texts");
    }
  }
}

void SqliteFile::prepare(Mode mode, const SqliteFormat& format) {
  constexpr int kPatience = 60'000; // milliseconds
  sqlite3_busy_timeout(connection_.get(), kPatience);
  trust_nothing();
  const bool made = number("select count(*) from sqlite_schema") > 0;
  if (made && number("pragma application_id") != format.application) {
    throw InputError({path_.string(), 0, 0}, "a database of something else; allowed: a new name, or a file that "
                                             "`sweep` wrote");
  }
  if (made && number("pragma user_version") != format.schema) {
    throw InputError({path_.string(), 0, 0},
                     "results of another version of this program; allowed: schema " + std::to_string(format.schema));
  }
  if (mode == Mode::read && !made) {
    throw InputError({path_.string(), 0, 0}, "no file of results");
  }
  if (made) {
    check_content(format);
  }
  execute("pragma cache_size = -65536"); // KiB, for any number of points
  execute("pragma temp_store = file");
  if (mode == Mode::read) {
    return;
  }
  execute("pragma page_size = 16384"); // bytes, in a new file: fewer and larger writes
  execute("pragma journal_mode = wal");
  execute("pragma synchronous = normal");     // a killed process loses nothing that was committed
  execute("pragma wal_autocheckpoint = 512"); // pages, 8 MiB: little is left for the end
  if (made) {
    return;
  }
  begin();
  if (number("select count(*) from sqlite_schema") == 0) { // else another process was faster
    execute("pragma application_id = " + std::to_string(format.application));
    execute("pragma user_version = " + std::to_string(format.schema));
    execute(format.tables);
  }
  commit();
}

SqliteStatement::SqliteStatement(SqliteFile& file, const std::string& words) : file_(&file) {
  sqlite3_stmt* made = nullptr;
  file.check(sqlite3_prepare_v2(file.connection_.get(), words.c_str(), -1, &made, nullptr));
  made_.reset(made);
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt* made) const { sqlite3_finalize(made); }

bool SqliteStatement::step() {
  const int result = sqlite3_step(made_.get());
  if (result == SQLITE_ROW) {
    ++row_;
    return true;
  }
  if (result != SQLITE_DONE) {
    const std::string why = file_->reason(result);
    reset();
    file_->fail(result, why);
  }
  reset();
  return false;
}

void SqliteStatement::reset() {
  sqlite3_reset(made_.get());
  row_ = 0;
}

void SqliteStatement::set(int at, std::int64_t value) { sqlite3_bind_int64(made_.get(), at, value); }
void SqliteStatement::set(int at, double value) { sqlite3_bind_double(made_.get(), at, value); }
void SqliteStatement::set(int at, std::string_view text) {
  sqlite3_bind_text(made_.get(), at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}
void SqliteStatement::set(int at, const Digest& digest) {
  sqlite3_bind_blob(made_.get(), at, digest.bytes.data(), static_cast<int>(digest.bytes.size()), SQLITE_STATIC);
}
void SqliteStatement::set_copy(int at, const Digest& digest) {
  sqlite3_bind_blob(made_.get(), at, digest.bytes.data(), static_cast<int>(digest.bytes.size()), SQLITE_TRANSIENT);
}
void SqliteStatement::set_bytes(int at, std::string_view bytes) {
  sqlite3_bind_blob(made_.get(), at, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
}
void SqliteStatement::set_null(int at) { sqlite3_bind_null(made_.get(), at); }

int SqliteStatement::place(const std::string& name) const {
  return sqlite3_bind_parameter_index(made_.get(), name.c_str());
}

void SqliteStatement::refuse(int at, const std::string& allowed) const {
  const auto word = [](const char* text, const char* otherwise) { return std::string(text ? text : otherwise); };
  throw InputError({file_->path_.string(), 0, 0}, "table " +
                                                      word(sqlite3_column_table_name(made_.get(), at), "of results") +
                                                      ", row " + std::to_string(row_) + " of those read, column " +
                                                      word(sqlite3_column_name(made_.get(), at), "?") +
                                                      ": not what `sweep` writes; allowed: " + allowed);
}

std::int64_t SqliteStatement::integer(int at) const {
  if (sqlite3_column_type(made_.get(), at) != SQLITE_INTEGER) {
    refuse(at, "an integer");
  }
  return sqlite3_column_int64(made_.get(), at);
}

std::int64_t SqliteStatement::integer(int at, std::int64_t low, std::int64_t high) const {
  const std::int64_t value = integer(at);
  if (value < low || value > high) {
    refuse(at, std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

double SqliteStatement::real(int at) const {
  const int type = sqlite3_column_type(made_.get(), at);
  if (type != SQLITE_FLOAT && type != SQLITE_INTEGER) {
    refuse(at, "a number");
  }
  return sqlite3_column_double(made_.get(), at);
}

std::string SqliteStatement::text(int at) const {
  if (sqlite3_column_type(made_.get(), at) != SQLITE_TEXT) {
    refuse(at, "a text");
  }
  const auto* letters = reinterpret_cast<const char*>(sqlite3_column_text(made_.get(), at));
  std::string text(letters, static_cast<std::size_t>(sqlite3_column_bytes(made_.get(), at)));
  if (first_bad_byte(text) || text.find('\0') != std::string::npos) {
    refuse(at, "UTF-8 text");
  }
  return text;
}

std::string SqliteStatement::bytes(int at) const {
  if (sqlite3_column_type(made_.get(), at) != SQLITE_BLOB) {
    refuse(at, "bytes");
  }
  const void* bytes = sqlite3_column_blob(made_.get(), at); // nullptr: none
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(made_.get(), at));
  return bytes != nullptr ? std::string(static_cast<const char*>(bytes), size) : "";
}

Digest SqliteStatement::digest(int at) const {
  Digest digest;
  const std::string read = bytes(at);
  if (read.size() != digest.bytes.size()) {
    refuse(at, "a digest of " + std::to_string(digest.bytes.size()) + " bytes");
  }
  std::memcpy(digest.bytes.data(), read.data(), read.size());
  return digest;
}

bool SqliteStatement::is_null(int at) const { return sqlite3_column_type(made_.get(), at) == SQLITE_NULL; }

} // namespace stagecraft
