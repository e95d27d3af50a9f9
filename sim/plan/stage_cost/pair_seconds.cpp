// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/pair_seconds.hpp"

#include <algorithm>
#include <numeric>

#include "sim/platform/without_processors.hpp"

namespace stagecraft {

double slower_beside(const PassExchange& exchange, const DeviceType& type) {
  return type.beside_exchange.by_rule ? slower_without_processors(type, exchange.processors)
                                      : type.beside_exchange.matrix;
}

SplitPass split_at_experts(const GroupPass& pass, const DeviceType& type) {
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
      split.slower.back() = std::max(split.slower.back(), slower_beside(exchange, type));
    } else {
      split.exchanges.push_back(exchange.seconds);
      split.slower.push_back(slower_beside(exchange, type));
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

SplitPass split_at_experts(const GroupPass& backward, const GroupPass& input, const DeviceType& type) {
  SplitPass split = split_at_experts(backward, type);
  const SplitPass without = split_at_experts(input, type);
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
    exchange(backward_);
    while (!forward_.done() || !backward_.done()) { // a pair of layers has two exchanges of each
      for (int half = 0; half < 2; ++half) {
        compute(forward_);
        exchange(forward_);
        compute(backward_);
        exchange(backward_);
        weights(backward_);
      }
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
    computes_ = pass.ready = end_of(std::max(computes_, pass.ready), own);
  }

  // The next exchange, if what it sends was computed: no sooner, so that all that is computed beside it comes later.
  void exchange(Pass& pass) {
    if (pass.exchanged == pass.parts.exchanges.size() || pass.exchanged == pass.computed) {
      return;
    }
    const Seconds begin = std::max(exchanges_, pass.ready);
    exchanges_ = pass.ready = begin + pass.parts.exchanges[pass.exchanged];
    under_way_.push_back({begin, exchanges_, pass.parts.slower.empty() ? 1 : pass.parts.slower[pass.exchanged]});
    ++pass.exchanged;
  }

  void weights(Pass& pass) {
    for (; pass.weighed < pass.computed; ++pass.weighed) {
      computes_ = end_of(computes_, pass.parts.weights[pass.weighed]);
    }
  }

  // When a computation ends that begins now and takes so long alone.
  Seconds end_of(Seconds now, Seconds left) {
    while (over_ < under_way_.size() && under_way_[over_].end <= now) {
      ++over_;
    }
    for (std::size_t at = over_; at < under_way_.size(); ++at) {
      const UnderWay& exchange = under_way_[at];
      const Seconds alone = std::max(Seconds{0}, exchange.begin - now);
      if (left <= alone) {
        break;
      }
      left = left - alone;
      now = std::max(now, exchange.begin);
      const Seconds beside = (exchange.end - now) * (1 / exchange.slower); // of what it takes alone
      if (left <= beside) {
        return now + left * exchange.slower;
      }
      left = left - beside;
      now = exchange.end;
    }
    return now + left;
  }

  struct UnderWay {
    Seconds begin, end;
    double slower;
  };

  Pass forward_, backward_;
  bool delayed_;
  std::vector<UnderWay> under_way_;  // exchanges, in order
  std::size_t over_ = 0;             // those of them that ended before anything that is still to be computed
  Seconds computes_{}, exchanges_{}; ///< until when either stream is busy
};

} // namespace

Seconds seconds_of_pair(const SplitPass& forward, const SplitPass& backward, bool delayed) {
  return Streams(forward, backward, delayed).run();
}

} // namespace stagecraft
