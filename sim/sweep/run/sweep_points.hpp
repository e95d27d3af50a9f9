// The points of a sweep: which there are, what each is called, and the key under which it is stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/sweep/run/sweep_evaluate.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

/// Settings as a JSON object of texts. Where several have the same key, the last counts.
std::string json_of(std::span<const Setting> settings);

/// A file for the store, with its bytes up to 16 MiB.
KeptFile kept_file(const std::filesystem::path& path, const Digest& digest, const std::string& bytes);

/// The points of a sweep, found one after the other; nothing is kept per point.
class SweepPoints {
public:
  /// `inputs` must outlive it. `program` is the program's version, which results depend on.
  SweepPoints(const SweepInputs& inputs, std::string program);

  /// What combinations that differ only in numbers have in common: their runs, or why they have none.
  struct Kind {
    std::vector<RunWords> runs;
    std::vector<std::string> recompute; ///< of each run, in words
    std::string engine;
    std::string error;
    Digest files_digest;
  };

  /// A combination with what its points have in common.
  struct Opened {
    Combination combination;
    std::shared_ptr<const Kind> kind;
    Fingerprint fingerprint; ///< what all their keys begin with
    std::string settings;    ///< as rows have them

    /// The number of points, ignoring conditions on runs: one per run, or a single one that says why there are none.
    std::uint32_t points() const;
  };

  /// Throws InputError where a key is bad, or a value of an axis is bad whatever the other values are. Checks once.
  void check_values();
  /// The combination with this number; nothing where a condition rules it out.
  std::optional<Opened> open(std::uint64_t number);
  /// The row of a point before its result is known; `engine` as in evaluate(). For a combination without runs this row
  /// is the result. Nothing where a condition rules the run out.
  std::optional<PointRow> row(const Opened& opened, std::uint32_t run, const std::string& engine) const;
  /// The number of points, and in words the product that gives it.
  std::uint64_t count();
  std::string product();
  /// The name of the study's engine, in the first combination that has runs; "" where none has.
  std::string engine();
  /// Whether another engine than the points' own makes a first pass. Screening by their own engine takes only one pass.
  bool has_first_pass();
  /// The sweep as it was asked for.
  SweepRecord record();
  /// The files met since the last call, for the store.
  std::vector<KeptFile> new_files();

  const SweepInputs& inputs() const { return inputs_; }

private:
  std::shared_ptr<const Kind> kind_of(const Combination& combination);
  Kind find_kind(const Combination& combination);
  std::optional<InputError> failure_of(const Combination& combination) const; ///< conditions aside
  bool does(const Combination& combination) const;
  bool may_do(std::vector<std::size_t> values, std::size_t axis) const;
  [[noreturn]] void blame(const std::vector<std::size_t>& values, std::size_t axis) const;
  Fingerprint fingerprint_of(const Combination& combination, const Kind& kind) const;
  bool may_draw(const Combination& combination) const; ///< errors of the cost model
  std::uint64_t count_all();

  const SweepInputs& inputs_;
  std::string program_;
  Fingerprint of_study_; ///< the program and the study, without the keys that each run has itself
  std::map<std::string, std::shared_ptr<const Kind>> kinds_;
  std::vector<char> tells_kind_; ///< [setting of a combination]
  std::map<std::filesystem::path, Digest> digests_, told_;
  std::optional<std::uint64_t> count_;
  bool are_checked_ = false; ///< the values of axes
};

} // namespace stagecraft
