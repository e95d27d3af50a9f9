// Algorithms of collectives: closed forms by hand, what holds for all of them, and how rings follow the topology.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/workload/training/training.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

using test::cluster;
using test::Cluster;
using test::first_devices;
using test::kKinds;
using test::near;

Flows flows_of(std::string_view name, CollectiveKind kind, const std::vector<DeviceId>& devices, Router& router) {
  const AlgorithmRow& row = find_by_name(algorithms(), name, "algorithm", {});
  const RankMap ranks = map_ranks(devices, router);
  REQUIRE(row.why_not(kind, ranks, router) == "");
  return row.flows(kind, ranks, router);
}

double seconds(std::string_view name, const Cluster& how, double bytes,
               CollectiveKind kind = CollectiveKind::all_reduce) {
  const Platform platform = cluster(how);
  Router router(platform);
  return seconds_of(flows_of(name, kind, first_devices(how.nodes * how.devices), router), Bytes{bytes}).value;
}

TEST_CASE("a ring within a node: 2 (r-1)/r n/B + 2 (r-1) a", "[collective]") {
  for (const int r : {2, 3, 4, 8}) { // two links of 1 us from device to device
    const double a = 2e-6, pieces = r - 1.0;
    CHECK(seconds("ring", {1, r}, 1e9) == near(2 * pieces / r * 0.1 + 2 * pieces * a));
    CHECK(seconds("ring", {1, r}, 1e9, CollectiveKind::reduce_scatter) == near(pieces / r * 0.1 + pieces * a));
    CHECK(seconds("ring", {1, r}, 1e9, CollectiveKind::all_gather) == near(pieces / r * 0.1 + pieces * a));
    CHECK(seconds("ring", {1, r}, 1e9, CollectiveKind::broadcast) == near(0.1 + pieces * a)); // all over each hop
  }
}

TEST_CASE("two nodes of two devices by hand: 4 GB, 1 GB/s a NIC, 10 GB/s inside", "[collective]") {
  // One ring through one NIC a node: 2 * 3/4 * 4 GB / 1 GB/s. Two channels through a NIC each: half of it.
  CHECK(seconds("ring", {2, 2, "node", "0 s"}, 4e9) == near(6.0));
  CHECK(seconds("ring", {2, 2, "device", "0 s"}, 4e9) == near(3.0));
  // Half of the bytes within the node at 10 GB/s, 2 * 1/2 * 2 GB through each NIC, half of the bytes within again.
  CHECK(seconds("hierarchical", {2, 2, "device", "0 s"}, 4e9) == near(0.2 + 2.0 + 0.2));
  // Of each channel's 2 GB one half goes up a tree and down the other: 2 GB through each NIC and direction.
  CHECK(seconds("tree", {2, 2, "device", "0 s"}, 4e9) == near(2.0));
}

TEST_CASE("channels go through each NIC once, and latencies count along the ring", "[collective]") {
  // Two nodes of four: 2 us a hop inside, 2 us between nodes as well, so 2 (r-1) hops of 2 us.
  CHECK(seconds("ring", {2, 4}, 0) == near(14 * 2e-6));
  // Each of four channels carries a quarter: 2 * 7/8 * 4 GB / 4 through each NIC; a port carries three channels.
  CHECK(seconds("ring", {2, 4}, 4e9) == near(1.75 + 14 * 2e-6));
  // A hop that takes longer counts as often as a piece passes it: all hops twice, but for the two fastest neighbours.
  const Platform platform = test::platform_of(
      test::node_text("n", "devices: [{type: a, count: 4}], links: [{kind: nvlink-pair, pairs: [[0, 1], "
                           "[1, 2], [2, 3]], bandwidth: 1 GB/s, latency: 1 us}, {kind: nvlink-pair, "
                           "pairs: [[3, 0]], bandwidth: 1 GB/s, latency: 9 us}, {kind: nvlink-pair, "
                           "pairs: [[0, 2], [1, 3]], bandwidth: 0.5 GB/s, latency: 0}]"));
  Router router(platform);
  const auto ring = flows_of("ring", CollectiveKind::all_reduce, first_devices(4), router);
  CHECK(seconds_of(ring, Bytes{0}).value == near(2 * 12e-6 - 2e-6));
}

