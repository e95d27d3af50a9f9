// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/expand_exchanges.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/end_of_equals.hpp"
#include "sim/base/improves.hpp"
#include "sim/collective/group_ways.hpp"
#include "sim/schedule/task_graph/add_edges.hpp"
#include "sim/schedule/task_graph/work_of_flow.hpp"

namespace stagecraft {
namespace {

// The flows that carry out an exchange.
const Flows& flows_of(const TimedPass& pass, const PassExchange& exchange) {
  return pass.group->group.ways->flows(exchange.kind, exchange.bytes);
}

// Who exchanges data: the group of a device, however many stages it runs, one after the other.
using Members = std::pair<std::int32_t, int>; // the device in whose name it sends, and how many there are

Members members_of(const TimedPass& pass) { return {pass.device, pass.group->group.ranks}; }

// Calls visit(members, leg, how many groups are alike) for each flow of a group's exchanges.
template <class Visit>
void for_each_leg(const TaskGraph& graph, std::span<const TimedPass> passes, const Visit& visit) {
  for (const TimedPass& pass : passes) {
    if (pass.group->group.ways == nullptr) {
      continue;
    }
    for (const PassExchange& exchange : pass.pass->exchanges) {
      for (const CoupledFlow& flow : flows_of(pass, exchange)) {
        visit(members_of(pass), flow.leg, graph.stands_for(static_cast<std::size_t>(pass.device)));
      }
    }
  }
}

// The groups whose exchanges cross a link that something else crosses, be it another group or a transfer.
class SharingGroups {
public:
  SharingGroups(const TaskGraph& graph, std::span<const TimedPass> passes, const Platform& platform, const Fold* fold)
      : users_(platform.links.size()) {
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
    for_each_leg(graph, passes, [&](const Members& members, const Leg& leg, std::int32_t count) {
      for (const LinkId link : leg.links) {
        User& user = users_[own(link)];
        user.several = user.several || (user.members && *user.members != members);
        user.members = members;
      }
      for (const LinkId link : fold != nullptr ? fold->meetings(leg, count) : std::vector<LinkId>{}) {
        users_[link].several = true; // by groups that one stands for
      }
    });
    for_each_leg(graph, passes, [&](const Members& members, const Leg& leg, std::int32_t) {
      if (std::any_of(leg.links.begin(), leg.links.end(), [&](LinkId link) {
            return users_[own(link)].several && !std::isinf(platform.links[link].bandwidth.value);
          })) {
        sharing_.insert(members);
      }
    });
  }

  bool has(const Members& members) const { return sharing_.contains(members); }

private:
  struct User {
    std::optional<Members> members = std::nullopt;
    bool several = false;
  };
  std::vector<User> users_; // [link]
  std::set<Members> sharing_;
};

// What a pass does from one fraction of its time to another. These lie between operators, where no exchange is under
// way; an exchange belongs to the part in which it begins.
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

// Writes the graph anew. Tasks that followed one another and had one work become a block for each step of it.
class Expansion {
public:
  Expansion(TaskGraph graph, std::span<const TimedPass> passes, std::vector<char> expands, const Fold* fold)
      : made_(graph), old_(std::move(graph)), passes_(passes), expands_(std::move(expands)), fold_(fold),
        first_(old_.work.size()), last_(old_.work.size()), steps_(old_.work.size(), -1), begun_(passes.size()) {}

