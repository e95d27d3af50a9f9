// HEFT (Topcuoglu et al. 2002): places each operator where one micro-batch finishes earliest, those with the longest
// path to the end first.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/strategy/heuristic/heft.hpp"
#include "sim/strategy/heuristic/placement.hpp"

namespace stagecraft {
namespace {

struct BusySlot {
  double start, finish;
};

// The earliest start from `ready` on at which a task of `seconds` fits between the slots, which are in order of time.
double earliest_start(const std::vector<BusySlot>& slots, double ready, double seconds) {
  double start = ready;
  for (const BusySlot& slot : slots) {
    if (start + seconds <= slot.start) {
      break;
    }
    start = std::max(start, slot.finish);
  }
  return start;
}

// Mean over the processors that can run it.
std::vector<double> mean_times(const std::vector<std::vector<double>>& seconds) {
  std::vector<double> mean;
  for (const std::vector<double>& times : seconds) {
    double sum = 0;
    int able = 0;
    for (const double time : times) {
      sum += std::isinf(time) ? 0 : time;
      able += std::isinf(time) ? 0 : 1;
    }
    mean.push_back(sum / std::max(able, 1));
  }
  return mean;
}

double arrival(const HeftTasks& tasks, const HeftSchedule& schedule, int task, int processor) {
  double ready = 0;
  for (const int maker : tasks.predecessors[task]) {
    const int home = schedule.processor[maker];
    const double transfer = home == processor ? 0 : tasks.transfer(maker, task, home, processor);
    ready = std::max(ready, schedule.finish[maker] + transfer);
  }
  return ready;
}

} // namespace

HeftSchedule heft(const HeftTasks& tasks) {
  const std::size_t processors = tasks.room.size();
  HeftSchedule schedule{.ranks = upward_ranks(tasks.successors, mean_times(tasks.seconds), tasks.mean_transfer),
                        .processor = std::vector<int>(tasks.seconds.size(), -1),
                        .finish = std::vector<double>(tasks.seconds.size(), 0.0),
                        .held = std::vector<Bytes>(processors)};
  std::vector<std::vector<BusySlot>> slots(processors);
  for (const int task : order_by_rank(tasks.successors, schedule.ranks)) {
    BusySlot best{0, kInfinity};
    int& home = schedule.processor[task];
    for (std::size_t p = 0; p < processors; ++p) {
      const double seconds = tasks.seconds[task][p];
      const bool fits = schedule.held[p] + tasks.bytes[task] <= tasks.room[p];
      schedule.crowded = schedule.crowded || !fits;
      if (std::isinf(seconds) || !fits) {
        continue;
      }
      const double ready = arrival(tasks, schedule, task, static_cast<int>(p));
      const double start = earliest_start(slots[p], ready, seconds);
      if (home < 0 || improves(start + seconds, best.finish)) {
        best = {start, start + seconds};
        home = static_cast<int>(p);
      }
    }
    if (home < 0) {
      schedule.unplaced = task;
      return schedule;
    }
    const auto later = [](const BusySlot& a, const BusySlot& b) { return a.start < b.start; };
    slots[home].insert(std::upper_bound(slots[home].begin(), slots[home].end(), best, later), best);
    schedule.finish[task] = best.finish;
    schedule.held[home] += tasks.bytes[task];
    schedule.makespan = std::max(schedule.makespan, best.finish);
  }
  return schedule;
}

// For one micro-batch: a task is an operator's forward and backward, an edge its activation and, later, the
// activation's gradient. Memory is that of all micro-batches in flight, as the order of work is not known yet.
PlanResult split_heft(const PlanRequest& request) {
  const Problem& problem = request.problem;
  const PathCost mean = mean_path(request);
  HeftTasks tasks{.predecessors = problem.model.predecessors, .successors = problem.model.successors};
  tasks.mean_transfer = [&](int from, int) { return 2 * mean.time(problem.output_bytes(from)).value; };
  tasks.transfer = [&](int from, int, int here, int there) {
    return 2 * problem.path(request.devices[here], request.devices[there]).time(problem.output_bytes(from)).value;
  };
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    std::vector<double>& seconds = tasks.seconds.emplace_back();
    for (const DeviceId device : request.devices) {
      seconds.push_back(problem.seconds(problem.type_index(device), op));
    }
    tasks.bytes.push_back(placed_bytes(request, op, problem.micro_batches));
  }
  for (const DeviceId device : request.devices) {
    tasks.room.push_back(problem.platform.type_of(device).memory);
  }
  const HeftSchedule schedule = heft(tasks);
  if (schedule.unplaced >= 0) {
    std::vector<Bytes> need = schedule.held;
    for (Bytes& bytes : need) {
      bytes += tasks.bytes[schedule.unplaced];
    }
    return Infeasible{why_no_device(request, schedule.unplaced, 0, need)};
  }
  Plan plan = make_segment_plan(request, schedule.processor);
  plan.objective = Objective{"makespan of one micro-batch", Seconds{schedule.makespan}};
  plan.memory_bound = schedule.crowded;
  return plan;
}

} // namespace stagecraft
