// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/communication.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/schedule/task_graph/communication_axis.hpp"
#include "sim/timeline/critical_path.hpp"

namespace stagecraft {
namespace {

constexpr std::int32_t kNone = -1;
constexpr std::size_t kAxes = kCommunicationAxes.size();

template <class Value> using PerAxis = std::array<Value, kAxes>;
template <class Value> Value& at(PerAxis<Value>& values, CommunicationAxis axis) {
  return values[static_cast<std::size_t>(axis)];
}

struct Span {
  double start, finish;
};

// The length of all that some spans cover.
double covered(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  double sum = 0, until = 0;
  for (const Span& span : spans) {
    sum += std::max(0.0, span.finish - std::max(span.start, until));
    until = std::max(until, span.finish);
  }
  return sum;
}

class Account {
public:
  Account(const TaskGraph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), inputs_(last_inputs(graph, timeline)),
        begin_(static_cast<std::size_t>(timeline.iterations - timeline.window) * graph.tasks()),
        live_(graph.devices.size()) {}

  std::vector<Communication> run() {
    find_receivers();
    collect_live();
    PerAxis<Communication> sums;
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      walk(device, sums);
    }
    std::vector<Communication> all;
    const double devices = static_cast<double>(graph_.devices.size()) * timeline_.window;
    for (std::size_t number = kAxes; number-- > 0;) { // the outermost first
      const auto axis = static_cast<CommunicationAxis>(number);
      const Communication& sum = at(sums, axis);
      if (sum.exposed + sum.hidden > Seconds{0}) {
        all.push_back(
            {std::string(name_of(axis)), sum.exposed / devices, sum.hidden / devices, sum.for_peers / devices});
      }
    }
    return all;
  }

private:
  const Work& work_of(std::size_t entry) const { return graph_.works[graph_.work[entry % graph_.tasks()]]; }

  // [work]: the devices that wait for what it sends, found from the first of its tasks.
  void find_receivers() {
    receivers_.resize(graph_.works.size());
    std::vector<char> is_known(graph_.works.size(), 0);
    reached_from_.assign(graph_.tasks(), kNone);
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      const std::int32_t work = graph_.work[task];
      if (is_known[work] == 0 && axis_of(graph_.works[work])) {
        std::vector<TaskId> open = {task};
        while (!open.empty()) {
          const TaskId from = open.back();
          open.pop_back();
          follow(from, work, open);
        }
        std::sort(receivers_[work].begin(), receivers_[work].end());
        receivers_[work].erase(std::unique(receivers_[work].begin(), receivers_[work].end()), receivers_[work].end());
      }
      is_known[work] = 1;
    }
  }

  // Whether a transfer is a further flow of the same communication.
  static bool goes_on(const Work& from, const Work& to) {
    return to.kind == from.kind && (to.kind != TaskKind::exchange || to.members == from.members);
  }

  // Goes on through joins and further flows of the same kind, in which the same devices take part, to computations.
  void follow(TaskId from, std::int32_t work, std::vector<TaskId>& open) {
    const auto go_to = [&](TaskId next) {
      if (std::exchange(reached_from_[next], work) == work) {
        return; // by another way already: dense exchanges have more ways than can be walked
      }
      const Work& to = graph_.works[graph_.work[next]];
      if (to.computes()) {
        receivers_[work].push_back(to.device);
      } else if (!to.transfers() ? to.kind != TaskKind::optimizer : goes_on(graph_.works[work], to)) {
        open.push_back(next); // not through the barrier of all steps
      }
    };
    for (const TaskId next : graph_.successors_of(from)) {
      go_to(next);
    }
    for (const Tie& tie : graph_.ties_of(from)) {
      go_to(tie.to);
    }
  }

  // When something of each axis is under way in which a device takes part.
  void collect_live() {
    for (std::size_t entry = begin_; entry < timeline_.start.size(); ++entry) {
      const std::int32_t work = graph_.work[entry % graph_.tasks()];
      for (const std::int32_t device : receivers_[work]) {
        at(live_[device], *axis_of(graph_.works[work])).push_back({timeline_.start[entry], timeline_.finish[entry]});
      }
    }
  }

  void walk(std::size_t device, PerAxis<Communication>& sums) {
    PerAxis<double> exposed{};
    const auto program = graph_.program_of(device);
    const auto tasks = static_cast<std::size_t>(graph_.tasks());
    double free = begin_ > 0 ? timeline_.finish[begin_ - tasks + program.back()] : 0;
    for (std::size_t base = begin_; base < timeline_.start.size(); base += tasks) {
      for (const TaskId task : program) {
        const Work& work = graph_.works[graph_.work[task]];
        const double start = timeline_.start[base + task];
        if (start > free) {
          look_back(base + task, free, exposed, sums);
        }
        free = timeline_.finish[base + task];
        add_own(work, free - start, sums);
      }
    }
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      sums[axis].exposed += Seconds{exposed[axis]};
      sums[axis].hidden += Seconds{std::max(0.0, covered(live_[device][axis]) - exposed[axis])};
    }
  }

  // What a computation itself spends on exchanges, where these are no tasks.
  static void add_own(const Work& work, double seconds, PerAxis<Communication>& sums) {
    for (std::size_t i = 0; i < kPassAxes.size() && work.exchanging + work.exchanging_hidden > 0; ++i) {
      Communication& sum = at(sums, communication_axis(kPassAxes[i]));
      sum.exposed += Seconds{seconds * work.exchanging * work.exchanging_parts[i]};
      sum.hidden += Seconds{seconds * work.exchanging_hidden * work.exchanging_parts[i]};
    }
  }

  // What a device waited for before a task, from `free` on: the last of its inputs, and what these waited for in turn
  // as long as they are of the same axis.
  void look_back(std::size_t entry, double free, PerAxis<double>& exposed, PerAxis<Communication>& sums) const {
    double until = timeline_.start[entry];
    std::optional<CommunicationAxis> axis;
    while (inputs_[entry].entry != entry && until > free) {
      entry = inputs_[entry].entry;
      const Work& work = work_of(entry);
      if (work.computes() || (axis && work.transfers() && axis_of(work) != axis)) {
        break;
      }
      if (axis_of(work)) {
        axis = axis_of(work);
        const double begin = std::max(free, timeline_.start[entry]);
        at(exposed, *axis) += std::max(0.0, std::min(until, timeline_.finish[entry]) - begin);
        until = std::min(until, begin);
      } else if (work.transfers() || work.loads()) {
        break; // a loader's, or a copy between a device and its host
      }
    }
    if (axis) {
      at(sums, *axis).for_peers += Seconds{std::max(0.0, until - free)};
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::vector<LastInput> inputs_;                    // [entry]
  std::size_t begin_;                                // the first entry of the window
  std::vector<std::vector<std::int32_t>> receivers_; // [work]: devices
  std::vector<std::int32_t> reached_from_;           // [task]: the work that follow() last reached it from
  std::vector<PerAxis<std::vector<Span>>> live_;     // [device][axis]
};

} // namespace

std::vector<Communication> communication_of(const TaskGraph& graph, const Timeline& timeline) {
  return Account(graph, timeline).run();
}

} // namespace stagecraft
