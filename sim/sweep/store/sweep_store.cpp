// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/sweep_store.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fstream>
#include <span>

#include "sim/report/page/sweep/sweep_page.hpp"
#include "sim/sweep/store/sweep_tables.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

// Replaces a failed point whose id is at most `newest`.
const std::string kReplacement =
    "update points set " + point_assignments("") + " where key = ? and id <= :newest and status = 'failed'";

using Axes = std::vector<std::vector<std::string>>;

// The axes in SweepRecord::keys.
Axes axes_of(const std::string& keys) {
  Axes axes;
  for (const auto& item : nlohmann::json::parse(keys)) {
    axes.push_back(parts_of_axis(item.get<std::string>()));
  }
  return axes;
}

bool is_in(const std::vector<std::string>& axis, const std::string& key) {
  return std::find(axis.begin(), axis.end(), key) != axis.end();
}

// Axes without repetition. The keys in `apart` are axes of their own.
Axes without_repetition(const Axes& axes, const std::vector<std::string>& apart) {
  Axes result;
  const auto add = [&](const std::vector<std::string>& axis) {
    if (std::find(result.begin(), result.end(), axis) == result.end()) {
      result.push_back(axis);
    }
  };
  for (const std::vector<std::string>& axis : axes) {
    if (std::none_of(axis.begin(), axis.end(), [&](const std::string& key) { return is_in(apart, key); })) {
      add(axis);
      continue;
    }
    for (const std::string& key : axis) {
      add({key});
    }
  }
  return result;
}

} // namespace

SweepStore::SweepStore(const fs::path& path, Mode mode)
    : file_(std::make_unique<SqliteFile>(path, mode == Mode::write ? SqliteFile::Mode::write : SqliteFile::Mode::read,
                                         sweep_format())) {}
SweepStore::~SweepStore() = default;

bool SweepStore::is_one(const fs::path& path) {
  constexpr std::string_view kBegin = "SQLite format 3"; // sqlite.org/fileformat.html
  std::error_code failure;
  std::string begin(kBegin.size(), '\0');
  return fs::is_regular_file(path, failure) &&
         std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
         begin == kBegin;
}

std::int64_t SweepStore::add_sweep(const SweepRecord& record) {
  file_->begin();
  SqliteStatement& insert = file_->statement(
      "insert into sweeps (digest, name, program, document, settings, keys, goal, screen, study_folder, "
      "shipped_folder) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (digest) do update set goal = excluded.goal");
  insert.set(1, record.digest);
  int at = 2;
  for (const std::string* text : {&record.name, &record.program, &record.document, &record.settings, &record.keys,
                                  &record.goal, &record.screen, &record.study_folder, &record.shipped_folder}) {
    insert.set(at++, *text);
  }
  insert.step();
  SqliteStatement& asked = file_->statement("select id from sweeps where digest = ?");
  asked.set(1, record.digest);
  asked.step();
  const std::int64_t id = asked.integer(0);
  asked.reset();
  file_->commit();
  return id;
}

void SweepStore::add_file(std::int64_t sweep, const KeptFile& file) {
  file_->begin();
  SqliteStatement& insert = file_->statement("insert or ignore into files values (?, ?, ?)");
  insert.set(1, sweep);
  insert.set(2, file.path);
  insert.set(3, file.digest);
  insert.step();
  if (file.bytes) {
    SqliteStatement& keep = file_->statement("insert or ignore into contents values (?, ?)");
    keep.set(1, file.digest);
    keep.set_bytes(2, *file.bytes);
    keep.step();
  }
}

const KeyFilter& SweepStore::keys() {
  if (!keys_) {
    keys_.emplace();
    SqliteStatement& asked = file_->statement("select key from points");
    while (asked.step()) {
      keys_->add(asked.digest(0));
    }
  }
  return *keys_;
}

