// Which combination of values has which number: the grid, and draws from it. Nothing is kept per combination.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <limits>

#include "sim/base/random.hpp"
#include "sim/sweep/space/sweep.hpp"

namespace stagecraft {
namespace {

// The product of the axes' sizes; the largest integer where it would overflow.
std::uint64_t grid_size(const Sweep& sweep) {
  std::uint64_t size = 1;
  for (const SweepAxis& axis : sweep.axes) {
    if (axis.interval || size > std::numeric_limits<std::uint64_t>::max() / axis.size()) {
      return std::numeric_limits<std::uint64_t>::max();
    }
    size *= axis.size();
  }
  return size;
}

std::uint64_t mixed(std::uint64_t value) { // splitmix64 (Steele, Lea, Flood 2014)
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// The image of `number` under a permutation of 0 … size - 1 that the seed picks: a Feistel network over the next power
// of four, walked until it comes back below size (Black and Rogaway 2002).
std::uint64_t permuted(std::uint64_t number, std::uint64_t size, std::uint64_t seed) {
  unsigned half = 1;
  while (half < 32 && (1ULL << (2 * half)) < size) {
    ++half;
  }
  const std::uint64_t mask = (1ULL << half) - 1;
  constexpr int kRounds = 6;
  do {
    std::uint64_t left = number >> half;
    std::uint64_t right = number & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mixed(right ^ mixed(seed * kRounds + round)) & mask);
      left = right;
      right = next;
    }
    number = (left << half) | right;
  } while (number >= size);
  return number;
}

std::vector<std::size_t> grid_indices(const Sweep& sweep, std::uint64_t number) {
  std::vector<std::size_t> indices(sweep.axes.size());
  for (std::size_t axis = sweep.axes.size(); axis-- > 0;) {
    const std::size_t size = std::max<std::size_t>(1, sweep.axes[axis].size());
    indices[axis] = number % size;
    number /= size;
  }
  return indices;
}

void add(Combination& combination, const SweepAxis& axis, std::size_t index) {
  for (const AxisKey& key : axis.keys) {
    const yaml::Node& value = key.values[index];
    combination.settings.push_back(
        {key.key, value.kind == yaml::Node::Kind::scalar ? value.text : yaml::flow_text(value), value});
  }
}

// The combination with each axis at its fraction, 0 to 1, of its range.
Combination at_parts(const Sweep& sweep, std::uint64_t number, const std::vector<double>& parts) {
  Combination drawn{number, {}};
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    const SweepAxis& axis = sweep.axes[i];
    if (axis.interval) {
      yaml::Node value = value_at(axis, parts[i]);
      drawn.settings.push_back({axis.keys.front().key, value.text, value});
    } else {
      add(drawn, axis,
          std::min(axis.size() - 1, static_cast<std::size_t>(parts[i] * static_cast<double>(axis.size()))));
    }
  }
  return drawn;
}

Combination drawn(const Sweep& sweep, std::uint64_t number) {
  const std::uint64_t grid = grid_size(sweep);
  if (sweep.sampling == Sampling::random && grid != std::numeric_limits<std::uint64_t>::max()) {
    Combination combination = combination_of(sweep, grid_indices(sweep, permuted(number, grid, sweep.seed)));
    combination.number = number;
    return combination;
  }
  Random random(sweep.seed, number);
  std::vector<double> parts;
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis) {
    const double unit = random.unit();
    const auto strata = static_cast<double>(sweep.samples);
    const bool stratified = sweep.sampling == Sampling::latin_hypercube;
    const std::uint64_t own = mixed(sweep.seed) + axis;
    parts.push_back(stratified ? (static_cast<double>(permuted(number, sweep.samples, own)) + unit) / strata : unit);
  }
  return at_parts(sweep, number, parts);
}

} // namespace

std::uint64_t combinations(const Sweep& sweep) {
  const std::uint64_t grid = grid_size(sweep);
  return sweep.sampling == Sampling::grid     ? grid
         : sweep.sampling == Sampling::random ? std::min(grid, sweep.samples)
                                              : sweep.samples;
}

Combination combination_of(const Sweep& sweep, std::span<const std::size_t> indices) {
  Combination combination;
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis) {
    if (sweep.axes[axis].interval) {
      yaml::Node value = value_at(sweep.axes[axis], indices[axis] == 0 ? 0 : 1);
      combination.settings.push_back({sweep.axes[axis].keys.front().key, value.text, value});
    } else {
      add(combination, sweep.axes[axis], indices[axis]);
    }
  }
  return combination;
}

std::optional<Combination> combination(const Sweep& sweep, std::uint64_t number) {
  Combination found =
      sweep.sampling == Sampling::grid ? combination_of(sweep, grid_indices(sweep, number)) : drawn(sweep, number);
  found.number = number;
  return is_allowed(sweep, found) ? std::optional(std::move(found)) : std::nullopt;
}

namespace {

bool speaks_of_runs(const Sweep& sweep, const Condition& condition) {
  const std::size_t first = sweep.keys();
  return condition.speaks_of(first) || condition.speaks_of(first + 1) || condition.speaks_of(first + 2);
}

bool all_hold(const Sweep& sweep, const Combination& combination, const RunWords* run) {
  std::vector<ConditionValue> values;
  for (const Condition& condition : sweep.conditions) {
    if (speaks_of_runs(sweep, condition) != (run != nullptr)) {
      continue;
    }
    if (values.empty()) {
      for (const Setting& setting : combination.settings) {
        const auto known = sweep.values.find(setting.value);
        values.push_back(known != sweep.values.end() ? known->second : condition_value(setting.value));
      }
      for (const std::string& word : run != nullptr
                                         ? std::vector{run->strategy, run->schedule, std::to_string(run->micro_batches)}
                                         : std::vector<std::string>(kRunWords.size(), "-")) {
        values.push_back(std::isdigit(static_cast<unsigned char>(word.front())) != 0
                             ? condition_value(word)
                             : ConditionValue{word, 0, false, {}});
      }
    }
    const bool holds = condition.holds([&](std::size_t word) -> const ConditionValue& {
      return word < values.size() ? values[word] : sweep.constants[word - values.size()];
    });
    if (!holds) {
      return false;
    }
  }
  return true;
}

} // namespace

bool is_allowed(const Sweep& sweep, const Combination& combination) { return all_hold(sweep, combination, nullptr); }

bool is_allowed(const Sweep& sweep, const Combination& combination, const RunWords& run) {
  return all_hold(sweep, combination, &run);
}

} // namespace stagecraft
