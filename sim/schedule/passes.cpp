// What all schedules share: text, counts in flight, recompute, and whether an order can run at all.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

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

std::vector<int> most_held(const Schedule& schedule) {
  const TaskKind release = schedule.splits_backward ? TaskKind::weight : TaskKind::backward;
  std::vector<int> most;
  for (const auto& order : schedule.orders) {
    int held = 0; // by forwards that ran an iteration before their own
    for (const Action& action : order) {
      held += action.kind == TaskKind::forward ? action.micro_batch / schedule.micro_batches : 0;
    }
    most.push_back(held);
    for (const Action& action : order) {
      held += action.kind == TaskKind::forward ? 1 : action.kind == release ? -1 : 0;
      most.back() = std::max(most.back(), held);
    }
  }
  return most;
}

Schedule from_empty(const Schedule& schedule) {
  if (schedule.flushes) {
    return schedule;
  }
  Schedule alone = schedule;
  alone.flushes = true;
  int ahead = 0; // iterations by which the earliest forward runs before its own
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

std::vector<double> in_flight(const Schedule& schedule) {
  const TaskKind release = schedule.splits_backward ? TaskKind::weight : TaskKind::backward;
  const auto change = [&](const Action& action) {
    return action.kind == TaskKind::forward ? 1 : action.kind == release ? -1 : 0;
  };
  std::vector<double> held(schedule.stages, 0.0);
  for (const auto& order : schedule.orders) {
    std::size_t peak_end = 0;
    int now = 0;
    int peak = 0;
    for (std::size_t at = 0; at < order.size(); ++at) {
      now += change(order[at]);
      if (now > peak) {
        peak = now;
        peak_end = at + 1;
      }
    }
    for (std::size_t at = 0; at < peak_end; ++at) {
      held[order[at].stage] += change(order[at]);
    }
  }
  return held;
}

Schedule add_recompute(Schedule schedule, std::span<const char> recomputing_stages, const RecomputeRule& rule) {
  for (auto& order : schedule.orders) {
    std::vector<Action> with;
    with.reserve(order.size() * 3 / 2);
    for (const Action& action : order) {
      const bool own_forward =
          !with.empty() && with.back() == Action{TaskKind::forward, action.micro_batch, action.stage};
      const bool kept = (rule.skip_after_own_forward && own_forward) ||
                        (rule.except_last_micro_batch && action.micro_batch == schedule.micro_batches - 1);
      if (action.kind == TaskKind::backward && recomputing_stages[action.stage] != 0 && !kept) {
        with.push_back({TaskKind::recompute, action.micro_batch, action.stage});
      }
      with.push_back(action);
    }
    order = std::move(with);
  }
  return schedule;
}

namespace {

using Key = std::tuple<TaskKind, int, int>;

// Each F and B (and W) once, on one rank per stage.
void check_complete(const Schedule& schedule, std::vector<std::string>& defects) {
  std::map<Key, int> seen;
  std::map<int, int> rank_of_stage;
  for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
    for (const Action& action : schedule.orders[rank]) {
      const std::string name = to_text(std::span(&action, 1));
      if (action.stage < 0 || action.stage >= schedule.stages || action.micro_batch < 0 ||
          action.micro_batch >= schedule.micro_batches) {
        defects.push_back(name + " on rank " + std::to_string(rank) + " is outside " + std::to_string(schedule.stages) +
                          " stages and " + std::to_string(schedule.micro_batches) + " micro-batches");
        continue;
      }
      if (action.kind > TaskKind::recompute || (action.kind == TaskKind::weight && !schedule.splits_backward)) {
        defects.push_back(name + " on rank " + std::to_string(rank) + " is no work of a schedule that " +
                          (schedule.splits_backward ? "splits backward; allowed: F, B, W, R"
                                                    : "runs backward as a whole; allowed: F, B, R"));
        continue;
      }
      if (++seen[{action.kind, action.micro_batch, action.stage}] == 2) {
        defects.push_back(name + " appears more than once");
      }
      const auto [home, fresh] = rank_of_stage.try_emplace(action.stage, static_cast<int>(rank));
      if (home->second != static_cast<int>(rank)) {
        defects.push_back(name + " is on rank " + std::to_string(rank) + ", but stage " + std::to_string(action.stage) +
                          " lives on rank " + std::to_string(home->second));
      }
    }
  }
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int m = 0; m < schedule.micro_batches; ++m) {
      for (const TaskKind kind : {TaskKind::forward, TaskKind::backward, TaskKind::weight}) {
        if ((kind != TaskKind::weight || schedule.splits_backward) && !seen.contains({kind, m, stage})) {
          const Action missing{kind, m, stage};
          defects.push_back(to_text(std::span(&missing, 1)) + " is missing");
        }
      }
    }
  }
}

// What a task waits for besides its place in the order, in a chain of stages.
std::vector<Key> needs(const Schedule& schedule, const Action& action) {
  const auto [kind, m, s] = std::tuple(action.kind, action.micro_batch, action.stage);
  switch (kind) {
  case TaskKind::forward:
    return s == 0 ? std::vector<Key>{} : std::vector<Key>{{TaskKind::forward, m, s - 1}};
  case TaskKind::backward:
    if (s + 1 == schedule.stages) {
      return {{TaskKind::forward, m, s}};
    }
    return {{TaskKind::forward, m, s}, {TaskKind::backward, m, s + 1}};
  case TaskKind::weight:
    return {{TaskKind::backward, m, s}};
  case TaskKind::recompute:
    return {{TaskKind::forward, m, s}};
  default:
    return {};
  }
}

// Runs the orders without times; where they stop, follows the waiting tasks round their cycle.
void check_deadlock(const Schedule& schedule, std::vector<std::string>& defects) {
  const auto ranks = schedule.orders.size();
  std::set<Key> done;
  std::vector<std::size_t> cursor(ranks, 0);
  std::map<int, std::size_t> rank_of_stage;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const Action& action : schedule.orders[rank]) {
      rank_of_stage[action.stage] = rank;
    }
  }
  const auto blocking = [&](std::size_t rank) -> std::optional<Key> {
    for (const Key& need : needs(schedule, schedule.orders[rank][cursor[rank]])) {
      if (!done.contains(need)) {
        return need;
      }
    }
    return std::nullopt;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      while (cursor[rank] < schedule.orders[rank].size() && !blocking(rank)) {
        const Action& action = schedule.orders[rank][cursor[rank]++];
        done.insert({action.kind, action.micro_batch, action.stage});
        moved = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (cursor[rank] == schedule.orders[rank].size()) {
      continue;
    }
    std::string cycle;
    std::vector<char> visited(ranks, 0);
    for (std::size_t at = rank; visited[at] == 0; at = rank_of_stage[std::get<2>(*blocking(at))]) {
      visited[at] = 1;
      const Action& stuck = schedule.orders[at][cursor[at]];
      const auto [kind, m, s] = *blocking(at);
      const Action waits{kind, m, s};
      cycle += (cycle.empty() ? "" : "; ") + to_text(std::span(&stuck, 1)) + " on rank " + std::to_string(at) +
               " waits for " + to_text(std::span(&waits, 1));
    }
    defects.push_back("deadlock: " + cycle);
    return;
  }
}

} // namespace

std::vector<std::string> schedule_defects(const Schedule& schedule) {
  std::vector<std::string> defects;
  check_complete(schedule, defects);
  if (defects.empty()) {
    check_deadlock(schedule, defects);
  }
  return defects;
}

} // namespace stagecraft
