// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/steady.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/divisors.hpp"

namespace stagecraft {
namespace {

constexpr int kLeastWindow = 4;

// Over how many iterations a task may reach: what happens later depends on that many of the last ones.
int reach_of(const TaskGraph& graph) {
  int reach = 1;
  for (const Tie& tie : graph.ties) {
    reach = std::max(reach, static_cast<int>(tie.iterations));
  }
  return reach;
}

// The number of iterations that end before any device has run out of work. Those after them share their links with
// fewer transfers than in the steady state.
int undisturbed(const TaskGraph& graph, const Timeline& timeline) {
  const auto tasks = static_cast<std::size_t>(graph.tasks());
  double first_idle = std::numeric_limits<double>::infinity();
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    first_idle =
        std::min(first_idle, timeline.finish[tasks * (timeline.iterations - 1) + graph.program_of(device).back()]);
  }
  int iterations = timeline.iterations;
  const auto ends_later = [&](int iteration) {
    const double* const finish = timeline.finish.data() + tasks * iteration;
    return std::any_of(finish, finish + tasks, [&](double end) { return end > first_idle; });
  };
  while (iterations > 1 && ends_later(iterations - 1)) {
    --iterations;
  }
  return iterations;
}

// The longest that a device computes in an iteration.
double longest_work(const TaskGraph& graph, const Timeline& timeline, int iteration) {
  const std::size_t base = static_cast<std::size_t>(iteration) * graph.tasks();
  double longest = 0;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    double work = 0;
    for (const TaskId task : graph.program_of(device)) {
      work += timeline.finish[base + task] - timeline.start[base + task];
    }
    longest = std::max(longest, work);
  }
  return longest;
}

// By how much the tasks of the last `reach` of some iterations advance over a window.
struct Advance {
  int iterations, window, reach;
  double work; // the least that the period may be

  // The spread of the period, or `enough` if it is at least that.
  double spread(const TaskGraph& graph, const Timeline& timeline, double enough) const {
    const auto tasks = static_cast<std::size_t>(graph.tasks());
    const double* const finish = timeline.finish.data();
    const std::size_t apart = tasks * window;
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (std::size_t end = tasks * iterations, at = end - tasks * reach; at < end; ++at) {
      const double advance = finish[at] - finish[at - apart];
      least = std::min(least, advance);
      most = std::max(most, advance);
      if (most - std::max(least, work * window) > enough * most) {
        return enough;
      }
    }
    return most > 0 ? std::max(0.0, most - std::max(least, work * window)) / most : 0;
  }
};

} // namespace

Steadiness find_steady(const TaskGraph& graph, const Timeline& timeline) {
  Steadiness best{.iterations = undisturbed(graph, timeline)};
  best.window = std::max(1, best.iterations / 2);
  const double work = longest_work(graph, timeline, best.iterations - 1);
  const int reach = reach_of(graph);
  const int first = round_up(kLeastWindow, graph.cycle);
  for (int window = first; window + reach <= best.iterations && best.spread > kSteady; window += graph.cycle) {
    const Advance advance{best.iterations, window, reach, work};
    if (const double spread = advance.spread(graph, timeline, best.spread); spread < best.spread) {
      best.window = window;
      best.spread = spread;
    }
  }
  return best;
}

void cut_short(const TaskGraph& graph, Timeline& timeline, int iterations) {
  timeline.iterations = iterations;
  timeline.start.resize(static_cast<std::size_t>(iterations) * graph.tasks());
  timeline.finish.resize(timeline.start.size());
}

} // namespace stagecraft
