// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/max_load/max_load.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/strategy/dynamic_programming/max_load/ideal_sums.hpp"
#include "sim/strategy/dynamic_programming/stage_borders.hpp"

namespace stagecraft {
namespace {

// dp[ideal][c]: the least max-load of stages that fill the ideal with c[g] devices of group g (a number in mixed
// radix).
class MaxLoadSearch {
public:
  MaxLoadSearch(const PlanRequest& request, const std::vector<LoadGroup>& groups, const BitRows& ideals)
      : request_(request), groups_(groups), ideals_(ideals), borders_(request.problem, ideals),
        tensors_(crossing_tensors(request.problem)), sums_(ideal_sums(request, groups, tensors_, ideals, borders_)) {
    number_counts();
    fastest_ = *std::max_element(sums_.speed.begin(), sums_.speed.end()) * (1 + kTie);
    for (int ideal = 1; ideal < ideals.rows(); ++ideal) {
      is_chain_ = is_chain_ && is_subset(ideals.row(ideal - 1), ideals.row(ideal));
    }
  }

  std::size_t counts() const { return used_.size(); }

  // With `total` stages in all; 0: any number. `limited`: stages fit in memory, as in a pipeline of `total` stages.
  std::optional<LoadSplit> run(int total, bool limited, double below) {
    total_ = total;
    limited_ = limited;
    below_ = std::min(below, std::numeric_limits<double>::max());
    refused_ = false;
    held_.assign(request_.devices.size(), 0.0);
    for (int stage = 0; stage < total; ++stage) {
      held_[stage] = request_.in_flight(stage, total);
    }
    note_least_held();
    const int last = ideals_.rows() - 1;
    forget_values();
    least_.assign(ideals_.rows(), kInfinity);
    dp_[0] = least_[0] = 0;
    valued_[0] = {0};
    first_before_ = 0;
    for (int ideal = 1; ideal <= last; ++ideal) {
      fill(ideal);
    }
    const double least = least_[last];
    if (least == kInfinity) {
      return std::nullopt;
    }
    std::size_t best = 0; // on ties, the fewest devices
    for (std::size_t c = 1; c < counts(); ++c) {
      const bool good = dp(last)[c] <= least * (1 + kTie);
      best = good && (best == 0 || used_[c] < used_[best]) ? c : best;
    }
    return trace(best);
  }

  // [total]: no pipeline of so many stages that fit has a smaller max-load, unless it is `below` or more. One search
  // for all of them, from the end on, where what a stage holds follows from how many come after it; else 0.
  std::vector<double> least_of_totals(double below) {
    std::vector<double> least(request_.devices.size() + 1, 0.0);
    if (!is_chain_ || !holds_by_place_from_end()) {
      return least;
    }
    total_ = static_cast<int>(request_.devices.size());
    limited_ = true;
    below_ = std::min(below, std::numeric_limits<double>::max());
    note_least_held();
    const int last = ideals_.rows() - 1;
    forget_values();
    least_.assign(ideals_.rows(), kInfinity);
    dp(last)[0] = least_[last] = 0;
    valued_[last] = {0};
    for (int ideal = last; ideal-- > 0;) {
      fill_from_end(ideal);
    }
    std::fill(least.begin(), least.end(), kInfinity);
    for (const std::size_t c : valued_.front()) {
      least[used_[c]] = std::min(least[used_[c]], dp(0)[c]);
    }
    return least;
  }

  // Some of the ideals, for a first search.
  BitRows few_ideals() const {
    std::vector<std::int32_t> nested = {0};
    for (int ideal = 1; ideal < ideals_.rows(); ++ideal) {
      if (is_subset(ideals_.row(nested.back()), ideals_.row(ideal))) {
        nested.push_back(ideal);
      }
    }
    std::vector<double> work;
    for (const double left : sums_.left) {
      work.push_back(sums_.left.front() - left);
    }
    const std::vector<std::int32_t> some = few_states(nested, work, 64);
    BitRows few(static_cast<int>(some.size()), request_.problem.model.size());
    for (std::size_t at = 0; at < some.size(); ++at) {
      const auto ideal = ideals_.row(some[at]);
      std::copy(ideal.begin(), ideal.end(), few.row(static_cast<int>(at)).begin());
    }
    return few;
  }

