// Passes that all schedules share: text, counts in flight, recompute, and whether an order can run at all.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/base/named_table.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

std::vector<std::string> tokens(std::span<const Action> order) {
  std::vector<std::string> texts;
  for (const Action& action : order) {
    std::string one(1, kTaskLetters[static_cast<std::size_t>(action.kind)]);
    one += std::to_string(action.micro_batch) + "@" + std::to_string(action.stage);
    if (action.fused && !texts.empty()) {
      texts.back() += "+" + one;
    } else {
      texts.push_back(std::move(one));
    }
  }
  return texts;
}

std::string to_text(std::span<const Action> order) { return join(tokens(order), " "); }

Schedule repeat(const Schedule& once, int fills) {
  Schedule all = once;
  all.fills = once.fills * fills;
  all.micro_batches = once.micro_batches * fills;
  for (std::size_t rank = 0; rank < all.orders.size(); ++rank) {
    const std::vector<Action>& order = once.orders[rank];
    all.orders[rank].reserve(order.size() * static_cast<std::size_t>(fills));
    for (int fill = 1; fill < fills; ++fill) {
      for (Action action : order) {
        action.micro_batch += fill * once.micro_batches;
        all.orders[rank].push_back(action);
      }
    }
  }
  return all;
}

Schedule from_empty(const Schedule& schedule) {
  if (schedule.flushes) {
    return schedule;
  }
  Schedule alone = schedule;
  alone.flushes = true;
  int ahead = 0; // the most iterations by which a task runs before its own
  for (const auto& order : schedule.orders) {
    for (const Action& action : order) {
      ahead = std::max(ahead, action.micro_batch / schedule.micro_batches);
    }
  }
  for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
    alone.orders[rank].clear();
    for (int shift = ahead; shift >= 0; --shift) {
      for (Action action : schedule.orders[rank]) {
        if (action.micro_batch / schedule.micro_batches == shift) {
          action.micro_batch %= schedule.micro_batches;
          alone.orders[rank].push_back(action);
        }
      }
    }
  }
  return alone;
}

namespace {

// Actions that start together: from `begin` to the first that is not fused with it.
std::size_t end_of_item(std::span<const Action> order, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < order.size() && order[end].fused) {
    ++end;
  }
  return end;
}

// By how much a task changes the number of micro-batches held; W releases what B has kept.
double change_of(const Schedule& schedule, TaskKind kind, double kept) {
  const double after = schedule.splits_backward ? kept : 0;
  return kind == TaskKind::forward ? 1 : kind == TaskKind::backward ? after - 1 : kind == TaskKind::weight ? -after : 0;
}

// Calls visit(stage, change) for each action that may change the number of micro-batches held, in order of time, until
// it returns false. Actions that start together all take memory before any of them releases some; but where they pair
// by layers, each layer's backward gives back what the forward's takes, so that the backward counts first.
template <class Visit>
void for_each_change(const Schedule& schedule, std::span<const Action> order,
                     const std::array<double, kTaskLetters.size()>& change_of_kind, const Visit& visit) {
  const std::array kinds = schedule.pairs_by_layers
                               ? std::array{TaskKind::backward, TaskKind::weight, TaskKind::forward}
                               : std::array{TaskKind::forward, TaskKind::backward, TaskKind::weight};
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t end = end_of_item(order, begin);
    if (end == begin + 1) {
      if (!visit(order[begin].stage, change_of_kind[static_cast<std::size_t>(order[begin].kind)])) {
        return;
      }
    } else {
      for (const TaskKind kind : kinds) {
        for (std::size_t at = begin; at < end; ++at) {
          if (order[at].kind == kind && !visit(order[at].stage, change_of_kind[static_cast<std::size_t>(kind)])) {
            return;
          }
        }
      }
    }
    begin = end;
  }
}

// What a rank holds when it holds most.
class Held {
public:
  explicit Held(const Schedule& schedule) : of_stage_(schedule.stages, 0.0) {}

  /// Counts the order of a rank; returns the most that it holds at once.
  double count(const Schedule& schedule, std::span<const Action> order, double kept) {
    std::array<double, kTaskLetters.size()> change_of_kind{};
    for (std::size_t kind = 0; kind < change_of_kind.size(); ++kind) {
      change_of_kind[kind] = change_of(schedule, static_cast<TaskKind>(kind), kept);
    }
    clear();
    double now = 0;
    for (const Action& action : schedule.flushes ? std::span<const Action>{} : order) { // what earlier rounds have left
      const int rounds = action.micro_batch / schedule.micro_batches;
      const double change = rounds * change_of_kind[static_cast<std::size_t>(action.kind)];
      add(action.stage, change);
      now += change;
    }
    double most = now;
    std::size_t changes = 0, most_at = 0;
    for_each_change(schedule, order, change_of_kind, [&](std::int32_t, double change) {
      ++changes;
      now += change;
      if (now > most) {
        most_at = now > most * (1 + kTie) ? changes : most_at;
        most = now;
      }
      return true;
    });
    for_each_change(schedule, order, change_of_kind, [&](std::int32_t stage, double change) {
      if (most_at == 0) {
        return false;
      }
      add(stage, change);
      --most_at;
      return true;
    });
    return most;
  }

