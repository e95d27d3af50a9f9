// Collectives on a torus: closed forms by hand, and which groups are a grid of it.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/base/named_table.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/collective/torus_grid.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

using test::first_devices;
using test::near;
using test::tori;

Flows ways_through_torus(std::string_view name, CollectiveKind kind, const std::vector<DeviceId>& devices,
                         Router& router) {
  const AlgorithmRow& row = find_by_name(algorithms(), name, "algorithm", {});
  const RankMap ranks = map_ranks(devices, router);
  REQUIRE(row.why_not(kind, ranks, router) == "");
  return row.flows(kind, ranks, router);
}

double torus_seconds(const Platform& platform, const std::vector<DeviceId>& devices, CollectiveKind kind) {
  Router router(platform);
  return seconds_of(ways_through_torus("torus", kind, devices, router), Bytes{1e9}).value;
}

// A rank of a ring has two links of 10 GB/s out, so that (r-1)/r GB take half as long as over one; the last bytes come
// half of the way round.
TEST_CASE("along one axis that wraps around both directions carry a half", "[collective][torus]") {
  for (const int r : {4, 8, 16}) {
    const Platform ring = tori(1, r, "[" + std::to_string(r) + "]", "true");
    const double bytes = (r - 1.0) / r * 0.1 / 2, latency = r / 2 * 1e-6;
    CHECK(torus_seconds(ring, first_devices(r), CollectiveKind::all_gather) == near(bytes + latency));
    CHECK(torus_seconds(ring, first_devices(r), CollectiveKind::reduce_scatter) == near(bytes + latency));
    CHECK(torus_seconds(ring, first_devices(r), CollectiveKind::all_reduce) == near(2 * (bytes + latency)));
  }
}

// At its ends a line has one link, over which everything comes.
TEST_CASE("along an axis that does not wrap around the ends have one link", "[collective][torus]") {
  const Platform line = tori(1, 8, "[8]", "false");
  CHECK(torus_seconds(line, first_devices(8), CollectiveKind::all_gather) == near(7.0 / 8 * 0.1 + 7e-6));
}

// "How to Scale Your Model" (Austin et al. 2025), Sharded Matrices: over n axes V / (n W), of W both directions of a
// link; here V is without a rank's own part.
TEST_CASE("axes carry a part each, all at once", "[collective][torus]") {
  const Platform square = tori(1, 16, "[4, 4]", "true"), cube = tori(1, 64, "[4, 4, 4]", "true");
  CHECK(torus_seconds(square, first_devices(16), CollectiveKind::all_gather) == near(15.0 / 16 * 0.1 / 4 + 4e-6));
  CHECK(torus_seconds(cube, first_devices(64), CollectiveKind::all_gather) == near(63.0 / 64 * 0.1 / 6 + 6e-6));
  // One axis of two wraps around, of 4; the other one is of 2: three ways out of a rank.
  const Platform mixed = tori(1, 8, "[2, 4]", "[false, true]");
  CHECK(torus_seconds(mixed, first_devices(8), CollectiveKind::all_gather) == near(7.0 / 8 * 0.1 / 3 + (1 + 2) * 1e-6));
}

TEST_CASE("a part of a torus is a grid where it is even along each axis", "[collective][torus]") {
  const Platform square = tori(1, 16, "[4, 4]", "true");
  Router router(square);
  const auto ways = [&](const std::vector<DeviceId>& devices) {
    const std::optional<TorusGrid> grid = torus_grid(devices, router);
    return grid ? grid->ways() : 0;
  };
  CHECK(ways({4, 5, 6, 7}) == 2);       // the second row, all round
  CHECK(ways({1, 5, 9, 13}) == 2);      // the second column
  CHECK(ways({0, 1, 2}) == 1);          // a part of a row
  CHECK(ways({0, 1, 4, 5}) == 2);       // two by two: a line along each axis
  CHECK(ways({0, 2, 8, 10}) == 2);      // every second one of each
  CHECK(ways(first_devices(16)) == 4);  // all
  CHECK(ways({0, 1, 3}) == 0);          // a gap
  CHECK(ways({0, 1, 4}) == 0);          // no grid
  CHECK(ways({0, 1, 2, 3, 4, 5}) == 0); // one row and a half
}

