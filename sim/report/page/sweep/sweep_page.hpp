// The results of sweeps as a section of the page: what wins along each axis and over each pair of axes.
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

/// An axis along which points differ: a key of the study, or strategy, schedule, micro-batches, recompute. Keys whose
/// values advance together are one axis, named by as_one_axis(), as are its values.
struct SweptAxis {
  std::string key;
  std::vector<std::string> values; ///< in order of first appearance
  std::string label = {};          ///< its name for readers; "": the key in words
};
/// "model + training.global_batch", and "vgg16 + 384" for their values; parts_of_axis() are the names joined.
std::string as_one_axis(const std::vector<std::string>& names);
std::vector<std::string> parts_of_axis(const std::string& name);
/// Stands for the value of points whose sweep lacks an axis.
inline constexpr std::uint32_t kNoValue = std::numeric_limits<std::uint32_t>::max();

/// Axes in which the runs of one study differ; they follow the sweep's own axes.
inline constexpr std::array<std::string_view, 4> kRunAxes = {"strategy", "schedule", "micro_batches", "recompute"};

/// What a sweep was asked to find, and its best points.
struct SweepAnswer {
  std::string sweep; ///< name of the sweep
  std::string words; ///< objective and constraints, in words
  struct Point {
    std::size_t point = 0; ///< index among the feasible points
    double score = 0;      ///< value of the objective
    std::string text;      ///< the score with its unit
  };
  std::vector<Point> best; ///< the best of all comes first
};

/// A reason why points are infeasible or failed, the number of these points, and one of them in words.
struct SweepReason {
  std::string reason;
  std::uint64_t points = 0;
  std::string one;
};

/// Points of one or more sweeps, column by column.
struct SweepResults {
  std::string name;
  std::vector<std::string> inputs; ///< files read
  std::vector<AnswerBasis> basis;  ///< what is the same for all points
  std::vector<SweepAnswer> answers;
  std::vector<SweptAxis> axes;
  std::vector<std::uint32_t>
      value; ///< [feasible point * axes + axis]: index of the point's value on the axis, or kNoValue
  /// [feasible point]; NaN: not known.
  std::vector<double> iteration, samples_per_second, dollars_per_million, joules_per_sample, peak_memory;
  std::vector<char> assumed; ///< [feasible point]: whether its cost rests on an assumed price; empty: none does
  std::string prices;        ///< what a reader of money must know of its prices; "": nothing costs money
  std::string training;      ///< that no point is of exact training, in words; "": some is, or nobody asked for it
  std::string constraints;   ///< constraints of all sweeps, in words; "": none
  bool constraints_differ = false; ///< the sweeps have different constraints, so none is applied
  std::vector<char> outside;       ///< [feasible point]: whether it breaks the constraints; empty: there are none
  std::vector<std::string> keys;   ///< [feasible point]: first digits of its fingerprint
  std::uint64_t infeasible = 0, failed = 0, screened = 0; ///< numbers of points; `screened`: only the first pass ran
  std::vector<SweepReason> reasons;                       ///< the most frequent first

  std::size_t points() const { return iteration.size(); }
  bool cost_is_assumed(std::size_t point) const { return !assumed.empty() && assumed[point] != 0; }
};

DocumentPage sweep_page(const SweepResults& results);

} // namespace stagecraft
