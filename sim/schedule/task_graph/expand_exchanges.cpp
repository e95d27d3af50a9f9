// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/expand_exchanges.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/format/end_of_equals.hpp"
#include "sim/base/improves.hpp"
#include "sim/collective/group_ways.hpp"
#include "sim/schedule/task_graph/add_edges.hpp"
#include "sim/schedule/task_graph/fold_ranks.hpp"
#include "sim/schedule/task_graph/pass_part.hpp"
#include "sim/schedule/task_graph/work_of_flow.hpp"

namespace stagecraft {
namespace {

// The teams that exchange data in a pass, each with one of its exchanges after another.
class TeamsOfPasses {
public:
  TeamsOfPasses(const TaskGraph& graph, const ExchangePlan& plan) : plan_(plan), teams_(plan.passes.size()) {
    std::set<std::pair<std::int32_t, std::int32_t>> known; // pass, device
    for (const Work& work : graph.works) {
      if (work.pass >= 0 && known.emplace(work.pass, work.device).second) {
        add(work);
      }
    }
  }

  /// Of a pass, ascending: those of all its devices.
  const std::set<std::int32_t>& of(std::size_t pass) const { return teams_[pass]; }

  /// Whether the devices of a team have unlike passes, so that they wait for each other.
  bool wait_for_peers(std::int32_t team) const { return unlike_.contains(team); }

private:
  void add(const Work& work) {
    const auto& of_device = plan_.teams_of.at({work.stage, work.device});
    for (const PassExchange& exchange : plan_.passes[work.pass].pass->exchanges) {
      const std::int32_t team = of_device[AxisGroups::place_of(exchange.axis)];
      if (team >= 0 && plan_.teams[team].team->group.ways != nullptr) {
        teams_[work.pass].insert(team);
        const TimedPass& pass = plan_.passes[work.pass];
        const auto [first, is_new] = first_.try_emplace({team, pass.kind}, pass.pass);
        if (first->second != pass.pass) {
          unlike_.insert(team);
        }
      }
    }
  }

  const ExchangePlan& plan_;
  std::vector<std::set<std::int32_t>> teams_;                      // [pass]
  std::map<std::pair<std::int32_t, int>, const GroupPass*> first_; // [team, kind of pass]: of its first device
  std::set<std::int32_t> unlike_;
};

// The teams whose exchanges cross a link that something else crosses, be it another team or a transfer.
class SharingTeams {
public:
  SharingTeams(const TaskGraph& graph, const ExchangePlan& plan, const TeamsOfPasses& teams, const Platform& platform,
               const Fold* fold)
      : plan_(plan), teams_(teams), users_(platform.links.size()) {
    constexpr double kBytesOfNorm = 8; // at most, of the one number that clipping adds up: they hold nothing up
    for (const Work& work : graph.works) {
      if (!work.transfers() || work.bytes < 1 || (work.kind == TaskKind::all_reduce && work.bytes <= kBytesOfNorm)) {
        continue;
      }
      for (const LinkId link : graph.legs[work.leg].links) {
        users_[link].several = true;
      }
    }
    const auto own = [fold](LinkId link) { return fold != nullptr ? fold->link[link] : link; };
    for_each_leg([&](const GraphTeam& team, const Leg& leg) {
      for (const LinkId link : leg.links) {
        User& user = users_[own(link)];
        user.several = user.several || (user.group >= 0 && user.group != team.group);
        user.group = team.group;
      }
      for (const LinkId link : fold != nullptr ? fold->meetings(leg, team.team->count) : std::vector<LinkId>{}) {
        users_[link].several = true; // by teams that one stands for
      }
    });
    for_each_leg([&](const GraphTeam& team, const Leg& leg) {
      if (std::any_of(leg.links.begin(), leg.links.end(), [&](LinkId link) {
            return users_[own(link)].several && !std::isinf(platform.links[link].bandwidth.value);
          })) {
        sharing_.insert(team.group);
      }
    });
  }

  bool has(std::int32_t team) const { return sharing_.contains(plan_.teams[team].group); }

private:
  struct User {
    std::int32_t group = -1;
    bool several = false;
  };

