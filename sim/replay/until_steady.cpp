// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/until_steady.hpp"

#include <algorithm>

#include "sim/timeline/steady.hpp"

namespace stagecraft {
namespace {

// Whether a recurrence that starts at `origin` can tell times from numbers of missing inputs.
bool tells_times(const TaskGraph& graph, double origin) {
  const auto& waits = graph.waits;
  return origin > static_cast<double>(graph.ties.size()) + *std::max_element(waits.begin(), waits.end());
}

} // namespace

UntilSteady::UntilSteady(const ReplayRequest& request, double origin)
    : request_(request), origin_(origin),
      watches_(request.most_iterations >= request.iterations && request.graph.overlaps && request.computing.empty() &&
               tells_times(request.graph, origin)),
      iterations_(request.iterations) {
  if (watches_) {
    request_.iterations = request.most_iterations;
  }
}

double UntilSteady::first_idle(const Recurrence<SharedFlows>& recurrence) const {
  const TaskGraph& graph = request_.graph;
  const std::size_t last = static_cast<std::size_t>(iterations_ - 1) * graph.tasks();
  double first = kInfinity;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    const double end = recurrence.finish_of(last + graph.program_of(device).back());
    first = end > origin_ ? std::min(first, end) : first;
  }
  return first;
}

void UntilSteady::look(const Recurrence<SharedFlows>& recurrence, double now) {
  const TaskGraph& graph = request_.graph;
  events_ = static_cast<int>(graph.devices.size());
  while (now > first_idle(recurrence)) {
    const Timeline known = recurrence.known(iterations_);
    const auto first = known.finish.begin();
    const bool any_ended = *std::max_element(first, first + graph.tasks()) < kInfinity;
    const bool is_last = iterations_ == request_.iterations;
    reached_ = any_ended && (is_last || find_steady(graph, known).spread <= kSteady);
    if (reached_ || is_last) {
      watches_ = false;
      return;
    }
    iterations_ = std::min(2 * iterations_, request_.iterations);
  }
}

Timeline UntilSteady::take(Recurrence<SharedFlows>& recurrence) {
  return reached_ ? recurrence.known(iterations_) : recurrence.take();
}

} // namespace stagecraft