  bool refused() const { return refused_; } ///< whether memory kept a stage from being tried

private:
  Bytes memory_of(std::size_t g) const { return request_.problem.platform.types[groups_[g].type].memory; }

  double* dp(int ideal) { return dp_.data() + static_cast<std::size_t>(ideal) * counts(); }

  void number_counts() {
    std::size_t product = 1;
    for (const LoadGroup& group : groups_) {
      stride_.push_back(product);
      product *= group.devices.size() + 1;
    }
    double speed = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      speed += sums_.speed[g] * static_cast<double>(groups_[g].devices.size());
      most_memory_ = std::max(most_memory_, memory_of(g).value);
    }
    has_left_.resize(groups_.size());
    for (std::size_t c = 0; c < product; ++c) {
      double left = speed;
      double memory = 0;
      int used = 0;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const std::size_t digit = c / stride_[g] % (groups_[g].devices.size() + 1);
        used += static_cast<int>(digit);
        left -= sums_.speed[g] * static_cast<double>(digit);
        has_left_[g].push_back(digit < groups_[g].devices.size() ? 1 : 0);
        const std::size_t unused = groups_[g].devices.size() - digit;
        memory += unused > 0 ? static_cast<double>(unused) * memory_of(g).value : 0; // which may be infinite
      }
      memory_left_.push_back(memory);
      used_.push_back(used);
      speed_left_.push_back(left + kTie * speed);
    }
  }

  // Values are infinite except for the numbers in valued_.
  void forget_values() {
    dp_.resize(static_cast<std::size_t>(ideals_.rows()) * counts(), kInfinity);
    valued_.resize(ideals_.rows());
    for (int ideal = 0; ideal < ideals_.rows(); ++ideal) {
      for (const std::size_t c : valued_[ideal]) {
        dp(ideal)[c] = kInfinity;
      }
      valued_[ideal].clear();
    }
  }

  void note_least_held() {
    held_after_.assign(total_ + 1, kInfinity);
    for (int stage = total_; stage-- > 0;) {
      held_after_[stage] = std::min(held_after_[stage + 1], held_[stage]);
    }
  }

  // Whether a stage holds the same in every pipeline in which as many come after it; sets held_ by that number.
  bool holds_by_place_from_end() {
    held_.clear();
    for (int total = 1; total <= static_cast<int>(request_.devices.size()); ++total) {
      held_.push_back(request_.in_flight(0, total));
      for (int after = 0; after < total; ++after) {
        if (request_.in_flight(total - 1 - after, total) != held_[after]) {
          return false;
        }
      }
    }
    return true;
  }

  // As fill(), for what stages that do all that lies outside the ideal take.
  void fill_from_end(int ideal) {
    for (int after = ideal + 1; after < ideals_.rows() && is_short(ideal, after); ++after) {
      if (least_[after] < below_ && may_improve(ideal, after)) {
        relax(ideal, after, after, ideal);
      }
    }
    const double inside = sums_.left.front() - sums_.left[ideal];
    std::erase_if(valued_[ideal], [&](std::size_t c) {
      const double held = held_after_[used_[c]];
      const bool out = inside > speed_left_[c] * below_ ||
                       (ideal > 0 && least_need(0, ideal, held) > memory_left_[c] * (1 + kTie) + rounding(held));
      dp(ideal)[c] = out ? kInfinity : dp(ideal)[c];
      return out;
    });
    for (const std::size_t c : valued_[ideal]) {
      least_[ideal] = std::min(least_[ideal], dp(ideal)[c]);
    }
  }

