// The points of a sweep: which there are, what each is called, and the key it is stored by.
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
    Digest files_digest;
  };

  /// A combination with what its points have in common.
  struct Opened {
    Combination combination;
    std::shared_ptr<const Kind> kind;
    Fingerprint fingerprint; ///< what all their keys begin with
    std::string settings;    ///< as rows have them

    /// How many there are, conditions on runs aside: its runs, or one that says why there are none.
    std::uint32_t points() const;
  };

  /// Throws InputError where a value of an axis is bad whatever the others are, or a key is. Looks at them once.
  void check_values();
  /// The combination of a number; nothing where a condition rules it out.
  std::optional<Opened> open(std::uint64_t number);
  /// The row of a point before its result is known; `engine` as in evaluate(). Of a combination without runs: the row
  /// itself. Nothing where a condition rules the run out.
  std::optional<PointRow> row(const Opened& opened, std::uint32_t run, const std::string& engine) const;
  /// The number of points, and in words of what they are the product.
  std::uint64_t count();
  std::string product();
  /// The name of the study's engine, in the first combination that has runs; "" where none has.
  std::string engine();
  /// Whether points are run by another engine than their own first; a screen by their own leaves one pass.
  bool has_first_pass();
  /// The sweep as it was asked for.
  SweepRecord record();
  /// The files met so far and not asked for before, for the store.
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
  Fingerprint of_study_; ///< the program and the study, without what runs say themselves
  std::map<std::string, std::shared_ptr<const Kind>> kinds_;
  std::vector<char> tells_kind_; ///< [setting of a combination]
  std::map<std::filesystem::path, Digest> digests_, told_;
  std::optional<std::uint64_t> count_;
  bool are_checked_ = false; ///< the values of axes
};

} // namespace stagecraft