TEST_CASE("a double tree over nodes: 2 n/B, and twice its height in latencies", "[collective]") {
  // Tree of four nodes: 4 over 2 over 1 and 3. Node 2 sends half of the bytes up and to both children, and in the other
  // tree, where it is a leaf, half of them up.
  CHECK(seconds("tree", {4, 1}, 4e9) == near(2 * 4.0 + 4 * 2e-6));
  // A thousand nodes: ten levels, no more bytes.
  CHECK(seconds("tree", {1000, 1, "device", "0 s"}, 4e9) == near(8.0));
  CHECK(seconds("tree", {1000, 1}, 0) <= 2 * 10 * 2e-6 + 1e-12);
}

TEST_CASE("every node is an inner node of one tree at most", "[collective]") {
  for (const int nodes : {2, 3, 5, 6, 7, 8, 13, 16, 31}) {
    CAPTURE(nodes);
    CHECK(seconds("tree", {nodes, 1, "device", "0 s"}, 1e9) <= 2.0 * (1 + 1e-12));
  }
}

TEST_CASE("hierarchical by hand: three nodes of two", "[collective]") {
  // 1/2 n inside, 2 * 2/3 * n/2 between, 1/2 n inside; 1 hop, 4 hops, 1 hop of 2 us.
  CHECK(seconds("hierarchical", {3, 2}, 6e9) == near(0.3 + 4.0 + 0.3 + 6 * 2e-6));
  CHECK(seconds("hierarchical", {3, 2}, 6e9, CollectiveKind::reduce_scatter) == near(0.3 + 2.0 + 3 * 2e-6));
  CHECK(seconds("hierarchical", {3, 2}, 6e9, CollectiveKind::all_gather) == near(0.3 + 2.0 + 3 * 2e-6));
}

TEST_CASE("in the switch: (1 + 1/r) n/B + 2 a", "[collective]") {
  for (const int r : {2, 4, 8}) {
    CHECK(seconds("nvls", {1, r, "device", "1 us", true}, 1e9) == near((1 + 1.0 / r) * 0.1 + 2 * 2e-6));
  }
}

TEST_CASE("an all-to-all by pairs: (r-1)/r n/B + (r-1) a", "[collective]") {
  for (const int r : {2, 3, 8}) {
    const double pieces = r - 1.0;
    CHECK(seconds("pairs", {1, r}, 1e9, CollectiveKind::all_to_all) == near(pieces / r * 0.1 + pieces * 2e-6));
  }
  // Two nodes of two: each device sends half of its bytes through its NIC.
  CHECK(seconds("pairs", {2, 2, "device", "0 s"}, 4e9, CollectiveKind::all_to_all) == near(2.0));
}

// Every two of r devices have a link of 10 GB/s and 2 us for each direction: an r-th of the bytes over each, twice.
// Inside two such nodes a hierarchical all-reduce does the same with its halves; between them each of r NICs of 1 GB/s
// has an r-th.
TEST_CASE("a full mesh by hand: every rank's part over a link of its own", "[collective]") {
  for (const int r : {3, 4, 8}) {
    const Platform one = test::meshes(1, r);
    Router router(one);
    const auto takes = [&](CollectiveKind kind) {
      return seconds_of(flows_of("direct", kind, first_devices(r), router), Bytes{1e9}).value;
    };
    CHECK(takes(CollectiveKind::all_reduce) == near(2 * 0.1 / r + 2 * 2e-6));
    CHECK(takes(CollectiveKind::reduce_scatter) == near(0.1 / r + 2e-6));
    CHECK(takes(CollectiveKind::all_gather) == near(0.1 / r + 2e-6));
    const std::vector<Way> ways = ways_of(CollectiveKind::all_reduce, first_devices(r), router, "auto");
    CHECK(fastest_of(ways, Bytes{1e9}).algorithm->name == "direct"); // a ring would take 2 (r-1)/r 0.1
    const Platform two = test::meshes(2, r);
    Router of_two(two);
    const Flows flows = flows_of("hierarchical", CollectiveKind::all_reduce, first_devices(2 * r), of_two);
    REQUIRE(flows.size() == 3);
    CHECK(flows.front().time(Bytes{1e9}).value == near(0.1 / r + 2e-6));
    CHECK(flows[1].sent(Bytes{1e9}).value / 1e9 == near(1.0 / r));
  }
  const Platform star = cluster({1, 4});
  Router router(star);
  CHECK(why_not_wanted(CollectiveKind::all_reduce, first_devices(4), router, "direct") ==
        "not every two of its ranks have a link of their own");
}

