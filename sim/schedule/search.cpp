// Searches an order for one uneven pipeline. It starts from named schedules and list schedules, moves actions, and
// judges each move by a replay of its own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/base/improves.hpp"
#include "sim/base/random.hpp"
#include "sim/schedule/timed_orders.hpp"

namespace stagecraft {
namespace {
constexpr std::int64_t kMostSearched = 4096; // ranks x micro-batches; time grows with this times the number of moves
constexpr std::int64_t kMostMoves = 60'000;
constexpr std::int64_t kMovesPerAction = 240; // ranks x micro-batches
// Moves x ranks x micro-batches: each move takes a replay of all. The longest orders get few moves; named schedules and
// list schedules are what they start from and what they are compared with.
constexpr std::int64_t kMostReplayed = kMostMoves * 256;

// A rank's kinds of work in order; the k-th of a kind is for micro-batch k.
using Letters = std::vector<TaskKind>;
using Orders = std::vector<Letters>;

// Replays orders given as letters. Each kind takes its micro-batches in order, so counts say what is done.
class LetterReplay {
public:
  explicit LetterReplay(const TimedPipeline& pipeline)
      : pipeline_(pipeline), ranks_(pipeline.ranks), micro_batches_(pipeline.micro_batches),
        forward_(static_cast<std::size_t>(ranks_) * micro_batches_), backward_(forward_.size()), free_(ranks_),
        before_(ranks_), at_(ranks_), forwards_(ranks_), backwards_(ranks_) {}

  /// The period of the steady state and `share` of the first iteration's makespan: never too low, but perhaps too high
  /// if it is more than `enough`, since the replay then stops early. Infinite if the orders deadlock.
  double period(const Orders& orders, double share, double enough) {
    std::fill(free_.begin(), free_.end(), 0.0);
    double first = 0, period = kInfinity;
    for (int i = 0; i < kIterations; ++i) {
      before_ = free_;
      if (!iterate(orders, kInfinity)) {
        return kInfinity;
      }
      first = i == 0 ? *std::max_element(free_.begin(), free_.end()) : first;
      double least = kInfinity;
      double most = 0;
      for (int rank = 0; rank < ranks_; ++rank) {
        least = std::min(least, free_[rank] - before_[rank]);
        most = std::max(most, free_[rank] - before_[rank]);
      }
      period = i > 0 ? std::min(period, most) : period;
      if (i > 0 && (least * (1 - kRounding) + share * first >= enough || most <= least)) { // no period is below `least`
        break;
      }
    }
    return period + share * first;
  }

  /// Infinite if the orders deadlock or it is more than `enough`.
  double makespan(const Orders& orders, double enough) {
    std::fill(free_.begin(), free_.end(), 0.0);
    return iterate(orders, enough * (1 + kRounding)) ? *std::max_element(free_.begin(), free_.end()) : kInfinity;
  }

private:
  static constexpr int kIterations = 4;
  static constexpr double kRounding = 1e-9; // far more than sums differ by

  // False if the orders deadlock, or if a rank can't be done by `enough` with what is left of its work.
  bool iterate(const Orders& orders, double enough) {
    std::fill(at_.begin(), at_.end(), 0);
    std::fill(forwards_.begin(), forwards_.end(), 0);
    std::fill(backwards_.begin(), backwards_.end(), 0);
    std::size_t left = 0;
    for (const Letters& letters : orders) {
      left += letters.size();
    }
    for (std::size_t before = left + 1; left > 0 && left < before;) {
      before = left;
      for (int rank = 0; rank < ranks_; ++rank) {
        if (!may_advance(orders[rank], rank)) {
          continue;
        }
        left -= advance(orders[rank], rank);
        if (free_[rank] + rest_of(rank) > enough) {
          return false;
        }
      }
      for (int rank = ranks_ - 2; rank > 0 && left > 0; --rank) {
        left -= may_advance(orders[rank], rank) ? advance(orders[rank], rank) : 0;
      }
    }
    return left == 0;
  }