  /// The stages of which it holds something then, each at least once.
  const std::vector<std::int32_t>& stages() const { return stages_; }
  double operator[](std::int32_t stage) const { return of_stage_[stage]; }

private:
  void add(std::int32_t stage, double change) {
    if (stages_.empty() || stages_.back() != stage) {
      stages_.push_back(stage);
    }
    of_stage_[stage] += change;
  }

  void clear() {
    for (const std::int32_t stage : stages_) {
      of_stage_[stage] = 0;
    }
    stages_.clear();
  }

  std::vector<double> of_stage_;
  std::vector<std::int32_t> stages_;
};

} // namespace

std::vector<double> in_flight(const Schedule& schedule, double kept) {
  std::vector<double> most(schedule.stages, 0.0);
  Held held(schedule);
  for (const auto& order : schedule.orders) {
    held.count(schedule, order, kept);
    for (const std::int32_t stage : held.stages()) {
      most[stage] = std::max(most[stage], held[stage]);
    }
  }
  return most;
}

std::vector<int> most_held(const Schedule& schedule) {
  std::vector<int> most;
  Held held(schedule);
  for (const auto& order : schedule.orders) {
    most.push_back(static_cast<int>(std::lround(held.count(schedule, order, 1))));
  }
  return most;
}

std::vector<Action> backwards_first(std::vector<Action> order) {
  for (std::size_t at = 1; at < order.size(); ++at) {
    Action &first = order[at - 1], &second = order[at];
    if (second.fused && first.kind == TaskKind::forward && second.kind == TaskKind::backward) {
      std::swap(first, second);
      std::swap(first.fused, second.fused);
    }
  }
  return order;
}