// NCCL's channels: 24 for rings and trees inside a node, 16 of NVLS, 32 of an all-to-all; 16 of each between nodes.
TEST_CASE("every algorithm says how many multiprocessors its kernels take", "[collective]") {
  for (const AlgorithmRow& row : algorithms()) {
    CAPTURE(row.name);
    CHECK((row.processors.in_node >= 16 || row.name == "torus")); // whose routers are beside the cores
    CHECK(row.processors.between == (row.name == "torus" ? 0 : 16));
  }
  for (const int nodes : {1, 2}) {
    const Platform platform = cluster({nodes, 4});
    Router router(platform);
    for (const auto& [kind, in_node] : {std::pair{CollectiveKind::all_reduce, 24}, {CollectiveKind::all_to_all, 32}}) {
      for (const Way& way : ways_of(kind, first_devices(4 * nodes), router, "auto")) {
        for (const CoupledFlow& flow : way.flows) {
          CAPTURE(nodes, way.algorithm->name);
          CHECK(flow.processors == (nodes > 1 ? 16 : way.algorithm->name == "nvls" ? 16 : in_node));
        }
      }
    }
  }
}

TEST_CASE("why an algorithm does not run", "[collective]") {
  const Platform two = cluster({2, 2});
  Router router(two);
  const auto why = [&](std::string_view name, const std::vector<DeviceId>& devices,
                       CollectiveKind kind = CollectiveKind::all_reduce) {
    return why_not_wanted(kind, devices, router, name);
  };
  CHECK(why("nvls", {0, 1, 2, 3}) == "its ranks are on several nodes, and nvls works within one");
  CHECK(why("nvls", {0, 1}) == "its ranks are on no NVSwitch that reduces");
  CHECK(why("hierarchical", {0, 1}) == "its ranks are not several on each of several nodes");
  CHECK(why("hierarchical", {0, 2}) == "its ranks are not several on each of several nodes");
  CHECK(why("hierarchical", {0, 1, 2}) == "its ranks are not equally many on each node");
  CHECK(why("hierarchical", {0, 1, 2, 3}) == "");
  CHECK(why("ring", {0, 1}, CollectiveKind::all_to_all) == "a ring carries no all-to-all");
  CHECK(why("tree", {0, 1}, CollectiveKind::all_gather) == "a tree carries all-reduces only");
  CHECK(why("pairs", {0, 1}) == "pairs carry all-to-alls only");
  CHECK(why("torus", {0, 1}) == "its ranks are no grid of a torus");
  CHECK(why("torus", {0, 2}) == "its ranks are on several nodes, and a torus is within one");
  CHECK(why("torus", {0, 1}, CollectiveKind::broadcast) == "a torus carries shifts and broadcasts as a ring");
  CHECK(why("auto", {0, 1}) == "");
}

TEST_CASE("auto takes the least closed form, for each size", "[collective]") {
  const Platform platform = cluster({8, 2});
  Router router(platform);
  const std::vector<Way> ways = ways_of(CollectiveKind::all_reduce, first_devices(16), router, "auto");
  CHECK(ways.size() == 3); // no nvls, no pairs
  for (const double bytes : {1.0, 1e4, 1e6, 1e9}) {
    const double least = seconds_of(fastest_of(ways, Bytes{bytes}).flows, Bytes{bytes}).value;
    for (const Way& way : ways) {
      CHECK(least <= seconds_of(way.flows, Bytes{bytes}).value * (1 + 1e-9));
    }
  }
  CHECK(fastest_of(ways, Bytes{1}).algorithm->name == "tree");   // 30 hops against 8
  CHECK(fastest_of(ways, Bytes{1e9}).algorithm->name != "tree"); // 2 n against less
  CHECK(ways_of(CollectiveKind::all_reduce, {0, 2}, router, "tree").front().algorithm->name == "tree");
  CHECK(ways_of(CollectiveKind::all_reduce, {0, 2}, router, "nvls").front().algorithm->name == "ring");
}

TEST_CASE("the order in which a group lists its devices does not matter", "[collective]") {
  const Platform platform = cluster({2, 4});
  Router router(platform);
  const Flows one = flows_of("ring", CollectiveKind::all_reduce, {0, 1, 2, 3, 4, 5, 6, 7}, router);
  const Flows other = flows_of("ring", CollectiveKind::all_reduce, {0, 4, 1, 5, 2, 6, 3, 7}, router);
  CHECK(one.front().leg.links == other.front().leg.links);
}