  double rest_of(int rank) const {
    const StageFigures& figures = pipeline_.figures[rank];
    const int forwards = forwards_[rank], backwards = backwards_[rank];
    const int weights = static_cast<int>(at_[rank]) - forwards - backwards;
    return (micro_batches_ - forwards) * figures.forward + (micro_batches_ - backwards) * figures.backward_input +
           (micro_batches_ - weights) * figures.backward_weight;
  }

  // Whether the input of a rank's next letter is there.
  bool may_advance(const Letters& letters, int rank) const {
    const std::size_t at = at_[rank];
    if (at == letters.size()) {
      return false;
    }
    switch (letters[at]) {
    case TaskKind::forward:
      return rank == 0 || forwards_[rank] < forwards_[rank - 1];
    case TaskKind::backward:
      return rank + 1 == ranks_ || backwards_[rank] < backwards_[rank + 1];
    default:
      return true;
    }
  }

  // Runs a rank as far as its inputs allow; returns how many of its letters.
  std::size_t advance(const Letters& letters, int rank) {
    const StageFigures figures = pipeline_.figures[rank];
    const bool is_first = rank == 0, is_last = rank + 1 == ranks_;
    const int most_forwards = is_first ? micro_batches_ : forwards_[rank - 1]; // whose inputs are there
    const int most_backwards = is_last ? micro_batches_ : backwards_[rank + 1];
    const double hop_before = is_first ? 0 : pipeline_.hops[rank - 1], hop_after = is_last ? 0 : pipeline_.hops[rank];
    const std::size_t row = static_cast<std::size_t>(rank) * micro_batches_;
    double* const forward = forward_.data() + row;
    double* const backward = backward_.data() + row;
    int forwards = forwards_[rank], backwards = backwards_[rank];
    const std::size_t begin = at_[rank], end = letters.size();
    std::size_t at = begin;
    double now = free_[rank];
    for (; at < end; ++at) {
      if (letters[at] == TaskKind::forward) {
        if (forwards >= most_forwards) {
          break;
        }
        now = is_first ? now : std::max(now, forward[forwards - micro_batches_] + hop_before);
        forward[forwards++] = now += figures.forward;
      } else if (letters[at] == TaskKind::backward) {
        if (backwards >= most_backwards) {
          break;
        }
        now = is_last ? now : std::max(now, backward[backwards + micro_batches_] + hop_after);
        backward[backwards++] = now += figures.backward_input;
      } else {
        now += figures.backward_weight;
      }
    }
    free_[rank] = now;
    at_[rank] = at;
    forwards_[rank] = forwards;
    backwards_[rank] = backwards;
    return at - begin;
  }

  const TimedPipeline& pipeline_;
  int ranks_, micro_batches_;
  std::vector<double> forward_, backward_; // [rank, micro-batch]: end
  std::vector<double> free_, before_;
  std::vector<std::size_t> at_;
  std::vector<int> forwards_, backwards_;
};

Schedule schedule_of(const TimedPipeline& pipeline, const Orders& orders) {
  Schedule schedule{.stages = pipeline.ranks, .micro_batches = pipeline.micro_batches, .splits_backward = true};
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    std::array<int, 3> next{};
    std::vector<Action>& order = schedule.orders.emplace_back();
    order.reserve(orders[rank].size());
    for (const TaskKind kind : orders[rank]) {
      order.push_back({kind, next[static_cast<std::size_t>(kind)]++, rank});
    }
  }
  return schedule;
}

Orders letters_of(const Schedule& schedule) {
  Orders orders;
  for (const auto& order : schedule.orders) {
    Letters& letters = orders.emplace_back();
    for (const Action& action : order) {
      letters.push_back(action.kind);
    }
  }
  return orders;
}

// Whether each B follows its F and each W its B, and activations fit.
bool holds(const Letters& letters, const StageFigures& figures, double room) {
  const double kept = figures.activation * figures.kept;
  int forwards = 0;
  int backwards = 0;
  int weights = 0;
  for (const TaskKind kind : letters) {
    forwards += kind == TaskKind::forward ? 1 : 0;
    backwards += kind == TaskKind::backward ? 1 : 0;
    weights += kind == TaskKind::weight ? 1 : 0;
    if (backwards > forwards || weights > backwards ||
        (forwards - backwards) * figures.activation + (backwards - weights) * kept > room) {
      return false;
    }
  }
  return true;
}

// What moves minimise: the period plus a small share of the makespan, or the makespan.
enum class Aim { period, makespan };

class OrderSearch {
public:
  OrderSearch(const TimedPipeline& pipeline, Aim aim, std::uint64_t seed)
      : pipeline_(pipeline), aim_(aim), random_(seed), replay_(pipeline) {
    const OrderTimes least = least_times(pipeline);
    enough_ = (1 + kClose) * (aim == Aim::makespan ? least.makespan : least.period + kShareOfOther * least.makespan);
  }