  TaskGraph run() {
    clear_tasks();
    for (TaskId task = 0, tasks = old_.tasks(); task < tasks;) {
      const std::int32_t* const work = old_.work.data();
      const auto end = static_cast<TaskId>(end_of_equals(work + task, work + tasks) - work);
      const Work& same = old_.works[work[task]];
      same.pass >= 0 && expands_[same.pass] != 0 ? divide(task, end) : copy(task, end);
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
    const PassPart made(passes_[whole.pass], whole.part_begin, whole.part_end);
    const GroupPass& part = *made;
    const auto steps = static_cast<std::int32_t>(blocks_.size());
    Work step = whole;
    step.exchanging = step.exchanging_latency = step.exchanging_hidden = 0;
    step.group_leg = kNone;
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
    for (TaskId task = begin; task < end; ++task) {
      meet(task, begin, end, whole, part);
    }
  }

  // Joins a task's steps by exchanges, which its group makes when the first of its devices is divided.
  void meet(TaskId task, TaskId begin, TaskId end, const Work& whole, const GroupPass& part) {
    auto [at, is_new] = begun_[whole.pass].try_emplace({whole.part_begin, old_.micro_batch[task]}, kNone);
    if (is_new) {
      if (exchanges_of_ != begin) {
        exchanges_of_ = begin;
        exchange_blocks_ = static_cast<std::int32_t>(exchanges_.size());
        make_exchanges(begin, end, whole, part);
      }
      at->second = static_cast<std::int32_t>(met_.size());
      met_.push_back({exchange_blocks_, task - begin});
    }
    const Met& met = met_[at->second];
    for (std::size_t i = 0; i < part.exchanges.size(); ++i) {
      const TaskId before = blocks_[steps_[task] + part.exchanges[i].after] + (task - begin);
      edges_.push_back({before, exchanges_[met.blocks + i].first + met.offset});
    }
    std::size_t known = 0; // exchanges that have ended before
    for (std::size_t i = 0; i < part.computations.size(); ++i) {
      const std::size_t needs = part.computations[i].needs;
      if (needs > known) {
        const TaskId after = blocks_[steps_[task] + i] + (task - begin);
        edges_.push_back({exchanges_[met.blocks + needs - 1].second + met.offset, after});
        known = needs;
      }
    }
  }

  // The exchanges of tasks [begin, end), a block for each flow.
  void make_exchanges(TaskId begin, TaskId end, const Work& whole, const GroupPass& part) {
    const TimedPass& pass = passes_[whole.pass];
    TaskId before = kNone; // exchanges of a group run one after the other
    for (const PassExchange& exchange : part.exchanges) {
      TaskId first = kNone;
      for (const CoupledFlow& flow : flows_of(pass, exchange)) {
        const TaskId block = add(work_of_flow(TaskKind::exchange, pass.device, pass.stage, leg_of(flow.leg, pass),
                                              pass.members, flow, exchange.bytes),
                                 begin, end);
        for (TaskId i = 0; before != kNone && i < end - begin; ++i) {
          edges_.push_back({before + i, block + i});
        }
        first = first == kNone ? block : first;
        before = block;
      }
      exchanges_.emplace_back(first, before);
    }
  }

  std::int32_t leg_of(const Leg& leg, const TimedPass& pass) {
    const auto [known, is_new] = legs_.try_emplace(&leg, static_cast<std::int32_t>(made_.legs.size()));
    if (is_new) {
      const int count = made_.stands_for(static_cast<std::size_t>(pass.device));
      made_.legs.push_back(fold_ != nullptr ? fold_->leg(leg, count) : leg);
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

  // What all devices of a group have in common: where its exchanges' blocks begin in exchanges_, and the place in them.
  struct Met {
    std::int32_t blocks, offset;
  };

  TaskGraph made_, old_;
  std::span<const TimedPass> passes_;
  std::vector<char> expands_;                        // [pass]
  const Fold* fold_;                                 // null: nothing is folded
  std::vector<TaskId> first_, last_;                 // [old task]: its first and last step
  std::vector<std::int32_t> steps_;                  // [old task]: where its steps' blocks begin in blocks_
  std::vector<TaskId> blocks_;                       // the first task of each block
  std::vector<std::pair<TaskId, TaskId>> exchanges_; // the first and last flow's blocks of each exchange
  std::vector<Met> met_;
  std::vector<std::map<std::pair<double, std::int32_t>, std::int32_t>> begun_; // [pass]: begin, micro-batch -> met_
  TaskId exchanges_of_ = kNone;             // the first of the tasks for which exchanges were made last
  std::int32_t exchange_blocks_ = 0;        // where these begin in exchanges_
  std::map<const Leg*, std::int32_t> legs_; // known legs of flows
  std::vector<Edge> edges_;
};

// At most: an exchange counts once for each device of its group.
double tasks_with_steps(const TaskGraph& graph, std::span<const TimedPass> passes, std::span<const char> expands) {
  const std::vector<std::int32_t> count = graph.tasks_per_work();
  double tasks = 0;
  for (std::size_t index = 0; index < count.size(); ++index) {
    const Work& work = graph.works[index];
    const bool divides = work.pass >= 0 && expands[work.pass] != 0;
    const double steps = divides ? static_cast<double>(passes[work.pass].pass->computations.size() +
                                                       passes[work.pass].pass->exchanges.size())
                                 : 1;
    tasks += steps * count[index];
  }
  return tasks;
}

} // namespace

TaskGraph expand_exchanges(TaskGraph graph, std::span<const TimedPass> passes, const TaskGraphRequest& request) {
  const Fold* const fold = request.cost.fold.get();
  std::optional<SharingGroups> sharing;
  if (request.exchanges == ExchangeTasks::where_shared) {
    sharing.emplace(graph, passes, request.router.platform(), fold);
  }
  std::vector<char> expands;
  for (const TimedPass& pass : passes) {
    const bool has_flows = pass.group->group.ways != nullptr && !pass.pass->exchanges.empty();
    expands.push_back(has_flows && (!sharing || sharing->has(members_of(pass))) ? 1 : 0);
  }
  if (std::count(expands.begin(), expands.end(), 1) == 0) {
    return graph;
  }
  if (const double tasks = tasks_with_steps(graph, passes, expands); tasks > request.most_tasks) {
    graph.undivided = tasks;
    return graph;
  }
  return Expansion(std::move(graph), passes, std::move(expands), fold).run();
}

} // namespace stagecraft
