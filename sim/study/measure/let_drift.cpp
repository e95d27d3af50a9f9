// Draws of runs whose equal replicas meet. The median draw counts only where it is faster than the exact replay. So a
// draw that is known to be no faster need not be replayed, and where half of them are known to be, none of the others.
// Draws are weighed by replays without SimGrid; the engine replays the median and those too close to call.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/replay/what_if/lockstep.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/timeline/steady.hpp"

namespace stagecraft {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The most seconds that a device computes in an iteration, the same in every draw. No period is shorter.
double most_work(const TaskGraph& graph) {
  double most = 0;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    const auto program = graph.program_of(device);
    most = std::max(most, std::accumulate(program.begin(), program.end(), 0.0, [&](double sum, TaskId task) {
                      return sum + graph.works[graph.work[task]].seconds.value;
                    }));
  }
  return most;
}

// What is known of the draws of one request.
class Draws {
public:
  /// `steady`: the exact replay's steady timeline.
  Draws(const Study& study, const ReplayRequest& exact, const Timeline& steady)
      : seed_(study.seed), exact_(exact), exact_seconds_(measure(exact.graph, steady, exact.platform).iteration.value) {
    seconds_.fill(kUnknown);
    iterations_.fill(exact.iterations);
    rule_out();
  }

  /// Draws that have to be weighed next: as few as may settle that the median gains nothing; all, where it must gain;
  /// none, where all that counts is known.
  std::vector<int> to_weigh() const {
    const int wanted = kMedian - gainless();
    const int open = static_cast<int>(
        std::count_if(seconds_.begin(), seconds_.end(), [](double seconds) { return std::isnan(seconds); }));
    std::vector<int> draws;
    for (int draw = 0; draw < kDriftDraws && wanted > 0; ++draw) {
      if (std::isnan(seconds_[draw]) && (open < wanted || static_cast<int>(draws.size()) < wanted)) {
        draws.push_back(draw);
      }
    }
    return draws;
  }

  /// `steady`: the iterations of its steady timeline. Those of the replay, from which they were cut, were doubled until
  /// then; fewer need not be tried again.
  void weigh(int draw, double seconds, int steady) {
    seconds_[draw] = seconds < exact_seconds_ * (1 + kClose) ? seconds : kInfinity;
    while (iterations_[draw] < steady) {
      iterations_[draw] *= 2;
    }
  }

  /// Draws that the engine has to replay next, once none has to be weighed: the median, those too close to it to say
  /// which is the median, and those too close to the exact replay to say whether they gain.
  std::vector<int> to_replay() const {
    std::vector<int> draws;
    const double median = seconds_[median_index(seconds_)];
    for (int draw = 0; draw < kDriftDraws && gainless() < kMedian; ++draw) {
      if (!is_replayed_[draw] && (is_close(seconds_[draw], median) || is_close(seconds_[draw], exact_seconds_))) {
        draws.push_back(draw);
      }
    }
    return draws;
  }

  TaskGraph drawn(int draw) const { return drifted(exact_.graph, seed_, draw); }
  ReplayRequest request(int draw, const TaskGraph& drawn) const {
    return {drawn, exact_.platform, iterations_[draw], exact_.speeds};
  }

  void take(int draw, double seconds, Timeline timeline, double spread) {
    const bool is_faster = gains(seconds, exact_seconds_);
    is_replayed_[draw] = true;
    seconds_[draw] = is_faster ? seconds : kInfinity;
    if (is_faster) {
      timelines_[draw] = std::move(timeline);
      spreads_[draw] = spread;
    }
  }

  /// Puts the median draw in the exact timeline's place; or returns -1, where it gains nothing.
  int choose(Timeline& timeline, double& spread) {
    if (gainless() >= kMedian) {
      return -1;
    }
    const int draw = median_index(seconds_);
    timeline = std::move(timelines_[draw]);
    spread = spreads_[draw];
    return draw;
  }

private:
  static constexpr int kMedian = kDriftDraws / 2 + 1; // its place among the draws in order
  static constexpr double kClose = 1e-6;              // far more than roundings of replays add up to

  static bool is_close(double one, double other) { return std::abs(one - other) <= kClose * other; }

  int gainless() const { return static_cast<int>(std::count(seconds_.begin(), seconds_.end(), kInfinity)); }

