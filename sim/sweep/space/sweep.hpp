// A sweep: key `sweep` of a study, and the combinations of values that it asks for. docs/formats/sweep.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/sweep/space/sweep_axes.hpp"
#include "sim/sweep/space/sweep_condition.hpp"
#include "sim/sweep/space/sweep_goal.hpp"

namespace stagecraft {

/// The engine of a point that is only estimated, without a replay.
inline constexpr std::string_view kEstimate = "estimate";

enum class Sampling { grid, random, latin_hypercube };

struct SamplingRow {
  std::string_view name, help;
  Sampling sampling;
};
inline constexpr std::array kSamplings = {
    SamplingRow{"grid", "every combination", Sampling::grid},
    SamplingRow{"random", "combinations drawn by chance, no two alike", Sampling::random},
    SamplingRow{"latin-hypercube", "every axis covered evenly (McKay, Beckman, Conover 1979)",
                Sampling::latin_hypercube},
};

/// The key as read. Valid by construction, except for the values, which only a study can check.
struct Sweep {
  /// A first pass over every point by a quick engine; the points that it keeps are replayed by the study's engine.
  struct Screen {
    std::string engine = "analytic";
    std::uint64_t keep = 0; ///< points
    double share = 0;       ///< or this part of the feasible ones
  };

  yaml::Node document; ///< the study without the sweep
  std::string asked;   ///< the sweep as YAML on one line, without what ranks its points
  std::string name;
  std::vector<SweepAxis> axes;    ///< the most expensive to change first: the model, the platform, all else
  std::vector<std::string> words; ///< words that conditions may use: keys of axes, kRunWords, then the study's own keys
  std::vector<ConditionValue> constants; ///< of the study's own keys
  std::vector<Condition> conditions;
  std::map<std::string, ConditionValue> values; ///< the axes' values, parsed for conditions
  Sampling sampling = Sampling::grid;
  std::uint64_t samples = 0; ///< combinations to draw
  std::uint64_t seed = 1;
  std::optional<Screen> screen;
  SweepGoal goal;

  /// The number of keys of all axes together.
  std::size_t keys() const;
};

/// The words of a run that conditions may use beside the axes.
inline constexpr std::array<std::string_view, 3> kRunWords = {"strategy", "schedule", "micro_batches"};

/// Whether a key chooses the model or platform; the keys below it change the chosen one.
bool says_which(std::string_view key);

/// Whether a setting is for the key `sweep` or a key below it, which load_sweep() applies.
bool is_of_sweep(const Setting& setting);

/// The study's key that ranks runs: part of a sweep's goal, so that points are ranked anew without another sweep.
inline constexpr std::string_view kRankKey = "compare.rank";

/// Reads a study's key `sweep`; settings are those of the command line. Throws InputError.
Sweep load_sweep(const yaml::Node& study, const std::vector<Setting>& settings);

/// One combination: a value for each key, as settings of a study.
struct Combination {
  std::uint64_t number = 0;
  std::vector<Setting> settings;
};

/// How many combinations there are, ignoring conditions.
std::uint64_t combinations(const Sweep& sweep);
/// The combination with this number; nothing where a condition without words of a run rules it out.
std::optional<Combination> combination(const Sweep& sweep, std::uint64_t number);
/// The combination of the values with these indices, one for each axis.
Combination combination_of(const Sweep& sweep, std::span<const std::size_t> indices);
/// Whether the conditions without words of a run hold.
bool is_allowed(const Sweep& sweep, const Combination& combination);

/// The words of a run.
struct RunWords {
  std::string strategy, schedule;
  int micro_batches = 1;
};
/// Whether the conditions with words of a run hold.
bool is_allowed(const Sweep& sweep, const Combination& combination, const RunWords& run);

} // namespace stagecraft