  double cost(const Orders& orders, double enough = kInfinity) {
    return aim_ == Aim::makespan ? replay_.makespan(orders, enough) : replay_.period(orders, kShareOfOther, enough);
  }

  // Threshold accepting: moves that make the order a little worse are accepted too, less and less over time.
  Orders improve(const Orders& start, std::int64_t moves) {
    Orders best = start;
    Orders now = start;
    double best_cost = cost(start);
    double now_cost = best_cost;
    for (std::int64_t i = 0; i < moves && best_cost > enough_; ++i) {
      const double threshold = 1 + kWarmth * (1 - static_cast<double>(i) / static_cast<double>(moves));
      if (!move(now)) {
        continue;
      }
      const double tried = cost(now, now_cost * threshold);
      if (tried > now_cost * threshold) {
        for (int rank = first_; rank <= last_; ++rank) {
          now[rank].swap(kept_[rank]);
        }
        continue;
      }
      now_cost = tried;
      if (improves(tried, best_cost)) {
        best_cost = tried;
        best = now;
      }
    }
    return best;
  }

private:
  static constexpr double kShareOfOther = 0.005;
  static constexpr double kClose = 0.001; // relative distance to the least possible time
  static constexpr double kWarmth = 0.004;

  int pick(int below) { return random_.below(below); }

  // Moves the k-th F, B or W some places forward or back, on one rank or on several neighbouring ones alike.
  bool move(Orders& orders) {
    first_ = pick(pipeline_.ranks);
    last_ = pick(3) == 0 ? first_ + pick(pipeline_.ranks - first_) : first_;
    const auto kind = static_cast<TaskKind>(pick(3));
    const int number = pick(pipeline_.micro_batches);
    const int many = pick(4) == 0 ? 1 + pick(pipeline_.micro_batches - number) : 1; // how many of them move alike
    const int places = (1 + pick(pick(3) == 0 ? 8 : 2)) * (pick(2) == 0 ? 1 : -1);
    kept_.resize(orders.size());
    bool changed = false;
    for (int rank = first_; rank <= last_; ++rank) {
      kept_[rank] = orders[rank];
      shift(orders[rank], kind, number, many, places);
      if (!holds(orders[rank], pipeline_.figures[rank], pipeline_.room[rank])) {
        for (int r = first_; r <= rank; ++r) {
          orders[r].swap(kept_[r]);
        }
        return false;
      }
      changed = changed || orders[rank] != kept_[rank];
    }
    return changed;
  }

  static void shift(Letters& letters, TaskKind kind, int number, int many, int places) {
    int seen = 0;
    const auto length = static_cast<int>(letters.size());
    const auto carry = [&](int at) {
      const int to = std::clamp(at + places, 0, length - 1);
      const auto begin = letters.begin();
      if (to > at) {
        std::rotate(begin + at, begin + at + 1, begin + to + 1);
      } else {
        std::rotate(begin + to, begin + at, begin + at + 1);
      }
    };
    if (places < 0) {
      for (int at = 0; at < length; ++at) {
        if (letters[at] == kind && seen++ >= number && seen <= number + many) {
          carry(at);
        }
      }
    } else {
      seen = static_cast<int>(std::count(letters.begin(), letters.end(), kind));
      for (int at = length - 1; at >= 0; --at) {
        if (letters[at] == kind && --seen >= number && seen < number + many) {
          carry(at);
        }
      }
    }
  }

