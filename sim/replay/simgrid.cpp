// Replay on SimGrid, which sees only links and flows. Dependencies and program order are ours; a computation or a
// latency is a timer, the bytes of a transfer are a Comm. In the engine simgrid-full a computation is an Exec.
// docs/decisions/0002-simgrid-as-flow-engine.md says why. This is a module: docs/decisions/0017-short-runs.md.
// SPDX-License-Identifier: Apache-2.0
#include <simgrid/kernel/ProfileBuilder.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/version.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <sstream>
#include <stdexcept>

#include "sim/base/process/child.hpp"
#include "sim/replay/simgrid_module.hpp"
#include "sim/replay/speeds.hpp"
#include "sim/replay/start_simgrid.hpp"

namespace stagecraft {
namespace {

namespace sg = simgrid::s4u;

double clock_now() { return sg::Engine::get_clock(); }

// The links of all graphs of a batch, and one sending host per distinct leg. A star zone takes any list of links as a
// host's route out, so every topology fits, and nothing grows with the pairs of devices. It drops a link that stands in
// the list again, so a coupled flow that crosses a link several times has a zone of two hosts for itself. Graphs of
// several platforms share the links of equal numbers, which take the bandwidths of a platform before its graph runs.
class Network {
public:
  Network(std::span<const ReplayRequest> requests, bool computes) {
    zone_ = sg::create_star_zone("network");
    sink_ = zone_->create_host("sink", 1.0);
    zone_->add_route(sink_->get_netpoint(), nullptr, nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
    zone_->add_route(nullptr, sink_->get_netpoint(), nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
    for (const ReplayRequest& request : requests) {
      links_.resize(std::max(links_.size(), request.platform.links.size()), nullptr);
      for (const Leg& leg : request.graph.legs) {
        add(request.platform, leg);
      }
    }
    for (std::size_t request = 0; computes && request < requests.size(); ++request) {
      add_computers(requests[request], request);
    }
    zone_->seal();
  }

  /// One host per device of a request's graph; empty if computations are timers.
  std::vector<sg::Host*> computers(std::size_t request) const {
    return computers_.empty() ? std::vector<sg::Host*>{} : computers_[request];
  }

  /// The hosts at the two ends of a leg.
  struct Ends {
    sg::Host *sender = nullptr, *sink = nullptr;
  };
  const Ends& ends(const Platform& platform, const Leg& leg) const { return ends_.at(limited_links(platform, leg)); }

  /// Gives the links of a graph the bandwidths of its platform. No transfer may be under way.
  void adopt(const Platform& platform, const TaskGraph& graph) const {
    for (const Leg& leg : graph.legs) {
      for (const LinkId id : leg.links) {
        const double bandwidth = platform.links[id].bandwidth.value;
        if (links_[id] != nullptr && !std::isinf(bandwidth) && links_[id]->get_bandwidth() != bandwidth) {
          links_[id]->set_bandwidth(bandwidth);
        }
      }
    }
  }

private:
  // One host per device. A host's speed is the largest that the device ever has; its profile holds fractions of that.
  void add_computers(const ReplayRequest& request, std::size_t number) {
    const Speeds speeds(request.graph, request.speeds);
    std::vector<sg::Host*>& hosts = computers_.emplace_back();
    for (std::size_t device = 0; device < request.graph.devices.size(); ++device) {
      const std::string name = "computer-" + std::to_string(number) + "-" + std::to_string(device);
      double largest = 1;
      const auto steps = speeds.constant() ? std::span<const Speeds::Step>{} : speeds.steps(device);
      for (const Speeds::Step& step : steps) {
        largest = std::max(largest, step.speed);
      }
      hosts.push_back(zone_->create_host(name, largest));
      if (!steps.empty()) {
        std::ostringstream profile;
        profile << std::setprecision(17);
        if (steps.front().at > 0) {
          profile << "0 " << 1 / largest << "\n";
        }
        for (const Speeds::Step& step : steps) {
          profile << step.at << " " << step.speed / largest << "\n";
        }
        hosts.back()->set_speed_profile(simgrid::kernel::profile::ProfileBuilder::from_string(name, profile.str(), -1));
      }
    }
  }

  // The links of a leg without those of infinite bandwidth.
  static std::vector<LinkId> limited_links(const Platform& platform, const Leg& leg) {
    std::vector<LinkId> limited;
    for (const LinkId id : leg.links) {
      if (!std::isinf(platform.links[id].bandwidth.value)) {
        limited.push_back(id);
      }
    }
    return limited;
  }

  void add(const Platform& platform, const Leg& leg) {
    const std::vector<LinkId> limited = limited_links(platform, leg);
    if (std::isinf(leg.bandwidth.value) || ends_.contains(limited)) {
      return;
    }
    std::vector<sg::LinkInRoute> links;
    for (const LinkId id : limited) {
      if (links_[id] == nullptr) {
        links_[id] = zone_->create_link("link-" + std::to_string(id), platform.links[id].bandwidth.value);
        links_[id]->set_latency(0); // a latency would change how flows share; a timer stands for it
      }
      links.emplace_back(links_[id]);
    }
    const std::string number = std::to_string(ends_.size());
    const bool repeats = std::adjacent_find(limited.begin(), limited.end()) != limited.end();
    ends_.emplace(limited, repeats ? two_hosts(number, links) : Ends{sender(number, links), sink_});
  }

  sg::Host* sender(const std::string& number, const std::vector<sg::LinkInRoute>& links) {
    sg::Host* host = zone_->create_host("sender-" + number, 1.0);
    zone_->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, links, false);
    return host;
  }

  Ends two_hosts(const std::string& number, const std::vector<sg::LinkInRoute>& links) {
    sg::NetZone* zone = sg::create_full_zone("coupled-" + number);
    zone->set_parent(zone_);
    const Ends ends{zone->create_host("sender-" + number, 1.0), zone->create_host("sink-" + number, 1.0)};
    zone->add_route(ends.sender->get_netpoint(), ends.sink->get_netpoint(), nullptr, nullptr, links, false);
    zone->seal();
    return ends;
  }

  sg::NetZone* zone_ = nullptr;
  sg::Host* sink_ = nullptr;
  std::vector<sg::Link*> links_;
  std::map<std::vector<LinkId>, Ends> ends_;
  std::vector<std::vector<sg::Host*>> computers_; // [request][device of the graph]
};

// One graph running on the engine. If there are hosts, one per device of the graph, computations are Execs on them.
class Phase {
public:
  // `times`: for each task of each iteration its start and its finish, side by side, as they are used together.
  Phase(const Network& network, const ReplayRequest& request, std::vector<sg::Host*> hosts, std::span<double> times)
      : graph_(request.graph), iterations_(request.iterations), speeds_(graph_, request.speeds),
        hosts_(std::move(hosts)), times_(times), begin_(clock_now()) {
    const std::vector<std::int32_t> waits = graph_.waits_over<std::int32_t>(iterations_);
    waiting_.reserve(waits.size());
    for (Executed executed = 0; executed < waits.size(); ++executed) {
      const TaskId task = task_of(executed);
      const auto next = graph_.successors_of(task);
      waiting_.push_back({waits[executed], graph_.work[task], next.size() == 1 ? next.front() : kSeveral});
    }
    position_.assign(graph_.devices.size(), 0);
    busy_.assign(graph_.devices.size(), 0);
    send_queues_.resize(graph_.channels);
    for (const Leg& leg : graph_.legs) {
      ends_.push_back(std::isinf(leg.bandwidth.value) ? Network::Ends{} : network.ends(request.platform, leg));
    }
  }

