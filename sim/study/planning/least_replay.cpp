// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/least_replay.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/least_iteration.hpp"
#include "sim/plan/stage_of_operators.hpp"

namespace stagecraft {
namespace {

// Tensors of a micro-batch from one stage to a later one, or their gradients from there back.
struct Hop {
  int stage; // at the other end
  double seconds;
};

struct Hops {
  std::vector<std::vector<Hop>> before, after; // [stage]
};

// What a stage sends to each later one, in bytes: each tensor once.
std::vector<std::vector<std::pair<int, Bytes>>> sent_by(const Problem& problem, const Plan& plan) {
  const std::vector<int> stage_of = stage_of_operators(problem.model.size(), plan);
  std::vector<std::vector<std::pair<int, Bytes>>> sent(plan.stages.size());
  std::vector<OperatorId> last(plan.stages.size(), -1); // [stage]: the last operator that sent to it
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    for (const OperatorId user : problem.model.successors[op]) {
      const int from = stage_of[op], to = stage_of[user];
      if (from < 0 || to <= from || std::exchange(last[to], op) == op) {
        continue;
      }
      const auto known = std::find_if(sent[from].begin(), sent[from].end(), [&](auto& one) { return one.first == to; });
      if (known != sent[from].end()) {
        known->second += problem.output_bytes(op);
      } else {
        sent[from].emplace_back(to, problem.output_bytes(op));
      }
    }
  }
  return sent;
}

Hops hops_of(const Problem& problem, const Plan& plan) {
  Hops hops{std::vector<std::vector<Hop>>(plan.stages.size()), std::vector<std::vector<Hop>>(plan.stages.size())};
  const auto sent = sent_by(problem, plan);
  for (std::size_t from = 0; from < sent.size(); ++from) {
    for (const auto& [to, bytes] : sent[from]) {
      const std::vector<DeviceId>&senders = plan.stages[from].devices, &receivers = plan.stages[to].devices;
      const bool one_way = senders.size() == 1 && receivers.size() == 1 && senders != receivers;
      const auto seconds = [&, size = bytes](DeviceId one, DeviceId other) {
        return one_way ? problem.path(one, other).time(size).value : 0;
      };
      hops.before[to].push_back({static_cast<int>(from), seconds(senders.front(), receivers.front())});
      hops.after[from].push_back({to, seconds(receivers.front(), senders.front())});
    }
  }
  return hops;
}

// What micro-batches meet that go through the stages on some devices.
struct Direction {
  std::vector<LeastSeconds> seconds; // [stage]
  Hops hops;
};

Direction direction_of(const Problem& problem, const Plan& plan, bool splits_backward) {
  Direction direction{.hops = hops_of(problem, plan)};
  for (const Stage& stage : plan.stages) {
    direction.seconds.push_back(least_seconds(problem, stage, splits_backward));
  }
  return direction;
}

// Each stage on the devices of the stage that is as far from the end.
Plan mirrored(Plan plan) {
  for (std::size_t s = 0; s < plan.stages.size() / 2; ++s) {
    std::swap(plan.stages[s].devices, plan.stages[plan.stages.size() - 1 - s].devices);
  }
  return plan;
}

class LeastReplay {
public:
  LeastReplay(const Problem& problem, const Plan& plan, const Schedule& schedule)
      : schedule_(schedule), goes_up_(schedule.micro_batches, 0), at_(schedule.orders.size(), 0),
        free_(schedule.orders.size(), 0.0),
        forward_(static_cast<std::size_t>(schedule.stages) * schedule.micro_batches, kInfinity), backward_(forward_) {
    directions_.push_back(direction_of(problem, plan, schedule.splits_backward));
    for (const Action& action : schedule.orders.back()) {
      if (action.stage == 0 && schedule.orders.size() > 1) {
        goes_up_[action.micro_batch] = 1;
      }
    }
    if (std::find(goes_up_.begin(), goes_up_.end(), 1) != goes_up_.end()) {
      directions_.push_back(direction_of(problem, mirrored(plan), schedule.splits_backward));
    }
  }

  // Ranks are run in turn as far as their inputs are known: down the pipeline, and up again.
  double run() {
    const auto ranks = static_cast<int>(at_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < ranks; ++rank) {
        moved = advance(rank) || moved;
      }
      for (int rank = ranks - 1; rank-- > 0;) {
        moved = advance(rank) || moved;
      }
    }
    return *std::max_element(free_.begin(), free_.end());
  }

private:
  std::size_t place(int stage, int micro_batch) const {
    return static_cast<std::size_t>(stage) * schedule_.micro_batches + micro_batch;
  }

