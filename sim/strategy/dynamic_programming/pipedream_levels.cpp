// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/pipedream_levels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/base/improves.hpp"
#include "sim/collective/parameter_server.hpp"

namespace stagecraft {
namespace {

// Which states lie below each state, ordered by the work up to them, and whether one lies below another.
class Order {
public:
  explicit Order(const LevelStates& states)
      : count_(states.seconds.size()), is_chain_(std::is_sorted(states.seconds.begin(), states.seconds.end())) {
    for (std::size_t state = 0; state < count_; ++state) {
      is_chain_ = is_chain_ && states.above[state].size() == count_ - state - 1;
    }
    if (is_chain_) {
      chain_.resize(count_);
      std::iota(chain_.begin(), chain_.end(), 0);
    } else {
      look_up_all(states);
    }
  }

  std::span<const std::int32_t> below(int state) const {
    return is_chain_ ? std::span(chain_).first(state) : std::span(below_[state]);
  }
  /// Whether every state holds the one before it.
  bool is_chain() const { return is_chain_; }
  bool is_below(int from, int to) const { return is_chain_ ? from < to : is_below_[from * count_ + to] != 0; }

private:
  void look_up_all(const LevelStates& states) {
    below_.resize(count_);
    is_below_.resize(count_ * count_, 0);
    for (std::size_t from = 0; from < count_; ++from) {
      for (const std::int32_t to : states.above[from]) {
        below_[to].push_back(static_cast<std::int32_t>(from));
        is_below_[from * count_ + to] = 1;
      }
    }
    for (auto& below : below_) {
      std::stable_sort(below.begin(), below.end(),
                       [&](std::int32_t a, std::int32_t b) { return states.seconds[a] < states.seconds[b]; });
    }
  }

  std::size_t count_;
  bool is_chain_;
  std::vector<std::int32_t> chain_;              // its states
  std::vector<std::vector<std::int32_t>> below_; // [state], where they are no chain
  std::vector<char> is_below_;
};

// Which pieces of a plan can still be useful once a plan of `seconds` is known. In that time P workers do at most P *
// seconds of work, and they hold at most P times the memory of one; both limits apply to the workers of the piece and
// to those left for the rest.
class Limits {
public:
  Limits(const LevelStates& states, std::span<const Level> levels, const LevelOptions& options, double seconds)
      : states_(states), memory_(options.memory ? &*options.memory : nullptr),
        seconds_(seconds > 0 ? seconds * (1 + kRounding) : kInfinity) {
    for (const Level& level : levels) {
      workers_ *= level.units;
      group_.push_back(workers_);
    }
    if (memory_ != nullptr) {
      least_held_ = *std::min_element(memory_->held.begin(), memory_->held.end());
      capacity_ = memory_->capacity * (1 + kRounding);
    }
  }

  /// The most seconds that the operators between two states may take on all units of a level; 0 if they cannot be
  /// useful. There may be several such groups, replicas of each other: as many as the operators before and after leave.
  double most_seconds(int level, int from, int to) const {
    const int last = static_cast<int>(states_.seconds.size()) - 1;
    const double groups = workers_ / group_[level] - groups_for(level, 0, from) - groups_for(level, to, last);
    return groups >= 1 && groups_for(level, from, to) <= groups ? seconds_ * groups : 0;
  }

  /// How many workers it takes at least to hold the operators between two states.
  double memory_workers(int from, int to) const {
    return memory_ == nullptr ? 0
                              : (memory_->fixed[to] - memory_->fixed[from] +
                                 (memory_->per_micro_batch[to] - memory_->per_micro_batch[from]) * least_held_) /
                                    capacity_;
  }

  /// Whether one stage of `replicas` innermost units, with `after` more units after it, can hold the operators between
  /// two states.
  bool may_fit(int from, int to, int replicas, int after) const {
    return memory_ == nullptr ||
           memory_->fixed[to] - memory_->fixed[from] +
                   (memory_->per_micro_batch[to] - memory_->per_micro_batch[from]) * memory_->held[after] / replicas <=
               capacity_;
  }

private:
  static constexpr double kRounding = 1e-6;

