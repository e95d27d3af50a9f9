// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/in_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "sim/timeline/steady.hpp"

namespace stagecraft {
namespace {

// Whether what each device sends over a channel becomes ready in the order of its program: computations of its own feed
// it, and nothing else.
bool sends_in_order(const TaskGraph& graph) {
  const auto has_channel = [&](TaskId task) { return graph.works[graph.work[task]].channel >= 0; };
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const Work& maker = graph.works[graph.work[task]];
    for (const TaskId next : graph.successors_of(task)) {
      const bool ordered = maker.computes() && maker.device == graph.works[graph.work[next]].device;
      if (has_channel(next) && !ordered) {
        return false;
      }
    }
    if (has_channel(task) && graph.waits[task] == 0) {
      return false;
    }
  }
  return std::none_of(graph.ties.begin(), graph.ties.end(), [&](const Tie& tie) { return has_channel(tie.to); });
}

// Whether tasks wait for others of their own iteration by edges alone, and for the ends of others of earlier ones.
bool waits_for_ends(const TaskGraph& graph) {
  return std::all_of(graph.ties.begin(), graph.ties.end(),
                     [](const Tie& tie) { return tie.iterations > 0 && !tie.from_start; });
}

// The tasks of an iteration, each after all those of the same iteration for which it waits.
class InOrder {
public:
  explicit InOrder(const TaskGraph& graph) : graph_(graph), tasks_(graph.tasks()) {
    list_inputs();
    follow_all();
  }

  bool complete() const { return steps_.size() == graph_.work.size(); }

  /// Adds iterations to a timeline, up to so many in all.
  void extend(Timeline& timeline, int iterations) const {
    const auto tasks = static_cast<std::size_t>(tasks_);
    std::size_t base = timeline.finish.size();
    timeline.iterations = iterations;
    timeline.start.resize(tasks * iterations);
    timeline.finish.resize(tasks * iterations);
    for (; base < timeline.finish.size(); base += tasks) {
      base < earliest_ ? run<true>(timeline, base) : run<false>(timeline, base);
    }
  }

private:
  // The end of a task for which another one waits: how far its place in a timeline is from that of the first task of
  // the other's iteration.
  using Input = std::ptrdiff_t;

  struct Step {
    TaskId task;
    std::int32_t inputs; // how many
    bool behind;         // whether its channel sends another transfer before it
    Input before;        // that transfer
    double seconds, latency;
  };

  // Calls `found(task, input, iterations)` for each input of each task, which ended so many iterations before.
  template <class Found> void for_each_input(const Found& found) const {
    for (TaskId task = 0; task < tasks_; ++task) {
      for (const TaskId next : graph_.successors_of(task)) {
        found(next, task, 0);
      }
      for (const Tie& tie : graph_.ties_of(task)) {
        found(tie.to, task, tie.iterations);
      }
    }
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      TaskId before = graph_.program_of(device).back();
      std::int32_t iterations = 1;
      for (const TaskId task : graph_.program_of(device)) {
        found(task, std::exchange(before, task), std::exchange(iterations, 0));
      }
    }
  }

  void list_inputs() {
    input_begin_.assign(graph_.work.size() + 1, 0);
    std::int32_t furthest = 1;
    for_each_input([&](TaskId task, TaskId, std::int32_t iterations) {
      ++input_begin_[task + 1];
      furthest = std::max(furthest, iterations);
    });
    earliest_ = static_cast<std::size_t>(furthest) * tasks_;
    std::partial_sum(input_begin_.begin(), input_begin_.end(), input_begin_.begin());
    inputs_of_.resize(input_begin_.back());
    std::vector<std::size_t> at(input_begin_.begin(), input_begin_.end() - 1);
    for_each_input([&](TaskId task, TaskId input, std::int32_t iterations) {
      inputs_of_[at[task]++] = input - static_cast<Input>(iterations) * tasks_;
    });
  }

