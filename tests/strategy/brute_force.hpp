// The reference for planners: tries every sequence of convex stages on every choice of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "tests/plan/problems.hpp"

namespace stagecraft::test {

/// What to minimise: the bottleneck of stages and boundaries; the same as `antichain` counts it, with cuts by augmented
/// antichains and devices in their order; or the max-load, which adds times and tensors.
enum class Least { bottleneck, augmented, max_load };

/// Knows only the toy, none of the planners' code. Bits of a mask are sets of operators or devices.
class BruteForce {
public:
  explicit BruteForce(const Toy& toy, Least least = Least::bottleneck) : toy_(toy), least_(least) {
    const std::size_t sets = std::size_t{1} << toy.operators.size();
    makers_.assign(toy.operators.size(), 0);
    users_.assign(toy.operators.size(), 0);
    for (const auto& [from, to] : toy.edges) {
      makers_[to] |= 1U << from;
      users_[from] |= 1U << to;
    }
    seconds_.assign(toy.types.size(), std::vector<double>(sets, 0.0));
    for (std::size_t set = 1; set < sets; ++set) {
      for (std::size_t op = 0; op < toy.operators.size(); ++op) {
        for (std::size_t type = 0; type < toy.types.size() && ((set >> op) & 1) != 0; ++type) {
          seconds_[type][set] += toy.operators[op].seconds[type];
        }
      }
    }
  }

  /// For each number of stages, the least bottleneck of a pipeline in which every stage fits in memory; nothing if
  /// there is none.
  std::optional<double> best() {
    double best = kInfinite;
    for (total_ = 1; total_ <= static_cast<int>(toy_.devices.size()); ++total_) {
      best_ = best;
      extend(0, 0, -1, 0, 0);
      best = std::min(best, best_);
    }
    return best == kInfinite ? std::nullopt : std::optional(best);
  }

private:
  unsigned all() const { return (1U << toy_.operators.size()) - 1; }

  void extend(unsigned before, unsigned used, int last, int stages, double worst) {
    if (before == all()) {
      best_ = stages == total_ ? std::min(best_, worst) : best_;
      return;
    }
    if (stages == total_) {
      return;
    }
    const unsigned left = all() & ~before;
    for (unsigned stage = left; stage != 0; stage = (stage - 1) & left) {
      if (!closed(before | stage) || (stages + 1 == total_ && stage != left)) {
        continue;
      }
      for (int d = 0; d < static_cast<int>(toy_.devices.size()); ++d) {
        if (((used >> d) & 1) != 0 || (least_ == Least::augmented && d < last)) {
          continue;
        }
        double now = std::max(worst, seconds_[toy_.devices[d].type][stage]);
        if (least_ == Least::max_load) {
          now = std::max(worst, seconds_[toy_.devices[d].type][stage] + 2 * communication(stage, d));
        } else if (last >= 0) {
          now = std::max(now, 2 * transfer(last, d, least_ == Least::augmented ? augmented(before) : cut(before)));
        }
        if (now < best_ && fits(stage, d, stages)) {
          extend(before | stage, used | 1U << d, d, stages + 1, now);
        }
      }
    }
  }

  bool closed(unsigned set) const {
    for (std::size_t op = 0; op < toy_.operators.size(); ++op) {
      if (((set >> op) & 1) != 0 && (makers_[op] & ~set) != 0) {
        return false;
      }
    }
    return true;
  }

  // Bytes of outputs of operators in `inside` that an operator outside needs, each counted once.
  double cut(unsigned inside) const {
    double bytes = 0;
    for (std::size_t op = 0; op < toy_.operators.size(); ++op) {
      bytes += ((inside >> op) & 1) != 0 && (users_[op] & ~inside) != 0 ? toy_.operators[op].output : 0;
    }
    return bytes;
  }

  // Bytes of the outputs that anyone needs of the augmented antichain of a closed set: its maximal operators x, and the
  // ancestors of an x with a user that is neither x nor one of its ancestors.
  double augmented(unsigned inside) const {
    unsigned members = 0;
    for (std::size_t x = 0; x < toy_.operators.size(); ++x) {
      if (((inside >> x) & 1) == 0 || (users_[x] & inside) != 0) {
        continue;
      }
      unsigned reached = 1U << x; // x and its ancestors; makers have lower numbers
      for (std::size_t op = x + 1; op-- > 0;) {
        reached |= ((reached >> op) & 1) != 0 ? makers_[op] : 0;
      }
      for (std::size_t op = 0; op <= x; ++op) {
        members |= ((reached >> op) & 1) != 0 && (op == x || (users_[op] & ~reached) != 0) ? 1U << op : 0;
      }
    }
    double bytes = 0;
    for (std::size_t op = 0; op < toy_.operators.size(); ++op) {
      bytes += ((members >> op) & 1) != 0 && users_[op] != 0 ? toy_.operators[op].output : 0;
    }
    return bytes;
  }

  double transfer(int from, int to, double bytes) const {
    return toy_.devices[from].latency + bytes / std::min(toy_.devices[from].bandwidth, toy_.devices[to].bandwidth);
  }

  // Seconds for the tensors that enter or leave, over the device's own link; 0 if one device has everything.
  double communication(unsigned stage, int device) const {
    double seconds = 0;
    for (std::size_t op = 0; op < toy_.operators.size(); ++op) {
      const bool inside = ((stage >> op) & 1) != 0;
      const bool crosses = inside ? (users_[op] & ~stage) != 0 : (users_[op] & stage) != 0;
      seconds +=
          crosses ? toy_.devices[device].latency + toy_.operators[op].output / toy_.devices[device].bandwidth : 0;
    }
    return seconds;
  }

  // Weights, gradients and optimiser states of 4 B each; in flight as under 1F1B; two buffers for each tensor that
  // enters (the model's input once per source) or leaves.
  bool fits(unsigned stage, int device, int number) const {
    const double per_parameter = 4 + 4 + 4 * toy_.training.optimizer->states;
    const double in_flight = std::min(total_ - number, toy_.micro_batches);
    double parameters = 0;
    double stash = 0;
    double border = 0;
    for (std::size_t op = 0; op < toy_.operators.size(); ++op) {
      const bool inside = ((stage >> op) & 1) != 0;
      parameters += inside ? toy_.operators[op].parameters : 0;
      stash += inside ? toy_.operators[op].stash : 0;
      border += inside && makers_[op] == 0 ? toy_.input : 0;
      const bool crosses = inside ? (users_[op] & ~stage) != 0 : (users_[op] & stage) != 0;
      border += crosses ? toy_.operators[op].output : 0;
    }
    return parameters * per_parameter + in_flight * stash + 2 * border <= toy_.types[toy_.devices[device].type].memory;
  }

  const Toy& toy_;
  Least least_;
  int total_ = 0;
  double best_ = kInfinite;
  std::vector<unsigned> makers_, users_;
  std::vector<std::vector<double>> seconds_;
};

} // namespace stagecraft::test
