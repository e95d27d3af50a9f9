// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/sqlite_file.hpp"

#include <unistd.h>

#include <cstring>
#include <system_error>

#include "sim/base/error.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

// A file with a write-ahead log takes others beside it, also to be read.
bool may_write(const fs::path& path) {
  return access(path.c_str(), W_OK) == 0 && access(fs::absolute(path).parent_path().c_str(), W_OK) == 0;
}

// What SQLite calls a file that is there: its path; or, where nothing can be written and nothing waits in its log, a
// name that says that it does not change (sqlite.org/uri.html).
std::string name_to_read(const fs::path& path) {
  const std::string plain = fs::absolute(path).string();
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
  const std::string name = mode == Mode::write ? fs::absolute(path).string() : name_to_read(path);
  if (sqlite3_open_v2(name.c_str(), &connection_, flags, nullptr) != SQLITE_OK) {
    const std::string why = connection_ != nullptr ? sqlite3_errmsg(connection_) : "no memory";
    sqlite3_close(connection_);
    throw InputError({path.string(), 0, 0}, "cannot be opened: " + why);
  }
  try {
    prepare(mode, format);
  } catch (...) {
    close();
    throw;
  }
}

SqliteFile::~SqliteFile() { close(); }

void SqliteFile::execute(const std::string& words) {
  check(sqlite3_exec(connection_, words.c_str(), nullptr, nullptr, nullptr));
}

sqlite3_stmt* SqliteFile::statement(std::string_view words) {
  auto found = statements_.find(words);
  if (found == statements_.end()) {
    found = statements_.emplace(words, nullptr).first;
    check(sqlite3_prepare_v2(connection_, found->first.c_str(), -1, &found->second, nullptr));
  }
  sqlite3_stmt* const made = found->second;
  sqlite3_reset(made);
  sqlite3_clear_bindings(made);
  return made;
}

bool SqliteFile::step(sqlite3_stmt* statement) {
  const int result = sqlite3_step(statement);
  if (result == SQLITE_ROW) {
    return true;
  }
  if (result != SQLITE_DONE) {
    const std::string why = reason(result);
    sqlite3_reset(statement);
    fail(result, why);
  }
  sqlite3_reset(statement);
  return false;
}

std::int64_t SqliteFile::number(std::string_view words) {
  sqlite3_stmt* asked = statement(words);
  const std::int64_t value = step(asked) ? sqlite3_column_int64(asked, 0) : 0;
  sqlite3_reset(asked);
  return value;
}

std::vector<std::string> SqliteFile::texts(std::string_view words) {
  std::vector<std::string> all;
  sqlite3_stmt* asked = statement(words);
  while (step(asked)) {
    all.push_back(text_at(asked, 0));
  }
  return all;
}

std::uint64_t SqliteFile::changes() const { return static_cast<std::uint64_t>(sqlite3_changes64(connection_)); }

std::int64_t SqliteFile::last_row() const { return sqlite3_last_insert_rowid(connection_); }

void SqliteFile::attach(const fs::path& path, std::string_view name) {
  sqlite3_stmt* words = statement("attach ? as " + std::string(name));
  const std::string file = name_to_read(path);
  set_parameter(words, 1, file);
  step(words);
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
    return sqlite3_errmsg(connection_);
  }
}

void SqliteFile::fail(int result, const std::string& why) {
  if (writing_) {
    writing_ = false;
    sqlite3_exec(connection_, "rollback", nullptr, nullptr, nullptr);
  }
  const bool full = (result & 0xff) == SQLITE_IOERR;
  throw InputError({path_.string(), 0, 0}, full ? "cannot be read or written (" + why +
                                                      "); every point committed so far is kept: is the disk full?"
                                                : why);
}

void SqliteFile::prepare(Mode mode, const SqliteFormat& format) {
  constexpr int kPatience = 60'000; // milliseconds
  sqlite3_busy_timeout(connection_, kPatience);
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
  execute("pragma cache_size = -65536"); // KiB, whatever the number of points
  execute("pragma temp_store = file");
  if (mode == Mode::read) {
    return;
  }
  execute("pragma page_size = 16384"); // bytes, of a new file: fewer and larger writes
  execute("pragma journal_mode = wal");
  execute("pragma synchronous = normal");     // a killed process loses nothing committed
  execute("pragma wal_autocheckpoint = 512"); // pages, 8 MiB: little is left for the end
  if (made) {
    return;
  }
  begin();
  if (number("select count(*) from sqlite_schema") == 0) { // or another process was faster
    execute("pragma application_id = " + std::to_string(format.application));
    execute("pragma user_version = " + std::to_string(format.schema));
    execute(format.tables);
  }
  commit();
}

void SqliteFile::close() {
  for (auto& [words, made] : statements_) {
    sqlite3_finalize(made);
  }
  statements_.clear();
  sqlite3_close(connection_);
  connection_ = nullptr;
}

void set_parameter(sqlite3_stmt* statement, int at, const Digest& digest) {
  sqlite3_bind_blob(statement, at, digest.bytes.data(), static_cast<int>(digest.bytes.size()), SQLITE_STATIC);
}
void set_parameter(sqlite3_stmt* statement, int at, std::string_view text) {
  sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}
void set_parameter(sqlite3_stmt* statement, int at, std::int64_t value) { sqlite3_bind_int64(statement, at, value); }

std::string text_at(sqlite3_stmt* statement, int at) {
  const unsigned char* text = sqlite3_column_text(statement, at);
  return text != nullptr ? reinterpret_cast<const char*>(text) : "";
}

Digest digest_at(sqlite3_stmt* statement, int at) {
  Digest digest;
  const void* bytes = sqlite3_column_blob(statement, at);
  if (bytes != nullptr && sqlite3_column_bytes(statement, at) == static_cast<int>(digest.bytes.size())) {
    std::memcpy(digest.bytes.data(), bytes, digest.bytes.size());
  }
  return digest;
}

} // namespace stagecraft
