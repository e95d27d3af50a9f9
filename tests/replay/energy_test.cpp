// Energy as measure() counts it, against SimGrid's own host and link energy plugins on the same runs.
// SPDX-License-Identifier: Apache-2.0
#include <simgrid/plugins/energy.h>

#include <algorithm>
#include <random>

#include "sim/base/process/child.hpp"
#include "sim/replay/simgrid/start.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/random_pipelines.hpp"

namespace stagecraft {
namespace {

namespace sg = simgrid::s4u;
using test::near;

struct Joules3 {
  double devices = 0, hosts = 0, links = 0;
};

std::string watts(double idle, double busy) {
  return std::to_string(idle) + ":" + std::to_string(busy) + ":" + std::to_string(busy);
}

// The same run in SimGrid with its energy plugins: each computation is an Exec on its device's host, each transfer a
// Comm over its links, started when the timeline says. SimGrid finds how long they last and what they draw.
class Oracle {
public:
  Oracle(const TaskGraph& graph, const Timeline& timeline, const Platform& platform)
      : graph_(graph), timeline_(timeline), platform_(platform) {}

  Joules3 run() {
    sg::Engine engine = start_simgrid();
    sg_host_energy_plugin_init();
    sg_link_energy_plugin_init();
    build();
    for (TaskId task = 0; task < graph_.tasks(); ++task) {
      start(task);
    }
    Joules3 total;
    // An actor reads the energy when the last task ends, since hosts draw power as long as the clock runs.
    const double end = *std::max_element(timeline_.finish.begin(), timeline_.finish.end());
    sg::Actor::create("reader", sink_, [this, &total, end] {
      sg::this_actor::sleep_until(end);
      for (sg::Host* host : devices_) {
        total.devices += sg_host_get_consumed_energy(host);
      }
      for (sg::Host* host : hosts_) {
        total.hosts += sg_host_get_consumed_energy(host);
      }
      for (sg::Link* link : links_) {
        total.links += sg_link_get_consumed_energy(link);
      }
    });
    engine.run();
    return total;
  }

private:
  void build() {
    zone_ = sg::create_star_zone("network");
    sink_ = host("sink", 0, 0, {});
    for (std::size_t i = 0; i < graph_.devices.size(); ++i) {
      const DeviceType& type = platform_.type_of(graph_.devices[i]);
      devices_.push_back(host("device-" + std::to_string(i), type.idle.value, type.busy.value, {}));
    }
    for (const Node& node : platform_.nodes) {
      hosts_.push_back(host(node.name, node.host.idle.value, node.host.idle.value, {}));
    }
    for (const Link& link : platform_.links) {
      sg::Link* made = zone_->create_link("link-" + std::to_string(links_.size()), link.bandwidth.value);
      made->set_latency(0);
      made->set_property("wattage_range", std::to_string(link.idle.value) + ":" + std::to_string(link.busy.value));
      links_.push_back(made);
    }
    for (std::size_t leg = 0; leg < graph_.legs.size(); ++leg) {
      std::vector<sg::LinkInRoute> route;
      for (const LinkId link : graph_.legs[leg].links) {
        route.emplace_back(links_[link]);
      }
      senders_.push_back(host("sender-" + std::to_string(leg), 0, 0, route));
    }
    zone_->seal();
  }

