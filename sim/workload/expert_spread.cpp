// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/expert_spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

namespace stagecraft {
namespace {

// The probability that none of `top` draws without replacement is among `marked` of `all` alike: the product of
// (all - marked - i) / (all - i).
double misses(int all, int marked, int top) {
  double probability = 1;
  for (int i = 0; i < top; ++i) {
    probability *= std::max(0.0, static_cast<double>(all - marked - i)) / (all - i);
  }
  return probability;
}

// Sets of groups that a token may choose, as bits, with their probability.
struct ChosenGroups {
  unsigned groups = 0;
  double probability = 1;
};

// All draws of `top` groups without replacement, each in proportion to its weight among those that are left.
std::vector<ChosenGroups> draws_of(const std::vector<double>& weights, int top) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::map<unsigned, double> drawn = {{0U, 1.0}};
  for (int draw = 0; draw < top; ++draw) {
    std::map<unsigned, double> next;
    for (const auto& [groups, probability] : drawn) {
      double left = all;
      for (std::size_t group = 0; group < weights.size(); ++group) {
        left -= (groups >> group & 1U) != 0 ? weights[group] : 0;
      }
      for (std::size_t group = 0; group < weights.size(); ++group) {
        if ((groups >> group & 1U) == 0) {
          next[groups | 1U << group] += probability * weights[group] / left;
        }
      }
    }
    drawn = std::move(next);
  }
  std::vector<ChosenGroups> chosen;
  for (const auto& [groups, probability] : drawn) {
    chosen.push_back({groups, probability});
  }
  return chosen;
}

// Experts that are drawn one after another in proportion to their weights come in the order in which clocks ring, each
// after an exponential time with its weight as the rate. The first `top` of all miss a block of weight W if the top-th
// of the others rings at T before any of the block: with probability E[exp(-W T)], the integral over t of
// W exp(-W t) P(at least `top` of the others have rung by t). It is taken over ln t by the trapezoidal rule, whose
// error falls with exp(-pi^2 / step) for such a function.
class Clocks {
public:
  /// Experts with their block and weight; those of a block stand together.
  Clocks(const std::vector<std::pair<int, double>>& experts, int top)
      : experts_(experts), top_(static_cast<std::size_t>(top)), not_yet_(experts.size(), 0),
        after_((experts.size() + 1) * row(), 0) {
    before_ = with_block_ = next_ = std::vector<double>(row(), 0);
  }

  /// Adds each block's probability of being hit, times `factor`.
  void add_hits(double factor, std::vector<double>& hits) {
    constexpr double kStep = 0.25, kEarliest = 1e-4, kLatest = 50;
    std::vector<double> weights(hits.size(), 0), missed(hits.size(), 0);
    double all = 0;
    for (const auto& [block, weight] : experts_) {
      weights[block] += weight;
      all += weight;
    }
    double least = all;
    for (const double weight : weights) {
      least = weight > 0 ? std::min(least, weight) : least;
    }
    const double begin = std::log(kEarliest / all);
    const auto steps = static_cast<int>(std::ceil((std::log(kLatest / least) - begin) / kStep));
    bool enough = false; // of any block's others at least `top` have rung
    for (int step = 0; step < steps; ++step) {
      const double t = std::exp(begin + step * kStep);
      if (most_rung(all * t) < kNothing) {
        continue;
      }
      if (!enough) {
        enough = add_missed(t, kStep, weights, missed) < kNothing;
        continue;
      }
      for (std::size_t block = 0; block < hits.size(); ++block) {
        missed[block] += kStep * weights[block] * t * std::exp(-weights[block] * t);
      }
    }
    for (std::size_t block = 0; block < hits.size(); ++block) {
      hits[block] += weights[block] > 0 ? factor * (1 - missed[block]) : 0;
    }
  }

private:
  static constexpr double kNothing = 1e-17; // beside 1

  // A row has a 0 and the probabilities of exactly 0, 1, … experts, fewer than `top`.
  std::size_t row() const { return top_ + 1; }

  // No less than the probability that `top` have rung where `mean` have in the mean: mean^top / top!.
  double most_rung(double mean) const {
    double most = 1;
    for (std::size_t i = 1; i <= top_; ++i) {
      most *= mean / static_cast<double>(i);
    }
    return most;
  }

