// Equal replicas that share a port, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/load_platform.hpp"
#include "sim/replay/what_if/lockstep.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

struct World {
  Platform platform;
  TaskGraph graph;

  double seconds(const TaskGraph& of) const {
    const ReplayRequest request{of, platform};
    return replay_simgrid({&request, 1}).front().end();
  }
  double lockstep() const { return seconds(graph); }
  double drifted_median() const {
    std::vector<double> all;
    for (int draw = 0; draw < kDriftDraws; ++draw) {
      all.push_back(seconds(drifted(graph, 1, draw)));
    }
    return all[median_index(all)];
  }
};

// Two stages of replicas that share every micro-batch; forward takes each device the given seconds, backward none. A
// transfer of 2 B over links of 2 B/s takes a second. With a port, the transfers of each direction cross that too.
constexpr int kMicroBatches = 16;

World replicas(const std::vector<double>& senders, const std::vector<double>& receivers, double port) {
  World world;
  DeviceType type;
  type.name = "x";
  const auto devices = static_cast<int>(senders.size() + receivers.size());
  world.platform = make_star_platform(type, devices, BytesPerSecond{2}, Seconds{0});
  PlanCost cost;
  DeviceId device = 0;
  for (const std::vector<double>& seconds : {senders, receivers}) {
    StageCost& stage = cost.stages.emplace_back();
    for (const double forward : seconds) {
      ReplicaCost replica{.device = device++, .share = 1.0 / static_cast<double>(seconds.size())};
      replica.forward = Seconds{forward};
      stage.replicas.push_back(replica);
    }
  }
  cost.edges.push_back({0, 1, Bytes{4}});
  cost.cut.push_back(Bytes{4});
  Router router(world.platform);
  world.graph =
      make_task_graph({.cost = cost, .schedule = test::schedule_of("naive", 2, kMicroBatches), .router = router});
  if (port > 0) {
    const auto first = static_cast<LinkId>(world.platform.links.size());
    world.platform.links.resize(first + 2, {"port", 0, 0, BytesPerSecond{port}, Seconds{0}});
    for (const Work& work : world.graph.works) {
      if (work.transfers() && work.bytes > 0) {
        world.graph.legs[work.leg].links.push_back(first + work.stage);
      }
    }
  }
  return world;
}

TEST_CASE("equal replicas behind one port are replayed in lockstep, and faster once they have drifted apart",
          "[replay][lockstep]") {
  const World world = replicas({10, 10}, {10, 10}, 2);
  REQUIRE(replicas_meet(world.graph, world.platform));
  // A micro-batch computes on both stages, and crosses the port there and back. In lockstep both replicas' 2 B share
  // its 2 B/s each time; apart, each has it for itself.
  const double lockstep = kMicroBatches * (10 + 2 + 10 + 2), alone = kMicroBatches * (10 + 1 + 10 + 1);
  CHECK(world.lockstep() == test::near(lockstep));
  CHECK(world.drifted_median() < lockstep - 1);
  CHECK(world.drifted_median() > alone);
}

TEST_CASE("replicas meet where the link is too narrow for both", "[replay][lockstep]") {
  const auto meet = [](const World& world) { return replicas_meet(world.graph, world.platform); };
  CHECK(meet(replicas({10, 10}, {10, 10}, 3.9)));
  CHECK_FALSE(meet(replicas({10, 10}, {10, 10}, 4))); // 2 B/s each, by their own links
  CHECK_FALSE(meet(replicas({10, 10}, {10, 10}, 0)));
}

TEST_CASE("replicas meet where they are equal and do not wait for each other anyhow", "[replay][lockstep]") {
  const auto meet = [](const World& world) { return replicas_meet(world.graph, world.platform); };
  CHECK(meet(replicas({10, 10.2}, {10, 10.2}, 2)));
  CHECK_FALSE(meet(replicas({10, 10.5}, {10, 10.5}, 2)));
  CHECK(meet(replicas({10, 10.5}, {10, 10}, 2))); // their gradients
  CHECK_FALSE(meet(replicas({10, 10}, {10}, 2))); // one receiver waits for both
  CHECK_FALSE(meet(replicas({10}, {10, 10}, 2))); // one sender
}

TEST_CASE("draws are the same for the same seed and keep what a device computes", "[replay][lockstep]") {
  const World world = replicas({10, 10}, {10, 10}, 2);
  const auto seconds_of = [](const TaskGraph& graph) {
    std::vector<double> seconds;
    for (const std::int32_t work : graph.work) {
      seconds.push_back(graph.works[work].seconds.value);
    }
    return seconds;
  };
  const TaskGraph drawn = drifted(world.graph, 1, 0);
  CHECK(seconds_of(drawn) == seconds_of(drifted(world.graph, 1, 0)));
  CHECK(seconds_of(drawn) != seconds_of(drifted(world.graph, 1, 1)));
  CHECK(seconds_of(drawn) != seconds_of(drifted(world.graph, 2, 0)));
  for (std::size_t device = 0; device < 4; ++device) {
    double computing = 0;
    for (const TaskId task : drawn.program_of(device)) {
      computing += drawn.works[drawn.work[task]].seconds.value;
    }
    CHECK(computing == test::near(kMicroBatches * 10.0));
  }
}

TEST_CASE("the median of draws is one of them", "[replay][lockstep]") {
  CHECK(median_index(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median_index(std::vector<double>{1, 1, 1, 0, 2}) == 1);
  CHECK(gains(0.99, 1));
  CHECK_FALSE(gains(1, 1));
}

} // namespace
} // namespace stagecraft
