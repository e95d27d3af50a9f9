// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/pair_seconds.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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
  SplitLaunches launches;
  const auto compute_until = [&](std::size_t end) {
    for (; next < std::min(end, pass.computations.size()); ++next) {
      split.computations.back() += pass.computations[next].seconds;
      launches.computations.back() += pass.computations[next].launching;
    }
  };
  const auto begin_part = [&] {
    split.computations.emplace_back();
    launches.computations.emplace_back();
    others.emplace_back();
  };
  const auto wait_for = [&](const PassExchange& exchange) {
    if (exchange.awaited) {
      launches.exchanges.back() = launches.exchanges.back().value_or(Seconds{0}) + exchange.launching;
    }
  };
  begin_part();
  for (const PassExchange& exchange : pass.exchanges) {
    compute_until(exchange.after + 1);
    if (exchange.axis != Axis::experts) {
      others.back() += exchange.seconds;
    } else if (split.computations.back().value == 0 && !split.exchanges.empty()) {
      split.exchanges.back() += exchange.seconds; // one after another, with nothing between
      split.slower.back() = std::max(split.slower.back(), slower_beside(exchange, type));
      wait_for(exchange);
    } else {
      split.exchanges.push_back(exchange.seconds);
      split.slower.push_back(slower_beside(exchange, type));
      launches.exchanges.emplace_back();
      wait_for(exchange);
      begin_part();
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
  launches.weights = split.weights;
  split.launches = std::move(launches);
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
    Seconds& launching = split.launches->computations[part];
    const Seconds own_launching = std::min(launching, without.launches->computations[part]);
    split.launches->weights[part] = launching - own_launching;
    launching = own_launching;
  }
  return split;
}

namespace {

// Two streams of a device, each of which does one thing after another, and the host that launches on both.
class Streams {
public:
  /// The host begins so much before the device.
  Streams(const SplitPass& forward, const SplitPass& backward, bool delayed, Seconds each_part, Seconds ahead)
      : forward_{forward}, backward_{backward}, delayed_(delayed), each_part_(each_part), host_(Seconds{0} - ahead) {}

  Seconds run() {
    launch(backward_);
    compute(backward_);
    exchange(backward_);
    while (!forward_.done() || !backward_.done()) { // a pair of layers has two exchanges of each
      for (int half = 0; half < 2; ++half) {
        launch(forward_);
        compute(forward_);
        if (awaits(forward_)) {
          launch(backward_);
        }
        exchange(forward_);
        launch(backward_);
        compute(backward_);
        exchange(backward_);
        weights(backward_);
      }
    }
    return std::max(computes_, exchanges_);
  }

  /// By how much the host is ahead when both are done.
  Seconds ahead() const { return std::max(Seconds{0}, std::max(computes_, exchanges_) - host_); }

private:
  struct Pass {
    const SplitPass& parts;
    std::size_t launched = 0, computed = 0, exchanged = 0, weighed = 0;
    Seconds ready{};                      ///< when what comes next may begin
    Seconds launch_begin{}, launch_end{}; ///< of the part that was launched last

    bool done() const { return computed == parts.computations.size() && weighed == parts.weights.size(); }
    /// Whether the next part may be launched: the exchange before it was.
    bool may_compute() const { return computed <= exchanged && computed < parts.computations.size(); }
  };

  bool at_once(const Pass& pass) const { return !delayed_ && &pass == &backward_; }

  void launch(Pass& pass) {
    if (!pass.may_compute() || pass.launched > pass.computed) {
      return;
    }
    pass.launch_begin = host_ += each_part_;
    if (const std::optional<SplitLaunches>& launches = pass.parts.launches) {
      host_ += launches->computations[pass.launched] + (at_once(pass) ? launches->weights[pass.launched] : Seconds{0});
    }
    pass.launch_end = host_;
    ++pass.launched;
  }

  // The next part, if the exchange before it was begun.
  void compute(Pass& pass) {
    if (!pass.may_compute()) {
      return;
    }
    const bool with_weights = at_once(pass);
    const Seconds own =
        pass.parts.computations[pass.computed] + (with_weights ? pass.parts.weights[pass.computed] : Seconds{0});
    pass.weighed += with_weights || &pass == &forward_ ? 1 : 0;
    ++pass.computed;
    const Seconds begin = std::max({computes_, pass.ready, pass.launch_begin});
    computes_ = pass.ready = std::max(end_of(begin, own), pass.launch_end);
  }

  // Whether the host waits before the next exchange.
  bool awaits(const Pass& pass) const {
    return pass.parts.launches && pass.exchanged < std::min(pass.parts.exchanges.size(), pass.computed) &&
           pass.parts.launches->exchanges[pass.exchanged].has_value();
  }

  // The next exchange, if what it sends was computed: no sooner, so that all that is computed beside it comes later.
  void exchange(Pass& pass) {
    if (pass.exchanged == pass.parts.exchanges.size() || pass.exchanged == pass.computed) {
      return;
    }
    host_ += each_part_;
    if (awaits(pass)) {
      host_ = std::max(host_, pass.ready) + *pass.parts.launches->exchanges[pass.exchanged];
    }
    const Seconds begin = std::max({exchanges_, pass.ready, host_});
    exchanges_ = pass.ready = begin + pass.parts.exchanges[pass.exchanged];
    under_way_.push_back({begin, exchanges_, pass.parts.slower.empty() ? 1 : pass.parts.slower[pass.exchanged]});
    ++pass.exchanged;
  }

  void weights(Pass& pass) {
    for (; pass.weighed < pass.computed; ++pass.weighed) {
      const Seconds begin = std::max(computes_, host_);
      host_ += pass.parts.launches ? pass.parts.launches->weights[pass.weighed] : Seconds{0};
      computes_ = std::max(end_of(begin, pass.parts.weights[pass.weighed]), host_);
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
  Seconds each_part_;                ///< of the host, beside launches
  Seconds host_;                     ///< until when it launches
  std::vector<UnderWay> under_way_;  // exchanges, in order
  std::size_t over_ = 0;             // those of them that ended before anything that is still to be computed
  Seconds computes_{}, exchanges_{}; ///< until when either stream is busy
};

} // namespace

Seconds seconds_of_pair(const SplitPass& forward, const SplitPass& backward, bool delayed, Seconds each_part) {
  Streams first(forward, backward, delayed, each_part, Seconds{0});
  const Seconds alone = first.run();
  if (!forward.launches && !backward.launches) {
    return alone;
  }
  return Streams(forward, backward, delayed, each_part, first.ahead()).run();
}

} // namespace stagecraft