bool SweepStore::has(std::int64_t sweep, const Digest& key, std::uint64_t number, std::uint32_t run, bool retry) {
  SqliteStatement& asked = file_->statement("select id, sweep, status from points where key = ?");
  asked.set(1, key);
  if (!asked.step()) {
    return false;
  }
  const std::int64_t id = asked.integer(0);
  const bool own = asked.integer(1) == sweep;
  const bool failed = asked.text(2) == name_of(PointStatus::failed);
  asked.reset();
  if (!own) {
    file_->begin();
    SqliteStatement& insert = file_->statement("insert or ignore into also values (?, ?, ?, ?)");
    insert.set(1, sweep);
    insert.set(2, id);
    insert.set(3, static_cast<std::int64_t>(number));
    insert.set(4, static_cast<std::int64_t>(run));
    insert.step();
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

std::uint64_t SweepStore::write() {
  std::uint64_t doubles = 0;
  if (!added_.empty()) {
    doubles = insert(added_);
    added_.clear();
    added_count_ = 0;
  }
  return doubles;
}

std::uint64_t SweepStore::commit() {
  const std::uint64_t doubles = write();
  file_->commit();
  return doubles;
}

namespace {

// The key's first bytes, as a number that sorts as they do.
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

// Inserts in the order of keys, so that each page of their index changes only once.
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
  constexpr std::size_t kAtOnce = 32; // starting a statement costs as much as a few columns of a point
  static const std::string kOne = point_insertion(1), kMany = point_insertion(kAtOnce);
  file_->begin();
  std::int64_t newest = file_->number("select max(id) from points"); // of the points before this statement
  SqliteStatement& one = file_->statement(kOne);
  SqliteStatement& many = file_->statement(kMany);
  for (std::size_t first = 0; first < sorted.size();) {
    const std::size_t count = sorted.size() - first < kAtOnce ? 1 : kAtOnce;
    const auto now = std::span(sorted).subspan(first, count);
    SqliteStatement& statement = count == 1 ? one : many;
    int at = 1;
    for (const auto& [bytes, point, sweep] : now) {
      const PointView view = view_of(point);
      at = set_point(statement, at, sweep, view);
      if (keys_) {
        keys_->add(view.key);
      }
    }
    statement.step();
    const std::uint64_t changed = file_->changes();
    if (changed < count) { // another process or combination was faster, or the points were there as failed
      doubles += count - changed;
      for (const auto& [bytes, point, sweep] : now) {
        doubles -= settle(sweep, view_of(point), newest) ? 1 : 0;
      }
    }
    newest = changed > 0 ? file_->last_row() : newest;
    first += count;
  }
  return doubles;
}

// Settles a point that may have been there already. The point counts for this sweep too; where the stored one had
// failed and its id is at most `newest`, this result replaces it. Returns whether it did.
bool SweepStore::settle(std::int64_t sweep, const PointView& row, std::int64_t newest) {
  has(sweep, row.key, row.number, row.run, false);
  SqliteStatement& update = file_->statement(kReplacement);
  update.set(set_point_result(update, 1, row), row.key);
  update.set(update.place(":newest"), newest);
  update.step();
  return file_->changes() > 0;
}

namespace {

// The SQL condition on points that is SweepShard::has() of their keys.
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
  SqliteStatement& asked = file_->statement(words +
                                            " from points where (?1 = 0 or sweep = ?1 or id in (select point "
                                            "from also where sweep = ?1)) and (?2 = '' or engine = ?2)" +
                                            of_shard(shard));
  asked.set(1, sweep);
  asked.set(2, engine);
  asked.step();
  std::array<std::uint64_t, kStatuses> found{};
  for (std::size_t i = 0; i < kStatuses; ++i) {
    found.at(i) = static_cast<std::uint64_t>(asked.integer(static_cast<int>(i)));
  }
  asked.reset();
  return found;
}

std::uint64_t SweepStore::count(std::int64_t sweep, PointStatus status, const std::string& engine,
                                const SweepShard& shard) {
  return counts(sweep, engine, shard).at(static_cast<std::size_t>(status));
}

namespace {

// Feasible points of one engine, or of all but the first pass's.
const std::string kRankable = "(engine = :engine or :engine = '' and engine <> (select screen from sweeps where id = "
                              ":sweep)) and status = 'feasible'";

} // namespace

std::uint64_t SweepStore::set_aside(std::int64_t sweep, const SweepGoal& goal, const std::string& engine,
                                    const SweepShard& shard) {
  if (!goal.exact) {
    return 0;
  }
  const std::string exact = exact_condition();
  SqliteStatement& asked = file_->statement(
      "select count(*) filter (where " + exact + "), count(*) filter (where not " + exact +
      ") from points where (sweep = :sweep or id in (select point from also where sweep = :sweep)) and " + kRankable +
      of_shard(shard));
  asked.set(asked.place(":sweep"), sweep);
  asked.set(asked.place(":engine"), engine);
  asked.step();
  const bool some = asked.integer(0) > 0;
  const auto late = static_cast<std::uint64_t>(asked.integer(1));
  asked.reset();
  return some ? late : 0;
}

std::vector<RankedPoint> SweepStore::best(std::int64_t sweep, const SweepGoal& goal, const std::string& engine,
                                          std::uint64_t most, const SweepShard& shard) {
  const char* const way = goal.objective->largest ? " desc" : " asc";
  const std::string score(goal.objective->expression);
  std::string within = " and " + kRankable + " and " + score + " is not null" + of_shard(shard);
  if (set_aside(sweep, goal, engine, shard) > 0) {
    within += " and " + exact_condition();
  }
  for (std::size_t i = 0; i < goal.limits.size(); ++i) {
    within += " and " + std::string(goal.limits[i].row->expression) + " <= :limit" + std::to_string(i);
  }
  // First ranks by the score alone, then reads whole rows.
  const std::string ranked = "select id, number, run, " + score + " as score from points where sweep = :sweep" +
                             within + " union all select p.id, a.number, a.run, " + score +
                             " from also a join points p on p.id = a.point where a.sweep = :sweep" + within +
                             " order by score" + way + ", number, run limit :most";
  SqliteStatement& statement = file_->statement(
      "select p.key, r.number, r.run, " + point_columns("p.").substr(std::strlen("p.number, p.run, ")) +
      ", r.score from (" + ranked + ") r join points p on p.id = r.id order by r.score" + way + ", r.number, r.run");
  const auto place = [&](const std::string& name) { return statement.place(name); };
  statement.set(place(":sweep"), sweep);
  statement.set(place(":engine"), engine);
  statement.set(place(":most"), static_cast<std::int64_t>(most));
  if (place(":samples") > 0) {
    statement.set(place(":samples"), goal.samples);
  }
  for (std::size_t i = 0; i < goal.limits.size(); ++i) {
    statement.set(place(":limit" + std::to_string(i)), goal.limits[i].most);
  }
  constexpr int kScore = 1 + kPlainPointColumns + static_cast<int>(kFigures);
  std::vector<RankedPoint> points;
  while (statement.step()) {
    points.push_back({point_at(statement, 0), statement.real(kScore)});
  }
  return points;
}

namespace {

// True for a feasible point p from the first pass of its sweep s, unless the point is a final one of another sweep.
constexpr const char* kIsScreened = "(s.screen <> '' and p.engine = s.screen and p.status = 'feasible' and not exists "
                                    "(select 1 from sweeps t join also "
                                    "a on a.sweep = t.id and a.point = p.id where t.screen <> p.engine))";

} // namespace

void SweepStore::for_each(const std::function<void(const PointRow&)>& visit, bool last_pass) {
  SqliteStatement& statement =
      file_->statement("select p.key, " + point_columns("p.") + " from points p join sweeps s on s.id = p.sweep" +
                       (last_pass ? std::string(" where not ") + kIsScreened : "") +
                       " order by s.digest, p.number, p.run, p.engine, p.key");
  while (statement.step()) {
    visit(point_at(statement, 0));
  }
}

std::uint64_t SweepStore::screened() {
  return static_cast<std::uint64_t>(
      file_->number(std::string("select count(*) from points p join sweeps s on s.id = p.sweep where ") + kIsScreened));
}

std::vector<SweepStore::Asked> SweepStore::asked() {
  std::vector<Asked> asked;
  SqliteStatement& statement = file_->statement("select id, name, goal, program, document from sweeps order by digest");
  while (statement.step()) {
    const std::string place = file_->path().string() + ", table sweeps, column goal";
    asked.push_back({statement.integer(0), statement.text(1), read_goal(yaml::parse(statement.text(2), place)),
                     statement.text(3), statement.text(4)});
  }
  return asked;
}

std::vector<std::string> SweepStore::names() {
  return file_->texts("select distinct name from sweeps where name != '' order by name");
}

std::vector<std::string> SweepStore::paths() { return file_->texts("select distinct path from files order by path"); }

std::vector<std::vector<std::string>> SweepStore::axes() {
  Axes axes;
  std::vector<std::string> apart; // keys that advance with different ones in different sweeps
  SqliteStatement& statement = file_->statement("select keys from sweeps order by digest");
  while (statement.step()) {
    for (const std::vector<std::string>& axis : axes_of(statement.text(0))) {
      for (const std::vector<std::string>& other : axes) {
        if (other != axis && std::any_of(axis.begin(), axis.end(), [&](auto& key) { return is_in(other, key); })) {
          apart.insert(apart.end(), axis.begin(), axis.end());
          apart.insert(apart.end(), other.begin(), other.end());
        }
      }
      axes.push_back(axis);
    }
  }
  return without_repetition(axes, apart);
}

std::vector<std::string> SweepStore::axis_keys() {
  std::vector<std::string> keys;
  for (std::vector<std::string>& axis : axes()) {
    keys.insert(keys.end(), std::make_move_iterator(axis.begin()), std::make_move_iterator(axis.end()));
  }
  return keys;
}

SweepStore::Found SweepStore::find(const std::string& digits) {
  SqliteStatement& statement = file_->statement("select p.key, " + point_columns("p.") +
                                                ", s.id, s.digest, s.name, s.program, s.document, s.settings, s.keys, "
                                                "s.study_folder, s.shipped_folder from points p join sweeps s on "
                                                "s.id = p.sweep where lower(hex(p.key)) between ?1 and ?1 || 'g' "
                                                "limit 2");
  std::string small = digits;
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char digit) { return std::tolower(digit); });
  statement.set(1, small);
  std::vector<Found> found;
  std::int64_t sweep = 0;
  while (statement.step()) {
    int at = 1 + kPlainPointColumns + static_cast<int>(kFigures);
    sweep = statement.integer(at++);
    Found one{.file = file_->path().string(), .row = point_at(statement, 0)};
    one.sweep.digest = statement.digest(at++);
    for (std::string* text : {&one.sweep.name, &one.sweep.program, &one.sweep.document, &one.sweep.settings,
                              &one.sweep.keys, &one.sweep.study_folder, &one.sweep.shipped_folder}) {
      *text = statement.text(at++);
    }
    found.push_back(std::move(one));
  }
  if (found.size() != 1) {
    throw InputError({"point " + digits, 0, 0}, found.empty() ? "no such point; `points FILE` lists their keys"
                                                              : "several points begin so; allowed: more digits");
  }
  found.front().files = files(sweep);
  return std::move(found.front());
}

