// Draws of runs whose equal replicas meet. The median draw counts only where it is faster than the exact replay. So a
// draw that is known to be no faster need not be replayed, and where half of them are known to be, none of the others.
// Draws whose periods took longer to be steady than that of the exact replay are weighed by then; the median and those
// too close to call are replayed again over as many iterations from the beginning.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/bytes.hpp"
#include "sim/base/improves.hpp"
#include "sim/base/process/worker_pool.hpp"
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
      : study_(study), exact_(exact), exact_seconds_(measure(exact.graph, steady, exact.platform).iteration.value) {
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

  /// A draw's steady timeline was cut from a replay whose iterations were doubled until then. Where they were, fewer
  /// need not be tried again; else the timeline counts as it is.
  void weigh(int draw, double seconds, Timeline timeline, double spread) {
    while (iterations_[draw] < timeline.iterations) {
      iterations_[draw] *= 2;
    }
    if (iterations_[draw] == exact_.iterations) {
      take(draw, seconds, std::move(timeline), spread);
    } else {
      seconds_[draw] = seconds < exact_seconds_ * (1 + kClose) ? seconds : kInfinity;
    }
  }

  /// Draws that have to be replayed again, once none has to be weighed: the median, those too close to it to say
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

  TaskGraph drawn(int draw) const { return drifted(exact_.graph, study_.seed, draw); }
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
  static constexpr double kClose = 1e-6;              // periods that may change places when replayed again

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
    if (!exact_.graph.overlaps && exact_.speeds.empty() &&
        !may_gain(exact_seconds_, measure_analytic(study_, exact_.graph).iteration.value)) {
      seconds_.fill(kInfinity);
    }
    for (int draw = 0; draw < kDriftDraws && exact_.iterations == 1 && gainless() < kMedian; ++draw) {
      const TaskGraph graph = drawn(draw);
      const ReplayRequest request{graph, exact_.platform, 1, exact_.speeds};
      const double least = replay_analytic({&request, 1}).front().end();
      seconds_[draw] = least >= exact_seconds_ * (1 + kRoundingOfEngines) ? kInfinity : kUnknown;
    }
  }

  const Study& study_;
  ReplayRequest exact_;
  double exact_seconds_;
  std::array<double, kDriftDraws> seconds_;   // kUnknown: not weighed; infinite: no gain
  std::array<int, kDriftDraws> iterations_{}; // to replay at first
  std::array<bool, kDriftDraws> is_replayed_{};
  std::array<Timeline, kDriftDraws> timelines_;
  std::array<double, kDriftDraws> spreads_{};
};

// Replays the draws until their periods are steady, and takes each.
template <class Take>
void replay_draws(const Replayer& replay, const Draws& draws, const std::vector<int>& asked, const Take& take) {
  std::vector<TaskGraph> graphs;
  std::vector<ReplayRequest> requests;
  graphs.reserve(asked.size());
  for (const int draw : asked) {
    graphs.push_back(draws.drawn(draw));
    requests.push_back(draws.request(draw, graphs.back()));
  }
  std::vector<Timeline> replayed = replay(until_steady(requests));
  const std::vector<double> spreads = make_steady(replay, requests, replayed);
  for (std::size_t at = 0; at < asked.size(); ++at) {
    const double seconds = measure(graphs[at], replayed[at], requests[at].platform).iteration.value;
    take(asked[at], seconds, std::move(replayed[at]), spreads[at]);
  }
}

// Weighs and replays what is needed of a request's draws, until nothing is.
void settle(const Replayer& replay, Draws& draws) {
  for (auto asked = draws.to_weigh(); !asked.empty(); asked = draws.to_weigh()) {
    replay_draws(replay, draws, asked, [&](int draw, double seconds, Timeline timeline, double spread) {
      draws.weigh(draw, seconds, std::move(timeline), spread);
    });
  }
  for (auto asked = draws.to_replay(); !asked.empty(); asked = draws.to_replay()) {
    replay_draws(replay, draws, asked, [&](int draw, double seconds, Timeline timeline, double spread) {
      draws.take(draw, seconds, std::move(timeline), spread);
    });
  }
}

// Which draw counts; -1: none does, and nothing else is said.
struct Drifted {
  int draw = -1;
  Timeline timeline;
  double spread = 0;
};

Drifted drift(const Study& study, const Replayer& replay, const ReplayRequest& exact, const Timeline& timeline) {
  Draws draws(study, exact, timeline);
  settle(replay, draws);
  Drifted drifted;
  drifted.draw = draws.choose(drifted.timeline, drifted.spread);
  return drifted;
}

std::string to_bytes(const Drifted& drifted) {
  std::string bytes;
  put(bytes, drifted.draw);
  put(bytes, drifted.spread);
  put_timeline(bytes, drifted.timeline);
  return bytes;
}

Drifted drifted_from(std::string_view bytes) {
  ByteReader reader(bytes);
  Drifted drifted{.draw = reader.take<int>()};
  drifted.spread = reader.take<double>();
  drifted.timeline = take_timeline(reader);
  return drifted;
}

} // namespace

std::vector<int> let_drift(const Study& study, const Replayer& replay, std::span<const ReplayRequest> requests,
                           std::span<Timeline> timelines, std::span<double> spreads) {
  std::vector<int> chosen(requests.size(), -1);
  std::vector<std::size_t> meeting;
  for (std::size_t i = 0; i < requests.size() && replay.shares_links(); ++i) {
    if (replicas_meet(requests[i].graph, requests[i].platform)) {
      meeting.push_back(i);
    }
  }
  const Replayer here = replay.for_many().alone();
  const auto drift_of = [&](std::size_t one) {
    return drift(study, here, requests[meeting[one]], timelines[meeting[one]]);
  };
  const auto take = [&](std::size_t one, Drifted drifted) {
    const std::size_t i = meeting[one];
    chosen[i] = drifted.draw;
    if (drifted.draw >= 0) {
      timelines[i] = std::move(drifted.timeline);
      spreads[i] = drifted.spread;
    }
  };
  share_out(replay.workers(), {.count = meeting.size(),
                               .work = [&](std::size_t one) { return to_bytes(drift_of(one)); },
                               .take = [&](std::size_t one, const auto& bytes) { take(one, drifted_from(bytes)); },
                               .here = [&](std::size_t one) { take(one, drift_of(one)); }});
  return chosen;
}

} // namespace stagecraft