  void start() {
    for (Executed executed = 0; executed < waiting_.size() && !graph_.ties.empty(); ++executed) {
      if (waiting_[executed].inputs == 0 && !work_of(executed).computes()) { // the first batches
        after(Seconds{0}, [this, executed] { begin(executed); });
      }
    }
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      dispatch(device);
    }
  }

  void finished(sg::Activity const& activity) {
    const auto slot = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    if (slot == 0) {
      return;
    }
    last_ = std::move(live_[slot - 1]); // the last reference must outlive the callback
    free_slots_.push_back(slot - 1);
    const Executed executed = executed_of_slot_[slot - 1];
    const Work& work = work_of(executed);
    work.computes() ? computed(executed, work.device) : arrived(executed, work);
  }

  bool complete() const {
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      if (position_[device] < static_cast<long>(graph_.program_of(device).size()) * iterations_) {
        return false;
      }
    }
    return true;
  }

private:
  using Executed = std::size_t; // iteration * tasks + task

  // The transfers sent over one channel, in the order in which they became ready. The first is flowing or waiting for
  // its latency.
  struct SendQueue {
    std::vector<Executed> queue;
    std::size_t first = 0;
  };

  // What is needed of a task when an input arrives and when it ends, in one place for the cache.
  struct Waiting {
    std::int32_t inputs; // that have not arrived
    std::int32_t work;
    TaskId next; // its successor, or kSeveral: any other number than one
  };
  static constexpr TaskId kSeveral = -1;

