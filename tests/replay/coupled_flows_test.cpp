// Collectives as coupled flows: alone they take their closed form, and they share links as their hops would.
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "sim/base/process/child.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/replay/simgrid/start.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"
#include "tests/replay/flows.hpp"

namespace stagecraft {
namespace {

using test::arrivals;
using test::cluster;
using test::first_devices;
using test::near;

std::vector<double> bandwidths_of(const Platform& platform) {
  std::vector<double> bandwidths;
  for (const Link& link : platform.links) {
    bandwidths.push_back(link.bandwidth.value);
  }
  return bandwidths;
}

double replayed(const Platform& platform, const Flows& flows, double buffer, ReplayFunction engine) {
  const Bytes bytes{buffer};
  double sum = 0;
  for (std::size_t first = 0; first < flows.size();) {
    std::vector<test::Flow> together; // those beside each other begin together
    do {
      const CoupledFlow& flow = flows[first++];
      together.push_back({flow.sent(bytes).value, {flow.leg.links}, 0, flow.latency(bytes).value});
    } while (first < flows.size() && flows[first].beside);
    const std::vector<double> ends = arrivals(bandwidths_of(platform), together, engine);
    sum += *std::max_element(ends.begin(), ends.end());
  }
  return sum;
}

TEST_CASE("alone, the flows of every algorithm take its closed form", "[replay][collective]") {
  constexpr double kBuffer = 5040e6; // whole numbers of bytes for these groups
  for (const Platform& platform :
       {cluster({1, 8, "device", "1 us", true}), cluster({2, 2}), cluster({3, 4}), cluster({3, 4, "node"}),
        cluster({7, 1}), cluster({1, 8, "node", "1 us", false, "10 GB/s"}), test::meshes(1, 4), test::meshes(2, 3)}) {
    Router router(platform);
    const auto devices = first_devices(static_cast<int>(platform.devices.size()));
    for (const CollectiveKind kind : test::kKinds) {
      for (const Way& way : ways_of(kind, devices, router, "auto")) {
        CAPTURE(way.algorithm->name, devices.size());
        const double expected = seconds_of(way.flows, Bytes{kBuffer}).value;
        for (const ReplayFunction engine : {replay_simgrid, replay_analytic}) {
          CHECK(replayed(platform, way.flows, kBuffer, engine) == Approx(expected).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("a link that a flow crosses twice is filled twice as fast", "[replay][sharing]") {
  CHECK(arrivals({10}, {{100, {{0, 0}}}}).front() == near(20));
  // Both advance at 10/3 B/s: the coupled flow takes two thirds of the link. The other has its 50 B at 15; then the
  // coupled flow has 50 of 100 left, at 5 B/s.
  const auto shared = arrivals({10}, {{100, {{0, 0}}}, {50, {{0}}}});
  CHECK(shared[0] == near(25));
  CHECK(shared[1] == near(15));
}

TEST_CASE("the slowest hop sets the pace of all, and others have what it leaves", "[replay][sharing]") {
  // A ring over links of 10, 10 and 2 B/s advances at 2; a flow on the first link has 8.
  const auto ring = arrivals({10, 10, 2}, {{100, {{0, 1, 2}}}, {80, {{0}}}});
  CHECK(ring[0] == near(50));
  CHECK(ring[1] == near(10));
  // A flow on the narrow link takes half of it: the ring advances at 1 B/s while that lasts, 20 s, then at 2.
  const auto slowed = arrivals({10, 10, 2}, {{100, {{0, 1, 2}}}, {20, {{2}}}});
  CHECK(slowed[0] == near(20 + 40));
  CHECK(slowed[1] == near(20));
  // Two rings over the same links have half each.
  const auto two = arrivals({10, 10}, {{100, {{0, 1}}}, {100, {{0, 1}}}});
  CHECK(two[0] == near(20));
  CHECK(two[1] == near(20));
}

TEST_CASE("two all-reduces in one cluster share only the NICs", "[replay][collective]") {
  // Two nodes of four devices below one NIC each. Devices 0 and 4 reduce together, and so do 1 and 5: 1 GB each through
  // a NIC of 1 GB/s takes 2 s together. The groups of each node by itself are not disturbed.
  const Platform platform = cluster({2, 4, "node", "0 s"});
  Router router(platform);
  const auto ring = [&](std::vector<DeviceId> devices) {
    const Flows flows = ways_of(CollectiveKind::all_reduce, devices, router, "ring").front().flows;
    return test::Flow{1e9 * flows.front().share, {flows.front().leg.links}};
  };
  const auto ends = arrivals(bandwidths_of(platform), {ring({0, 4}), ring({1, 5}), ring({2, 3})});
  CHECK(ends[0] == near(2));
  CHECK(ends[1] == near(2));
  CHECK(ends[2] == near(0.1));
}

// Flows that begin together on one cluster, without latencies unless it says so.
class Together {
public:
  explicit Together(Platform platform) : platform_(std::move(platform)), router_(platform_) {}

  Together& collective(std::string_view name, CollectiveKind kind, const std::vector<DeviceId>& devices, double bytes) {
    const Flows flows = ways_of(kind, devices, router_, name).front().flows;
    const CoupledFlow& flow = flows[flows.size() / 2]; // of a hierarchical one that between nodes
    flows_.push_back({flow.sent(Bytes{bytes}).value, {flow.leg.links}, 0, flow.latency(Bytes{bytes}).value});
    return *this;
  }
  Together& ring(const std::vector<DeviceId>& devices, double bytes) {
    return collective("ring", CollectiveKind::all_reduce, devices, bytes);
  }
  Together& transfer(DeviceId from, DeviceId to, double bytes) {
    const Leg& leg = router_.find(from, to)->legs.front();
    flows_.push_back({bytes, {leg.links}, 0, leg.latency.value});
    return *this;
  }

  void end_at(const std::vector<double>& seconds) const {
    const std::vector<double> ends = arrivals(bandwidths_of(platform_), flows_);
    REQUIRE(ends.size() == seconds.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      CAPTURE(i);
      CHECK(ends[i] == Approx(seconds[i]).epsilon(1e-9));
    }
  }

private:
  Platform platform_;
  Router router_;
  std::vector<test::Flow> flows_;
};

// Ports of 10 GB/s, NICs of 1 GB/s. Flows on a full link rise alike, counted once for each time that they cross it.
TEST_CASE("twelve collectives that share links, by hand", "[replay][collective]") {
  const Platform node = cluster({1, 4, "device", "0 s", true}), nics = cluster({2, 2, "device", "0 s"}),
                 one_nic = cluster({2, 4, "node", "0 s"});
  const std::vector<DeviceId> four = first_devices(4);
  constexpr auto kReduce = CollectiveKind::all_reduce, kExchange = CollectiveKind::all_to_all;
  // A ring of four carries 2 * 3/4 of its bytes over each port: both at half.
  Together(node).ring(four, 1e9).ring(four, 1e9).end_at({0.3, 0.3});
  // One of two carries 1 GB at half, 0.2 s; the ring of four then has 0.5 of 1.5 GB left.
  Together(node).ring(four, 1e9).ring({0, 1}, 1e9).end_at({0.25, 0.2});
  // In the switch 5/4 GB, 0.25 s; the ring has 0.25 left.
  Together(node).collective("nvls", kReduce, four, 1e9).ring(four, 1e9).end_at({0.25, 0.275});
  // By pairs each rank sends 1/4 GB to three others: with the ring four flows of 2.5 GB/s are on a port, 0.1 s; the
  // ring then has 1.25 GB left.
  Together(node).collective("pairs", kExchange, four, 1e9).ring(four, 1e9).end_at({0.1, 0.225});
  // A tree of four nodes sends half of its bytes four times through the NIC of node 2. 0.2 GB beside it: five
  // crossings, 0.2 GB/s each, 1 s; then the tree has 0.3 of 0.5 left at a quarter of the NIC.
  Together(cluster({4, 1, "device", "0 s"}))
      .collective("tree", kReduce, four, 1e9)
      .transfer(2, 0, 0.2e9)
      .end_at({1 + 0.3 / 0.25, 1});
  // Between nodes each NIC has 2 GB of 4; 1 GB beside it takes 2 s, and 1 GB is left.
  Together(nics).collective("hierarchical", kReduce, four, 4e9).transfer(0, 2, 1e9).end_at({3, 2});
  // A third of the bytes over each link of a full mesh, 1 GB; 0.5 GB on one of them. Its links take 2 us.
  Together(test::meshes(1, 3))
      .collective("direct", CollectiveKind::reduce_scatter, first_devices(3), 3e9)
      .transfer(0, 1, 0.5e9)
      .end_at({0.15 + 2e-6, 0.1 + 2e-6});
  // Two groups below one NIC each way, half of each rank's bytes through it.
  Together(one_nic)
      .collective("pairs", kExchange, {0, 4}, 1e9)
      .collective("pairs", kExchange, {1, 5}, 1e9)
      .end_at({1, 1});
  // A gather brings 3/4 of 4 GB in through the NIC of each node.
  Together(cluster({2, 2, "node", "0 s"}))
      .collective("ring", CollectiveKind::all_gather, four, 4e9)
      .transfer(0, 2, 1e9)
      .end_at({4, 2});
  // Three groups below one NIC; and two, of which the shorter leaves its half to the other.
  Together(one_nic).ring({0, 4}, 1e9).ring({1, 5}, 1e9).ring({2, 6}, 1e9).end_at({3, 3, 3});
  Together(one_nic).ring({0, 4}, 1e9).ring({1, 5}, 2e9).end_at({2, 3});
  // A ring goes both ways, and a transfer beside it in each.
  Together(nics).ring({0, 2}, 1e9).transfer(0, 2, 1e9).transfer(2, 0, 1e9).end_at({2, 2, 2});
}

TEST_CASE("of a measured collective only the bytes share links", "[replay][collective][measured]") {
  // 1 GB among two: 0.1 s at 10 GB/s, in a measured time of 0.2 s - 10 us. Two such at once have half of each port: the
  // bytes take 0.2 s, the rest of the time stays.
  const Platform platform = cluster({1, 2, "node", "0 s", false, "10 GB/s"});
  Router router(platform);
  const Flows flows = ways_of(CollectiveKind::all_reduce, {0, 1}, router, "auto").front().flows;
  const CoupledFlow& flow = flows.front();
  const test::Flow one{flow.sent(Bytes{1e9}).value, {flow.leg.links}, 0, flow.latency(Bytes{1e9}).value};
  const double alone = 0.2 - 10e-6;
  CHECK(arrivals(bandwidths_of(platform), {one}).front() == near(alone));
  const auto both = arrivals(bandwidths_of(platform), {one, one});
  CHECK(both[0] == near(alone + 0.1));
  CHECK(both[1] == near(alone + 0.1));
}

namespace sg = simgrid::s4u;

// When the last of the ranks ends, each an actor of SimGrid with a link of its own out and one in. In every step a rank
// sends a message and receives one: to whom and how much says `send`, (rank, step) -> {receiver, bytes}.
using Send = std::function<std::pair<int, double>(int rank, int step)>;
double by_messages(const std::vector<double>& out, int steps, const Send& send) {
  SharedDoubles end(1);
  run_in_child([&] {
    sg::Engine engine = start_simgrid();
    sg::NetZone* zone = sg::create_star_zone("network");
    const int ranks = static_cast<int>(out.size());
    std::vector<sg::Host*> hosts;
    for (int rank = 0; rank < ranks; ++rank) {
      sg::Host* host = hosts.emplace_back(zone->create_host("rank-" + std::to_string(rank), 1.0));
      const auto link = [&](const char* name, double bandwidth) {
        sg::Link* made = zone->create_link(name + std::to_string(rank), bandwidth);
        made->set_latency(0);
        return std::vector<sg::LinkInRoute>{sg::LinkInRoute(made)};
      };
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, link("out-", out[rank]), false);
      zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, link("in-", 1e12), false);
    }
    zone->seal();
    for (int rank = 0; rank < ranks; ++rank) {
      sg::Actor::create("rank", hosts[rank], [&, rank] {
        int payload = 0;
        for (int step = 0; step < steps; ++step) {
          const auto box = [&](int to) {
            return sg::Mailbox::by_name(std::to_string(to) + "@" + std::to_string(step));
          };
          const auto [to, bytes] = send(rank, step);
          const sg::CommPtr sent = box(to)->put_async(&payload, static_cast<std::uint64_t>(bytes));
          box(rank)->get<int>();
          sent->wait();
        }
        end.values()[0] = std::max(end.values()[0], sg::Engine::get_clock());
      });
    }
    engine.run();
  });
  return end.values()[0];
}

TEST_CASE("SimGrid's own messages take as long on equal links", "[replay][collective]") {
  const double n = 840e6; // a multiple of each number of ranks
  for (const int r : {2, 4, 8}) {
    const Platform platform = cluster({1, r, "device", "0 s"}); // 10 GB/s a port
    Router router(platform);
    const auto coupled = [&](CollectiveKind kind, std::string_view name) {
      return seconds_of(ways_of(kind, first_devices(r), router, name).front().flows, Bytes{n}).value;
    };
    const std::vector<double> ports(r, 10e9);
    const double ring =
        by_messages(ports, 2 * (r - 1), [&](int rank, int) { return std::pair((rank + 1) % r, n / r); });
    CHECK(ring == Approx(coupled(CollectiveKind::all_reduce, "ring")).epsilon(1e-9));
    const double pairs =
        by_messages(ports, r - 1, [&](int rank, int step) { return std::pair((rank + 1 + step) % r, n / r); });
    CHECK(pairs == Approx(coupled(CollectiveKind::all_to_all, "pairs")).epsilon(1e-9));
    int rounds = 0;
    for (int others = 1; others < r; others *= 2) {
      ++rounds;
    }
    const double doubling =
        by_messages(ports, rounds, [&](int rank, int step) { return std::pair(rank ^ (1 << step), n); });
    CHECK(doubling == Approx(rounds * n / 10e9).epsilon(1e-9));
    CHECK(ring <= doubling * (1 + 1e-9));
  }
}

TEST_CASE("beside a slow link whole messages wait for the fast hops too, pieces do not", "[replay][collective]") {
  // Four ranks, 4 GB, one link of 1 GB/s, the others of 4: the slow one carries 2 * 3/4 * 4 GB in 6 s. A message of
  // 1 GB takes 0.25 s over each other hop.
  const double messages =
      by_messages({1e9, 4e9, 4e9, 4e9}, 6, [](int rank, int) { return std::pair((rank + 1) % 4, 1e9); });
  CHECK(messages >= 6 * (1 - 1e-9));
  CHECK(messages <= 6 + 6 * 0.25);
}

TEST_CASE("a ring of a thousand ranks is one flow", "[replay][collective]") {
  const Platform platform = cluster({128, 8});
  Router router(platform);
  const Flows ring = ways_of(CollectiveKind::all_reduce, first_devices(1024), router, "ring").front().flows;
  CHECK(replayed(platform, ring, 1024e6, replay_simgrid) ==
        Approx(seconds_of(ring, Bytes{1024e6}).value).epsilon(1e-9));
}

} // namespace
} // namespace stagecraft