  void fill(int ideal) {
    while (is_chain_ && first_before_ < ideal &&
           (!is_short(first_before_, ideal) || exceeds(first_before_, ideal, 0, most_memory_))) {
      ++first_before_; // so it will be for larger ideals
    }
    for (int before = first_before_; before < ideal; ++before) {
      if (least_[before] < below_ && may_improve(before, ideal)) {
        relax(before, ideal, before, ideal);
      }
    }
    // The devices left must be able to do the rest, each in less than the best known, and to hold it.
    double* here = dp(ideal);
    const bool whole = ideal + 1 == ideals_.rows();
    std::erase_if(valued_[ideal], [&](std::size_t c) {
      const double later = total_ > 0 ? (total_ - used_[c]) * fastest_ : kInfinity;
      const bool out = sums_.left[ideal] > std::min(speed_left_[c], later) * below_ ||
                       (whole ? total_ > 0 && used_[c] != total_
                              : exceeds(ideal, ideals_.rows() - 1, used_[c],
                                        std::min(memory_left_[c], (total_ - used_[c]) * most_memory_)));
      here[c] = out ? kInfinity : here[c];
      return out;
    });
    if (!limited_) {
      drop_wasteful(ideal);
    }
    for (const std::size_t c : valued_[ideal]) {
      least_[ideal] = std::min(least_[ideal], here[c]);
    }
  }