  // The least number of whole groups of a level that the operators between two states need.
  double groups_for(int level, int from, int to) const {
    const double workers = std::max((states_.seconds[to] - states_.seconds[from]) / seconds_, memory_workers(from, to));
    return from == to ? 0 : std::max(1.0, std::ceil(workers / group_[level]));
  }

  const LevelStates& states_;
  const LevelMemory* memory_;
  double seconds_;
  double workers_ = 1;
  std::vector<double> group_; // [level]: workers of all its units
  double least_held_ = 0, capacity_ = kInfinity;
};

// The least time of a cell, and how it comes about: the last stage has `last` units, the ones before it end at `split`
// on `left` units. Without a split there is only one stage.
struct Cell {
  double seconds = kInfinity;
  std::int32_t split = -1;
  std::int32_t left = 0, last = 0;
};

// One level: A(i, j, m) for a fixed i at a time.
class LevelSolver {
public:
  LevelSolver(const LevelStates& states, const Order& order, std::span<const Level> levels, int level,
              const LevelOptions& options, const Limits& limits, std::vector<double> unit_seconds)
      : states_(states), order_(order), options_(options), limits_(limits), level_(level), units_(levels[level].units),
        bandwidth_(levels[level].bandwidth.value), below_units_(level > 0 ? levels[level - 1].units : 1),
        most_replicas_(options.straight ? 1 : levels[level].most_replicas), count_(states.seconds.size()),
        unit_seconds_(std::move(unit_seconds)), cells_(count_ * units_),
        balanced_(static_cast<std::size_t>(units_ + 1) * units_) {
    for (int below = 0; below < level; ++below) {
      workers_per_unit_ *= levels[below].units;
    }
  }

  // Fills the cells of the states above `start`, as far as any of them can be useful.
  void solve(int start) {
    start_ = start;
    std::fill(balanced_.begin(), balanced_.end(), start + 1);
    limit_ = 0;
    furthest_ = -kInfinity;
    for (const std::int32_t to : states_.above[start]) {
      const double most = limits_.most_seconds(level_, start, to);
      limit_ = std::max(limit_, most);
      furthest_ = most > 0 ? std::max(furthest_, states_.seconds[to]) : furthest_;
    }
    for (const std::int32_t to : states_.above[start]) {
      if (!is_filled(to)) {
        continue;
      }
      std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(index(to, 1)), units_, Cell{});
      const double workers = limits_.memory_workers(start, to);
      for (int units = 1; units <= units_; ++units) {
        Cell& cell = cells_[index(to, units)];
        if (options_.fewer_units && units > 1) {
          cell = cells_[index(to, units - 1)];
        }
        if (workers > units * workers_per_unit_) {
          continue;
        }
        try_one_stage(to, units, cell);
        for (int last = 1; last <= std::min(units - 1, most_replicas_); ++last) {
          try_splits(to, units, last, cell);
        }
      }
    }
  }

  const Cell& cell(int to, int units) const { return cells_[index(to, units)]; }
  bool is_filled(int to) const { return states_.seconds[to] <= furthest_; }

  /// The least times on all units between any two states: the times on one unit of the next level.
  std::vector<double> all_on_all_units() {
    std::vector<double> seconds(count_ * count_, kInfinity);
    for (std::size_t start = 0; start < count_; ++start) {
      solve(static_cast<int>(start));
      for (const std::int32_t to : states_.above[start]) {
        seconds[start * count_ + to] = is_filled(to) ? cell(to, units_).seconds : kInfinity;
      }
    }
    return seconds;
  }

