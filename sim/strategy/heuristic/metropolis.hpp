// The Metropolis algorithm (Metropolis et al. 1953) on any kind of state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/base/random.hpp"

namespace stagecraft {

struct MetropolisOptions {
  int proposals = 200;
  double theta = 0.02; ///< temperature, relative to the start's value; 0: only states that are no worse are accepted
};

template <class State> struct Valued {
  State state;
  double value = 0; ///< infinite: not allowed
};

/// Walks from `start`: a proposed state of value T' replaces the current one of value T if T' <= T, else with
/// probability exp(-(T' - T) / (T_start theta)); a state that is not allowed never does. Returns the best state seen,
/// the first among equals, so never a worse one than `start`. If `propose` returns nothing, it draws again, at most 16
/// times per proposal. Values within kTie are equal.
template <class State>
Valued<State> metropolis(const Valued<State>& start, const MetropolisOptions& options, Random& random,
                         const std::function<std::optional<State>(const State&, Random&)>& propose,
                         const std::function<double(const State&)>& value_of) {
  constexpr int kDraws = 16; // for one proposal
  Valued<State> best = start;
  Valued<State> now = start;
  for (int proposal = 0; proposal < options.proposals; ++proposal) {
    std::optional<State> next;
    for (int draw = 0; draw < kDraws && !next; ++draw) {
      next = propose(now.state, random);
    }
    if (!next) {
      continue;
    }
    const double value = value_of(*next);
    const double worse = value - now.value;
    const bool accepted =
        worse <= kTie * now.value ||
        (options.theta > 0 && std::isfinite(value) && random.unit() < std::exp(-worse / (start.value * options.theta)));
    if (!accepted) {
      continue;
    }
    now = {std::move(*next), value};
    if (improves(now.value, best.value)) {
      best = now;
    }
  }
  return best;
}

} // namespace stagecraft