  TaskId task_of(Executed executed) const {
    return static_cast<TaskId>(iterations_ == 1 ? executed : executed % graph_.tasks()); // divisions take long
  }

  const Work& work_of(Executed executed) const { return graph_.works[waiting_[executed].work]; }
  double& start_of(Executed executed) { return times_[2 * executed]; }
  double& finish_of(Executed executed) { return times_[2 * executed + 1]; }

  double now() const { return clock_now() - begin_; }

  // Starts the device's next computation if its inputs are there.
  void dispatch(std::size_t device) {
    const auto program = graph_.program_of(device);
    const long length = static_cast<long>(program.size());
    const long at = position_[device];
    if (busy_[device] != 0 || at == length * iterations_) {
      return;
    }
    const Executed executed = static_cast<Executed>(at / length) * graph_.tasks() + program[at % length];
    if (waiting_[executed].inputs > 0) {
      return;
    }
    busy_[device] = 1;
    ++position_[device];
    start_of(executed) = now();
    follow_ties(executed, true);
    const Seconds seconds = work_of(executed).seconds;
    if (!hosts_.empty() && seconds.value > 0) {
      compute(executed, *hosts_[device], seconds);
      return;
    }
    const Seconds lasts = speeds_.constant() ? seconds : Seconds{speeds_.finish(device, now(), seconds.value) - now()};
    after(lasts, [this, executed, device] { computed(executed, device); });
  }

  void computed(Executed executed, std::size_t device) {
    busy_[device] = 0;
    finish(executed);
    dispatch(device);
  }

  // A host of speed 1 does the work of a second in a second.
  void compute(Executed executed, sg::Host& host, Seconds seconds) {
    const sg::ExecPtr exec = sg::Exec::init();
    exec->set_flops_amount(seconds.value);
    const std::size_t slot = take_slot(executed);
    exec->set_data(reinterpret_cast<void*>(slot + 1));
    live_[slot] = exec;
    exec->set_host(&host);
#if SIMGRID_VERSION >= 33600
    exec->detach();
#else
    exec->vetoable_start();
#endif
  }

  template <class Then> static void after(Seconds delay, Then then) {
    simgrid::kernel::timer::Timer::set(clock_now() + delay.value, std::move(then));
  }

  void finish(Executed executed) {
    finish_of(executed) = now();
    const TaskId task = task_of(executed);
    const Executed base = executed - task;
    if (const TaskId next = waiting_[executed].next; next != kSeveral) {
      arrive(base + next);
    } else {
      for (const TaskId each : graph_.successors_of(task)) {
        arrive(base + each);
      }
    }
    follow_ties(executed, false);
  }

  void arrive(Executed executed) {
    if (--waiting_[executed].inputs == 0) {
      begin(executed);
    }
  }

  // Starts a task whose inputs are there; a computation only when its device gets to it.
  void begin(Executed executed) {
    const Work& work = work_of(executed);
    if (work.computes()) {
      dispatch(work.device);
      return;
    }
    start_of(executed) = now();
    follow_ties(executed, true);
    if (work.transfers()) {
      transfer(executed, work);
    } else if (work.loads()) {
      after(work.seconds, [this, executed] { finish(executed); });
    } else {
      finish(executed);
    }
  }