  // Calls visit(team, leg) for each flow of a team's exchanges.
  template <class Visit> void for_each_leg(const Visit& visit) const {
    for (std::size_t pass = 0; pass < plan_.passes.size(); ++pass) {
      for (const std::int32_t number : teams_.of(pass)) {
        const GraphTeam& team = plan_.teams[number];
        for (const PassExchange& exchange : plan_.passes[pass].pass->exchanges) {
          if (exchange.axis != team.team->axis) {
            continue;
          }
          for (const CoupledFlow& flow : flows_of(team, exchange)) {
            visit(team, flow.leg);
          }
        }
      }
    }
  }

  const ExchangePlan& plan_;
  const TeamsOfPasses& teams_;
  std::vector<User> users_;        // [link]
  std::set<std::int32_t> sharing_; // groups of devices
};

// [pass]: whether its exchanges become tasks: where links are shared, or devices wait for peers that compute longer.
// Passes whose devices meet are divided together or not at all.
std::vector<char> passes_to_divide(const ExchangePlan& plan, const TeamsOfPasses& teams, const SharingTeams* sharing) {
  std::vector<char> divides(plan.passes.size(), 0);
  std::vector<char> met(plan.teams.size(), 0);
  for (std::size_t team = 0; team < met.size(); ++team) {
    const auto number = static_cast<std::int32_t>(team);
    met[team] = sharing == nullptr || sharing->has(number) || teams.wait_for_peers(number) ? 1 : 0;
  }
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t pass = 0; pass < divides.size(); ++pass) {
      const std::set<std::int32_t>& own = teams.of(pass);
      if (divides[pass] != 0 ||
          std::none_of(own.begin(), own.end(), [&](std::int32_t team) { return met[team] != 0; })) {
        continue;
      }
      divides[pass] = 1;
      grows = true;
      for (const std::int32_t team : own) {
        met[team] = 1;
      }
    }
  }
  return divides;
}

// Writes the graph anew. Tasks that followed one another and had one work become a block for each step of it.
class Expansion {
public:
  /// `ranks`: the legs of flows where ranks of tensor groups are folded; empty: they are not.
  Expansion(TaskGraph graph, const ExchangePlan& plan, std::vector<char> divides, const Fold* fold, RankLegs ranks)
      : made_(graph), old_(std::move(graph)), plan_(plan), divides_(std::move(divides)), fold_(fold),
        ranks_(std::move(ranks)), first_(old_.work.size()), last_(old_.work.size()), steps_(old_.work.size(), -1) {}

  TaskGraph run() {
    clear_tasks();
    for (TaskId task = 0, tasks = old_.tasks(); task < tasks;) {
      const std::int32_t* const work = old_.work.data();
      const auto end = static_cast<TaskId>(end_of_equals(work + task, work + tasks) - work);
      const Work& same = old_.works[work[task]];
      same.pass >= 0 && divides_[same.pass] != 0 ? divide(task, end) : copy(task, end);
      task = end;
    }
    write_edges();
    write_ties();
    write_programs();
    return std::move(made_);
  }

private:
  static constexpr std::int32_t kNone = -1;

  // Of all that is written anew.
  void clear_tasks() {
    for (auto* of_tasks : {&made_.work, &made_.micro_batch, &made_.waits, &made_.successor_begin, &made_.successors,
                           &made_.program_begin, &made_.program, &made_.ahead, &made_.tie_begin}) {
      of_tasks->clear();
    }
    made_.ties.clear();
  }

  // Adds a task for each of [begin, end), with its micro-batch; returns the first.
  TaskId add(std::int32_t work, TaskId begin, TaskId end) {
    const auto first = static_cast<TaskId>(made_.work.size());
    made_.work.resize(first + (end - begin), work);
    made_.micro_batch.insert(made_.micro_batch.end(), old_.micro_batch.begin() + begin, old_.micro_batch.begin() + end);
    if (!old_.ahead.empty()) {
      made_.ahead.insert(made_.ahead.end(), old_.ahead.begin() + begin, old_.ahead.begin() + end);
    }
    return first;
  }

  TaskId add(const Work& work, TaskId begin, TaskId end) {
    made_.works.push_back(work);
    return add(static_cast<std::int32_t>(made_.works.size()) - 1, begin, end);
  }

  void copy(TaskId begin, TaskId end) {
    const TaskId block = add(old_.work[begin], begin, end);
    for (TaskId task = begin; task < end; ++task) {
      first_[task] = last_[task] = block + (task - begin);
    }
  }