TEST_CASE("in a mesh the ring takes the widest hops", "[collective]") {
  // The double links of a DGX-1V form a ring: 0 3 2 1 5 6 7 4.
  const Platform dgx = load_platform(yaml::load(test::platforms_folder() / "nvlink-v100.yaml"), test::shipped_types());
  Router router(dgx);
  CHECK(map_ranks(first_devices(8), router).nodes.front() == std::vector<DeviceId>{0, 3, 2, 1, 5, 6, 7, 4});
  CHECK(flows_of("ring", CollectiveKind::all_reduce, first_devices(8), router).front().leg.bandwidth.value ==
        near(47.9e9));
}

TEST_CASE("between two vendors a ring goes through host memory piece by piece", "[collective]") {
  const Platform mixed = test::platform_of(test::node_text(
      "n", "devices: [{type: a, count: 1}, {type: b, count: 1}], links: [{kind: host-link, bandwidth: 10 "
           "GB/s, latency: 1 us}]"));
  Router router(mixed);
  // Each crosses the host's memory twice, once to write and once to read: 4 bytes for a byte sent, at 100 GB/s.
  const Flows ring = flows_of("ring", CollectiveKind::all_reduce, {0, 1}, router);
  CHECK(seconds_of(ring, Bytes{1e9}).value == near(0.1 + 2 * 2e-6));
  CHECK(std::count(ring.front().leg.links.begin(), ring.front().leg.links.end(), mixed.nodes.front().memory) == 4);
}

// What a rank must send at least, in parts of its buffer: its own terms or sums; parts of them in the others.
double least_sent(CollectiveKind kind, int ranks) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast ? 1 : (ranks - 1.0) / ranks;
}

double sent_by(const Platform& platform, const Flows& flows, DeviceId device, bool receives) {
  double sent = 0;
  for (const CoupledFlow& flow : flows) {
    for (const LinkId link : flow.leg.links) {
      const int end = receives ? platform.links[link].to : platform.links[link].from;
      sent += end == device ? flow.share : 0;
    }
  }
  return sent;
}

void check_row(const AlgorithmRow& row, CollectiveKind kind, const std::vector<DeviceId>& devices, Router& router) {
  const RankMap ranks = map_ranks(devices, router);
  if (!row.why_not(kind, ranks, router).empty()) {
    return;
  }
  const Flows flows = row.flows(kind, ranks, router);
  double before = 0;
  for (const double bytes : {0.0, 1.0, 1e3, 1e6, 1e9}) {
    const double now = seconds_of(flows, Bytes{bytes}).value;
    CHECK((devices.size() > 1 && bytes >= 1e6 ? now > before : now >= before)); // a few bytes may take as long as none
    before = devices.size() > 1 ? now : 0;
  }
  CHECK((devices.size() > 1 || seconds_of(flows, Bytes{1e9}).value == 0));
  for (const DeviceId device : devices) {
    const double least = devices.size() > 1 ? least_sent(kind, static_cast<int>(devices.size())) : 0;
    CHECK(sent_by(router.platform(), flows, device, false) >= least * (1 - 1e-12));
    CHECK(sent_by(router.platform(), flows, device, true) >= least * (1 - 1e-12));
  }
}

TEST_CASE("whatever the algorithm, the collective and the group", "[collective]") {
  std::vector<Platform> platforms = {cluster({1, 8, "node", "1 us", true}),
                                     cluster({3, 1}),
                                     cluster({2, 4, "node"}),
                                     cluster({3, 4}),
                                     cluster({16, 2}),
                                     cluster({2, 8, "node", "1 us", false, "5 GB/s"}),
                                     test::tori(1, 24, "[2, 3, 4]", "true"),
                                     test::tori(2, 8, "[4, 2]", "false")};
  for (const auto& file : test::yaml_files(test::platforms_folder())) {
    platforms.push_back(load_platform(yaml::load(file), test::shipped_types()));
  }
  for (const Platform& platform : platforms) {
    CAPTURE(platform.name, platform.devices.size());
    Router router(platform);
    const int all = std::min(24, static_cast<int>(platform.devices.size()));
    for (const int size : {1, 2, 3, 4, 8, all}) {
      for (const AlgorithmRow& row : algorithms()) {
        for (const CollectiveKind kind : kKinds) {
          CAPTURE(row.name, size, static_cast<int>(kind));
          check_row(row, kind, first_devices(std::min(size, all)), router);
        }
        check_row(row, CollectiveKind::broadcast, first_devices(std::min(size, all)), router);
      }
    }
  }
}