std::vector<KeptFile> SweepStore::files(std::int64_t sweep) {
  SqliteStatement& statement = file_->statement(
      "select distinct f.path, f.digest, c.bytes from files f left join contents c on c.digest = f.digest "
      "where f.sweep = ?1 or ?1 = 0 order by f.path");
  statement.set(1, sweep);
  std::vector<KeptFile> files;
  while (statement.step()) {
    KeptFile& file = files.emplace_back(KeptFile{statement.text(0), statement.digest(1), std::nullopt});
    if (!statement.is_null(2)) {
      file.bytes = statement.bytes(2);
    }
  }
  return files;
}

std::uint64_t SweepStore::merge(const fs::path& other) {
  { const SweepStore read(other, Mode::read); } // throws unless it is a file of results, and reads in its journal
  file_->attach(other, "other");
  file_->begin();
  file_->execute("insert or ignore into sweeps (digest, name, program, document, settings, keys, goal, "
                 "screen, study_folder, shipped_folder) select digest, name, program, document, settings, keys, "
                 "goal, screen, study_folder, shipped_folder from other.sweeps order by id");
  file_->execute("create temp table of_sweep as select o.id as there, s.id as here from other.sweeps o join "
                 "main.sweeps s on s.digest = o.digest");
  file_->execute("insert or ignore into contents select * from other.contents");
  file_->execute("insert or ignore into files select t.here, f.path, f.digest from other.files f join of_sweep t "
                 "on t.there = f.sweep");
  const std::string names = point_columns("");
  file_->execute(
      "insert into points (key, sweep, " + names + ") select p.key, t.here, " + point_columns("p.") +
      " from other.points p join of_sweep t on t.there = p.sweep where true order by p.id on conflict (key) do "
      "update set " +
      point_assignments("excluded.") +
      " where points.status = 'failed' and excluded.status <> "
      "'failed'");
  const std::uint64_t added = file_->changes();
  // What is here already counts for the other file's sweeps too.
  file_->execute("insert or ignore into also select t.here, h.id, m.number, m.run from other.members m join "
                 "other.points p on p.id = m.point join of_sweep t on t.there = m.sweep join main.points h on "
                 "h.key = p.key where h.sweep <> t.here");
  file_->execute("drop table of_sweep");
  file_->commit();
  file_->execute("detach other");
  return added;
}

} // namespace stagecraft