  // What a computation sends comes before the next one on its device, so that channels send in the order of programs.
  void follow_all() {
    std::vector<std::int32_t> missing = graph_.waits;
    std::vector<TaskId> following(graph_.work.size(), kNone); // [task]: in its device's program
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      const auto program = graph_.program_of(device);
      for (std::size_t at = 1; at < program.size(); ++at) {
        following[program[at - 1]] = program[at];
        ++missing[program[at]];
      }
    }
    std::vector<TaskId> ready;
    for (TaskId task = tasks_; task-- > 0;) {
      if (missing[task] == 0) {
        ready.push_back(task);
      }
    }
    const auto pass = [&](TaskId to) {
      if (--missing[to] == 0) {
        ready.push_back(to);
      }
    };
    steps_.reserve(graph_.work.size());
    std::vector<Input> last(graph_.channels, kNone); // [channel]: sent last
    while (!ready.empty()) {
      const TaskId task = ready.back();
      ready.pop_back();
      add_step(task, last);
      if (following[task] != kNone) {
        pass(following[task]);
      }
      const auto successors = graph_.successors_of(task);
      std::for_each(successors.rbegin(), successors.rend(), pass);
    }
    close_channels(last);
  }

  void add_step(TaskId task, std::vector<Input>& last) {
    const Work& work = graph_.works[graph_.work[task]];
    Step step{task,
              static_cast<std::int32_t>(input_begin_[task + 1] - input_begin_[task]),
              work.channel >= 0,
              0,
              work.seconds.value,
              work.latency.value};
    if (step.behind) {
      step.before = std::exchange(last[work.channel], task);
    }
    inputs_.insert(inputs_.end(), inputs_of_.data() + input_begin_[task], inputs_of_.data() + input_begin_[task + 1]);
    steps_.push_back(step);
  }

  // The first transfer of a channel comes after the last one of the iteration before.
  void close_channels(const std::vector<Input>& last) {
    for (Step& step : steps_) {
      if (step.behind && step.before == kNone) {
        step.before = last[graph_.works[graph_.work[step.task]].channel] - tasks_;
      }
    }
  }

  // `early`: before the first iteration there is nothing to wait for.
  template <bool early> void run(Timeline& timeline, std::size_t base) const {
    double* const start = timeline.start.data() + base;
    double* const finish = timeline.finish.data() + base;
    const auto is_there = [&](Input input) { return !early || static_cast<std::ptrdiff_t>(base) + input >= 0; };
    const Input* input = inputs_.data();
    for (const Step& step : steps_) {
      double begin = 0;
      for (const Input* const end = input + step.inputs; input != end; ++input) {
        begin = is_there(*input) ? std::max(begin, finish[*input]) : begin;
      }
      if (step.behind && is_there(step.before)) { // its bytes flow after its latency, and after those before it
        begin = std::max(begin, finish[step.before] - step.latency);
      }
      start[step.task] = begin;
      finish[step.task] = begin + step.seconds;
    }
  }

  static constexpr TaskId kNone = -1;

  const TaskGraph& graph_;
  int tasks_;
  std::size_t earliest_ = 0;             // from this entry of a timeline on, all inputs are there
  std::vector<std::size_t> input_begin_; // [task], and the end
  std::vector<Input> inputs_of_;         // of the tasks
  std::vector<Step> steps_;
  std::vector<Input> inputs_; // of the steps, one after the other
};

} // namespace

std::optional<Timeline> replay_in_order(const ReplayRequest& request) {
  const TaskGraph& graph = request.graph;
  if (!graph.overlaps || graph.workers > 0 || !request.speeds.empty() || !request.computing.empty() ||
      !waits_for_ends(graph) || !sends_in_order(graph)) {
    return std::nullopt;
  }
  const InOrder order(graph);
  if (!order.complete()) {
    return std::nullopt;
  }
  Timeline timeline;
  order.extend(timeline, request.iterations);
  while (2 * timeline.iterations <= request.most_iterations && find_steady(graph, timeline).spread > kSteady) {
    order.extend(timeline, 2 * timeline.iterations);
  }
  return timeline;
}

} // namespace stagecraft
