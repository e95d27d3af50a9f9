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

/// The engine that a point is done by where it is not replayed at all.
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

/// The key, read. Right by construction but for the values, which only a study can judge.
struct Sweep {
  /// A first pass over every point by a quick engine; what it leaves is replayed by the study's.
  struct Screen {
    std::string engine = "analytic";
    std::uint64_t keep = 0; ///< points
    double share = 0;       ///< or this part of the feasible ones
  };

  yaml::Node document; ///< the study without the sweep
  std::string asked;   ///< the sweep as YAML on one line, without what ranks its points
  std::string name;
  std::vector<SweepAxis> axes;           ///< those that are dear to change first: the model, the platform, all else
  std::vector<std::string> words;        ///< that conditions know: keys of axes, kRunWords, then the study's own keys
  std::vector<ConditionValue> constants; ///< of the study's own keys
  std::vector<Condition> conditions;
  std::map<std::string, ConditionValue> values; ///< what conditions make of the axes' values
  Sampling sampling = Sampling::grid;
  std::uint64_t samples = 0; ///< combinations to draw
  std::uint64_t seed = 1;
  std::optional<Screen> screen;
  SweepGoal goal;

  /// The number of keys that all axes have together.
  std::size_t keys() const;
};

/// What conditions may say of a run beside the axes.
inline constexpr std::array<std::string_view, 3> kRunWords = {"strategy", "schedule", "micro_batches"};

/// Whether a key stands below another: "platform.network" below "platform".
bool is_below(std::string_view key, std::string_view above);

/// Whether a key says which model or platform it is; what is below that changes whichever it is.
bool says_which(std::string_view key);

/// Whether a setting is of the key `sweep` or of something below it, which load_sweep() takes.
bool is_of_sweep(const Setting& setting);

/// Reads a study's key `sweep`; settings are those of the command line. Throws InputError.
Sweep load_sweep(const yaml::Node& study, const std::vector<Setting>& settings);

/// One combination: a value for each key, as settings of a study.
struct Combination {
  std::uint64_t number = 0;
  std::vector<Setting> settings;
};

/// How many combinations there are, conditions aside.
std::uint64_t combinations(const Sweep& sweep);
/// The combination of a number; nothing where a condition that does not speak of runs rules it out.
std::optional<Combination> combination(const Sweep& sweep, std::uint64_t number);
/// The values of the given indices, one for each axis.
Combination combination_of(const Sweep& sweep, std::span<const std::size_t> indices);
/// Whether the conditions without words of a run hold.
bool is_allowed(const Sweep& sweep, const Combination& combination);

/// The words of a run.
struct RunWords {
  std::string strategy, schedule;
  int micro_batches = 1;
};
/// Whether the conditions that speak of runs hold.
bool is_allowed(const Sweep& sweep, const Combination& combination, const RunWords& run);

} // namespace stagecraft