  // Drops the values for which fewer devices do as well; no split of the fewest devices has one of them.
  void drop_wasteful(int ideal) {
    double* here = dp(ideal);
    std::sort(valued_[ideal].begin(), valued_[ideal].end());
    std::vector<double>& fewer = least_of_fewer_; // [number]: over it and all numbers with fewer devices
    fewer.assign(counts(), kInfinity);
    for (std::size_t c = 0; c < counts(); ++c) {
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (c >= stride_[g] && has_left_[g][c - stride_[g]] != 0) {
          fewer[c] = std::min(fewer[c], fewer[c - stride_[g]]);
        }
      }
      if (fewer[c] <= here[c]) {
        here[c] = kInfinity;
      }
      fewer[c] = std::min(fewer[c], here[c]);
    }
    std::erase_if(valued_[ideal], [&](std::size_t c) { return here[c] == kInfinity; });
  }

  // The least that stages hold between two ideals with so many micro-batches in flight, without what crosses borders.
  double least_need(int before, int ideal, double held) const {
    return sums_.fixed[ideal] - sums_.fixed[before] +
           held * (sums_.per_micro_batch[ideal] - sums_.per_micro_batch[before]);
  }

  // What sums over ideals may be wrong by when one is taken from another.
  double rounding(double held) const { return kTie * (sums_.fixed.back() + held * sums_.per_micro_batch.back()); }

  // With a number of stages in all: whether stages that lie between two ideals, after `used` others, need clearly more
  // than `memory`.
  bool exceeds(int before, int ideal, int used, double memory) const {
    if (total_ == 0 || used >= total_) {
      return false;
    }
    const double held = held_after_[used];
    return least_need(before, ideal, held) > memory * (1 + kTie) + rounding(held);
  }

  // Whether some group could run what lies between two ideals in less than the best known load.
  bool is_short(int before, int ideal) const {
    return std::any_of(sums_.seconds.begin(), sums_.seconds.end(),
                       [&](const auto& seconds) { return seconds[ideal] - seconds[before] < below_; });
  }

  // Whether `before` is a subset of `ideal`, and some group could run what lies between them in less than the best
  // known load.
  bool may_improve(int before, int ideal) const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (sums_.seconds[g][ideal] - sums_.seconds[g][before] < below_ &&
          sums_.lacking[g][ideal] == sums_.lacking[g][before]) {
        return is_chain_ || is_subset(ideals_.row(before), ideals_.row(ideal));
      }
    }
    return false;
  }

  struct Crossing {
    double bytes = 0;
    int transfers = 0;
  };

  // Tensors with an end in the stage and one outside: those open at either border. A tensor that is open at both counts
  // once if it has an end in the stage, and not at all if it bypasses the stage.
  Crossing crossing(int before, int ideal) const {
    Crossing sum{sums_.open_bytes[before] + sums_.open_bytes[ideal],
                 sums_.open_transfers[before] + sums_.open_transfers[ideal]};
    const auto a = sums_.open.row(before);
    const auto b = sums_.open.row(ideal);
    for (std::size_t word = 0; word < a.size(); ++word) {
      for (std::uint64_t both = a[word] & b[word]; both != 0; both &= both - 1) {
        const int tensor = static_cast<int>(word) * 64 + std::countr_zero(both);
        const int times = touches(tensor, before, ideal) ? 1 : 2;
        sum.bytes -= times * tensors_[tensor].bytes;
        sum.transfers -= times * tensors_[tensor].transfers;
      }
    }
    return {std::max(sum.bytes, 0.0), sum.transfers};
  }

  bool touches(int tensor, int before, int ideal) const {
    const auto ends = sums_.ends.row(tensor);
    const auto low = ideals_.row(before);
    const auto high = ideals_.row(ideal);
    for (std::size_t word = 0; word < ends.size(); ++word) {
      if ((ends[word] & high[word] & ~low[word]) != 0) {
        return true;
      }
    }
    return false;
  }

  double load(std::size_t g, int before, int ideal, const Crossing& tensors) const {
    const PathCost& route = groups_[g].route;
    return std::max(0.0, sums_.seconds[g][ideal] - sums_.seconds[g][before]) + tensors.bytes * route.seconds_per_byte +
           tensors.transfers * route.latency.value;
  }

  // The stage between two ideals, which leads from the values of one of them to those of the other.
  void relax(int before, int ideal, int from, int to) {
    const Crossing tensors = crossing(before, ideal);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const double time = load(g, before, ideal, tensors);
      if (time < below_ && sums_.lacking[g][ideal] == sums_.lacking[g][before]) {
        add_stage(g, before, ideal, time, from, to);
      }
    }
  }

  // Whether a stage fits depends on its place alone, so that is asked once per place.
  void add_stage(std::size_t g, int before, int ideal, double time, int from, int to) {
    const double* there = dp(from);
    double* here = dp(to);
    fits_.assign(limited_ ? held_.size() : 0, -1);
    for (const std::size_t number : valued_[from]) {
      const std::size_t c = number + stride_[g];
      if (has_left_[g][number] == 0) {
        continue;
      }
      const double value = std::max(there[number], time);
      if (value >= here[c]) {
        continue;
      }
      if (limited_) {
        signed char& fits = fits_[used_[number]];
        if (fits < 0) {
          fits = stage_fits(g, before, ideal, used_[number]) ? 1 : 0;
        }
        if (fits == 0) {
          continue;
        }
      }
      if (here[c] == kInfinity) {
        valued_[to].push_back(c);
      }
      here[c] = value;
    }
  }

  bool stage_fits(std::size_t g, int before, int ideal, int stage) {
    if (total_ > 0 && stage >= total_) {
      return false;
    }
    const Problem& problem = request_.problem;
    const Bytes have = memory_of(g);
    if (std::isinf(have.value)) {
      return true;
    }
    const double held = held_[stage];
    if (least_need(before, ideal, held) > have.value * (1 + kTie) + rounding(held)) {
      refused_ = true;
      return false;
    }
    const auto needs = [&](Bytes incoming, Bytes outgoing) {
      const StageAmounts amounts{sums_.parameters[ideal] - sums_.parameters[before],
                                 Bytes{sums_.resident[ideal] - sums_.resident[before]},
                                 sums_.stash[ideal] - sums_.stash[before], incoming, outgoing};
      return memory_of_stage(problem, amounts, problem.training.recompute.what).total(held, request_.versions);
    };
    const Bytes input{sums_.input[ideal] - sums_.input[before]};
    const bool fits = needs(input + Bytes{sums_.cut_bytes[before]}, Bytes{sums_.cut_bytes[ideal]}) <= have ||
                      (needs(input, Bytes{0}) <= have && exact_need(before, ideal, needs) <= have);
    refused_ = refused_ || !fits;
    return fits;
  }

  template <class Needs> Bytes exact_need(int before, int ideal, const Needs& needs) const {
    const Problem::Border border = borders_.of_stage(before, ideal);
    return needs(border.incoming, border.outgoing);
  }

  std::vector<char> difference(int before, int ideal) const {
    std::vector<char> inside(request_.problem.model.size(), 0);
    for (OperatorId op = 0; op < request_.problem.model.size(); ++op) {
      inside[op] = has_bit(ideals_.row(ideal), op) && !has_bit(ideals_.row(before), op) ? 1 : 0;
    }
    return inside;
  }

  // The stages of dp[all][c], found again from the values: among equals the first ideal, then the first group.
  LoadSplit trace(std::size_t c) {
    LoadSplit split;
    std::vector<std::size_t> taken(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      taken[g] = c / stride_[g] % (groups_[g].devices.size() + 1);
    }
    int ideal = ideals_.rows() - 1;
    while (ideal > 0) {
      const auto [before, g] = step_to(ideal, c);
      Stage stage;
      const std::vector<char> inside = difference(before, ideal);
      for (OperatorId op = 0; op < request_.problem.model.size(); ++op) {
        if (inside[op] != 0) {
          stage.operators.push_back(op);
        }
      }
      stage.devices = {groups_[g].devices[--taken[g]]};
      recompute_as_trained(request_.problem, stage);
      split.max_load = std::max(split.max_load, stage_load(request_.problem, groups_[g], tensors_, inside));
      split.plan.stages.insert(split.plan.stages.begin(), std::move(stage));
      ideal = before;
      c -= stride_[g];
    }
    return split;
  }

  std::pair<int, std::size_t> step_to(int ideal, std::size_t c) {
    const double value = dp(ideal)[c];
    for (int before = 0; before < ideal; ++before) {
      if (least_[before] > value || !is_subset(ideals_.row(before), ideals_.row(ideal))) {
        continue;
      }
      const Crossing tensors = crossing(before, ideal);
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const std::size_t digit = c / stride_[g] % (groups_[g].devices.size() + 1);
        if (digit > 0 && sums_.lacking[g][ideal] == sums_.lacking[g][before] &&
            std::max(dp(before)[c - stride_[g]], load(g, before, ideal, tensors)) == value &&
            (!limited_ || stage_fits(g, before, ideal, used_[c] - 1))) {
          return {before, g};
        }
      }
    }
    throw std::logic_error("a value of the dynamic program without a stage that gives it");
  }

  const PlanRequest& request_;
  const std::vector<LoadGroup>& groups_;
  const BitRows& ideals_;
  StageBorders borders_;
  std::vector<CrossingTensor> tensors_;
  IdealSums sums_;
  std::vector<std::size_t> stride_;         ///< [group]: of its digit
  std::vector<std::vector<char>> has_left_; ///< [group][number]: whether a device is not used
  double fastest_ = 0;                      ///< speed of the fastest group
  std::vector<int> used_;                   ///< [number]: devices in all
  std::vector<double> speed_left_;          ///< [number]: of the devices not used
  std::vector<double> memory_left_;         ///< [number]: of the same
  double most_memory_ = 0;                  ///< of one device
  int total_ = 0;
  bool limited_ = false, refused_ = false;
  std::vector<double> held_;       ///< [stage]: micro-batches in flight
  std::vector<double> held_after_; ///< [stage]: the fewest from this stage on
  std::vector<signed char> fits_;  ///< [stage]: of the difference at hand; -1: not asked yet
  double below_ = kInfinity;
  bool is_chain_ = true;           ///< every ideal holds the one before it
  int first_before_ = 0;           ///< in a chain, no stage from an ideal before this one is short enough any more
  std::vector<double> dp_, least_; ///< least_[ideal]: over all numbers
  std::vector<std::vector<std::size_t>> valued_; ///< [ideal]: numbers that have a finite value
  std::vector<double> least_of_fewer_;
};