  const TimedPipeline& pipeline_;
  Aim aim_;
  Random random_;
  LetterReplay replay_;
  double enough_;
  Orders kept_;
  int first_ = 0, last_ = 0; // ranks of the last move
};

// Runs work as it becomes ready, on each rank B before F before W, with at most `ahead` micro-batches per rank between
// F and B. W goes first once more than `lag` of them wait.
class ListOrder {
public:
  ListOrder(const TimedPipeline& pipeline, const std::vector<int>& ahead, int lag)
      : pipeline_(pipeline), ahead_(ahead), lag_(lag), orders_(pipeline), start_(pipeline.ranks),
        kind_(pipeline.ranks) {}

  Orders run() {
    for (int rank = 0; rank < pipeline_.ranks; ++rank) {
      look_at(rank);
    }
    for (std::int64_t left = std::int64_t{3} * pipeline_.ranks * pipeline_.micro_batches; left > 0; --left) {
      const auto rank = static_cast<int>(std::min_element(start_.begin(), start_.end()) - start_.begin());
      orders_.place(kind_[rank], rank);
      for (int near = std::max(rank - 1, 0); near <= std::min(rank + 1, pipeline_.ranks - 1); ++near) {
        look_at(near); // no other rank takes what this one makes
      }
    }
    return letters_of(orders_.schedule());
  }

private:
  struct Step {
    double start;
    TaskKind kind;
  };

  void look_at(int rank) {
    const Step step = next(rank);
    start_[rank] = step.start;
    kind_[rank] = step.kind;
  }

  Step next(int rank) const {
    const double now = orders_.free_at(rank);
    const int forwards = orders_.placed(TaskKind::forward, rank);
    const int backwards = orders_.placed(TaskKind::backward, rank);
    const bool fits = orders_.fits(rank);
    const double backward = backwards < forwards ? orders_.arrival(TaskKind::backward, rank) : kInfinity;
    const double forward = forwards < pipeline_.micro_batches && forwards - backwards < ahead_[rank] && fits
                               ? orders_.arrival(TaskKind::forward, rank)
                               : kInfinity;
    const bool weights = orders_.pending(rank) > 0;
    const bool full = !fits && forwards < pipeline_.micro_batches;
    if (weights && (orders_.pending(rank) > lag_ || full)) {
      return {now, TaskKind::weight};
    }
    const Step work = backward <= std::max(now, forward) ? Step{std::max(now, backward), TaskKind::backward}
                                                         : Step{std::max(now, forward), TaskKind::forward};
    const bool gap = work.start > now + orders_.seconds(TaskKind::weight, rank) / 2;
    return weights && gap ? Step{now, TaskKind::weight} : work;
  }

