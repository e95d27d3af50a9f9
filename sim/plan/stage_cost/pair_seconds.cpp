// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/pair_seconds.hpp"

#include <algorithm>
#include <numeric>

namespace stagecraft {

SplitPass split_at_experts(const GroupPass& pass) {
  SplitPass split;
  std::vector<Seconds> others; // exchanges of other axes, of each part
  std::size_t next = 0;        // computation
  const auto compute_until = [&](std::size_t end) {
    for (; next < std::min(end, pass.computations.size()); ++next) {
      split.computations.back() += pass.computations[next].seconds;
    }
  };
  split.computations.emplace_back();
  others.emplace_back();
  for (const PassExchange& exchange : pass.exchanges) {
    compute_until(exchange.after + 1);
    if (exchange.axis != Axis::experts) {
      others.back() += exchange.seconds;
    } else if (split.computations.back().value == 0 && !split.exchanges.empty()) {
      split.exchanges.back() += exchange.seconds; // one after another, with nothing between
    } else {
      split.exchanges.push_back(exchange.seconds);
      split.computations.emplace_back();
      others.emplace_back();
    }
  }
  compute_until(pass.computations.size());
  const auto sum = [](const std::vector<Seconds>& all) { return std::accumulate(all.begin(), all.end(), Seconds{0}); };
  const Seconds exposed = pass.seconds - sum(split.computations) - sum(split.exchanges);
  const Seconds all = sum(others);
  for (std::size_t part = 0; part < others.size() && all.value > 0; ++part) {
    split.computations[part] += exposed * (others[part] / all);
  }
  split.weights.assign(split.computations.size(), Seconds{0});
  return split;
}

SplitPass split_at_experts(const GroupPass& backward, const GroupPass& input) {
  SplitPass split = split_at_experts(backward);
  const SplitPass without = split_at_experts(input);
  if (without.computations.size() != split.computations.size()) {
    return split; // nothing tells which gradients belong to which part
  }
  for (std::size_t part = 0; part < split.computations.size(); ++part) {
    const Seconds own = std::min(split.computations[part], without.computations[part]);
    split.weights[part] = split.computations[part] - own;
    split.computations[part] = own;
  }
  return split;
}

namespace {

// Two streams, each of which does one thing after another.
class Streams {
public:
  Streams(const SplitPass& forward, const SplitPass& backward, bool delayed)
      : forward_{forward}, backward_{backward}, delayed_(delayed) {}

  Seconds run() {
    compute(backward_);
    while (!forward_.done() || !backward_.done()) { // a pair of layers has two exchanges of each
      exchange(backward_);
      compute(forward_);
      compute(backward_);
      exchange(forward_);
      weights(backward_);
      exchange(backward_);
      compute(forward_);
      exchange(forward_);
      compute(backward_);
      weights(backward_);
    }
    return std::max(computes_, exchanges_);
  }

private:
  struct Pass {
    const SplitPass& parts;
    std::size_t computed = 0, exchanged = 0, weighed = 0;
    Seconds ready{}; ///< when what comes next may begin

    bool done() const { return computed == parts.computations.size() && weighed == parts.weights.size(); }
  };

  // The next part, if the exchange before it was begun.
  void compute(Pass& pass) {
    if (pass.computed > pass.exchanged || pass.computed == pass.parts.computations.size()) {
      return;
    }
    const bool at_once = !delayed_ && &pass == &backward_;
    const Seconds own =
        pass.parts.computations[pass.computed] + (at_once ? pass.parts.weights[pass.computed] : Seconds{0});
    pass.weighed += at_once || &pass == &forward_ ? 1 : 0;
    ++pass.computed;
    computes_ = pass.ready = std::max(computes_, pass.ready) + own;
  }

  void exchange(Pass& pass) {
    if (pass.exchanged == pass.parts.exchanges.size() || pass.exchanged == pass.computed) {
      return;
    }
    exchanges_ = pass.ready = std::max(exchanges_, pass.ready) + pass.parts.exchanges[pass.exchanged++];
  }

  void weights(Pass& pass) {
    for (; pass.weighed < pass.computed; ++pass.weighed) {
      computes_ += pass.parts.weights[pass.weighed];
    }
  }

  Pass forward_, backward_;
  bool delayed_;
  Seconds computes_{}, exchanges_{}; ///< until when either stream is busy
};

} // namespace

Seconds seconds_of_pair(const SplitPass& forward, const SplitPass& backward, bool delayed) {
  return Streams(forward, backward, delayed).run();
}

} // namespace stagecraft