  /// The stages between `start` and `to` on all units; solves again for `start`.
  std::vector<LevelStage> stages(int start, int to) {
    solve(start);
    std::vector<LevelStage> found;
    int units = units_;
    while (to != start) {
      const Cell& end = cell(to, units);
      const int from = end.split < 0 ? start : end.split;
      found.push_back({from, to, end.last, {}});
      units = end.left;
      to = from;
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

private:
  std::size_t index(int to, int units) const { return static_cast<std::size_t>(to) * units_ + units - 1; }

  double unit_seconds(int from, int to) const {
    return unit_seconds_.empty() ? states_.seconds[to] - states_.seconds[from] : unit_seconds_[from * count_ + to];
  }

  double reduction(int from, int to, int replicas) const {
    return parameter_server_bytes(states_.parameter_bytes[to] - states_.parameter_bytes[from], replicas) / bandwidth_;
  }

  double sending(int state, int replicas) const {
    return options_.compression ? 2 * states_.output_bytes[state] / (bandwidth_ * replicas * *options_.compression) : 0;
  }

  bool fits(int from, int to, int replicas, int after) const {
    return !options_.fits || options_.fits({level_, from, to, replicas, after});
  }

  void try_one_stage(int to, int units, Cell& cell) const {
    if (units > most_replicas_) {
      return;
    }
    const double seconds = (unit_seconds(start_, to) + reduction(start_, to, units) / below_units_) / units;
    if (seconds <= limit_ && improves(seconds, cell.seconds) && fits(start_, to, units, units_ - units)) {
      cell = {seconds, -1, 0, units};
    }
  }

  bool may_fit(int split, int to, int last, int units) const {
    return level_ > 0 ? limits_.memory_workers(split, to) <= last * workers_per_unit_
                      : limits_.may_fit(split, to, last, units_ - units);
  }

  // In a chain of states, about the least time of a split, which bounds the search for it: that of one next to where
  // both sides take the same time. Infinite if neither fits or is below `most`. The margin is far more than what ties
  // decide. The split moves up with `to`, so the search goes on from `low`, where it was for a smaller one.
  double seconds_where_balanced(int to, int units, int last, double end_sending, double most, int& low) const {
    constexpr double kMargin = 1e-6;
    const auto left = [&](int split) { return cells_[index(split, units - last)].seconds; };
    const auto right = [&](int split) { return (unit_seconds(split, to) + reduction(split, to, last)) / last; };
    while (low < to && left(low) < right(low)) {
      ++low;
    }
    double least = kInfinity;
    for (const int split : {low - 1, low}) {
      if (split > start_ && split < to) {
        const double seconds = std::max({left(split), sending(split, last), end_sending, right(split)});
        if (seconds < std::min(most, least) && may_fit(split, to, last, units) &&
            fits(split, to, last, units_ - units)) {
          least = seconds;
        }
      }
    }
    return least * (1 + kMargin);
  }

  // No stage on n units takes less than its share of the work, so only those splits are tried whose two sides can both
  // be done in less than the best time so far.
  void try_splits(int to, int units, int last, Cell& cell) {
    const auto below = order_.below(to);
    const double end_sending = to + 1 < static_cast<int>(count_) ? sending(to, last) : 0;
    if (end_sending >= cell.seconds) {
      return;
    }
    double most = std::min(cell.seconds, limit_);
    int& balanced = balanced_[units * units_ + last];
    if (order_.is_chain()) {
      most = std::min(most, seconds_where_balanced(to, units, last, end_sending, most, balanced));
    }
    const double most_right = most * last * workers_per_unit_ * (1 + kTie);
    double most_left = most * (units - last) * workers_per_unit_ * (1 + kTie);
    const double least_before = states_.seconds[to] - most_right;
    const auto takes_too_long = [&](std::int32_t split) { return states_.seconds[split] * (1 + kTie) < least_before; };
    auto first = below.begin();
    if (order_.is_chain()) { // few splits lie between the first and the balanced one
      first += std::min(balanced, to);
      while (first != below.begin() && !takes_too_long(*(first - 1))) {
        --first;
      }
    }
    first = std::partition_point(first, below.end(), takes_too_long);
    const auto cannot_fit = [&](std::int32_t split) { return !may_fit(split, to, last, units); };
    if (order_.is_chain() && first != below.end() && cannot_fit(*first)) {
      first = std::partition_point(first, below.end(), cannot_fit);
    }
    for (auto at = first; at != below.end(); ++at) {
      const int split = *at;
      if (states_.seconds[split] - states_.seconds[start_] > most_left) {
        break;
      }
      if (!order_.is_below(start_, split)) {
        continue;
      }
      const double left = cells_[index(split, units - last)].seconds;
      if (left == kInfinity && order_.is_chain() &&
          limits_.memory_workers(start_, split) > (units - last) * workers_per_unit_) {
        break;
      }
      double seconds = std::max({left, sending(split, last), end_sending});
      if (seconds >= cell.seconds || seconds > limit_) {
        continue;
      }
      seconds = std::max(seconds, (unit_seconds(split, to) + reduction(split, to, last)) / last);
      if (seconds <= limit_ && improves(seconds, cell.seconds) && may_fit(split, to, last, units) &&
          fits(split, to, last, units_ - units)) {
        cell = {seconds, split, units - last, last};
        most_left = std::min(most_left, seconds * (units - last) * workers_per_unit_ * (1 + kTie));
      }
    }
  }

  const LevelStates& states_;
  const Order& order_;
  const LevelOptions& options_;
  const Limits& limits_;
  int level_, units_;
  double bandwidth_;
  int below_units_, most_replicas_;
  int workers_per_unit_ = 1;
  std::size_t count_;
  std::vector<double> unit_seconds_; // [from * count + to]; empty at the innermost level
  std::vector<Cell> cells_;
  std::vector<int> balanced_; // [units, last]: the split of a chain from `start_` where both sides took the same time
  int start_ = 0;
  double limit_ = kInfinity, furthest_ = kInfinity; // limits for `start_`: seconds of a cell, work up to a state
};

std::vector<LevelStage> trace(std::vector<LevelSolver>& solvers, std::size_t level, int from, int to) {
  std::vector<LevelStage> stages = solvers[level].stages(from, to);
  for (LevelStage& stage : stages) {
    if (level > 0) {
      stage.inner = trace(solvers, level - 1, stage.from, stage.to);
    }
  }
  return stages;
}

} // namespace

namespace {

// Whether the ideal holds the first operator and is connected, with edges taken without direction.
bool hangs_together(const ModelGraph& model, std::span<const std::uint64_t> ideal) {
  std::vector<char> reached(model.size(), 0);
  std::vector<OperatorId> open;
  const auto reach = [&](OperatorId op) {
    if (has_bit(ideal, op) && reached[op] == 0) {
      reached[op] = 1;
      open.push_back(op);
    }
  };
  reach(0);
  while (!open.empty()) {
    const OperatorId op = open.back();
    open.pop_back();
    std::for_each(model.successors[op].begin(), model.successors[op].end(), reach);
    std::for_each(model.predecessors[op].begin(), model.predecessors[op].end(), reach);
  }
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (has_bit(ideal, op) && reached[op] == 0) {
      return false;
    }
  }
  return reached[0] != 0;
}

} // namespace

AntichainStates pipedream_states(const ModelGraph& model, int cap) {
  AntichainStates all = antichain_states(model, cap);
  const int last = all.count() - 1;
  const bool one_source = std::none_of(model.predecessors.begin() + 1, model.predecessors.end(),
                                       [](const auto& makers) { return makers.empty(); });
  if (all.contracted || one_source || !hangs_together(model, all.ideals.row(last))) {
    return all;
  }
  std::vector<int> kept = {0};
  for (int state = 1; state <= last; ++state) {
    if (hangs_together(model, all.ideals.row(state))) {
      kept.push_back(state);
    }
  }
  AntichainStates states{BitRows(static_cast<int>(kept.size()), model.size())};
  for (int state = 0; state < states.count(); ++state) {
    const auto ideal = all.ideals.row(kept[state]);
    std::copy(ideal.begin(), ideal.end(), states.ideals.row(state).begin());
  }
  return states;
}

LevelStates level_states(const ModelGraph& model, const AntichainStates& states, const OperatorFigures& figures) {
  LevelStates sums;
  sums.above = states_above(states);
  double seconds = 0;
  double parameters = 0;
  for (int state = 0; state < states.count(); ++state) {
    const auto ideal = states.ideals.row(state);
    const bool more = continues(states.ideals, state);
    seconds = more ? seconds : 0;
    parameters = more ? parameters : 0;
    double output = 0;
    for_each_added(states.ideals, state, more, [&](OperatorId op) {
      seconds += figures.seconds[op];
      parameters += figures.parameter_bytes[op];
    });
    for (const OperatorId op : augmented_antichain(model, ideal)) {
      output += figures.output_bytes[op];
    }
    sums.seconds.push_back(seconds);
    sums.parameter_bytes.push_back(parameters);
    sums.output_bytes.push_back(output);
  }
  return sums;
}

namespace {

// The best plan, if it takes no more than `limit`.
std::optional<LevelPlan> search(const LevelStates& states, std::span<const Level> levels, const LevelOptions& options,
                                double limit) {
  const Order order(states);
  const Limits limits(states, levels, options, limit);
  std::vector<LevelSolver> solvers;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::vector<double> unit_seconds = level > 0 ? solvers.back().all_on_all_units() : std::vector<double>{};
    solvers.emplace_back(states, order, levels, static_cast<int>(level), options, limits, std::move(unit_seconds));
  }
  const int last = static_cast<int>(states.seconds.size()) - 1;
  solvers.back().solve(0);
  const double seconds =
      solvers.back().is_filled(last) ? solvers.back().cell(last, levels.back().units).seconds : kInfinity;
  if (seconds == kInfinity) {
    return std::nullopt;
  }
  return LevelPlan{seconds, trace(solvers, levels.size() - 1, 0, last)};
}

// States each of which holds all operators of those before it.
std::vector<std::int32_t> nested_states(const LevelStates& states) {
  std::vector<std::int32_t> nested = {0};
  while (!states.above[nested.back()].empty()) {
    nested.push_back(states.above[nested.back()].front());
  }
  return nested;
}

std::vector<double> some_of(const std::vector<double>& values, std::span<const std::int32_t> some) {
  std::vector<double> made;
  for (const std::int32_t at : some) {
    made.push_back(values[at]);
  }
  return made;
}

// The best plan over some of the states.
std::optional<LevelPlan> search_some(const LevelStates& states, std::span<const Level> levels,
                                     const LevelOptions& options, std::span<const std::int32_t> some, double limit) {
  LevelStates made{
      some_of(states.seconds, some), some_of(states.parameter_bytes, some), some_of(states.output_bytes, some), {}};
  for (std::size_t at = 0; at < some.size(); ++at) {
    made.above.emplace_back(some.size() - at - 1);
    std::iota(made.above.back().begin(), made.above.back().end(), static_cast<std::int32_t>(at) + 1);
  }
  LevelOptions mapped = options;
  if (options.fits) {
    mapped.fits = [&](StageCandidate stage) {
      stage.from = some[stage.from];
      stage.to = some[stage.to];
      return options.fits(stage);
    };
  }
  if (options.memory) {
    mapped.memory->fixed = some_of(options.memory->fixed, some);
    mapped.memory->per_micro_batch = some_of(options.memory->per_micro_batch, some);
  }
  return search(made, levels, mapped, limit);
}

} // namespace

std::optional<LevelPlan> pipedream_plan(const LevelStates& states, std::span<const Level> levels,
                                        const LevelOptions& options) {
  check(!levels.empty() && states.seconds.size() > 1, "nothing to plan");
  double limit = kInfinity;
  const std::vector<std::int32_t> nested = nested_states(states);
  for (const int parts : {8, 64}) { // a plan over few states bounds the search over more
    const std::vector<std::int32_t> few = few_states(nested, states.seconds, parts);
    if (const auto found = search_some(states, levels, options, few, limit)) {
      limit = std::min(limit, found->stage_seconds);
    }
  }
  return search(states, levels, options, limit);
}

double replicated_seconds(const LevelStates& states, std::span<const Level> levels) {
  double seconds = states.seconds.back();
  int below = 1;
  for (const Level& level : levels) {
    const double reduction = parameter_server_bytes(states.parameter_bytes.back(), level.units) / level.bandwidth.value;
    seconds = (seconds + reduction / below) / level.units;
    below = level.units;
  }
  return seconds;
}

} // namespace stagecraft