// Whether what a stage holds depends on where in the pipeline it stands.
bool depends_on_place(const Problem& problem) {
  const auto& operators = problem.model.operators;
  return problem.training.recompute.what != Recompute::none ||
         std::any_of(operators.begin(), operators.end(), [](const Operator& op) { return op.stash_elements > 0; });
}

std::optional<MemoryShortage> shortage_of(const PlanRequest& request, const Plan& plan) {
  return memory_shortage(request.problem, plan, cost_memory(request.problem, plan), request.in_flight,
                         request.versions);
}

std::string why_no_kernel(const PlanRequest& request) {
  return "no chain of stages over these devices finds every kernel: " + able_devices(request).lacks;
}

// What a split along few ideals leaves to search, that of the same load included. The margin is far more than what ties
// decide.
double bound_by(const std::optional<LoadSplit>& few, double below) {
  constexpr double kMargin = 1e-6;
  constexpr double kLeast = std::numeric_limits<double>::min(); // a load may be 0
  return few ? std::min(below, few->max_load * (1 + kMargin) + kLeast) : below;
}

// The best split over all numbers of stages, each searched by itself. Needed if memory depends on a stage's place and
// the split found without that does not fit. The number that promises most comes first, as a bound for the others.
std::optional<LoadSplit> best_of_totals(const PlanRequest& request, MaxLoadSearch& search, double below) {
  const std::vector<double> least = search.least_of_totals(below);
  const auto first = std::min_element(least.begin() + 1, least.end());
  if (*first > 0 && *first < below) {
    below = bound_by(search.run(static_cast<int>(first - least.begin()), true, below), below);
  }
  constexpr double kRounding = 1e-11; // of a load that is summed in another order; far less than what improves one
  std::optional<LoadSplit> best;
  for (int total = 1; total <= static_cast<int>(request.devices.size()); ++total) {
    const bool may_improve = improves(least[total] * (1 - kRounding), below);
    auto found = may_improve ? search.run(total, true, below) : std::nullopt;
    if (found && improves(found->max_load, below)) {
      below = found->max_load;
      best = std::move(found);
    }
  }
  return best;
}

