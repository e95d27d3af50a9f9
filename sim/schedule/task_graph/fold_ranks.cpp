// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/fold_ranks.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "sim/schedule/task_graph/add_edges.hpp"
#include "sim/schedule/task_graph/pass_part.hpp"

namespace stagecraft {
namespace {

constexpr std::int32_t kNone = -1;

// What must be the same of two works that are folded, but for their devices, legs and members.
auto figures_of(const Work& work) {
  return std::tuple(work.kind, work.node, work.stage, work.to_stage, work.axis, work.seconds.value, work.latency.value,
                    work.bytes, work.processors, work.slows, work.exchanging, work.exchanging_hidden, work.at_rest,
                    work.handing_over, work.pass, work.steps, work.part_begin, work.part_end, work.acquire.value,
                    work.release.value);
}

template <class T> void sort_each_once(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

class RankFolding {
public:
  RankFolding(TaskGraph& graph, ExchangePlan& plan, const Platform& platform, const Fold& fold)
      : graph_(graph), plan_(plan), platform_(platform), fold_(fold) {}

  std::optional<RankLegs> run() {
    if (!choose_devices() || !match_tasks() || !wait_alike() || !match_links() || !cross_alike()) {
      return std::nullopt;
    }
    keep_devices();
    keep_tasks();
    return keep_links();
  }

private:
  // The first of each tensor group; whether that leaves any out.
  bool choose_devices() {
    rank_.resize(graph_.devices.size());
    std::iota(rank_.begin(), rank_.end(), 0);
    std::vector<char> known(rank_.size(), 0);
    bool any = false;
    for (const auto& [place, teams] : plan_.teams_of) {
      const std::int32_t device = place.second, team = teams[AxisGroups::place_of(Axis::tensor)];
      const std::int32_t first = team < 0 ? device : graph_.members[plan_.teams[team].members].front();
      if (known[device] != 0 && rank_[device] != first) {
        return false; // it is in other groups in other stages
      }
      known[device] = 1;
      rank_[device] = first;
      any = any || first != device;
    }
    const bool simple = !graph_.folded.devices.empty() &&
                        std::all_of(rank_.begin(), rank_.end(), [&](std::int32_t one) { return rank_[one] == one; });
    return any && simple;
  }

  // The devices of TaskGraph::members; none of a number below 0.
  std::span<const std::int32_t> members_of(std::int32_t members) const {
    return members < 0 ? std::span<const std::int32_t>() : graph_.members[members];
  }

  // Whether several ranks of one group take part, or none: then it is a task of all of them.
  bool is_common(const Work& work) const {
    if (work.device < 0) {
      return true;
    }
    std::set<std::int32_t> ranks;
    for (const std::int32_t member : members_of(work.members)) {
      if (!ranks.insert(rank_[member]).second) {
        return true;
      }
    }
    return false;
  }

  std::vector<std::int32_t> ranks_of(std::int32_t members) const {
    std::vector<std::int32_t> ranks;
    for (const std::int32_t member : members_of(members)) {
      ranks.push_back(rank_[member]);
    }
    sort_each_once(ranks);
    return ranks;
  }

  // Each task of a device left out by that of its rank which is as many tasks behind the first.
  bool match_tasks() {
    std::vector<std::vector<TaskId>> own(graph_.devices.size());
    task_.resize(graph_.work.size());
    std::iota(task_.begin(), task_.end(), 0);
    std::vector<char> common;
    for (const Work& work : graph_.works) {
      common.push_back(is_common(work) ? 1 : 0);
    }
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      if (common[graph_.work[task]] == 0) {
        own[graph_.works[graph_.work[task]].device].push_back(task);
      }
    }
    work_.assign(graph_.works.size(), kNone);
    for (std::size_t device = 0; device < own.size(); ++device) {
      const std::vector<TaskId>& of_rank = own[rank_[device]];
      if (of_rank.size() != own[device].size()) {
        return false;
      }
      for (std::size_t i = 0; i < of_rank.size(); ++i) {
        if (!match(own[device][i], of_rank[i])) {
          return false;
        }
      }
    }
    const bool are_common = std::all_of(graph_.folded.alone.begin(), graph_.folded.alone.end(),
                                        [&](const auto& one) { return work_[one.first] == kNone; });
    return are_common && are_alike();
  }

  bool match(TaskId task, TaskId by) {
    const Work &work = graph_.works[graph_.work[task]], &of_rank = graph_.works[graph_.work[by]];
    std::int32_t& known = work_[graph_.work[task]];
    if (known == kNone && (figures_of(work) != figures_of(of_rank) || (work.leg < 0) != (of_rank.leg < 0) ||
                           ranks_of(work.members) != ranks_of(of_rank.members))) {
      return false;
    }
    if ((known != kNone && known != graph_.work[by]) || graph_.micro_batch[task] != graph_.micro_batch[by] ||
        (!graph_.ahead.empty() && graph_.ahead[task] != graph_.ahead[by])) {
      return false;
    }
    known = graph_.work[by];
    task_[task] = by;
    return share_channels(work, of_rank);
  }

  // What a device sends over one channel, its rank does, too.
  bool share_channels(const Work& work, const Work& of_rank) {
    const auto there = channel_.try_emplace({work.device, work.channel}, of_rank.channel).first;
    const auto back = channel_back_.try_emplace({work.device, of_rank.channel}, work.channel).first;
    return there->second == of_rank.channel && back->second == work.channel;
  }

  // Whether devices left out are of the same type, run the same program, hold as much and take part in the same.
  bool are_alike() const {
    std::vector<std::set<std::int32_t>> takes_part(graph_.devices.size()); // [device]: works that stay
    for (std::size_t work = 0; work < graph_.works.size(); ++work) {
      const std::int32_t by = work_[work];
      for (const std::int32_t member : members_of(graph_.works[work].members)) {
        takes_part[member].insert(by == kNone ? static_cast<std::int32_t>(work) : by);
      }
    }
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      const auto rank = static_cast<std::size_t>(rank_[device]);
      const auto program = graph_.program_of(device), of_rank = graph_.program_of(rank);
      const FixedMemory &memory = graph_.fixed_memory[device], &of_rank_memory = graph_.fixed_memory[rank];
      if (!std::equal(program.begin(), program.end(), of_rank.begin(), of_rank.end(),
                      [&](TaskId one, TaskId other) { return task_[one] == task_[other]; }) ||
          platform_.devices[graph_.devices[device]].type != platform_.devices[graph_.devices[rank]].type ||
          memory.total().value != of_rank_memory.total().value ||
          memory.communicators.value != of_rank_memory.communicators.value ||
          graph_.folded.count[device] != graph_.folded.count[rank] || takes_part[device] != takes_part[rank]) {
        return false;
      }
    }
    return true;
  }