// The closed form is the least time: each rank gets (r-1)/r of the buffer through all of its links.
TEST_CASE("auto takes the torus where ranks are a grid of it, and else says why not", "[collective][torus]") {
  const Platform square = tori(1, 16, "[4, 4]", "true");
  Router router(square);
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    const std::vector<Way> ways = ways_of(kind, first_devices(16), router, "auto");
    CHECK(fastest_of(ways, Bytes{1e9}).algorithm->name == "torus");
  }
  CHECK(why_not_wanted(CollectiveKind::all_reduce, {0, 1, 4}, router, "torus") == "its ranks are no grid of a torus");
}

// Tensor groups of two along the last axis of 4 x 4 leave data groups that step over every second device of it, so that
// two of these share its links. Of 8 ranks along 4 (two ways, of weight 2) and along 2 (one way, of weight
// 1) the links of either axis are as long busy.
TEST_CASE("axes whose links groups share carry fewer of the bytes", "[collective][torus]") {
  const Platform square = tori(1, 16, "[4, 4]", "true");
  Router router(square);
  const std::vector<DeviceId> every_second = {0, 2, 4, 6, 8, 10, 12, 14};
  const std::optional<TorusGrid> grid = torus_grid(every_second, router);
  REQUIRE(grid);
  CHECK(grid->ways() == 2 * 2 + 1);
  const Flows flows = ways_through_torus("torus", CollectiveKind::all_gather, every_second, router);
  // 7/8 of 1 GB in five parts, two of them over each link along the first axis, at 10 GB/s.
  CHECK(flows[0].sent(Bytes{1e9}).value / flows[0].leg.bandwidth.value == near(7.0 / 8 / 5 * 2 * 0.1));
}

// Two slices of 4: (3/4) GB within over two links, a quarter of the bytes through each NIC, and within again.
TEST_CASE("between tori each rank has its part of the bytes", "[collective][torus]") {
  const Platform slices = tori(2, 4, "[4]", "true");
  Router router(slices);
  const Flows flows = ways_through_torus("hierarchical", CollectiveKind::all_reduce, first_devices(8), router);
  REQUIRE(flows.size() == 3);
  CHECK(flows[0].time(Bytes{1e9}).value == near(0.75 * 0.1 / 2 + 2e-6));
  CHECK(flows[1].sent(Bytes{1e9}).value == near(0.25e9)); // 2 (2-1)/2 of a quarter
  CHECK(flows[2].time(Bytes{1e9}).value == near(0.75 * 0.1 / 2 + 2e-6));
}

// Every pair's way, link by link, against what is counted without them.
TEST_CASE("an all-to-all takes as long as the link that most of its pairs cross", "[collective][torus]") {
  for (const auto& [devices, shape, wraparound] : {std::tuple{8, "[8]", "true"},
                                                   {7, "[7]", "true"},
                                                   {6, "[6]", "false"},
                                                   {5, "[5]", "false"},
                                                   {16, "[4, 4]", "true"},
                                                   {24, "[2, 3, 4]", "true"},
                                                   {15, "[3, 5]", "[false, true]"}}) {
    CAPTURE(shape, wraparound);
    const Platform platform = tori(1, devices, shape, wraparound);
    Router router(platform);
    std::map<LinkId, int> crossed;
    int most = 0;
    for (DeviceId from = 0; from < devices; ++from) {
      for (DeviceId to = 0; to < devices; ++to) {
        for (const Leg& leg : router.find(from, to)->legs) {
          for (const LinkId link : leg.links) {
            most = std::max(most, ++crossed[link]);
          }
        }
      }
    }
    const Flows flows = ways_through_torus("torus", CollectiveKind::all_to_all, first_devices(devices), router);
    REQUIRE(flows.size() == 1);
    CHECK(flows[0].sent(Bytes{1e9}).value / flows[0].leg.bandwidth.value == near(most * 0.1 / devices));
    CHECK(why_not_wanted(CollectiveKind::all_to_all, first_devices(devices), router, "pairs") ==
          "its ranks are a grid of a torus, which carries their pairs");
  }
}

// A pod of 4,096 chips has sixteen million pairs.
TEST_CASE("an all-to-all among thousands of chips counts no pairs", "[collective][torus]") {
  const Platform pod = tori(1, 4096, "[16, 16, 16]", "true");
  Router router(pod);
  const std::vector<Way> ways = ways_of(CollectiveKind::all_to_all, first_devices(4096), router, "auto");
  REQUIRE(ways.size() == 1);
  CHECK(ways[0].flows[0].leg.links.size() == 6 * 4096);
  CHECK(ways[0].flows[0].sent(Bytes{4096e6}).value == near(16 * 16 / 8 * 256 * 1e6)); // 32 x 4096/16 pairs of 1 MB
}

} // namespace
} // namespace stagecraft