  // A single iteration takes at least what it would take if each transfer had its links for itself. The margins are
  // wider than what rounding does to periods, the first one narrower than what counts as a gain.
  void rule_out() {
    constexpr double kRoundingOfPeriod = 5e-10;
    constexpr double kRoundingOfEngines = 1e-6;
    if (exact_.speeds.empty() && exact_seconds_ <= most_work(exact_.graph) * (1 + kRoundingOfPeriod)) {
      seconds_.fill(kInfinity);
    }
    for (int draw = 0; draw < kDriftDraws && exact_.iterations == 1 && gainless() < kMedian; ++draw) {
      const TaskGraph graph = drawn(draw);
      const ReplayRequest request{graph, exact_.platform, 1, exact_.speeds};
      const double least = replay_analytic({&request, 1}).front().end();
      seconds_[draw] = least >= exact_seconds_ * (1 + kRoundingOfEngines) ? kInfinity : kUnknown;
    }
  }

  std::uint64_t seed_;
  ReplayRequest exact_;
  double exact_seconds_;
  std::array<double, kDriftDraws> seconds_;   // kUnknown: not weighed; infinite: no gain
  std::array<int, kDriftDraws> iterations_{}; // to replay at first
  std::array<bool, kDriftDraws> is_replayed_{};
  std::array<Timeline, kDriftDraws> timelines_;
  std::array<double, kDriftDraws> spreads_{};
};

// A draw of some request, replayed until its period is steady.
struct Drawn {
  std::size_t request; // index into the draws
  int draw;
  double seconds, spread;
  Timeline timeline;
};

// The draws that `asked` names of each request.
struct Asked {
  std::vector<Drawn> drawn;
  std::vector<TaskGraph> graphs;
  std::vector<ReplayRequest> requests;

  Asked(const std::vector<Draws>& draws, std::vector<int> (Draws::*asked)() const) {
    for (std::size_t i = 0; i < draws.size(); ++i) {
      for (const int draw : (draws[i].*asked)()) {
        drawn.push_back({.request = i, .draw = draw});
        graphs.push_back(draws[i].drawn(draw));
      }
    }
    for (std::size_t at = 0; at < drawn.size(); ++at) {
      requests.push_back(draws[drawn[at].request].request(drawn[at].draw, graphs[at]));
    }
  }

  std::vector<Drawn> measured(std::vector<Timeline> replayed, std::span<const double> spreads) && {
    for (std::size_t at = 0; at < drawn.size(); ++at) {
      drawn[at].seconds = measure(graphs[at], replayed[at], requests[at].platform).iteration.value;
      drawn[at].spread = spreads[at];
      drawn[at].timeline = std::move(replayed[at]);
    }
    return std::move(drawn);
  }
};

// Replays the draws that `asked` names until their periods are steady.
std::vector<Drawn> replay_draws(const Replayer& replay, const std::vector<Draws>& draws,
                                std::vector<int> (Draws::*asked)() const) {
  Asked these(draws, asked);
  std::vector<Timeline> replayed = replay(until_steady(these.requests));
  const std::vector<double> spreads = make_steady(replay, these.requests, replayed);
  return std::move(these).measured(std::move(replayed), spreads);
}

// Weighs and replays what is needed of some requests' draws, until nothing is.
void settle(const Replayer& replay, std::vector<Draws>& draws) {
  for (bool open = true; open;) {
    open = false;
    for (const Drawn& one : replay_draws(replay.with(replay_max_min), draws, &Draws::to_weigh)) {
      draws[one.request].weigh(one.draw, one.seconds, one.timeline.iterations);
      open = true;
    }
  }
  for (bool open = true; open;) {
    open = false;
    for (Drawn& one : replay_draws(replay, draws, &Draws::to_replay)) {
      draws[one.request].take(one.draw, one.seconds, std::move(one.timeline), one.spread);
      open = true;
    }
  }
}

} // namespace

std::vector<int> let_drift(const Study& study, const Replayer& replay, std::span<const ReplayRequest> requests,
                           std::span<Timeline> timelines, std::span<double> spreads) {
  constexpr long kMostTasks = 1'000'000; // executed by what is held at once, some tens of bytes each
  std::vector<int> chosen_draws(requests.size(), -1);
  std::vector<std::size_t> chosen;
  std::vector<Draws> draws;
  long tasks = 0;
  const auto flush = [&] {
    settle(replay, draws);
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      chosen_draws[chosen[c]] = draws[c].choose(timelines[chosen[c]], spreads[chosen[c]]);
    }
    chosen.clear();
    draws.clear();
    tasks = 0;
  };
  for (std::size_t i = 0; i < requests.size() && replay.shares_links(); ++i) {
    const ReplayRequest& exact = requests[i];
    if (replicas_meet(exact.graph, exact.platform)) {
      chosen.push_back(i);
      draws.emplace_back(study, exact, timelines[i]);
      tasks +=
          static_cast<long>(exact.graph.tasks()) * exact.iterations * static_cast<long>(draws.back().to_weigh().size());
    }
    if (tasks > kMostTasks) {
      flush();
    }
  }
  flush();
  return chosen_draws;
}

} // namespace stagecraft
