// Results of sweeps on disk: one SQLite file that has every point once, however often a sweep was started.
// docs/formats/sweep.md has the tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/system/digest.hpp"
#include "sim/sweep/space/sweep_goal.hpp"
#include "sim/sweep/store/key_filter.hpp"
#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

class SqliteFile;

/// A sweep as it was asked for.
struct SweepRecord {
  Digest digest;
  std::string name, program, document; ///< the study as YAML on one line, without `sweep`
  std::string settings;                ///< of the command line, a JSON object of texts
  std::string keys;                    ///< of the axes, a JSON list of as_one_axis()
  std::string goal;                    ///< what it looks for, SweepGoal::document
  std::string screen;                  ///< the engine of a first pass; "": there was none
  std::string study_folder, shipped_folder;
};

/// One of the best points.
struct RankedPoint {
  PointRow row;
  double score = 0; ///< value of the objective, in its unit
};

/// A file that a sweep read.
struct KeptFile {
  std::string path;
  Digest digest;
  std::optional<std::string> bytes; ///< nothing: too large to keep
};

class SweepStore {
public:
  /// Whether a file begins as a database does; only the constructor tells whether it holds results of sweeps.
  static bool is_one(const std::filesystem::path& path);

  enum class Mode { write, read };
  /// Opens a file; for writing, makes it where it is absent. Throws InputError where it does not hold results of
  /// sweeps.
  SweepStore(const std::filesystem::path& path, Mode mode);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  /// The sweep's number in this file; the same for equal digests, whatever their goals: the last goal is kept.
  std::int64_t add_sweep(const SweepRecord& record);
  void add_file(std::int64_t sweep, const KeptFile& file);

  /// The keys of all points, except those that other processes added after the first call.
  const KeyFilter& keys();
  /// Whether the point is there; if so, it counts for this sweep too. With `retry`, failed points count as absent.
  bool has(std::int64_t sweep, const Digest& key, std::uint64_t number, std::uint32_t run, bool retry);
  /// Adds points that are absent or have failed. Queries see them after the next write().
  void add(std::int64_t sweep, PackedPoints points);
  void add(std::int64_t sweep, const PointRow& row);
  /// Writes what was added into the file; returns how many of the points were there already. Until the next commit()
  /// other processes cannot write to it.
  std::uint64_t write();
  /// The same; everything written then survives the death of this process. Throws InputError when the disk is full;
  /// what was committed before stays.
  std::uint64_t commit();
  /// How many points were added since the last write.
  std::size_t added() const { return added_count_; }

  /// How many points of a sweep (0: of all) have each status, in the order of PointStatus; of one engine, or of all.
  std::array<std::uint64_t, kStatuses> counts(std::int64_t sweep, const std::string& engine = "",
                                              const SweepShard& shard = {});
  /// The same for one status.
  std::uint64_t count(std::int64_t sweep, PointStatus status, const std::string& engine = "",
                      const SweepShard& shard = {});
  /// The best points of a sweep by the objective within the constraints, of one engine or, where that is "", of all but
  /// the first pass's; ties are ordered by number. Points without a figure for the objective are left out, and those
  /// that set_aside() counts.
  std::vector<RankedPoint> best(std::int64_t sweep, const SweepGoal& goal, const std::string& engine,
                                std::uint64_t most, const SweepShard& shard = {});
  /// How many feasible points best() leaves out since they are not of exact training; 0 where the goal admits them, or
  /// where there are no others.
  std::uint64_t set_aside(std::int64_t sweep, const SweepGoal& goal, const std::string& engine = "",
                          const SweepShard& shard = {});
  /// Visits all points in a fixed order: by sweep, number, run and engine. With `last_pass` it leaves out the feasible
  /// points of a first pass; there are screened() of those.
  void for_each(const std::function<void(const PointRow&)>& visit, bool last_pass = false);
  std::uint64_t screened();
  /// All sweeps: their numbers, names and goals, the versions that ran them, and their studies as YAML.
  struct Asked {
    std::int64_t sweep;
    std::string name;
    SweepGoal goal;
    std::string program, document;
  };
  std::vector<Asked> asked();
  /// The names of all sweeps, each once.
  std::vector<std::string> names();
  /// The files that sweeps read, each once.
  std::vector<std::string> paths();
  /// The axes of all sweeps, each key once: an axis has several keys where their values advance together in every sweep
  /// that has one of them.
  std::vector<std::vector<std::string>> axes();
  /// The files that one sweep read, or with 0 all of them.
  std::vector<KeptFile> files(std::int64_t sweep);
  /// The keys of all sweeps' axes, each once.
  std::vector<std::string> axis_keys();

  /// The one point whose key begins with these digits, its sweep, and that sweep's files. Throws InputError where there
  /// is no such point or several.
  struct Found {
    std::string file; ///< the results themselves, to blame
    PointRow row;
    SweepRecord sweep;
    std::vector<KeptFile> files;
  };
  Found find(const std::string& digits);

  /// Adds everything from another file; what is in both stays once. Returns how many points were new.
  std::uint64_t merge(const std::filesystem::path& other);

private:
  // Points that were added and not yet written.
  struct Added {
    std::int64_t sweep;
    PackedPoints points;
  };
  std::uint64_t insert(const std::vector<Added>& added);
  bool settle(std::int64_t sweep, const PointView& row, std::int64_t newest);

  std::unique_ptr<SqliteFile> file_;
  std::optional<KeyFilter> keys_; // once asked for
  std::vector<Added> added_;
  std::size_t added_count_ = 0;
};

} // namespace stagecraft
