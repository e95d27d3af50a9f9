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
        cluster({7, 1}), cluster({1, 8, "node", "1 us", false, "10 GB/s"})}) {
    Router router(platform);
    const auto devices = first_devices(static_cast<int>(platform.devices.size()));
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
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
