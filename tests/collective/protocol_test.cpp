// NCCL's protocols: what hops take by its published tuning, and which protocol a buffer takes.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/named_table.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/collective/protocol.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

using test::first_devices;
using test::near;

// 8 devices a node at 100 GB/s, NICs of 10 GB/s each.
struct Rig {
  int nodes = 1;
  std::string inside = "kind: nvswitch, nccl_at: 5 us";
  std::string network = ", nccl_at: 10 us";
  std::string type = "h800-sxm-80gb";
  std::string nic = "device";
  std::string latency = "5 us";
};

Platform platform_of(const Rig& rig) {
  return test::platform_of(test::node_text("n", "count: " + std::to_string(rig.nodes) +
                                                    ", devices: [{type: " + rig.type + ", count: 8}], links: [{" +
                                                    rig.inside + ", bandwidth: 100 GB/s, latency: " + rig.latency +
                                                    "}, {kind: host-link, bandwidth: 50 GB/s, latency: 2 us}]"),
                           "topology: switch, nic: " + rig.nic + ", bandwidth: 10 GB/s, latency: 10 us" + rig.network);
}

double seconds(const Rig& rig, std::string_view algorithm, CollectiveKind kind, double bytes, int devices = 8) {
  const Platform platform = platform_of(rig);
  Router router(platform);
  const AlgorithmRow& row = find_by_name(algorithms(), algorithm, "algorithm", {});
  return seconds_of(row.flows(kind, map_ranks(first_devices(devices), router), router), Bytes{bytes}).value;
}

constexpr double kMicro = 1e-6;
constexpr auto kAllReduce = CollectiveKind::all_reduce;

TEST_CASE("few bytes go by LL, more by LL128, many by Simple", "[collective][protocol]") {
  // 14 hops of 0.6, 1.9 and 3.4 us after 6.6, 14 and 8.4 us. 7/4 of the bytes over each port: LL at half of 100 GB/s,
  // LL128 at 92.
  const double ll = 15.0 * kMicro, ll128 = 40.6 * kMicro, simple = 56.0 * kMicro;
  CHECK(seconds({}, "ring", kAllReduce, 0) == near(ll));
  CHECK(seconds({}, "ring", kAllReduce, 500e3) == near(ll + 1.75 * 500e3 / 50e9));
  CHECK(seconds({}, "ring", kAllReduce, 5e6) == near(ll128 + 1.75 * 5e6 / 92e9));
  CHECK(seconds({}, "ring", kAllReduce, 500e6) == near(simple + 1.75 * 500e6 / 100e9));
  // Each is the least where it is taken.
  for (double bytes = 1; bytes < 1e9; bytes *= 1.3) {
    const double least =
        std::min({ll + 1.75 * bytes / 50e9, ll128 + 1.75 * bytes / 92e9, simple + 1.75 * bytes / 100e9});
    CHECK(seconds({}, "ring", kAllReduce, bytes) == near(least));
  }
  // Halves of an all-reduce have half of the hops and bytes.
  CHECK(seconds({}, "ring", CollectiveKind::all_gather, 0) == near((6.6 + 7 * 0.6) * kMicro));
  CHECK(seconds({}, "ring", CollectiveKind::reduce_scatter, 500e6) == near((8.4 + 7 * 3.4) * kMicro + 7.0 / 8 * 5e-3));
}

TEST_CASE("LL carries no more than the devices' generation allows", "[collective][protocol]") {
  // Half of 1000 GB/s would be 500; a V100 comes to 39, an A100 to 87.7, an H100 to 141, a B200 to 282.
  const std::vector<std::pair<std::string, double>> most = {
      {"v100-sxm2-32gb", 39e9}, {"a800-sxm-80gb", 87.7e9}, {"h800-sxm-80gb", 141e9}, {"b300-sxm", 282e9}};
  for (const auto& [type, rate] : most) {
    CAPTURE(type);
    const std::string fast = "kind: nvlink-pair, pairs: [[0, 1]], nccl_at: 5 us";
    Platform platform = platform_of({.inside = fast, .type = type});
    for (Link& link : platform.links) {
      link.bandwidth = BytesPerSecond{1e12};
    }
    Router router(platform);
    const Flows flows = ring_flows(CollectiveKind::all_reduce, map_ranks({0, 1}, router), router);
    CHECK(seconds_of(flows, Bytes{100e3}).value == near(7.8 * kMicro + 100e3 / rate));
  }
}

