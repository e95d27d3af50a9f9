// A part of a pass as the tasks of a graph have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/improves.hpp"
#include "sim/collective/group_ways.hpp"
#include "sim/schedule/task_graph/expand_exchanges.hpp"

namespace stagecraft {

/// A team's flows for an exchange.
inline const Flows& flows_of(const GraphTeam& team, const PassExchange& exchange) {
  return team.team->group.ways->flows(exchange.kind, exchange.bytes);
}

/// What a pass does from one fraction of its time to another. These lie between operators, where no exchange is under
/// way; an exchange belongs to the part in which it begins.
class PassPart {
public:
  PassPart(const TimedPass& timed, double begin, double end)
      : pass_(*timed.pass), all_(timed.before + pass_.seconds + timed.after), from_(all_ * begin),
        to_(end < 1 ? all_ * end : Seconds{kInfinity}) {
    part_.computations.emplace_back();
    compute(timed.before);
    std::size_t exchange = 0;
    for (std::size_t i = 0; i < pass_.computations.size(); ++i) {
      const PassComputation& one = pass_.computations[i];
      if (one.needs > 0) {
        now_ = std::max(now_, ends_[one.needs - 1]);
      }
      if (i > 0 && is_inside(now_)) {
        part_.computations.push_back({Seconds{0}, one.needs > first_ ? one.needs - first_ : 0});
      }
      compute(one.seconds);
      for (; exchange < pass_.exchanges.size() && pass_.exchanges[exchange].after == i; ++exchange) {
        begin_exchange(pass_.exchanges[exchange]);
      }
    }
    compute(timed.after);
    join();
  }

  const GroupPass& operator*() const { return part_; }
  /// Exchanges of the pass before the part.
  std::size_t first() const { return first_; }

private:
  static constexpr double kRounding = 1e-9;

  bool is_inside(Seconds time) const { return time >= from_ - all_ * kRounding && time < to_ - all_ * kRounding; }

  void compute(Seconds seconds) {
    part_.computations.back().seconds += std::max(Seconds{0}, std::min(now_ + seconds, to_) - std::max(now_, from_));
    now_ += seconds;
  }

  void begin_exchange(PassExchange exchange) {
    ends_.push_back(std::max(now_, ends_.empty() ? Seconds{0} : ends_.back()) + exchange.seconds);
    if (is_inside(now_)) {
      exchange.after = part_.computations.size() - 1;
      part_.exchanges.push_back(exchange);
    } else {
      first_ += now_ < from_ ? 1 : 0;
    }
  }

  // The last computation needs all exchanges, also where the part ends before a computation does that would.
  void join() {
    if (part_.computations.back().needs < part_.exchanges.size()) {
      part_.computations.push_back({Seconds{0}, part_.exchanges.size()});
    }
  }

  const GroupPass& pass_;
  Seconds all_, from_, to_, now_;
  std::vector<Seconds> ends_; // [exchange of the pass]
  std::size_t first_ = 0;     // exchanges before the part
  GroupPass part_;
};

} // namespace stagecraft