// The reason if the dynamic program would be too large. Its limits are about 1 GiB of values, and visits that take a
// minute or so if nothing is pruned.
std::string too_large(std::size_t ideals, std::size_t counts) {
  constexpr double kMostCells = 1.3e8;
  constexpr double kMostVisits = 3e10;
  const double cells = static_cast<double>(ideals) * static_cast<double>(counts);
  if (cells <= kMostCells && cells * static_cast<double>(ideals) / 2 <= kMostVisits) {
    return "";
  }
  return std::to_string(ideals) + " ideals and " + std::to_string(counts) +
         " numbers of devices of each kind are too many for the dynamic program";
}

} // namespace

LoadResult least_max_load(const PlanRequest& request, const BitRows& ideals, double below) {
  const std::vector<LoadGroup> groups = load_groups(request.problem, request.devices);
  std::size_t counts = 1;
  for (const LoadGroup& group : groups) {
    counts = std::min(counts * (group.devices.size() + 1), std::size_t{1} << 32);
  }
  if (std::string reason = too_large(ideals.rows(), counts); !reason.empty()) {
    return {std::nullopt, std::move(reason)};
  }
  MaxLoadSearch search(request, groups, ideals);
  const bool by_place = depends_on_place(request.problem);
  const BitRows few = search.few_ideals();
  MaxLoadSearch first(request, groups, few);
  std::optional<LoadSplit> found =
      search.run(0, !by_place, by_place ? bound_by(first.run(0, false, below), below) : below);
  if (found && !shortage_of(request, found->plan)) {
    found->plan.memory_bound = search.refused();
    return {std::move(found), ""};
  }
  if (by_place && found) {
    if (auto fitting = best_of_totals(request, search, bound_by(best_of_totals(request, first, below), below))) {
      fitting->plan.memory_bound = true;
      return {std::move(fitting), ""};
    }
  }
  if (!std::isinf(below)) {
    return {};
  }
  if (!found) {
    found = search.run(0, false, below);
  }
  if (!found) {
    return {std::nullopt, why_no_kernel(request)};
  }
  const auto shortage = shortage_of(request, found->plan);
  return {std::nullopt,
          "no chain of stages fits in memory; of the least max-load without that limit, " +
              (shortage ? to_text(*shortage, request.problem.platform) : "a stage needs more than it has")};
}

std::vector<OperatorId> depth_first_order(const ModelGraph& model) {
  std::vector<std::size_t> waiting(model.size());
  std::vector<OperatorId> ready;
  for (OperatorId op = model.size() - 1; op >= 0; --op) { // the first source on top
    waiting[op] = model.predecessors[op].size();
    if (waiting[op] == 0) {
      ready.push_back(op);
    }
  }
  std::vector<OperatorId> order;
  while (!ready.empty()) {
    const OperatorId op = ready.back();
    ready.pop_back();
    order.push_back(op);
    for (const OperatorId user : model.successors[op]) {
      if (--waiting[user] == 0) {
        ready.push_back(user);
      }
    }
  }
  return order;
}

} // namespace stagecraft
