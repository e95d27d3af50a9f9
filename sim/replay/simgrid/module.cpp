// Replay on SimGrid, which sees only links and flows. In the engine simgrid-full a computation is an Exec.
// docs/decisions/0002-simgrid-as-flow-engine.md says why. This is a module: docs/decisions/0017-short-runs.md.
// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/simgrid/module.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "sim/base/process/child.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/simgrid/flows.hpp"
#include "sim/replay/simgrid/full.hpp"
#include "sim/replay/simgrid/start.hpp"

namespace stagecraft {
namespace {

void move_clock_to(sg::Engine& engine, double date) {
  if (date > 0) {
    simgrid::kernel::timer::Timer::set(date, [] {});
    engine.run();
  }
}

// One graph running on the engine: whatever is told of finished activities.
using Finished = std::function<void(const sg::Activity&)>;

// Elements of memory for a graph's number of iterations, for when its tasks start, and for when they finish.
std::size_t doubles_of(const ReplayRequest& request) {
  const int iterations = std::max(request.iterations, request.most_iterations);
  return 1 + 2 * static_cast<std::size_t>(request.graph.tasks()) * iterations;
}

// Runs a graph and puts that down. Returns when its last task ends.
template <class Phase> double run_phase(Phase&& phase, Finished& finished, std::span<double> put) {
  const double begin = clock_now();
  finished = [&phase](const sg::Activity& activity) { phase.finished(activity); };
  if (!phase.run()) {
    throw std::runtime_error("the replay stopped with tasks waiting for each other");
  }
  Timeline timeline = phase.take();
  put[0] = timeline.iterations;
  const auto finishes = std::copy(timeline.start.begin(), timeline.start.end(), put.begin() + 1);
  timeline.start = {}; // of millions of tasks not all times stand twice
  std::copy(timeline.finish.begin(), timeline.finish.end(), finishes);
  double end = 0;
  for (const double finish : timeline.finish) {
    end = finish < kInfinity ? std::max(end, finish) : end;
  }
  return begin + end;
}

// What run_phase() put down, which is given back.
Timeline timeline_from(SharedDoubles& shared, std::span<const double> put, int tasks) {
  Timeline timeline{.iterations = static_cast<int>(put[0])};
  const std::size_t executed = static_cast<std::size_t>(tasks) * timeline.iterations;
  std::span<const double> rest = put.subspan(1);
  for (std::vector<double>* times : {&timeline.start, &timeline.finish}) {
    times->assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(executed));
    shared.forget(rest.first(executed));
    rest = rest.subspan(executed);
  }
  return timeline;
}

// A request, and where its clock starts.
struct Started {
  double start;
  std::size_t request; // index into all requests
  bool alone;          // with an engine of its own
};

// Runs graphs one after another on one engine, in the order of their clocks' starts, each not before its own; each
// measures times from when it begins. Returns how many fitted, at least one: those that ended before the clock reached
// twice their start, beyond which it rounds more, and those that began right there.
// `apart`: how far the first has come.
std::size_t run_batch(std::span<const ReplayRequest> requests, std::span<const Started> starts, std::span<double> put,
                      bool computes, ApartReplay* apart) {
  sg::Engine engine = start_simgrid();
  const Network network(requests, computes);
  Finished finished;
  const auto tell = [&finished](sg::Activity const& activity) { finished(activity); };
#if SIMGRID_VERSION >= 33400
  sg::Comm::on_completion_cb(tell);
#else
  sg::Activity::on_completion_cb(tell);
#endif
  std::size_t at = 0;
  for (std::size_t number = 0; number < requests.size(); ++number) {
    const ReplayRequest& request = requests[number];
    const double start = starts[number].start;
    const bool begins_there = clock_now() <= start;
    if (begins_there) {
      move_clock_to(engine, start);
    }
    const std::span<double> own = put.subspan(at, doubles_of(request));
    const double end =
        computes ? run_phase(FullPhase(engine, network, request, number), finished, own)
                 : run_phase(FlowPhase(engine, network, request, number, number == 0 ? apart : nullptr), finished, own);
    if (!begins_there && end >= 2 * start) {
      return number;
    }
    at += own.size();
  }
  return requests.size();
}

// Speed profiles of hosts have dates, so a graph with changing speeds needs a clock of its own, which starts at 0.
double start_of_clock(const ReplayRequest& request, bool computes) {
  return computes && !request.speeds.empty() ? 0 : clock_start(request);
}

// Requests ordered by the start of their clocks; equal ones keep their order.
std::vector<Started> by_start(std::span<const ReplayRequest> requests, bool computes) {
  std::vector<Started> order;
  order.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double start = start_of_clock(requests[i], computes);
    order.push_back({start, i, start == 0 || has_own_clock(requests[i])});
  }
  std::stable_sort(order.begin(), order.end(), [](const Started& a, const Started& b) { return a.start < b.start; });
  return order;
}

// The requests, from `first` on, that may run on one engine.
std::vector<ReplayRequest> batch_from(std::span<const ReplayRequest> requests, std::span<const Started> order,
                                      std::size_t first) {
  constexpr std::size_t kBatch = 200;
  const std::size_t most = order[first].alone ? 1 : kBatch;
  std::vector<ReplayRequest> batch;
  for (std::size_t i = first; i < order.size() && batch.size() < most && (i == first || !order[i].alone); ++i) {
    batch.push_back(requests[order[i].request]);
  }
  return batch;
}

std::vector<Timeline> replay_in_batches(std::span<const ReplayRequest> requests, bool computes, ApartReplay* apart) {
  std::vector<Timeline> timelines(requests.size());
  const std::vector<Started> order = by_start(requests, computes);
  for (std::size_t first = 0; first < order.size();) {
    const std::vector<ReplayRequest> batch = batch_from(requests, order, first);
    std::size_t doubles = 0;
    for (const ReplayRequest& request : batch) {
      doubles += doubles_of(request);
    }
    SharedDoubles shared(doubles + 1); // and in the last element the number of graphs that ran
    const std::span<double> put = shared.values().first(doubles);
    double& done = shared.values().back();
    const std::span<const Started> starts = std::span(order).subspan(first, batch.size());
    run_in_child([&] { done = static_cast<double>(run_batch(batch, starts, put, computes, apart)); });
    std::size_t at = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(done); ++i) {
      timelines[order[first + i].request] = timeline_from(shared, put.subspan(at), batch[i].graph.tasks());
      at += doubles_of(batch[i]);
    }
    first += static_cast<std::size_t>(done);
  }
  return timelines;
}

} // namespace

void stagecraft_replay_simgrid(std::span<const ReplayRequest> requests, bool computes, ApartReplay* apart,
                               std::vector<Timeline>& timelines) {
  timelines = replay_in_batches(requests, computes, apart);
}

} // namespace stagecraft
