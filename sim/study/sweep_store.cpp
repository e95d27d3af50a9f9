// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep_store.hpp"

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <span>

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

constexpr int kSchema = 3;
constexpr int kApplication = 0x53746763; // "Stgc"

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
  for (const FigureRow& figure : figures()) {
    text += ", " + std::string(figure.name) + " real";
  }
  return text + ");";
}

// Columns of points after id, key and sweep.
std::string columns(const std::string& prefix) {
  std::string text;
  for (const char* column : {"number", "run", "settings", "strategy", "schedule", "micro_batches", "recompute",
                             "engine", "status", "ran", "reason"}) {
    text += (text.empty() ? "" : ", ") + prefix + column;
  }
  for (const FigureRow& figure : figures()) {
    text += ", " + prefix + std::string(figure.name);
  }
  return text;
}

constexpr int kPlainColumns = 11;

std::string text_at(sqlite3_stmt* statement, int column) {
  const unsigned char* text = sqlite3_column_text(statement, column);
  return text != nullptr ? reinterpret_cast<const char*>(text) : "";
}

} // namespace

namespace {

Digest digest_at(sqlite3_stmt* statement, int column) {
  Digest digest;
  const void* bytes = sqlite3_column_blob(statement, column);
  if (bytes != nullptr && sqlite3_column_bytes(statement, column) == static_cast<int>(digest.bytes.size())) {
    std::memcpy(digest.bytes.data(), bytes, digest.bytes.size());
  }
  return digest;
}

} // namespace