  // Tasks [begin, end) of one work, step by step.
  void divide(TaskId begin, TaskId end) {
    const Work& whole = old_.works[old_.work[begin]];
    const PassPart made(plan_.passes[whole.pass], whole.part_begin, whole.part_end);
    const GroupPass& part = *made;
    const auto steps = static_cast<std::int32_t>(blocks_.size());
    Work step = whole;
    step.handing_over /= 1 - whole.exchanging;
    step.exchanging = step.exchanging_latency = step.exchanging_hidden = 0;
    step.group_leg = step.steps = kNone;
    for (std::size_t i = 0; i < part.computations.size(); ++i) {
      step.seconds = part.computations[i].seconds;
      step.acquire = i == 0 ? whole.acquire : Bytes{0};
      step.release = i + 1 == part.computations.size() ? whole.release : Bytes{0};
      step.goes_on = i > 0;
      blocks_.push_back(add(step, begin, end));
    }
    for (TaskId task = begin; task < end; ++task) {
      first_[task] = blocks_[steps] + (task - begin);
      last_[task] = blocks_.back() + (task - begin);
      steps_[task] = steps;
    }
    meet(begin, end, made, steps);
  }

  // Joins the steps of tasks [begin, end) by exchanges, which a team makes when the first of its devices is divided.
  // The devices of a team run the same micro-batches one after another.
  void meet(TaskId begin, TaskId end, const PassPart& made, std::int32_t steps) {
    const Work& whole = old_.works[old_.work[begin]];
    const GroupPass& part = *made;
    const auto& of_device = plan_.teams_of.at({whole.stage, whole.device});
    std::vector<Met> met;
    for (std::size_t i = 0; i < part.exchanges.size(); ++i) {
      const std::int32_t team = of_device[AxisGroups::place_of(part.exchanges[i].axis)];
      const auto [at, is_new] =
          begun_.try_emplace({team, plan_.passes[whole.pass].kind, made.first() + i, old_.micro_batch[begin]}, Met{});
      if (is_new) {
        at->second = make_exchange(begin, end, whole, part.exchanges[i], team);
      }
      if (i > 0 && (is_new || at->second.team != met.back().team)) { // exchanges follow one another
        follow_all(met.back().last, at->second.first, end - begin);
      }
      follow_all({blocks_[steps + part.exchanges[i].after]}, at->second.first, end - begin);
      met.push_back(at->second);
    }
    std::size_t known = 0; // exchanges that have ended before
    for (std::size_t i = 0; i < part.computations.size(); ++i) {
      const std::size_t needs = part.computations[i].needs;
      if (needs > known) {
        follow_all(met[needs - 1].last, {blocks_[steps + i]}, end - begin);
        known = needs;
      }
    }
  }

  // Each of some blocks after all of others.
  void follow_all(const std::vector<TaskId>& from, const std::vector<TaskId>& to, TaskId count) {
    for (const TaskId before : from) {
      for (const TaskId after : to) {
        for (TaskId i = 0; i < count; ++i) {
          edges_.push_back({before + i, after + i});
        }
      }
    }
  }

  // The blocks of the flows with which an exchange of a team begins, and of those with which it ends.
  struct Met {
    std::vector<TaskId> first, last;
    std::int32_t team = kNone;
  };

  // An exchange of tasks [begin, end), a block for each flow.
  Met make_exchange(TaskId begin, TaskId end, const Work& whole, const PassExchange& exchange, std::int32_t number) {
    const GraphTeam& team = plan_.teams[number];
    Met met{.team = number};
    std::vector<TaskId> before; // flows that the next ones follow
    for (const CoupledFlow& flow : flows_of(team, exchange)) {
      Work work = work_of_flow(TaskKind::exchange, team.device, whole.stage, leg_of(flow.leg, team), team.members, flow,
                               exchange.bytes);
      work.axis = exchange.axis;
      work.slows = !exchange.counted;
      const TaskId block = add(work, begin, end);
      if (!flow.beside) {
        before = std::exchange(met.last, {});
      }
      follow_all(before, {block}, end - begin);
      met.last.push_back(block);
      if (before.empty()) {
        met.first.push_back(block);
      }
    }
    return met;
  }

  std::int32_t leg_of(const Leg& leg, const GraphTeam& team) {
    const auto [known, is_new] = legs_.try_emplace(&leg, static_cast<std::int32_t>(made_.legs.size()));
    if (is_new) {
      const auto of_ranks = ranks_.find(&leg);
      made_.legs.push_back(of_ranks != ranks_.end() ? of_ranks->second
                           : fold_ != nullptr       ? fold_->leg(leg, team.team->count)
                                                    : leg);
    }
    return known->second;
  }