TEST_CASE("without the key, and where a hop's links lack it, links' latencies count", "[collective][protocol]") {
  CHECK(seconds({.inside = "kind: nvswitch"}, "ring", kAllReduce, 1e6) == near(14 * 10 * kMicro + 1.75e6 / 100e9));
  // Between nodes all hops must have it: 2 * 15 hops, of which 4 between nodes take 20 us and the others 10.
  const double ring = (4 * 20 + 26 * 10) * kMicro;
  CHECK(seconds({.nodes = 2, .network = ""}, "ring", kAllReduce, 0, 16) == near(ring));
  CHECK(seconds({.nodes = 2, .inside = "kind: nvswitch"}, "ring", kAllReduce, 0, 16) == near(ring));
}

TEST_CASE("over a network that has it, devices of another vendor go by links' latencies", "[collective][protocol]") {
  const Platform platform = platform_of({.nodes = 2, .inside = "kind: nvswitch", .type = "mi300x-192gb"});
  Router router(platform);
  const Flows flows = ring_flows(kAllReduce, map_ranks({0, 8}, router), router);
  CHECK(seconds_of(flows, Bytes{0}).value == near(2 * 20 * kMicro));
}

TEST_CASE("a link that is slower to answer than the tuning assumes adds the difference", "[collective][protocol]") {
  // Two links of 8 instead of 5 us in each of 14 hops; quicker ones take it off, down to nothing.
  CHECK(seconds({.latency = "8 us"}, "ring", kAllReduce, 0) == near((15.0 + 14 * 6) * kMicro));
  CHECK(seconds({.latency = "4.8 us"}, "ring", kAllReduce, 0) == near((6.6 + 14 * 0.2) * kMicro));
  CHECK(seconds({.latency = "1 us"}, "ring", kAllReduce, 0) == near(6.6 * kMicro));
}

TEST_CASE("over PCIe hops take longer, and there is no LL128", "[collective][protocol]") {
  const Rig pcie{.inside = "kind: pcie-switch, nccl_at: 5 us"};
  CHECK(seconds(pcie, "ring", kAllReduce, 0) == near((6.6 + 14 * 1.0) * kMicro));
  for (double bytes = 1; bytes < 1e9; bytes *= 1.3) {
    CHECK(seconds(pcie, "ring", kAllReduce, bytes) == near(std::min((6.6 + 14 * 1.0) * kMicro + 1.75 * bytes / 50e9,
                                                                    (8.4 + 14 * 5.7) * kMicro + 1.75 * bytes / 100e9)));
  }
}

TEST_CASE("between nodes: latencies of the network, posting at each step, a plateau of Simple",
          "[collective][protocol]") {
  // Two nodes of eight, eight NICs of 10 GB/s: of 30 hops 4 cross the network. LL: a hop inside takes 1 us, as long as
  // posting, and all channels together 22.5 GB/s. Simple: 1.4 times its latencies.
  const Rig two{.nodes = 2};
  CHECK(seconds(two, "ring", kAllReduce, 1e3, 16) == near((6.6 + 26 * 1 + 4 * 2.7) * kMicro + 15.0 / 8 * 1e3 / 22.5e9));
  CHECK(seconds(two, "ring", kAllReduce, 1e9, 16) ==
        near((8.4 + 1.4 * (26 * 3.4 + 4 * 14)) * kMicro + 15.0 / 8 * 1e9 / 80e9));
  CHECK(seconds(two, "ring", CollectiveKind::all_gather, 1e9, 16) ==
        near((8.4 + 13 * 3.4 + 2 * 14) * kMicro + 15.0 / 16 * 1e9 / 80e9));
  // A NIC for each host: through the host LL128 does not pass. 10 GB/s for all.
  const Rig host{.nodes = 2, .nic = "node"};
  for (double bytes = 1; bytes < 1e9; bytes *= 1.3) {
    const double ll = (6.6 + 26 * 1 + 4 * 2.7) * kMicro + 15.0 / 8 * bytes / 5e9;
    const double simple = (8.4 + 1.4 * (26 * 3.4 + 4 * 14)) * kMicro + 15.0 / 8 * bytes / 10e9;
    CHECK(seconds(host, "ring", kAllReduce, bytes, 16) == near(std::min(ll, simple)));
  }
}

