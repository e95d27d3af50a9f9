// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/race.hpp"

#include <algorithm>
#include <array>

#include "sim/replay/what_if/lockstep.hpp"
#include "sim/study/measure/measure_graph.hpp"

namespace stagecraft {
namespace {

// No iteration takes less than without sharing of links. Of replicas that drift apart the median draw may count, which
// takes no less than the median of the draws' times without sharing.
double least_seconds(const Study& study, const TaskGraph& graph, const Metrics& unshared) {
  if (!replicas_meet(graph, study.platform)) {
    return unshared.iteration.value;
  }
  std::array<double, kDriftDraws> seconds{};
  for (int draw = 0; draw < kDriftDraws; ++draw) {
    const TaskGraph drawn = drifted(graph, study.seed, draw);
    const ReplayRequest request{drawn, study.platform};
    seconds[draw] = replay_analytic({&request, 1}).front().end();
  }
  return std::min(unshared.iteration.value, seconds[median_index(seconds)]);
}

constexpr double kMargin = 1e-6; // far more than rounding does to times, and than what ties decide

// Whether a replay by the study's engine would be in vain. What a device holds follows from the order of its work
// alone, so any engine tells. Only a single iteration has a bound, and is the same by any engine but for rounding.
bool is_lost(const Study& study, const TaskGraph& graph, double best) {
  if (iterations_of(study, graph) > 1) {
    return false;
  }
  const ReplayRequest request{graph, study.platform};
  const Metrics unshared = measure(graph, replay_analytic({&request, 1}).front(), study.platform);
  if (!memory_overflows(study.platform, graph, unshared).empty()) {
    return true;
  }
  return best < kInfinity && least_seconds(study, graph, unshared) * (1 - kMargin) > best;
}

} // namespace

double Race::seconds_of(const TaskGraph& graph) {
  const Replayer engine = Replayer(study_.engine->replay).for_many();
  if (engine.shares_links() && is_lost(study_, graph, best_)) {
    return kInfinity;
  }
  const Metrics metrics = measure_graph(study_, study_.platform, graph, engine);
  if (!memory_overflows(study_.platform, graph, metrics).empty()) {
    return kInfinity;
  }
  best_ = std::min(best_, metrics.iteration.value);
  return metrics.iteration.value;
}

} // namespace stagecraft
