// What a sweep looks for: an objective, and constraints that its points must keep to. docs/formats/sweep.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// What a sweep looks for, as an expression of SQL over the columns of points; `:samples` is the goal's samples.
struct ObjectiveRow {
  std::string_view name, help;
  std::string_view expression;
  std::string (*write)(double value); ///< with its unit
  bool largest;                       ///< rather than least; follows from what is better for its metric
  bool needs_samples;                 ///< the goal must say how many samples to train

  /// Whether its value depends on prices.
  constexpr bool is_money() const { return expression.find("usd") != std::string_view::npos; }
};
std::span<const ObjectiveRow> objectives();

/// What a constraint limits from above, as an expression of the same kind.
struct ConstraintRow {
  std::string_view name, help;
  std::string_view expression;
  double (*read)(yaml::Map& map, std::string_view name); ///< the limit, in SI units
  bool needs_samples = false;
};
std::span<const ConstraintRow> constraints();

struct SweepGoal {
  struct Limit {
    const ConstraintRow* row;
    double most;
    std::string text; ///< the limit as it was written, with its unit
  };

  const ObjectiveRow* objective = nullptr;
  double samples = 0; ///< to train; 0: not said
  std::vector<Limit> limits;
  std::map<std::string, std::string> labels; ///< names of axes for readers, by their keys joined as the page joins them
  bool exact = true; ///< points of exact training alone count, where a sweep has some; false where the study ranks by
                     ///< throughput or limits the staleness itself
  std::string document; ///< YAML on one line, from which read_goal() makes this goal again
};

/// Reads keys `objective` and `constraints` of a sweep, `rank`, which comes from the study's `compare`, and `labels`,
/// which come from its axes; without
/// them the goal is the least time of an iteration of exact training. Throws InputError.
SweepGoal read_goal(const yaml::Node& sweep);

/// Whether a point is of exact training: the order that ran is no asynchronous schedule's, and no gradient is late.
/// `staleness` is NaN where it is not known.
bool is_exact(std::string_view order, double staleness);
/// The same as a condition of SQL on the columns of points.
std::string exact_condition();
/// What is said where a goal wants exact training and no feasible point is of it.
inline constexpr std::string_view kNoneExact =
    "No feasible point is of exact training: all are of asynchronous schedules, which train with stale weights.";

/// In words: "least time to train 1000 samples, with memory at most 16 GB".
std::string in_words(const SweepGoal& goal);

} // namespace stagecraft