TEST_CASE("one rank on each node waits as long as in a tree", "[collective][protocol]") {
  Platform platform = platform_of({.nodes = 4});
  Router router(platform);
  const Flows flows = ring_flows(CollectiveKind::all_gather, map_ranks({0, 8, 16, 24}, router), router);
  CHECK(seconds_of(flows, Bytes{0}).value == near((6.6 + 3 * 5.0) * kMicro));
}

TEST_CASE("trees, sums in the switch, and sends", "[collective][protocol]") {
  // In a node a chain of eight, up and down, with 2 n/B; Simple has 0.92 of the bandwidth.
  CHECK(seconds({}, "tree", kAllReduce, 0) == near((6.8 + 14 * 0.6) * kMicro));
  CHECK(seconds({}, "tree", kAllReduce, 1e9) == near((8.4 + 14 * 4.0) * kMicro + 2e9 / 92e9));
  // Four nodes: two levels of the network, up and down.
  CHECK(seconds({.nodes = 4}, "tree", kAllReduce, 0, 32) == near((6.8 + 14 * 0.6 + 4 * 5.0) * kMicro));
  // In the switch 25 us, whatever the ranks.
  CHECK(seconds({.inside = "kind: nvswitch, reduces: true, nccl_at: 5 us"}, "nvls", kAllReduce, 1e9) ==
        near(25 * kMicro + 9.0 / 8 * 1e9 / 100e9));
  // Seven sends at once, in LL or Simple. Between nodes nothing is published of them: 23 steps of 20 us on three; nor
  // among more than nine ranks: 15 steps of 10 us in a rack of GB200.
  CHECK(seconds({}, "pairs", CollectiveKind::all_to_all, 0) == near(7.2 * kMicro));
  CHECK(seconds({}, "pairs", CollectiveKind::all_to_all, 1e9) == near(11.8 * kMicro + 7.0 / 8 * 1e9 / 100e9));
  CHECK(seconds({.nodes = 3}, "pairs", CollectiveKind::all_to_all, 0, 24) == near(23 * 20 * kMicro));
  const Platform rack = load_platform(yaml::load(test::platforms_folder() / "gb200-nvl72.yaml"), test::shipped_types());
  Router router(rack);
  const Flows flows = pairs_flows(CollectiveKind::all_to_all, map_ranks(first_devices(16), router), router);
  CHECK(seconds_of(flows, Bytes{0}).value == near(15 * 10 * kMicro));
}

TEST_CASE("only the bytes share links, and the rest is latency", "[collective][protocol]") {
  const Platform platform = platform_of({});
  Router router(platform);
  const CoupledFlow flow = ring_flows(CollectiveKind::all_reduce, map_ranks(first_devices(8), router), router).front();
  for (const double bytes : {0.0, 800e3, 8e6, 800e6}) {
    CHECK(flow.sent(Bytes{bytes}).value == 1.75 * bytes);
    CHECK(flow.latency(Bytes{bytes}).value == near(flow.time(Bytes{bytes}).value - 1.75 * bytes / 100e9));
  }
}

TEST_CASE("measured times come before protocols", "[collective][protocol]") {
  const Platform platform =
      platform_of({.inside = "kind: nvswitch, nccl_at: 5 us, measured_at: 100 GB/s", .type = "h100-sxm-80gb"});
  Router router(platform);
  const std::vector<Way> ways = ways_of(CollectiveKind::all_reduce, first_devices(8), router, "auto");
  REQUIRE(ways.size() == 1);
  CHECK(ways.front().algorithm->name == "measured");
}

} // namespace
} // namespace stagecraft