  // What a task waits for in its own iteration, and in earlier ones: the task, iterations, and whether for its start.
  struct Before {
    std::vector<TaskId> own;
    std::vector<std::tuple<TaskId, std::int32_t, bool>> earlier;
    auto operator<=>(const Before&) const = default;
  };

  // What each task waits for, as tasks that stay. Whether those left out wait for the same.
  bool wait_alike() {
    std::vector<Before> before(graph_.work.size());
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      for (const TaskId next : graph_.successors_of(task)) {
        before[next].own.push_back(task);
      }
      for (const Tie& tie : graph_.ties_of(task)) {
        before[tie.to].earlier.emplace_back(task, tie.iterations, tie.from_start);
      }
    }
    match_joins(before);
    for (const Before& one : before) {
      before_.push_back(that_stay(one));
    }
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      if (before_[task] != before_[task_[task]]) {
        return false;
      }
    }
    return true;
  }

  Before that_stay(Before before) const {
    for (TaskId& task : before.own) {
      task = task_[task];
    }
    for (auto& [task, iterations, from_start] : before.earlier) {
      task = task_[task];
    }
    sort_each_once(before.own);
    sort_each_once(before.earlier);
    return before;
  }

  static bool is_join(const Work& work) { return !work.computes() && !work.transfers() && !work.loads(); }

  // A join takes no time: those that wait for the same end at the same time. They may wait for each other.
  void match_joins(const std::vector<Before>& before) {
    for (bool changed = true; changed;) {
      changed = false;
      std::map<std::pair<std::int32_t, Before>, TaskId> known;
      for (TaskId task = 0; task < graph_.tasks(); ++task) {
        if (is_join(graph_.works[graph_.work[task]])) {
          const auto key = std::pair(graph_.micro_batch[task], that_stay(before[task]));
          const TaskId by = known.try_emplace(key, task).first->second;
          changed = changed || task_[task] != by;
          task_[task] = by;
        }
      }
    }
  }

  // Calls visit(team, leg) for each flow of each team's exchanges.
  template <class Visit> void for_each_flow(const Visit& visit) const {
    std::set<std::tuple<const GroupPass*, std::int32_t>> seen;
    for (const Work& work : graph_.works) {
      if (work.pass < 0) {
        continue;
      }
      const GroupPass* const pass = plan_.passes[work.pass].pass;
      const auto& teams = plan_.teams_of.at({work.stage, work.device});
      for (const Axis axis : kPassAxes) {
        const std::int32_t team = teams[AxisGroups::place_of(axis)];
        if (team < 0 || plan_.teams[team].team->group.ways == nullptr || !seen.emplace(pass, team).second) {
          continue;
        }
        for (const PassExchange& exchange : pass->exchanges) {
          if (exchange.axis == axis) {
            for (const CoupledFlow& flow : flows_of(plan_.teams[team], exchange)) {
              visit(team, flow.leg);
            }
          }
        }
      }
    }
  }

  std::int32_t link_of(std::int32_t link) {
    while (alike_[link] != link) {
      link = alike_[link] = alike_[alike_[link]];
    }
    return link;
  }

  bool join(const std::vector<LinkId>& one, const std::vector<LinkId>& other) {
    if (one.size() != other.size()) {
      return false;
    }
    for (std::size_t i = 0; i < one.size(); ++i) {
      const std::int32_t a = link_of(one[i]), b = link_of(other[i]);
      alike_[std::max(a, b)] = std::min(a, b);
    }
    return true;
  }

  // Links are alike that transfers of alike tasks, or flows of alike teams, cross in the same place.
  bool match_links() {
    alike_.resize(platform_.links.size());
    std::iota(alike_.begin(), alike_.end(), 0);
    for (std::size_t work = 0; work < work_.size(); ++work) {
      const std::int32_t by = work_[work];
      if (by != kNone && graph_.works[work].leg >= 0 &&
          !join(graph_.legs[graph_.works[work].leg].links, graph_.legs[graph_.works[by].leg].links)) {
        return false;
      }
    }
    return match_teams();
  }

  // Teams by the ranks that take part; their flows come in the same order.
  bool match_teams() {
    std::map<std::tuple<Axis, int, std::vector<std::int32_t>>, std::int32_t> known;
    team_.assign(plan_.teams.size(), kNone);
    for (const auto& [place, teams] : plan_.teams_of) {
      for (const std::int32_t team : teams) {
        if (team >= 0 && team_[team] == kNone) {
          const auto key = std::tuple(plan_.teams[team].team->axis, place.first, ranks_of(plan_.teams[team].members));
          team_[team] = known.try_emplace(key, team).first->second;
        }
      }
    }
    std::map<std::int32_t, std::vector<const Leg*>> flows;
    for_each_flow([&](std::int32_t team, const Leg& leg) {
      std::vector<const Leg*>& own = flows[team];
      if (std::find(own.begin(), own.end(), &leg) == own.end()) {
        own.push_back(&leg);
      }
    });
    for (const auto& [team, own] : flows) {
      const std::vector<const Leg*>& kept = flows[team_[team]];
      if (own.size() != kept.size()) {
        return false;
      }
      for (std::size_t i = 0; i < own.size(); ++i) {
        flows_.emplace_back(kept[i], fold_.leg(*own[i], plan_.teams[team].team->count));
        if (own[i]->latency.value != kept[i]->latency.value || own[i]->bandwidth.value != kept[i]->bandwidth.value ||
            !join(flows_.back().second.links, fold_.leg(*kept[i], plan_.teams[team_[team]].team->count).links)) {
          return false;
        }
      }
    }
    return true;
  }

  // How often links are crossed by all transfers of a class together: of a class of links each as often.
  using Crossings = std::map<LinkId, int>;

  bool cross_alike() {
    for (std::size_t work = 0; work < work_.size(); ++work) {
      if (work_[work] != kNone && graph_.works[work].leg >= 0) {
        count(graph_.legs[graph_.works[work].leg], of_works_[work_[work]]);
      }
    }
    for (const auto& [kept, leg] : flows_) {
      count(leg, of_flows_[kept]);
    }
    std::map<std::int32_t, std::vector<LinkId>> classes;
    for (std::size_t link = 0; link < alike_.size(); ++link) {
      const std::int32_t first = link_of(static_cast<std::int32_t>(link));
      if (platform_.links[link].bandwidth.value != platform_.links[first].bandwidth.value) {
        return false;
      }
      classes[first].push_back(static_cast<LinkId>(link));
    }
    const auto is_equal = [&](const Crossings& crossings) {
      return std::all_of(crossings.begin(), crossings.end(), [&](const auto& one) {
        const std::vector<LinkId>& alike = classes.at(link_of(one.first));
        return std::all_of(alike.begin(), alike.end(), [&](LinkId link) {
          const auto other = crossings.find(link);
          return other != crossings.end() && other->second == one.second;
        });
      });
    };
    for (std::size_t work = 0; work < work_.size(); ++work) { // what all take part in crosses all links of a class
      Crossings crossings;
      if (work_[work] == kNone && graph_.works[work].leg >= 0) {
        count(graph_.legs[graph_.works[work].leg], crossings);
        if (!is_equal(crossings)) {
          return false;
        }
        of_works_[static_cast<std::int32_t>(work)] = std::move(crossings);
      }
    }
    const auto are_equal = [&](const auto& all) {
      return std::all_of(all.begin(), all.end(), [&](const auto& one) { return is_equal(one.second); });
    };
    return are_equal(of_works_) && are_equal(of_flows_);
  }

  static void count(const Leg& leg, Crossings& crossings) {
    for (const LinkId link : leg.links) {
      ++crossings[link];
    }
  }

  Leg kept_leg(const Leg& one, const Crossings& crossings) {
    Leg leg{{}, one.latency, one.bandwidth};
    for (const auto& [link, times] : crossings) {
      if (link_of(link) == link) {
        leg.links.insert(leg.links.end(), static_cast<std::size_t>(times), link);
      }
    }
    return leg;
  }

  void keep_devices() {
    std::vector<std::int32_t> place(rank_.size(), kNone), count;
    std::vector<DeviceId> devices;
    std::vector<FixedMemory> memory;
    for (std::size_t device = 0; device < rank_.size(); ++device) {
      if (rank_[device] == static_cast<std::int32_t>(device)) {
        place[device] = static_cast<std::int32_t>(devices.size());
        devices.push_back(graph_.devices[device]);
        memory.push_back(graph_.fixed_memory[device]);
        count.push_back(0);
      }
    }
    for (std::size_t device = 0; device < rank_.size(); ++device) {
      place[device] = place[rank_[device]];
      count[place[device]] += graph_.folded.count[device];
    }
    for (std::int32_t& simulated : graph_.folded.simulated) {
      simulated = place[simulated];
    }
    for (std::vector<std::int32_t>& members : graph_.members) {
      for (std::int32_t& member : members) {
        member = place[member];
      }
      sort_each_once(members);
    }
    for (Work& work : graph_.works) {
      work.device = work.device < 0 ? work.device : place[work.device];
    }
    decltype(plan_.teams_of) teams_of;
    for (const auto& [at, teams] : plan_.teams_of) {
      if (rank_[at.second] == at.second) {
        teams_of[{at.first, place[at.second]}] = teams;
      }
    }
    for (GraphTeam& team : plan_.teams) {
      team.device = place[team.device];
    }
    plan_.teams_of = std::move(teams_of);
    graph_.devices = std::move(devices);
    graph_.fixed_memory = std::move(memory);
    graph_.folded.count = std::move(count);
  }

  void keep_tasks() {
    std::vector<TaskId> place(task_.size(), kNone);
    std::vector<std::int32_t> work, micro_batch, ahead;
    for (TaskId task = 0; task < static_cast<TaskId>(task_.size()); ++task) {
      if (task_[task] == task) {
        place[task] = static_cast<TaskId>(work.size());
        work.push_back(graph_.work[task]);
        micro_batch.push_back(graph_.micro_batch[task]);
        if (!graph_.ahead.empty()) {
          ahead.push_back(graph_.ahead[task]);
        }
      }
    }
    std::vector<Edge> edges;
    std::vector<std::pair<TaskId, Tie>> ties;
    for (TaskId task = 0; task < static_cast<TaskId>(task_.size()); ++task) {
      if (place[task] == kNone) {
        continue;
      }
      for (const TaskId before : before_[task].own) {
        edges.push_back({place[before], place[task]});
      }
      for (const auto& [before, iterations, from_start] : before_[task].earlier) {
        ties.emplace_back(place[before], Tie{place[task], iterations, from_start});
      }
    }
    std::vector<std::int32_t> program_begin = {0};
    std::vector<TaskId> program;
    for (std::size_t device = 0; device < rank_.size(); ++device) {
      if (rank_[device] == static_cast<std::int32_t>(device)) {
        for (const TaskId task : graph_.program_of(device)) {
          program.push_back(place[task]);
        }
        program_begin.push_back(static_cast<std::int32_t>(program.size()));
      }
    }
    graph_.joins = static_cast<int>(
        std::count_if(work.begin(), work.end(), [&](std::int32_t one) { return is_join(graph_.works[one]); }));
    graph_.work = std::move(work);
    graph_.micro_batch = std::move(micro_batch);
    graph_.ahead = std::move(ahead);
    graph_.program = std::move(program);
    graph_.program_begin = std::move(program_begin);
    graph_.waits.clear();
    graph_.successor_begin.clear();
    graph_.successors.clear();
    graph_.tie_begin.clear();
    graph_.ties.clear();
    add_edges(graph_, edges);
    set_ties(graph_, std::move(ties));
  }

  RankLegs keep_links() {
    for (const auto& [work, crossings] : of_works_) {
      Work& one = graph_.works[work];
      graph_.legs.push_back(kept_leg(graph_.legs[one.leg], crossings));
      one.leg = static_cast<std::int32_t>(graph_.legs.size()) - 1;
    }
    RankLegs legs;
    for (const auto& [kept, crossings] : of_flows_) {
      legs[kept] = kept_leg(*kept, crossings);
    }
    for (LinkId& link : graph_.folded.link) {
      link = link_of(link);
    }
    return legs;
  }

  TaskGraph& graph_;
  ExchangePlan& plan_;
  const Platform& platform_;
  const Fold& fold_;
  std::vector<std::int32_t> rank_; // [device]: the one that stays for it
  std::vector<TaskId> task_;       // [task]: the same
  std::vector<std::int32_t> work_; // [work]: the same; kNone: a task of all ranks, or of none
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> channel_, channel_back_; // device, channel
  std::vector<std::int32_t> team_;                                                       // [team]: the same
  std::vector<Before> before_;                                                           // [task]: of those that stay
  std::vector<std::int32_t> alike_;               // [LinkId]: one that is alike; the first is its own
  std::vector<std::pair<const Leg*, Leg>> flows_; // of all teams: the flow that stays, and the own links
  std::map<std::int32_t, Crossings> of_works_;    // by the work that stays
  std::map<const Leg*, Crossings> of_flows_;      // by the leg that stays
};

} // namespace

std::optional<RankLegs> fold_ranks(TaskGraph& graph, ExchangePlan& plan, const Platform& platform, const Fold& fold) {
  return RankFolding(graph, plan, platform, fold).run();
}

} // namespace stagecraft
