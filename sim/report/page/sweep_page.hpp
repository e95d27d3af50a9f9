// The results of sweeps as a section of the page: what wins along every axis and over every two of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/page/documents.hpp"

namespace stagecraft {

/// Something that points differ in: a key of the study, or strategy, schedule, micro-batches, recompute.
struct SweptAxis {
  std::string key;
  std::vector<std::string> values; ///< as first met
};
/// In the place of a value, of points whose sweep has no such axis.
inline constexpr std::uint32_t kNoValue = std::numeric_limits<std::uint32_t>::max();

/// What runs of one study differ in, after the keys of the sweep's own axes.
inline constexpr std::array<std::string_view, 4> kRunAxes = {"strategy", "schedule", "micro_batches", "recompute"};

/// What a sweep looked for, and what came out best.
struct SweepAnswer {
  std::string sweep; ///< its name
  std::string words; ///< objective and constraints
  struct Point {
    std::size_t point = 0; ///< among the feasible ones
    double score = 0;      ///< by the objective
    std::string text;      ///< the same with its unit
  };
  std::vector<Point> best; ///< first the best of all
};

/// Why points are infeasible or failed, how many, and one of them in words.
struct SweepReason {
  std::string reason;
  std::uint64_t points = 0;
  std::string one;
};

/// Points of one or more sweeps, column by column.
struct SweepResults {
  std::string name;
  std::vector<std::string> inputs; ///< files that were read
  std::vector<SweepAnswer> answers;
  std::vector<SweptAxis> axes;
  std::vector<std::uint32_t> value; ///< [feasible point * axes + axis]: which of its values, or kNoValue
  /// [feasible point]; NaN: not known.
  std::vector<double> iteration, samples_per_second, dollars_per_million, joules_per_sample, peak_memory;
  std::string constraints;         ///< that all sweeps ask for, in words; "": none
  bool constraints_differ = false; ///< between sweeps: none of them is heeded
  std::vector<char> outside;       ///< [feasible point]: it does not keep to them; empty: there are none
  std::vector<std::string> keys;   ///< [feasible point]: fingerprint, its first digits
  std::uint64_t infeasible = 0, failed = 0, screened = 0; ///< points; `screened`: known from the first pass alone
  std::vector<SweepReason> reasons;                       ///< most points first

  std::size_t points() const { return iteration.size(); }
};

DocumentPage sweep_page(const SweepResults& results);

} // namespace stagecraft
