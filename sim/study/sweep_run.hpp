// A sweep from its study file to its results on disk: counted, shared out over workers, stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/sweep_point.hpp"
#include "sim/study/sweep_store.hpp"

namespace stagecraft {

/// This part of all points is ours: those whose key modulo `count` is `index` - 1.
struct SweepShard {
  int index = 1, count = 1;
};

/// Settings as a JSON object of texts; of several of one key the last.
std::string json_of(std::span<const Setting> settings);

/// A file for the store, with its bytes up to 16 MiB.
KeptFile kept_file(const std::filesystem::path& path, const Digest& digest, const std::string& bytes);

/// The points of a sweep, found one after the other; nothing is kept per point.
class SweepPoints {
public:
  /// `inputs` must stay. `program` is the version that results depend on.
  SweepPoints(const SweepInputs& inputs, std::string program);

  /// What stands behind several combinations that differ in numbers alone: their runs, or why they have none.
  struct Kind {
    std::vector<RunWords> runs;
    std::vector<std::string> recompute; ///< of each run, in words
    std::string engine;
    std::string error;
    std::set<std::filesystem::path> files;
    Digest files_digest;
  };

  /// Throws InputError where a value of an axis is bad whatever the others are, or a key is.
  void check_values();
  const Kind& kind_of(const Combination& combination);
  /// What the keys of all runs of a combination begin with.
  Fingerprint fingerprint_of(const Combination& combination, const Kind& kind) const;
  /// The key of a point; `engine` as in evaluate(). A run beyond the kind's: of a combination that has none.
  static Digest key(Fingerprint fingerprint, const Combination& combination, const Kind& kind, std::uint32_t run,
                    const std::string& engine);
  /// The number of points, and in words of what they are the product.
  std::uint64_t count();
  std::string product();
  /// The sweep as it was asked for.
  SweepRecord record();
  /// The files met so far and not asked for before, for the store.
  std::vector<KeptFile> new_files();

  const SweepInputs& inputs() const { return inputs_; }

private:
  std::string engine();

  const SweepInputs& inputs_;
  std::string program_;
  Fingerprint of_study_; ///< the program and the study, without what runs say themselves
  std::map<std::string, Kind> kinds_;
  std::vector<char> tells_kind_; ///< [setting of a combination]
  std::map<std::filesystem::path, Digest> digests_, told_;
};

struct SweepOptions {
  int workers = 1;
  SweepShard shard;
  bool retry = false; ///< failed points again
  /// Hears how many points of how many are done, those of earlier runs among them. False ends the sweep.
  std::function<bool(std::uint64_t done, std::uint64_t all)> progress;
};

/// How it ended.
struct SweepOutcome {
  std::int64_t sweep = 0;                ///< in the store
  std::uint64_t computed = 0, found = 0; ///< points done now, and before
  std::uint64_t feasible = 0, infeasible = 0, failed = 0;
};

/// Runs all points that the store lacks. Throws InputError.
SweepOutcome run_sweep(SweepPoints& points, SweepStore& store, const SweepOptions& options);

} // namespace stagecraft