Schedule add_recompute(Schedule schedule, std::span<const char> recomputing_stages, const RecomputeRule& rule) {
  const int last = schedule.micro_batches - 1;
  for (auto& order : schedule.orders) {
    const auto is_forward_of = [&](std::size_t at, const Action& other) {
      return order[at].kind == TaskKind::forward && order[at].micro_batch == other.micro_batch &&
             order[at].stage == other.stage;
    };
    std::vector<Action> with;
    with.reserve(order.size() * 3 / 2);
    for (std::size_t begin = 0; begin < order.size();) {
      const std::size_t end = end_of_item(order, begin);
      for (std::size_t at = begin; at < end; ++at) {
        const Action& action = order[at];
        bool kept = (rule.except_last_micro_batch && action.micro_batch % schedule.micro_batches == last) ||
                    (rule.skip_after_own_forward && begin > 0 && is_forward_of(begin - 1, action));
        for (std::size_t beside = begin; beside < at; ++beside) {
          kept = kept || is_forward_of(beside, action);
        }
        if (action.kind == TaskKind::backward && recomputing_stages[action.stage] != 0 && !kept) {
          with.push_back({TaskKind::recompute, action.micro_batch, action.stage});
        }
      }
      with.insert(with.end(), order.begin() + static_cast<std::ptrdiff_t>(begin),
                  order.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
    order = std::move(with);
  }
  return schedule;
}

namespace {

constexpr int kKinds = 4; // F, B, W, R: those that a schedule orders, first in TaskKind
constexpr std::int32_t kNowhere = -1;

std::string name_of(const Action& action) { return to_text(std::span(&action, 1)); }

// Checks every task of the orders; a micro-batch of another iteration counts as the one of this iteration that it
// repeats.
class Checker {
public:
  explicit Checker(const Schedule& schedule)
      : schedule_(schedule), stages_(schedule.stages), micro_batches_(schedule.micro_batches) {}

  std::vector<ScheduleDefect> find_defects() {
    std::size_t actions = 0;
    for (const auto& order : schedule_.orders) {
      actions += order.size();
    }
    const std::size_t cells = static_cast<std::size_t>(stages_) * micro_batches_;
    if (cells > actions) { // too sparse for tables; each cell needs F and B, so tasks are missing
      return {{std::to_string(actions) + " tasks are too few for " + std::to_string(stages_) + " stages and " +
               std::to_string(micro_batches_) + " micro-batches"}};
    }
    rank_.assign(cells, kNowhere);
    ahead_.assign(cells * kKinds, kNowhere);
    read_orders();
    find_missing();
    if (defects_.empty()) {
      find_deadlock();
    }
    return std::move(defects_);
  }

private:
  std::size_t cell(int micro_batch, int stage) const {
    return static_cast<std::size_t>(micro_batch % micro_batches_) * stages_ + stage;
  }
  std::size_t cell(const Action& action) const {
    return cell(action.micro_batch, action.stage) * kKinds + static_cast<std::size_t>(action.kind);
  }
  int ahead_of(const Action& action) const { return action.micro_batch / micro_batches_; }

  void note(int rank, const std::string& text) { defects_.push_back({text, rank}); }

  // Whether a task can belong to the schedule; if not, notes the defect.
  bool belongs(const Action& action, int rank) {
    const bool inside = action.stage >= 0 && action.stage < stages_ && action.micro_batch >= 0 &&
                        (!schedule_.flushes || action.micro_batch < micro_batches_);
    if (!inside) {
      note(rank, name_of(action) + " on rank " + std::to_string(rank) + " is outside " + std::to_string(stages_) +
                     " stages and " + std::to_string(micro_batches_) + " micro-batches");
      return false;
    }
    if (action.kind > TaskKind::recompute || (action.kind == TaskKind::weight && !schedule_.splits_backward)) {
      note(rank, name_of(action) + " on rank " + std::to_string(rank) + " is no work of a schedule that " +
                     (schedule_.splits_backward ? "splits backward; allowed: F, B, W, R"
                                                : "runs backward as a whole; allowed: F, B, R"));
      return false;
    }
    return true;
  }

  // Checks that each task occurs once, with all tasks of a micro-batch and stage on one rank.
  void read_orders() {
    std::vector<char> repeated;
    for (int rank = 0; rank < static_cast<int>(schedule_.orders.size()); ++rank) {
      const auto& order = schedule_.orders[rank];
      for (std::size_t at = 0; at < order.size(); ++at) {
        const Action& action = order[at];
        if (!belongs(action, rank)) {
          continue;
        }
        if (at == 0 && action.fused) {
          note(rank, name_of(action) + " on rank " + std::to_string(rank) + " is fused with nothing");
        }
        std::int32_t& ahead = ahead_[cell(action)];
        if (ahead != kNowhere) {
          repeated.resize(ahead_.size(), 0);
          if (repeated[cell(action)] == 0) {
            note(rank, name_of(action) + " appears more than once, again on rank " + std::to_string(rank));
          }
          repeated[cell(action)] = 1;
        }
        ahead = ahead_of(action);
        std::int32_t& home = rank_[cell(action.micro_batch, action.stage)];
        home = home == kNowhere ? rank : home;
        if (home != rank) {
          note(rank, name_of(action) + " is on rank " + std::to_string(rank) + ", but micro-batch " +
                         std::to_string(action.micro_batch % micro_batches_) + " of stage " +
                         std::to_string(action.stage) + " runs on rank " + std::to_string(home));
        }
      }
    }
  }

  void find_missing() {
    for (int stage = 0; stage < stages_; ++stage) {
      for (int m = 0; m < micro_batches_; ++m) {
        for (const TaskKind kind : {TaskKind::forward, TaskKind::backward, TaskKind::weight}) {
          const Action action{kind, m, stage};
          if ((kind != TaskKind::weight || schedule_.splits_backward) && ahead_[cell(action)] == kNowhere) {
            note(rank_[cell(m, stage)], name_of(action) + " is missing");
          }
        }
      }
    }
  }

  // Runs the orders without times. If iterations overlap, it runs one round of them and takes all that earlier rounds
  // do as done. If the orders stop, follows the waiting tasks around their cycle.
  void find_deadlock() {
    const int ranks = static_cast<int>(schedule_.orders.size());
    done_.assign(ahead_.size(), 0);
    cursor_.assign(ranks, 0);
    std::vector<int> awake(ranks);
    std::iota(awake.rbegin(), awake.rend(), 0);
    while (!awake.empty()) {
      const int rank = awake.back();
      awake.pop_back();
      const auto& order = schedule_.orders[rank];
      while (cursor_[rank] < order.size() && !blocking(rank)) {
        const std::size_t end = end_of_item(order, cursor_[rank]);
        for (; cursor_[rank] < end; ++cursor_[rank]) {
          const Action& action = order[cursor_[rank]];
          done_[cell(action)] = 1;
          const int next = action.stage + (action.kind == TaskKind::forward ? 1 : -1);
          if (action.kind <= TaskKind::backward && next >= 0 && next < stages_) {
            awake.push_back(rank_[cell(action.micro_batch, next)]);
          }
        }
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (cursor_[rank] < schedule_.orders[rank].size()) {
        const int start = cycle_start(rank);
        note(start, "deadlock: " + cycle_from(start));
        return;
      }
    }
  }

  struct Waiting {
    Action task, needs;
  };

  // The first task of a rank's next item that cannot start, and what it waits for.
  std::optional<Waiting> blocking(int rank) const {
    const auto& order = schedule_.orders[rank];
    const std::size_t end = end_of_item(order, cursor_[rank]);
    for (std::size_t at = cursor_[rank]; at < end; ++at) {
      for (const std::optional<Action>& need : needs(order[at])) {
        if (need && !is_done(*need) && !leads_to(std::span(order).subspan(cursor_[rank], at - cursor_[rank]), *need)) {
          return Waiting{order[at], *need};
        }
      }
    }
    return std::nullopt;
  }

  // The inputs of a task in a chain of stages.
  std::array<std::optional<Action>, 2> needs(const Action& action) const {
    const auto of = [&](TaskKind kind, int stage) { return Action{kind, action.micro_batch, stage}; };
    const int s = action.stage;
    switch (action.kind) {
    case TaskKind::forward:
      return {s > 0 ? std::optional(of(TaskKind::forward, s - 1)) : std::nullopt};
    case TaskKind::backward:
      return {of(TaskKind::forward, s), s + 1 < stages_ ? std::optional(of(TaskKind::backward, s + 1)) : std::nullopt};
    case TaskKind::weight:
      return {of(TaskKind::backward, s)};
    default:
      return {of(TaskKind::forward, s)};
    }
  }

  bool is_done(const Action& action) const {
    const std::int32_t round = ahead_of(action) - ahead_[cell(action)]; // 0: this one
    return round < 0 || (round == 0 && done_[cell(action)] != 0);
  }

  // Within an item, backward runs as a whole: B, then W.
  static bool leads_to(std::span<const Action> before, const Action& need) {
    return need.kind != TaskKind::forward && std::any_of(before.begin(), before.end(), [&](const Action& action) {
             return action.kind == need.kind && action.micro_batch == need.micro_batch && action.stage == need.stage;
           });
  }

  bool is_stuck(int rank) const { return cursor_[rank] < schedule_.orders[rank].size(); }

  // The rank of the task that a rank waits for.
  int holds_up(int rank) const {
    const Action need = blocking(rank)->needs;
    return rank_[cell(need.micro_batch, need.stage)];
  }

  // A rank of the cycle of waiting tasks that holds up a rank, or the end of a chain that waits for a later round.
  int cycle_start(int rank) const {
    std::vector<char> visited(schedule_.orders.size(), 0);
    while (visited[rank] == 0 && is_stuck(holds_up(rank))) {
      visited[rank] = 1;
      rank = holds_up(rank);
    }
    return rank;
  }

  // Describes the cycle, or the end of the chain, from that rank on.
  std::string cycle_from(int start) const {
    std::string text;
    std::vector<char> visited(schedule_.orders.size(), 0);
    for (int at = start; is_stuck(at) && visited[at] == 0; at = holds_up(at)) {
      visited[at] = 1;
      const Waiting waiting = *blocking(at);
      text += (text.empty() ? "" : "; ") + name_of(waiting.task) + " on rank " + std::to_string(at) + " waits for " +
              name_of(waiting.needs) + (is_stuck(holds_up(at)) ? "" : ", which comes a round later");
    }
    return text;
  }

  const Schedule& schedule_;
  int stages_, micro_batches_;
  std::vector<std::int32_t> rank_;  // [micro-batch, stage]
  std::vector<std::int32_t> ahead_; // [task]: iterations that it runs ahead of its own
  std::vector<char> done_;          // [task]
  std::vector<std::size_t> cursor_; // [rank]
  std::vector<ScheduleDefect> defects_;
};

} // namespace

std::vector<ScheduleDefect> find_defects(const Schedule& schedule) {
  std::vector<ScheduleDefect> defects = Checker(schedule).find_defects();
  if (defects.empty() && !schedule.flushes) {
    const Schedule alone = from_empty(schedule);
    defects = Checker(alone).find_defects();
  }
  return defects;
}

std::vector<std::string> schedule_defects(const Schedule& schedule) {
  std::vector<std::string> texts;
  for (ScheduleDefect& defect : find_defects(schedule)) {
    texts.push_back(std::move(defect.text));
  }
  return texts;
}

} // namespace stagecraft