  void follow_ties(Executed executed, bool from_start) {
    if (graph_.ties.empty()) {
      return;
    }
    for (const Tie& tie : graph_.ties_of(task_of(executed))) {
      const Executed later = executed - task_of(executed) + static_cast<Executed>(tie.iterations) * graph_.tasks();
      if (tie.from_start == from_start && later < waiting_.size()) {
        arrive(later + tie.to);
      }
    }
  }

  // The latency of a transfer passes while those before it on its channel still flow.
  void transfer(Executed executed, const Work& work) {
    if (work.channel >= 0) {
      SendQueue& sends = send_queues_[work.channel];
      sends.queue.push_back(executed);
      if (sends.queue.size() - sends.first > 1) {
        return;
      }
    }
    if (work.latency.value > 0) {
      after(work.latency, [this, executed, &work] { send(executed, work); });
    } else {
      send(executed, work);
    }
  }

  void send(Executed executed, const Work& work) {
    if (!flow(executed, work)) {
      arrived(executed, work);
    }
  }

  // The next transfer on the channel flows now if it has been ready for its latency.
  void arrived(Executed executed, const Work& work) {
    finish(executed);
    if (work.channel < 0) {
      return;
    }
    SendQueue& sends = send_queues_[work.channel];
    while (++sends.first < sends.queue.size()) {
      const Executed next = sends.queue[sends.first];
      const Work& waiting = work_of(next);
      const double entered = now() - waiting.latency.value;
      if (entered < start_of(next)) {
        after(Seconds{start_of(next) - entered}, [this, next, &waiting] { send(next, waiting); });
        return;
      }
      start_of(next) = entered;
      if (flow(next, waiting)) {
        return;
      }
      finish(next);
    }
    sends.queue.clear();
    sends.first = 0;
  }