  const TimedPipeline& pipeline_;
  const std::vector<int>& ahead_;
  int lag_;
  TimedOrders orders_;
  std::vector<double> start_;  // [rank]: when its next action would run
  std::vector<TaskKind> kind_; // [rank]: of that action
};

// List orders from shallow warm-ups to deep ones.
std::vector<Orders> list_orders(const TimedPipeline& pipeline) {
  std::vector<Orders> all;
  for (const double slope : {1.0, 1.5, 2.0}) {
    for (const int more : {0, 1, 2}) {
      std::vector<int> ahead;
      for (int rank = 0; rank < pipeline.ranks; ++rank) {
        ahead.push_back(1 + more + static_cast<int>(slope * (pipeline.ranks - 1 - rank)));
      }
      int last = -1;
      for (const int lag : {0, pipeline.ranks, pipeline.micro_batches}) { // no more than all W ever wait
        const bool known = std::min(lag, pipeline.micro_batches) == last;
        all.push_back(known ? all.back() : ListOrder(pipeline, ahead, lag).run());
        last = std::min(lag, pipeline.micro_batches);
      }
    }
  }
  return all;
}

bool fuses(const Schedule& schedule) {
  return std::any_of(schedule.orders.begin(), schedule.orders.end(), [](const std::vector<Action>& order) {
    return std::any_of(order.begin(), order.end(), [](const Action& action) { return action.fused; });
  });
}

// The named schedules with one stage per rank that fit and fuse nothing, with backward split.
std::vector<Schedule> named_schedules(const TimedPipeline& pipeline, const ScheduleRequest& request) {
  std::vector<Schedule> named;
  ScheduleRequest asked = request;
  asked.evaluate = nullptr;
  for (const ScheduleRow& row : schedules()) {
    if (row.name == "search" || row.chunks != 1 || row.bidirectional || row.in_turn) {
      continue;
    }
    ScheduleResult made = make_schedule(row, asked);
    Schedule* schedule = std::get_if<Schedule>(&made);
    if (schedule != nullptr && schedule->flushes && !schedule->steps_each_micro_batch && schedule->versions.empty() &&
        !fuses(*schedule) && fits_room(pipeline, *schedule)) {
      named.push_back(split_backward(std::move(*schedule)));
    }
  }
  return named;
}

// Spends a third of the moves on the best start and a third on the next one; if that has gained anything, the last
// third on the best order so far.
Orders search(const TimedPipeline& pipeline, Aim aim, const std::vector<Orders>& starts, std::int64_t moves) {
  OrderSearch search(pipeline, aim, 1);
  std::vector<std::pair<double, std::size_t>> ranking;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    ranking.emplace_back(search.cost(starts[i]), i);
  }
  std::sort(ranking.begin(), ranking.end());
  Orders best = starts[ranking.front().second];
  double least = ranking.front().first;
  const double start = least;
  for (std::size_t i = 0; i < 3 && (i < 2 || least < start); ++i) {
    const bool other = i == 1 && ranking.size() > 1;
    Orders found = search.improve(other ? starts[ranking[1].second] : best, moves / 3);
    if (const double cost = search.cost(found); cost < least) {
      least = cost;
      best = std::move(found);
    }
  }
  return best;
}

} // namespace

ScheduleResult make_search(const ScheduleRequest& request) {
  const std::int64_t actions = std::int64_t{request.ranks} * request.micro_batches;
  if (actions > kMostSearched) {
    return Infeasible{"search replays " + std::to_string(request.ranks) + " ranks x " +
                      std::to_string(request.micro_batches) + " micro-batches thousands of times; at most " +
                      std::to_string(kMostSearched)};
  }
  const TimedPipeline pipeline = timed_pipeline(request, 1, StagePlacement::interleaved);
  if (const auto why = lacks_room(pipeline)) {
    return *why;
  }
  std::vector<Schedule> candidates = named_schedules(pipeline, request);
  std::vector<Orders> starts = list_orders(pipeline);
  for (const Schedule& named : candidates) {
    Orders letters = letters_of(named);
    starts.push_back(std::move(letters));
  }
  const std::int64_t moves = std::min({kMostMoves, kMovesPerAction * actions, kMostReplayed / actions});
  if (request.evaluate) { // the evaluation may have a barrier or not
    candidates.push_back(schedule_of(pipeline, search(pipeline, Aim::makespan, starts, moves / 2)));
    candidates.push_back(schedule_of(pipeline, search(pipeline, Aim::period, starts, moves / 2)));
  } else {
    candidates.push_back(schedule_of(pipeline, search(pipeline, Aim::period, starts, moves)));
  }
  // The orders that were searched come last and are mostly the fastest: asked first, they spare an evaluation the
  // others.
  std::vector<double> periods(candidates.size());
  for (std::size_t i = candidates.size(); i-- > 0;) {
    periods[i] = request.evaluate ? request.evaluate(candidates[i]) : order_times(pipeline, candidates[i]).period;
  }
  const Schedule* best = nullptr;
  double least = kInfinity;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (improves(periods[i], least)) {
      least = periods[i];
      best = &candidates[i];
    }
  }
  if (best == nullptr) {
    return Infeasible{"search found no order that fits"};
  }
  return *best;
}

} // namespace stagecraft