  const Direction& direction(const Action& action) const { return directions_[goes_up_[action.micro_batch]]; }

  // When the inputs of an action are there; infinite while this is not known.
  double ready(const Action& action) const {
    double ready = 0;
    const Hops& hops = direction(action).hops;
    if (action.kind == TaskKind::forward) {
      for (const Hop& hop : hops.before[action.stage]) {
        ready = std::max(ready, forward_[place(hop.stage, action.micro_batch)] + hop.seconds);
      }
    } else if (action.kind == TaskKind::backward) {
      for (const Hop& hop : hops.after[action.stage]) {
        ready = std::max(ready, backward_[place(hop.stage, action.micro_batch)] + hop.seconds);
      }
    }
    return ready;
  }

  bool advance(int rank) {
    const std::vector<Action>& order = schedule_.orders[rank];
    const std::size_t begin = at_[rank];
    std::size_t at = begin;
    double now = free_[rank];
    for (; at < order.size(); ++at) {
      const Action& action = order[at];
      const double start = std::max(now, ready(action));
      if (start == kInfinity) {
        break;
      }
      const LeastSeconds& seconds = direction(action).seconds[action.stage];
      if (action.kind == TaskKind::forward) {
        forward_[place(action.stage, action.micro_batch)] = now = start + seconds.forward;
      } else if (action.kind == TaskKind::backward) {
        backward_[place(action.stage, action.micro_batch)] = now = start + seconds.backward;
      } else if (action.kind == TaskKind::weight) {
        now = start + seconds.weight;
      }
    }
    at_[rank] = at;
    free_[rank] = now;
    return at > begin;
  }

  const Schedule& schedule_;
  std::vector<Direction> directions_;      // down the pipeline; up, if any do
  std::vector<std::uint8_t> goes_up_;      // [micro-batch]: from the last rank to the first
  std::vector<std::size_t> at_;            // [rank]: its next action
  std::vector<double> free_;               // [rank]
  std::vector<double> forward_, backward_; // [stage, micro-batch]: end; infinite while it is not known
};

// The seconds from one stage to a later one, by its list of those before it.
double seconds_between(const Hops& hops, int from, int to) {
  const std::vector<Hop>& before = hops.before[to];
  return std::find_if(before.begin(), before.end(), [&](const Hop& hop) { return hop.stage == from; })->seconds;
}

// Of a stage: seconds before the first forward, from its end until the backward can start, and behind the last
// backward.
struct Passage {
  double before = 0, beyond = 0, behind = 0;
};

std::vector<Passage> passages_of(const Direction& direction) {
  const auto& [seconds, hops] = direction;
  const auto stages = static_cast<int>(seconds.size());
  std::vector<Passage> passages(seconds.size());
  for (int from = 0; from < stages; ++from) {
    for (const Hop& back : hops.after[from]) {
      Passage& to = passages[back.stage];
      const double there = seconds_between(hops, from, back.stage);
      to.before = std::max(to.before, passages[from].before + seconds[from].forward + there);
      to.behind = std::max(to.behind, back.seconds + seconds[from].backward + passages[from].behind);
    }
  }
  for (int from = stages; from-- > 0;) {
    for (const Hop& back : hops.after[from]) {
      const int to = back.stage;
      const double there = seconds_between(hops, from, to);
      passages[from].beyond = std::max(passages[from].beyond, there + seconds[to].forward + passages[to].beyond +
                                                                  seconds[to].backward + back.seconds);
    }
  }
  return passages;
}

} // namespace

double least_passage(const Problem& problem, const Plan& plan, bool splits_backward) {
  const Direction direction = direction_of(problem, plan, splits_backward);
  const std::vector<Passage> passages = passages_of(direction);
  double least = 0;
  for (std::size_t s = 0; s < passages.size(); ++s) {
    const auto& [before, beyond, behind] = passages[s];
    const LeastSeconds& own = direction.seconds[s];
    const double others = (problem.micro_batches - 1) * std::max(own.forward, own.backward);
    least = std::max(least, before + own.forward + beyond + own.backward + behind + others);
  }
  return least < kInfinity ? least : 0; // a kernel lacks: the plan says so itself
}

double least_replay(const Problem& problem, const Plan& plan, const Schedule& schedule) {
  const double least = LeastReplay(problem, plan, schedule).run();
  return least < kInfinity ? least : 0; // a kernel lacks: the plan says so itself
}

} // namespace stagecraft