  std::size_t take_slot(Executed executed) {
    std::size_t slot = live_.size();
    if (free_slots_.empty()) {
      live_.emplace_back();
      executed_of_slot_.emplace_back();
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    executed_of_slot_[slot] = executed;
    return slot;
  }

  // Starts the flow of a transfer; false if it takes no time.
  bool flow(Executed executed, const Work& work) {
    if (work.bytes < 1 || ends_[work.leg].sender == nullptr) { // SimGrid never ends a Comm of no bytes
      return false;
    }
    const std::size_t slot = take_slot(executed);
    const sg::CommPtr comm = sg::Comm::sendto_init();
    comm->set_payload_size(static_cast<std::uint64_t>(work.bytes));
    comm->set_data(reinterpret_cast<void*>(slot + 1));
    live_[slot] = comm;
    comm->set_source(ends_[work.leg].sender);
    comm->set_destination(ends_[work.leg].sink); // starts it
    return true;
  }

  const TaskGraph& graph_;
  int iterations_;
  Speeds speeds_;
  std::vector<sg::Host*> hosts_;
  std::span<double> times_;
  double begin_;
  std::vector<Waiting> waiting_; // [executed]
  std::vector<long> position_;
  std::vector<char> busy_;
  std::vector<SendQueue> send_queues_;
  std::vector<Network::Ends> ends_; // [leg]
  std::vector<sg::ActivityPtr> live_;
  std::vector<Executed> executed_of_slot_;
  std::vector<std::size_t> free_slots_;
  sg::ActivityPtr last_;
};

// Where the clock starts for a graph: a power of two so far beyond its times that all clock values up to twice as late
// are rounded alike. So a replay does not depend on what ran before it on the same engine. 0: the graph needs a clock
// of its own, since its speed profiles have dates.
double clock_start(const ReplayRequest& request, bool computes) {
  if (computes && !request.speeds.empty()) {
    return 0;
  }
  double all = 0; // seconds, if one task ran after another
  for (const std::int32_t work : request.graph.work) {
    all += request.graph.works[work].seconds.value + request.graph.works[work].latency.value;
  }
  constexpr double kRoom = 64; // so that some 64 graphs fit on one engine
  int exponent = 0;
  std::frexp(kRoom * all * request.iterations, &exponent);
  return std::ldexp(1.0, exponent);
}

void move_clock_to(sg::Engine& engine, double date) {
  if (date > 0) {
    simgrid::kernel::timer::Timer::set(date, [] {});
    engine.run();
  }
}

// Runs graphs one after another on one engine, from `start` on; each measures times from its own start. Returns how
// many fitted before the clock reached twice `start`, at least one.
std::size_t run_batch(std::span<const ReplayRequest> requests, double start, std::span<double> times, bool computes) {
  sg::Engine engine = start_simgrid();
  const Network network(requests, computes);
  Phase* phase = nullptr;
  const auto finished = [&phase](sg::Activity const& activity) { phase->finished(activity); };
#if SIMGRID_VERSION >= 33400
  sg::Comm::on_completion_cb(finished);
#else
  sg::Activity::on_completion_cb(finished);
#endif
  move_clock_to(engine, start);
  std::size_t at = 0;
  for (std::size_t number = 0; number < requests.size(); ++number) {
    const ReplayRequest& request = requests[number];
    const std::size_t executed = static_cast<std::size_t>(request.graph.tasks()) * request.iterations;
    network.adopt(request.platform, request.graph);
    Phase current(network, request, network.computers(number), times.subspan(at, 2 * executed));
    phase = &current;
    current.start();
    engine.run();
    if (!current.complete()) {
      throw std::runtime_error("the replay stopped with tasks waiting for each other");
    }
    if (start > 0 && clock_now() >= 2 * start) {
      return std::max<std::size_t>(1, number); // the first graph counts in any case: it began at `start`
    }
    at += 2 * executed;
  }
  return requests.size();
}

struct Started {
  double start;        // start of the clock
  std::size_t request; // index into all requests
};

// Requests ordered by the start of their clocks; equal ones keep their order.
std::vector<Started> by_start(std::span<const ReplayRequest> requests, bool computes) {
  std::vector<Started> order;
  order.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    order.push_back({clock_start(requests[i], computes), i});
  }
  std::stable_sort(order.begin(), order.end(), [](const Started& a, const Started& b) { return a.start < b.start; });
  return order;
}

// The requests, from `first` on, that may run on one engine.
std::vector<ReplayRequest> batch_from(std::span<const ReplayRequest> requests, std::span<const Started> order,
                                      std::size_t first) {
  constexpr std::size_t kBatch = 200;
  const double start = order[first].start;
  std::vector<ReplayRequest> batch;
  for (std::size_t i = first; i < order.size() && order[i].start == start && batch.size() < kBatch; ++i) {
    batch.push_back(requests[order[i].request]);
    if (start == 0) {
      break;
    }
  }
  return batch;
}

std::vector<Timeline> replay_in_batches(std::span<const ReplayRequest> requests, bool computes) {
  std::vector<Timeline> timelines(requests.size());
  const std::vector<Started> order = by_start(requests, computes);
  for (std::size_t first = 0; first < order.size();) {
    const std::vector<ReplayRequest> batch = batch_from(requests, order, first);
    std::size_t doubles = 0;
    for (const ReplayRequest& request : batch) {
      doubles += 2 * static_cast<std::size_t>(request.graph.tasks()) * request.iterations;
    }
    SharedDoubles shared(doubles + 1); // times, and in the last element the number of graphs that ran
    const std::span<double> times = shared.values().first(doubles);
    double& done = shared.values().back();
    run_in_child([&] { done = static_cast<double>(run_batch(batch, order[first].start, times, computes)); });
    auto from = times.begin();
    for (std::size_t i = 0; i < static_cast<std::size_t>(done); ++i) {
      const ReplayRequest& request = batch[i];
      const std::size_t executed = static_cast<std::size_t>(request.graph.tasks()) * request.iterations;
      Timeline& timeline = timelines[order[first + i].request];
      timeline.iterations = request.iterations;
      timeline.start.reserve(executed);
      timeline.finish.reserve(executed);
      for (std::size_t entry = 0; entry < executed; ++entry) {
        timeline.start.push_back(*from++);
        timeline.finish.push_back(*from++);
      }
    }
    first += static_cast<std::size_t>(done);
  }
  return timelines;
}

} // namespace

void stagecraft_replay_simgrid(std::span<const ReplayRequest> requests, bool computes,
                               std::vector<Timeline>& timelines) {
  timelines = replay_in_batches(requests, computes);
}

} // namespace stagecraft