  void write_edges() {
    for (TaskId task = 0; task < old_.tasks(); ++task) {
      for (const TaskId next : old_.successors_of(task)) {
        edges_.push_back({last_[task], first_[next]});
      }
    }
    add_edges(made_, edges_);
  }

  void write_ties() {
    std::vector<std::pair<TaskId, Tie>> ties;
    for (TaskId task = 0; task < old_.tasks(); ++task) {
      for (const Tie& tie : old_.ties_of(task)) {
        ties.emplace_back(tie.from_start ? first_[task] : last_[task],
                          Tie{first_[tie.to], tie.iterations, tie.from_start});
      }
    }
    set_ties(made_, std::move(ties));
  }

  void write_programs() {
    for (std::size_t device = 0; device < made_.devices.size(); ++device) {
      made_.program_begin.push_back(static_cast<std::int32_t>(made_.program.size()));
      for (const TaskId task : old_.program_of(device)) {
        made_.program.push_back(first_[task]);
        for (std::int32_t at = steps_[task]; at != kNone && made_.program.back() != last_[task];) {
          made_.program.push_back(blocks_[++at] + (first_[task] - blocks_[steps_[task]]));
        }
      }
    }
    made_.program_begin.push_back(static_cast<std::int32_t>(made_.program.size()));
  }

  TaskGraph made_, old_;
  const ExchangePlan& plan_;
  std::vector<char> divides_; // [pass]
  const Fold* fold_;          // null: nothing is folded
  RankLegs ranks_;
  std::vector<TaskId> first_, last_; // [old task]: its first and last step
  std::vector<std::int32_t> steps_;  // [old task]: where its steps' blocks begin in blocks_
  std::vector<TaskId> blocks_;       // the first task of each block
  // Team, kind of pass, number of the exchange in it, first micro-batch.
  std::map<std::tuple<std::int32_t, int, std::size_t, std::int32_t>, Met> begun_;
  std::map<const Leg*, std::int32_t> legs_; // known legs of flows
  std::vector<Edge> edges_;
};

// As many as Expansion makes: the steps of each part of a pass, and the flows of an exchange once for all devices of
// its team.
double tasks_with_steps(const TaskGraph& graph, const ExchangePlan& plan, const std::vector<char>& divides) {
  const std::vector<std::int32_t> count = graph.tasks_per_work();
  double tasks = 0;
  for (std::size_t index = 0; index < count.size(); ++index) {
    const Work& work = graph.works[index];
    double steps = 1;
    if (work.pass >= 0 && divides[work.pass] != 0 && count[index] > 0) {
      const PassPart part(plan.passes[work.pass], work.part_begin, work.part_end);
      const auto& teams = plan.teams_of.at({work.stage, work.device});
      steps = static_cast<double>((*part).computations.size());
      for (const PassExchange& exchange : (*part).exchanges) {
        const GraphTeam& team = plan.teams[teams[AxisGroups::place_of(exchange.axis)]];
        steps += static_cast<double>(flows_of(team, exchange).size()) /
                 static_cast<double>(graph.members[team.members].size());
      }
    }
    tasks += steps * count[index];
  }
  return std::round(tasks);
}

} // namespace

TaskGraph expand_exchanges(TaskGraph graph, ExchangePlan plan, const TaskGraphRequest& request) {
  const Fold* const fold = request.cost.fold.get();
  const TeamsOfPasses teams(graph, plan);
  std::optional<SharingTeams> sharing;
  if (request.exchanges == ExchangeTasks::where_shared) {
    sharing.emplace(graph, plan, teams, request.router.platform(), fold);
  }
  std::vector<char> divides = passes_to_divide(plan, teams, sharing ? &*sharing : nullptr);
  if (std::count(divides.begin(), divides.end(), 1) == 0) {
    return graph;
  }
  RankLegs ranks;
  if (fold != nullptr) {
    ranks = fold_ranks(graph, plan, request.router.platform(), *fold).value_or(RankLegs{});
  }
  if (const double tasks = tasks_with_steps(graph, plan, divides); tasks > request.most_tasks) {
    graph.undivided = tasks;
    return graph;
  }
  return Expansion(std::move(graph), plan, std::move(divides), fold, std::move(ranks)).run();
}

} // namespace stagecraft
