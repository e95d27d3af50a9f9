// Results of sweeps on disk: one SQLite file in which every point stands once, however often it was begun.
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

#include "sim/base/digest.hpp"
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
  std::string keys;                    ///< of the axes, a JSON list
  std::string goal;                    ///< what it looks for, SweepGoal::document
  std::string screen;                  ///< the engine of a first pass; "": there was none
  std::string study_folder, shipped_folder;
};

/// A point that is among the best.
struct RankedPoint {
  PointRow row;
  double score = 0; ///< by the objective, in its unit
};

/// A file that a sweep read.
struct KeptFile {
  std::string path;
  Digest digest;
  std::optional<std::string> bytes; ///< nothing: too large to keep
};

class SweepStore {
public:
  /// Whether a file is a database at all, by how it begins; the constructor tells whether it is one of ours.
  static bool is_one(const std::filesystem::path& path);

  enum class Mode { write, read };
  /// Opens a file, for writing makes it where it is absent. Throws InputError when it is none of ours.
  SweepStore(const std::filesystem::path& path, Mode mode);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  /// The sweep's number in this file; the same for equal digests, whatever they look for: the last goal stays.
  std::int64_t add_sweep(const SweepRecord& record);
  void add_file(std::int64_t sweep, const KeptFile& file);

  /// The keys of all points, but for those that others have added since it was first asked for.
  const KeyFilter& keys();
  /// Whether the point is there; if so, it counts for this sweep too. Failed ones are not with `retry`.
  bool has(std::int64_t sweep, const Digest& key, std::uint64_t number, std::uint32_t run, bool retry);
  /// Adds points where they are not there, or have failed. Questions see them after the next write().
  void add(std::int64_t sweep, PackedPoints points);
  void add(std::int64_t sweep, const PointRow& row);
  /// Puts what was added into the file; gives how many of the points were there already. Other processes wait for the
  /// next commit() to write to it.
  std::uint64_t write();
  /// The same, and makes everything written safe from any end of this process. Throws InputError when the disk is full;
  /// what was committed before stays.
  std::uint64_t commit();
  /// How many points were added since the last write.
  std::size_t added() const { return added_count_; }

  /// How many points of a sweep (0: of all) have each status, in the order of PointStatus; of one engine, or of all.
  std::array<std::uint64_t, kStatuses> counts(std::int64_t sweep, const std::string& engine = "",
                                              const SweepShard& shard = {});
  /// The same of one status.
  std::uint64_t count(std::int64_t sweep, PointStatus status, const std::string& engine = "",
                      const SweepShard& shard = {});
  /// The best points of a sweep by the objective within the constraints, of one engine or, "", of all but that of a
  /// first pass; ties by number. Points without a figure for the objective are none.
  std::vector<RankedPoint> best(std::int64_t sweep, const SweepGoal& goal, const std::string& engine,
                                std::uint64_t most, const SweepShard& shard = {});
  /// All points in a fixed order: sweeps, numbers, runs, engines. With `last_pass` without the feasible ones of a first
  /// pass, of which there are screened().
  void for_each(const std::function<void(const PointRow&)>& visit, bool last_pass = false);
  std::uint64_t screened();
  /// All sweeps, their numbers, names and documents of what they look for.
  struct Asked {
    std::int64_t sweep;
    std::string name, goal;
  };
  std::vector<Asked> asked();
  /// The names of all sweeps, each once.
  std::vector<std::string> names();
  /// The files that sweeps read, each once.
  std::vector<std::string> paths();
  /// Keys of axes of all sweeps, each once.
  std::vector<std::string> axis_keys();

  /// The one point whose key begins with these digits, the sweep it came from, and that one's files. Throws InputError
  /// where there is none or several.
  struct Found {
    PointRow row;
    SweepRecord sweep;
    std::vector<KeptFile> files;
  };
  Found find(const std::string& digits);

  /// Adds everything of another file; what is in both stays once. Returns how many points were new.
  std::uint64_t merge(const std::filesystem::path& other);

private:
  // Points that were added, to be written.
  struct Added {
    std::int64_t sweep;
    PackedPoints points;
  };
  std::uint64_t insert(const std::vector<Added>& added);
  bool settle(std::int64_t sweep, const PointView& row, std::int64_t newest);

  std::unique_ptr<SqliteFile> file_;
  std::optional<KeyFilter> keys_; // where asked for
  std::vector<Added> added_;
  std::size_t added_count_ = 0;
};

} // namespace stagecraft