/// The connection, and statements as they are made.
class SweepStore::Database {
public:
  Database(const fs::path& path, Mode mode) : path_(path) {
    std::error_code failure;
    if (mode == Mode::read && !fs::is_regular_file(path, failure)) {
      throw InputError({path.string(), 0, 0}, "no such file of results");
    }
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (mode == Mode::write ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(path.c_str(), &connection_, flags, nullptr) != SQLITE_OK) {
      const std::string why = connection_ != nullptr ? sqlite3_errmsg(connection_) : "no memory";
      sqlite3_close(connection_);
      throw InputError({path.string(), 0, 0}, "cannot be opened: " + why);
    }
    try {
      prepare(mode);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  sqlite3* connection() { return connection_; }

  // Keys of all points, but for those that others have added since they were first asked for.
  KeyFilter& keys() {
    if (!keys_) {
      keys_.emplace();
      sqlite3_stmt* asked = statement("select key from points");
      while (step(asked)) {
        keys_->add(digest_at(asked, 0));
      }
    }
    return *keys_;
  }

  void execute(const std::string& statement) {
    check(sqlite3_exec(connection_, statement.c_str(), nullptr, nullptr, nullptr));
  }

  // A statement for these words, ready for values.
  sqlite3_stmt* statement(std::string_view words) {
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

  // Whether the statement has another row.
  bool step(sqlite3_stmt* statement) {
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

  // The first column of a statement's rows.
  std::vector<std::string> texts(const std::string& words) {
    std::vector<std::string> all;
    sqlite3_stmt* made = statement(words);
    while (step(made)) {
      all.push_back(text_at(made, 0));
    }
    return all;
  }

  // The first column of a statement's first row; 0 where there is none.
  std::int64_t number(std::string_view words) {
    sqlite3_stmt* asked = statement(words);
    const std::int64_t value = step(asked) ? sqlite3_column_int64(asked, 0) : 0;
    sqlite3_reset(asked);
    return value;
  }

  void begin() {
    if (!writing_) {
      execute("begin immediate");
      writing_ = true;
    }
  }
  void commit() {
    if (writing_) {
      writing_ = false;
      execute("commit");
    }
  }

  void check(int result) {
    if (result != SQLITE_OK) {
      fail(result, reason(result));
    }
  }

private:
  std::string reason(int result) const {
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
      return "it cannot be written; allowed: a file in a folder of one's own";
    default:
      return sqlite3_errmsg(connection_);
    }
  }

  [[noreturn]] void fail(int result, const std::string& why) {
    if (writing_) {
      writing_ = false;
      sqlite3_exec(connection_, "rollback", nullptr, nullptr, nullptr);
    }
    const bool full = (result & 0xff) == SQLITE_IOERR;
    throw InputError({path_.string(), 0, 0}, full ? "cannot be read or written (" + why +
                                                        "); every point committed so far is kept: is the disk full?"
                                                  : why);
  }

  void prepare(Mode mode) {
    constexpr int kPatience = 60'000;
    sqlite3_busy_timeout(connection_, kPatience);
    const bool made = number("select count(*) from sqlite_schema") > 0;
    if (made && number("pragma application_id") != kApplication) {
      throw InputError({path_.string(), 0, 0}, "a database of something else; allowed: a new name, or a file that "
                                               "`sweep` wrote");
    }
    if (made && number("pragma user_version") != kSchema) {
      throw InputError({path_.string(), 0, 0},
                       "results of another version of this program; allowed: schema " + std::to_string(kSchema));
    }
    if (mode == Mode::read && !made) {
      throw InputError({path_.string(), 0, 0}, "no file of results");
    }
    execute("pragma page_size = 16384"); // bytes, of a new file: fewer and larger writes
    execute("pragma journal_mode = wal");
    execute("pragma synchronous = normal");     // a killed process loses nothing committed
    execute("pragma wal_autocheckpoint = 512"); // pages, 8 MiB: little is left for the end
    execute("pragma cache_size = -65536");      // KiB, whatever the number of points
    execute("pragma temp_store = file");
    begin();
    if (number("select count(*) from sqlite_schema") == 0) {
      execute("pragma application_id = " + std::to_string(kApplication));
      execute("pragma user_version = " + std::to_string(kSchema));
      execute(create_points());
      execute(kTables);
    }
    commit();
  }

  void close() {
    for (auto& [words, made] : statements_) {
      sqlite3_finalize(made);
    }
    statements_.clear();
    sqlite3_close(connection_);
    connection_ = nullptr;
  }

  fs::path path_;
  sqlite3* connection_ = nullptr;
  bool writing_ = false;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  std::optional<KeyFilter> keys_;
};

namespace {

void set(sqlite3_stmt* statement, int at, const Digest& digest) {
  sqlite3_bind_blob(statement, at, digest.bytes.data(), static_cast<int>(digest.bytes.size()), SQLITE_STATIC);
}
void set(sqlite3_stmt* statement, int at, std::string_view text) {
  sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}
void set(sqlite3_stmt* statement, int at, std::int64_t value) { sqlite3_bind_int64(statement, at, value); }

// What a point that is there already becomes: itself, unless it has failed.
const std::string kElse = [] {
  std::string words = " on conflict (key) do update set status = excluded.status, ran = excluded.ran, reason = "
                      "excluded.reason";
  for (const FigureRow& figure : figures()) {
    words += ", " + std::string(figure.name) + " = excluded." + std::string(figure.name);
  }
  return words + " where points.status = 'failed'";
}();

// A statement for so many points at once.
std::string insertion(std::size_t points) {
  std::string row = ", (?, ?";
  for (std::size_t i = 0; i < kPlainColumns + kFigures; ++i) {
    row += ", ?";
  }
  row += ")";
  std::string rows;
  for (std::size_t i = 0; i < points; ++i) {
    rows += row;
  }
  return "insert into points (key, sweep, " + columns("") + ") values " + rows.substr(2) + kElse;
}

// Binds a point to the statement's parameters from `at` on; gives the first parameter after it.
int set(sqlite3_stmt* insertion, int at, std::int64_t sweep, const PointView& row) {
  sqlite3_bind_blob(insertion, at++, row.key.bytes.data(), static_cast<int>(row.key.bytes.size()), SQLITE_TRANSIENT);
  set(insertion, at++, sweep);
  set(insertion, at++, static_cast<std::int64_t>(row.number));
  set(insertion, at++, static_cast<std::int64_t>(row.run));
  set(insertion, at++, row.settings);
  set(insertion, at++, row.strategy);
  set(insertion, at++, row.schedule);
  set(insertion, at++, static_cast<std::int64_t>(row.micro_batches));
  set(insertion, at++, row.recompute);
  set(insertion, at++, row.engine);
  set(insertion, at++, name_of(row.status));
  set(insertion, at++, row.order);
  set(insertion, at++, row.reason);
  for (const double figure : row.figures) {
    if (row.status == PointStatus::feasible && std::isfinite(figure)) {
      sqlite3_bind_double(insertion, at++, figure);
    } else {
      sqlite3_bind_null(insertion, at++);
    }
  }
  return at;
}

PointStatus status_of(const std::string& name) {
  const auto found = std::find_if(kAllStatuses.begin(), kAllStatuses.end() - 1,
                                  [&](PointStatus status) { return name_of(status) == name; });
  return *found;
}

// From a row whose columns from `at` on are key and columns().
PointRow row_at(sqlite3_stmt* statement, int at) {
  PointRow row;
  row.key = digest_at(statement, at++);
  row.number = static_cast<std::uint64_t>(sqlite3_column_int64(statement, at++));
  row.run = static_cast<std::uint32_t>(sqlite3_column_int64(statement, at++));
  row.settings = text_at(statement, at++);
  row.strategy = text_at(statement, at++);
  row.schedule = text_at(statement, at++);
  row.micro_batches = sqlite3_column_int(statement, at++);
  row.recompute = text_at(statement, at++);
  row.engine = text_at(statement, at++);
  row.status = status_of(text_at(statement, at++));
  row.order = text_at(statement, at++);
  row.reason = text_at(statement, at++);
  for (double& figure : row.figures) {
    figure = sqlite3_column_type(statement, at) == SQLITE_NULL ? std::nan("") : sqlite3_column_double(statement, at);
    ++at;
  }
  return row;
}

} // namespace

SweepStore::SweepStore(const fs::path& path, Mode mode) : database_(std::make_unique<Database>(path, mode)) {}
SweepStore::~SweepStore() = default;

std::int64_t SweepStore::add_sweep(const SweepRecord& record) {
  database_->begin();
  sqlite3_stmt* insert = database_->statement(
      "insert into sweeps (digest, name, program, document, settings, keys, goal, screen, study_folder, "
      "shipped_folder) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (digest) do update set goal = excluded.goal");
  set(insert, 1, record.digest);
  int at = 2;
  for (const std::string* text : {&record.name, &record.program, &record.document, &record.settings, &record.keys,
                                  &record.goal, &record.screen, &record.study_folder, &record.shipped_folder}) {
    set(insert, at++, *text);
  }
  database_->step(insert);
  sqlite3_stmt* asked = database_->statement("select id from sweeps where digest = ?");
  set(asked, 1, record.digest);
  database_->step(asked);
  const std::int64_t id = sqlite3_column_int64(asked, 0);
  sqlite3_reset(asked);
  database_->commit();
  return id;
}

void SweepStore::add_file(std::int64_t sweep, const KeptFile& file) {
  database_->begin();
  sqlite3_stmt* insert = database_->statement("insert or ignore into files values (?, ?, ?)");
  set(insert, 1, sweep);
  set(insert, 2, file.path);
  set(insert, 3, file.digest);
  database_->step(insert);
  if (file.bytes) {
    sqlite3_stmt* keep = database_->statement("insert or ignore into contents values (?, ?)");
    set(keep, 1, file.digest);
    sqlite3_bind_blob(keep, 2, file.bytes->data(), static_cast<int>(file.bytes->size()), SQLITE_STATIC);
    database_->step(keep);
  }
}

const KeyFilter& SweepStore::keys() { return database_->keys(); }

bool SweepStore::has(std::int64_t sweep, const Digest& key, std::uint64_t number, std::uint32_t run, bool retry) {
  sqlite3_stmt* asked = database_->statement("select id, sweep, status from points where key = ?");
  set(asked, 1, key);
  if (!database_->step(asked)) {
    return false;
  }
  const std::int64_t id = sqlite3_column_int64(asked, 0);
  const bool own = sqlite3_column_int64(asked, 1) == sweep;
  const bool failed = text_at(asked, 2) == name_of(PointStatus::failed);
  sqlite3_reset(asked);
  if (!own) {
    database_->begin();
    sqlite3_stmt* insert = database_->statement("insert or ignore into also values (?, ?, ?, ?)");
    set(insert, 1, sweep);
    set(insert, 2, id);
    set(insert, 3, static_cast<std::int64_t>(number));
    set(insert, 4, static_cast<std::int64_t>(run));
    database_->step(insert);
  }
  return !(failed && retry);
}

void SweepStore::add(std::int64_t sweep, PackedPoints points) {
  added_count_ += points.size();
  added_.push_back({sweep, std::move(points)});
}

void SweepStore::add(std::int64_t sweep, const PointRow& row) {
  PackedPoints one;
  one.add(row);
  add(sweep, std::move(one));
}

std::uint64_t SweepStore::commit() {
  std::uint64_t doubles = 0;
  if (!added_.empty()) {
    doubles = insert(added_);
    added_.clear();
    added_count_ = 0;
  }
  database_->commit();
  return doubles;
}

namespace {

// As a number that sorts as the bytes do.
std::uint64_t first_bytes(const Digest& key) {
  std::uint64_t number = 0;
  constexpr unsigned kByte = 8;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number = number << kByte | key.bytes.at(i);
  }
  return number;
}

// A point to be written.
struct Placed {
  std::uint64_t first; // bytes of its key
  std::string_view point;
  std::int64_t sweep;

  bool operator<(const Placed& other) const {
    return first != other.first ? first < other.first : key_of(point) < key_of(other.point);
  }
};

} // namespace

// In the order of keys, so that each page of their index is changed once.
std::uint64_t SweepStore::insert(const std::vector<Added>& added) {
  std::uint64_t doubles = 0;
  std::vector<Placed> sorted;
  sorted.reserve(added_count_);
  std::vector<std::string_view> points;
  for (const Added& one : added) {
    points.clear();
    one.points.list(points);
    for (const std::string_view point : points) {
      sorted.push_back({first_bytes(key_of(point)), point, one.sweep});
    }
  }
  std::sort(sorted.begin(), sorted.end());
  constexpr std::size_t kAtOnce = 32; // a statement costs as much to begin as some columns of a point
  static const std::string kOne = insertion(1), kMany = insertion(kAtOnce);
  database_->begin();
  sqlite3_stmt* const one = database_->statement(kOne);
  sqlite3_stmt* const many = database_->statement(kMany);
  for (std::size_t first = 0; first < sorted.size();) {
    const std::size_t count = sorted.size() - first < kAtOnce ? 1 : kAtOnce;
    const auto now = std::span(sorted).subspan(first, count);
    sqlite3_stmt* const statement = count == 1 ? one : many;
    int at = 1;
    for (const auto& [bytes, point, sweep] : now) {
      const PointView view = view_of(point);
      at = set(statement, at, sweep, view);
      database_->keys().add(view.key);
    }
    database_->step(statement);
    const auto changed = static_cast<std::size_t>(sqlite3_changes(database_->connection()));
    if (changed < count) { // another process or another combination was faster
      doubles += count - changed;
      for (const auto& [bytes, point, sweep] : now) {
        const PointView view = view_of(point);
        has(sweep, view.key, view.number, view.run, false);
      }
    }
    first += count;
  }
  return doubles;
}

namespace {

// A condition on points: SweepShard::has() of their keys.
std::string of_shard(const SweepShard& shard) {
  if (shard.count == 1) {
    return "";
  }
  std::string number = "0";
  for (const char* digit : {"1", "2", "3", "4"}) {
    number = "(" + number + " * 16 + instr('0123456789ABCDEF', substr(hex(key), " + digit + ", 1)) - 1)";
  }
  return " and " + number + " % " + std::to_string(shard.count) + " = " + std::to_string(shard.index - 1);
}

} // namespace

std::array<std::uint64_t, kStatuses> SweepStore::counts(std::int64_t sweep, const std::string& engine,
                                                        const SweepShard& shard) {
  std::string words;
  for (const PointStatus status : kAllStatuses) {
    words += words.empty() ? "select " : ", ";
    words += "count(*) filter (where status = '" + std::string(name_of(status)) + "')";
  }
  sqlite3_stmt* asked = database_->statement(words +
                                             " from points where (?1 = 0 or sweep = ?1 or id in (select point "
                                             "from also where sweep = ?1)) and (?2 = '' or engine = ?2)" +
                                             of_shard(shard));
  set(asked, 1, sweep);
  set(asked, 2, engine);
  database_->step(asked);
  std::array<std::uint64_t, kStatuses> found{};
  for (std::size_t i = 0; i < kStatuses; ++i) {
    found.at(i) = static_cast<std::uint64_t>(sqlite3_column_int64(asked, static_cast<int>(i)));
  }
  sqlite3_reset(asked);
  return found;
}

std::uint64_t SweepStore::count(std::int64_t sweep, PointStatus status, const std::string& engine,
                                const SweepShard& shard) {
  return counts(sweep, engine, shard).at(static_cast<std::size_t>(status));
}

std::vector<RankedPoint> SweepStore::best(std::int64_t sweep, const SweepGoal& goal, const std::string& engine,
                                          std::uint64_t most, const SweepShard& shard) {
  const char* const way = goal.objective->largest ? " desc" : " asc";
  const std::string score(goal.objective->expression);
  std::string within = " and (engine = :engine or :engine = '' and engine <> (select screen from sweeps where id = "
                       ":sweep)) and status = 'feasible' and " +
                       score + " is not null" + of_shard(shard);
  for (std::size_t i = 0; i < goal.limits.size(); ++i) {
    within += " and " + std::string(goal.limits[i].row->expression) + " <= :limit" + std::to_string(i);
  }
  // Ranked by what ranks alone, then read whole.
  const std::string ranked = "select id, number, run, " + score + " as score from points where sweep = :sweep" +
                             within + " union all select p.id, a.number, a.run, " + score +
                             " from also a join points p on p.id = a.point where a.sweep = :sweep" + within +
                             " order by score" + way + ", number, run limit :most";
  sqlite3_stmt* statement = database_->statement(
      "select p.key, r.number, r.run, " + columns("p.").substr(std::strlen("p.number, p.run, ")) + ", r.score from (" +
      ranked + ") r join points p on p.id = r.id order by r.score" + way + ", r.number, r.run");
  const auto place = [&](const std::string& name) { return sqlite3_bind_parameter_index(statement, name.c_str()); };
  set(statement, place(":sweep"), sweep);
  set(statement, place(":engine"), engine);
  set(statement, place(":most"), static_cast<std::int64_t>(most));
  if (place(":samples") > 0) {
    sqlite3_bind_double(statement, place(":samples"), goal.samples);
  }
  for (std::size_t i = 0; i < goal.limits.size(); ++i) {
    sqlite3_bind_double(statement, place(":limit" + std::to_string(i)), goal.limits[i].most);
  }
  constexpr int kScore = 1 + kPlainColumns + static_cast<int>(kFigures);
  std::vector<RankedPoint> points;
  while (database_->step(statement)) {
    points.push_back({row_at(statement, 0), sqlite3_column_double(statement, kScore)});
  }
  return points;
}

namespace {

// Of a point p of a sweep s: a first pass found it, and no other sweep asked for it as its own.
constexpr const char* kIsScreened = "(s.screen <> '' and p.engine = s.screen and p.status = 'feasible' and not exists "
                                    "(select 1 from sweeps t join also "
                                    "a on a.sweep = t.id and a.point = p.id where t.screen <> p.engine))";

} // namespace

void SweepStore::for_each(const std::function<void(const PointRow&)>& visit, bool last_pass) {
  sqlite3_stmt* statement =
      database_->statement("select p.key, " + columns("p.") + " from points p join sweeps s on s.id = p.sweep" +
                           (last_pass ? std::string(" where not ") + kIsScreened : "") +
                           " order by s.digest, p.number, p.run, p.engine, p.key");
  while (database_->step(statement)) {
    visit(row_at(statement, 0));
  }
}

std::uint64_t SweepStore::screened() {
  return static_cast<std::uint64_t>(database_->number(
      std::string("select count(*) from points p join sweeps s on s.id = p.sweep where ") + kIsScreened));
}

std::vector<std::pair<std::int64_t, std::string>> SweepStore::goals() {
  std::vector<std::pair<std::int64_t, std::string>> goals;
  sqlite3_stmt* statement = database_->statement("select id, goal from sweeps order by digest");
  while (database_->step(statement)) {
    goals.emplace_back(sqlite3_column_int64(statement, 0), text_at(statement, 1));
  }
  return goals;
}

std::vector<std::string> SweepStore::names() {
  return database_->texts("select distinct name from sweeps where name != '' order by name");
}

std::vector<std::string> SweepStore::paths() {
  return database_->texts("select distinct path from files order by path");
}

std::vector<std::string> SweepStore::axis_keys() {
  std::vector<std::string> keys;
  sqlite3_stmt* statement = database_->statement("select keys from sweeps order by digest");
  while (database_->step(statement)) {
    for (const auto& item : nlohmann::json::parse(text_at(statement, 0))) {
      const auto key = item.get<std::string>();
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        keys.push_back(key);
      }
    }
  }
  return keys;
}

SweepStore::Found SweepStore::find(const std::string& digits) {
  sqlite3_stmt* statement = database_->statement("select p.key, " + columns("p.") +
                                                 ", s.id, s.digest, s.name, s.program, s.document, s.settings, s.keys, "
                                                 "s.study_folder, s.shipped_folder from points p join sweeps s on "
                                                 "s.id = p.sweep where lower(hex(p.key)) between ?1 and ?1 || 'g' "
                                                 "limit 2");
  set(statement, 1, digits);
  std::vector<Found> found;
  std::int64_t sweep = 0;
  while (database_->step(statement)) {
    int at = 1 + kPlainColumns + static_cast<int>(kFigures);
    sweep = sqlite3_column_int64(statement, at++);
    Found one{row_at(statement, 0), {}, {}};
    one.sweep.digest = digest_at(statement, at++);
    for (std::string* text : {&one.sweep.name, &one.sweep.program, &one.sweep.document, &one.sweep.settings,
                              &one.sweep.keys, &one.sweep.study_folder, &one.sweep.shipped_folder}) {
      *text = text_at(statement, at++);
    }
    found.push_back(std::move(one));
  }
  if (found.size() != 1) {
    throw InputError({"point " + digits, 0, 0}, found.empty() ? "no such point; `points FILE` lists their keys"
                                                              : "several points begin so; allowed: more digits");
  }
  sqlite3_stmt* files = database_->statement(
      "select f.path, f.digest, c.bytes from files f left join contents c on c.digest = f.digest where f.sweep = ? "
      "order by f.path");
  set(files, 1, sweep);
  while (database_->step(files)) {
    KeptFile file{text_at(files, 0), digest_at(files, 1), std::nullopt};
    if (sqlite3_column_type(files, 2) != SQLITE_NULL) {
      file.bytes = std::string(static_cast<const char*>(sqlite3_column_blob(files, 2)),
                               static_cast<std::size_t>(sqlite3_column_bytes(files, 2)));
    }
    found.front().files.push_back(std::move(file));
  }
  return std::move(found.front());
}

std::uint64_t SweepStore::merge(const fs::path& other) {
  { const Database read(other, Mode::read); } // it is one of ours, and its journal is taken in
  sqlite3_stmt* attach = database_->statement("attach ? as other");
  const std::string path = other.string();
  set(attach, 1, path);
  database_->step(attach);
  database_->begin();
  database_->execute("insert or ignore into sweeps (digest, name, program, document, settings, keys, goal, "
                     "screen, study_folder, shipped_folder) select digest, name, program, document, settings, keys, "
                     "goal, screen, study_folder, shipped_folder from other.sweeps order by id");
  database_->execute("create temp table of_sweep as select o.id as there, s.id as here from other.sweeps o join "
                     "main.sweeps s on s.digest = o.digest");
  database_->execute("insert or ignore into contents select * from other.contents");
  database_->execute("insert or ignore into files select t.here, f.path, f.digest from other.files f join of_sweep t "
                     "on t.there = f.sweep");
  const std::string names = columns("");
  database_->execute("insert into points (key, sweep, " + names + ") select p.key, t.here, " + columns("p.") +
                     " from other.points p join of_sweep t on t.there = p.sweep where true order by p.id" + kElse +
                     " and excluded.status <> 'failed'");
  const auto added = static_cast<std::uint64_t>(sqlite3_changes64(database_->connection()));
  // What is here already counts for the other file's sweeps too.
  database_->execute("insert or ignore into also select t.here, h.id, m.number, m.run from other.members m join "
                     "other.points p on p.id = m.point join of_sweep t on t.there = m.sweep join main.points h on "
                     "h.key = p.key where h.sweep <> t.here");
  database_->execute("drop table of_sweep");
  database_->commit();
  database_->execute("detach other");
  return added;
}

} // namespace stagecraft