  sg::Host* host(const std::string& name, double idle, double busy, const std::vector<sg::LinkInRoute>& route) {
    sg::Host* made = zone_->create_host(name, 1.0);
    made->set_property("wattage_per_state", watts(idle, busy));
    zone_->add_route(made->get_netpoint(), nullptr, nullptr, nullptr, route, false);
    zone_->add_route(nullptr, made->get_netpoint(), nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
    return made;
  }

  void start(TaskId task) {
    const Work& work = graph_.works[graph_.work[task]];
    const double when = timeline_.start[task];
    if (work.computes() && work.seconds.value > 0) {
      sg::Actor::create("task", devices_[work.device], [when, seconds = work.seconds.value] {
        sg::this_actor::sleep_until(when);
        sg::this_actor::execute(seconds);
      });
    } else if (work.transfers()) {
      sg::Actor::create("task", sink_, [this, &work, when] {
        sg::this_actor::sleep_until(when + work.latency.value);
        sg::Comm::sendto(senders_[work.leg], sink_, static_cast<std::uint64_t>(work.bytes));
      });
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const Platform& platform_;
  sg::NetZone* zone_ = nullptr;
  sg::Host* sink_ = nullptr;
  std::vector<sg::Host*> devices_, hosts_, senders_;
  std::vector<sg::Link*> links_;
};

// One SimGrid engine per process.
Joules3 oracle(const TaskGraph& graph, const Timeline& timeline, const Platform& platform) {
  SharedDoubles seen(3);
  run_in_child([&] {
    const Joules3 energy = Oracle(graph, timeline, platform).run();
    seen.values()[0] = energy.devices;
    seen.values()[1] = energy.hosts;
    seen.values()[2] = energy.links;
  });
  return {seen.values()[0], seen.values()[1], seen.values()[2]};
}

// A star of `devices` with one type each and links of different power.
Platform star_of(int devices) {
  Platform platform = make_star_platform({}, devices, BytesPerSecond{64}, Seconds{0.25});
  platform.nodes[0].host.idle = Watts{90};
  for (int device = 0; device < devices; ++device) {
    platform.types.push_back(platform.types[0]);
    platform.types.back().idle = Watts{20.0 + device};
    platform.types.back().busy = Watts{200.0 + 10 * device};
    platform.devices[device].type = device + 1;
  }
  for (std::size_t id = 0; id < platform.links.size(); ++id) {
    platform.links[id].idle = Watts{4 + 0.5 * static_cast<double>(id)};
    platform.links[id].busy = Watts{11 + 2.0 * static_cast<double>(id)};
  }
  return platform;
}

// Two devices, so that all flows that meet take the same links. SimGrid's link plugin updates a link when a flow begins
// or ends there; it misses rates that change because of a flow elsewhere.
TEST_CASE("energy equals what SimGrid's energy plugins count, for every schedule", "[replay][energy]") {
  constexpr double kTolerance = 1e-6;
  std::mt19937 random(51);
  for (const ScheduleRow& row : schedules()) {
    const int ranks = row.name == "accumulate" ? 1 : 2;
    const Platform platform = star_of(ranks);
    Router router(platform);
    test::Pipeline pipeline{.ranks = ranks, .bandwidth = 64, .latency = 0.25, .stage_placement = row.stage_placement};
    for (int s = 0; s < ranks * chunks_of(row, 2); ++s) {
      pipeline.stages.push_back({1 + test::pick_seconds(random), 1 + test::pick_seconds(random), 0.5, 0.75});
      pipeline.bytes.push_back(test::pick(random, 40, 400)); // flows last seconds, and meet
    }
    const ScheduleResult made = make_schedule(row, {ranks, 6, chunks_of(row, 2)});
    REQUIRE(std::holds_alternative<Schedule>(made));
    const Schedule& schedule = std::get<Schedule>(made);
    const test::PlacedPipeline placed = test::placed(pipeline, schedule);
    const TaskGraph graph =
        make_task_graph({.cost = placed.cost, .schedule = schedule, .router = router, .rank_of = placed.rank_of});
    const ReplayRequest request{graph, platform};
    const Timeline timeline = replay_simgrid(std::span(&request, 1)).front();
    const Energy energy = measure(graph, timeline, platform).energy;
    const Joules3 expected = oracle(graph, timeline, platform);
    CAPTURE(row.name);
    CHECK((energy.devices_idle + energy.devices_dynamic).value == Approx(expected.devices).epsilon(kTolerance));
    CHECK(energy.hosts_idle.value == Approx(expected.hosts).epsilon(kTolerance));
    CHECK((energy.links_idle + energy.links_dynamic).value == Approx(expected.links).epsilon(kTolerance));
    CHECK((ranks == 1 || energy.links_dynamic.value > 0));
  }
}

TEST_CASE("energy of a run by hand, ours and SimGrid's", "[replay][energy]") {
  // F = B = 2 s on two stages, one micro-batch, 128 B at 64 B/s each way and 0.5 s of latency: iteration
  // 2 + 2.5 + 2 + 2 + 2.5 + 2 = 13 s, each device busy for 4 s, each of four links full for 2 s.
  const Platform platform = star_of(2);
  Router router(platform);
  const test::Pipeline pipeline{{{2, 2, 0, 0}, {2, 2, 0, 0}}, 2, {128}, 64, 0};
  const PlanCost cost = test::cost_of(pipeline);
  const Schedule schedule = test::schedule_of("1f1b", 2, 1);
  const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
  const ReplayRequest request{graph, platform};
  const Timeline timeline = replay_analytic(std::span(&request, 1)).front();
  const Metrics metrics = measure(graph, timeline, platform);
  const double latency = platform.links[0].latency.value;
  const double time = 12 + 2 * latency;
  REQUIRE(metrics.iteration.value == near(time));
  const Joules3 expected = oracle(graph, timeline, platform);
  const double devices = (20 + 21) * time + (180 + 189) * 4;
  const double links = (4 + 4.5 + 5 + 5.5) * time + (7 + 8.5 + 10 + 11.5) * 2;
  CHECK((metrics.energy.devices_idle + metrics.energy.devices_dynamic).value == near(devices));
  CHECK(expected.devices == Approx(devices).epsilon(1e-6));
  CHECK((metrics.energy.links_idle + metrics.energy.links_dynamic).value == near(links));
  CHECK(expected.links == Approx(links).epsilon(1e-6));
}

} // namespace
} // namespace stagecraft