// Four nodes of four: a channel comes back through every second node, so that it leaves by the rail that it came by. It
// then meets the spine at no hop, and takes what it takes below one switch.
TEST_CASE("over rails a ring goes there and back from node to node", "[collective]") {
  const std::string node = test::node_text("n", "count: 4, devices: [{type: a, count: 4}], links: [{kind: nvswitch, "
                                                "bandwidth: 10 GB/s, latency: 1 us}]");
  const std::string rest = ", nic: device, bandwidth: 1 GB/s, latency: 1 us";
  const Platform rails = test::platform_of(node, "topology: rails, nodes_per_leaf: 4, oversubscription: 8" + rest);
  const Platform leaves =
      test::platform_of(node, "topology: leaf-spine, nodes_per_leaf: 2, oversubscription: 8" + rest);
  const auto seconds_on = [&](const Platform& platform) {
    Router router(platform);
    return seconds_of(flows_of("ring", CollectiveKind::all_reduce, first_devices(16), router), Bytes{16e9}).value;
  };
  CHECK(seconds_on(rails) == near(seconds("ring", {4, 4}, 16e9)));
  // Of four channels each crosses both leaves' uplinks of 8 NICs / 8: 2 * 15/16 * 16 GB / 1 GB/s.
  CHECK(seconds_on(leaves) == Approx(30).epsilon(1e-4));
}

// Two nodes of two, 4 GB of each rank in four parts. One goes by the rank's own rail, one to the neighbour, who sends
// it by its rail: 2 GB through each NIC, and as many through each port. Hops take 2 us, two of three steps have one
// that is handed on. By the spine each rail's uplink of 2 NICs / 8 would have 2 GB, 8 s.
TEST_CASE("over rails an all-to-all hands data to the neighbour on the right rail", "[collective]") {
  const auto seconds_of_parts = [](const std::string& vendor, const std::string& port) {
    const std::string node = test::node_text("n", "count: 2, devices: [{type: a, count: 2}], links: [{kind: nvswitch, "
                                                  "latency: 1 us, bandwidth: " +
                                                      port + "}]");
    Platform platform = test::platform_of(node, "topology: rails, nodes_per_leaf: 2, oversubscription: 8, nic: device, "
                                                "bandwidth: 1 GB/s, latency: 1 us");
    platform.types.front().vendor = vendor;
    Router router(platform);
    return seconds_of(flows_of("pairs", CollectiveKind::all_to_all, first_devices(4), router), Bytes{4e9}).value;
  };
  CHECK(seconds_of_parts("nvidia", "10 GB/s") == near(2 + 10e-6));
  // 2 GB, one of them another's, through a port of 1.25 GB/s take no longer; through one that is slower than a NIC no
  // one hands anything on, nor where the library is another.
  CHECK(seconds_of_parts("nvidia", "1.25 GB/s") == near(2 + 10e-6));
  CHECK(seconds_of_parts("nvidia", "0.9 GB/s") > 8);
  CHECK(seconds_of_parts("amd", "10 GB/s") > 8);
}

TEST_CASE("a ring of four thousand ranks", "[collective]") {
  const Platform platform = cluster({512, 8});
  Router router(platform);
  const Flows ring = flows_of("ring", CollectiveKind::all_reduce, first_devices(4096), router);
  CHECK(seconds_of(ring, Bytes{4096e6}).value == near(2 * 4095e6 / 8 / 1e9 + 2 * 4095 * 2e-6));
}

TEST_CASE("a study can name the algorithms that carry out an all-reduce", "[collective]") {
  const Platform platform = cluster({2, 2, "device", "0 s", true, "10 GB/s"});
  Router router(platform);
  const Platform mesh = test::meshes(1, 3);
  Router of_mesh(mesh);
  const Platform torus = test::tori(1, 4, "[4]", "true");
  Router of_torus(torus);
  std::set<std::string> known = {"auto"};
  for (const AlgorithmRow& row : algorithms()) {
    const bool reduces = row.why_not(CollectiveKind::all_reduce, map_ranks({0, 1}, router), router).empty() ||
                         row.why_not(CollectiveKind::all_reduce, map_ranks({0, 1, 2, 3}, router), router).empty() ||
                         row.why_not(CollectiveKind::all_reduce, map_ranks({0, 1, 2}, of_mesh), of_mesh).empty() ||
                         row.why_not(CollectiveKind::all_reduce, map_ranks({0, 1, 2}, of_torus), of_torus).empty();
    if (reduces) {
      known.insert(std::string(row.name));
    }
  }
  const std::vector<std::string> named = names_of(kAllReduces);
  CHECK(std::set<std::string>(named.begin(), named.end()) == known);
}

} // namespace
} // namespace stagecraft