  // Adds each block's integrand at t. Returns the largest probability that fewer than `top` of a block's others have
  // rung.
  double add_missed(double t, double step, const std::vector<double>& weights, std::vector<double>& missed) {
    set_none(&after_[experts_.size() * row()]);
    for (std::size_t i = experts_.size(); i-- > 0;) { // of all from the i-th on
      not_yet_[i] = std::exp(-experts_[i].second * t);
      add_one(&after_[(i + 1) * row()], not_yet_[i], &after_[i * row()]);
    }
    set_none(before_.data());
    double most = 0;
    for (std::size_t first = 0, end = 0; first < experts_.size(); first = end) {
      const int block = experts_[first].first;
      with_block_ = before_;
      for (; end < experts_.size() && experts_[end].first == block; ++end) {
        add_one(with_block_.data(), not_yet_[end], next_.data());
        with_block_.swap(next_);
      }
      const double w = weights[block] * t, too_few = fewer(before_.data(), &after_[end * row()]);
      missed[block] += step * w * std::exp(-w) * (1 - too_few);
      most = std::max(most, too_few);
      before_.swap(with_block_);
    }
    return most;
  }

  void set_none(double* counts) const {
    std::fill_n(counts, row(), 0.0);
    counts[1] = 1;
  }

  // With one more expert, which has not rung with the probability `not_yet`.
  void add_one(const double* counts, double not_yet, double* more) const {
    for (std::size_t n = 1; n <= top_; ++n) {
      more[n] = counts[n] * not_yet + counts[n - 1] * (1 - not_yet);
    }
  }

  // The probability that fewer than `top` of both have rung.
  double fewer(const double* one, const double* other) const {
    double sum = 0, so_far = 0; // of the other, fewer than `top` - n
    for (std::size_t n = top_; n-- > 0;) {
      so_far += other[top_ - n];
      sum += one[n + 1] * so_far;
    }
    return sum;
  }

  const std::vector<std::pair<int, double>>& experts_;
  std::size_t top_;
  std::vector<double> not_yet_; // [expert]: the probability that it has not rung
  std::vector<double> after_;   // rows
  std::vector<double> before_, with_block_, next_;
};

// Adds each block's probability of being hit where all experts are as popular, times `factor`.
void add_even_hits(const std::vector<std::pair<int, double>>& experts, int top, double factor,
                   std::vector<double>& hits) {
  std::vector<int> count(hits.size(), 0);
  for (const auto& [block, weight] : experts) {
    ++count[block];
  }
  for (std::size_t block = 0; block < hits.size(); ++block) {
    hits[block] += factor * (1 - misses(static_cast<int>(experts.size()), count[block], top));
  }
}

// Token t takes the `top` experts from t · top on, round the circle. After experts / gcd(experts, top) tokens it begins
// with the first again.
std::vector<double> hits_in_turn(const Routing& routing, const std::vector<int>& block_of, std::size_t blocks) {
  const int tokens = routing.experts / std::gcd(routing.experts, routing.top);
  std::vector<double> hits(blocks, 0);
  std::vector<int> last(blocks, -1); // token that hit the block
  for (int token = 0; token < tokens; ++token) {
    for (int i = 0; i < routing.top; ++i) {
      const int block = block_of[(static_cast<std::int64_t>(token) * routing.top + i) % routing.experts];
      hits[block] += last[block] == token ? 0 : 1.0 / tokens;
      last[block] = token;
    }
  }
  return hits;
}

} // namespace

std::vector<double> hit_probabilities(const Routing& routing, const std::vector<int>& block_of) {
  const std::size_t blocks = *std::max_element(block_of.begin(), block_of.end()) + 1;
  if (routing.choice == ExpertChoice::round_robin) {
    return hits_in_turn(routing, block_of, blocks);
  }
  const int experts = routing.experts, in_group = experts / routing.groups;
  std::vector<double> weights(experts), of_groups(routing.groups, 0);
  for (int i = 0; i < experts; ++i) {
    weights[i] = std::pow(i + 1, -routing.skew);
    of_groups[i / in_group] += weights[i];
  }
  std::vector<double> hits(blocks, 0);
  for (const ChosenGroups& chosen : draws_of(of_groups, routing.top_groups)) {
    std::vector<std::pair<int, double>> open; // of the chosen groups
    for (int i = 0; i < experts; ++i) {
      if ((chosen.groups >> static_cast<unsigned>(i / in_group) & 1U) != 0) {
        open.emplace_back(block_of[i], weights[i]);
      }
    }
    std::stable_sort(open.begin(), open.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const int top = std::min(routing.top, static_cast<int>(open.size()));
    if (routing.skew == 0) {
      add_even_hits(open, top, chosen.probability, hits);
    } else {
      Clocks(open, top).add_hits(chosen.probability, hits);
    }
  }
  return hits;
}

} // namespace stagecraft
