// The algorithm `measured`: a lone collective below a switch takes the time that was measured for it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

using test::cluster;
using test::first_devices;
using test::kKinds;
using test::kMeasured;
using test::near;

constexpr std::array kOps = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all"};

// 10 GB/s a port, as measured unless told.
Platform measured_node(int devices, const std::string& measured_at = "10 GB/s") {
  return cluster({1, devices, "device", "1 us", true, measured_at});
}

CoupledFlow flow_of(const Platform& platform, CollectiveKind kind, int devices) {
  Router router(platform);
  const std::vector<Way> ways = ways_of(kind, first_devices(devices), router, "auto");
  REQUIRE(ways.size() == 1);
  CHECK(ways.front().algorithm->name == "measured");
  REQUIRE(ways.front().flows.size() == 1);
  return ways.front().flows.front();
}

double seconds(CollectiveKind kind, int devices, double bytes) {
  return flow_of(measured_node(8), kind, devices).time(Bytes{bytes}).value;
}

TEST_CASE("a lone collective takes the time measured for it, whatever its bytes", "[collective][measured]") {
  for (const test::Measured& one : kMeasured) {
    const auto kind = kKinds[std::find(kOps.begin(), kOps.end(), std::string_view(one.op)) - kOps.begin()];
    CAPTURE(one.op, one.devices);
    for (const double bytes : {0.0, 1.0, 99e3, 100e3, 101e3, 123456.7, 5e6, 1e9, 1e12 + 1}) {
      CHECK(seconds(kind, one.devices, bytes) == near(test::seconds_of(one, bytes)));
    }
  }
}

TEST_CASE("between measured numbers of ranks the time is interpolated over their logarithm", "[collective][measured]") {
  // 10 us and 0.2 s/GB among two, 30 us and 0.3 s/GB among four; ln(3/2)/ln 2 of the way for three.
  const double share = std::log2(1.5);
  CHECK(seconds(CollectiveKind::all_reduce, 3, 1e3) == near((1 - share) * 10e-6 + share * 30e-6));
  CHECK(seconds(CollectiveKind::all_reduce, 3, 100e3 + 1e9) ==
        near((1 - share) * (10e-6 + 0.2) + share * (30e-6 + 0.3)));
  CHECK(seconds(CollectiveKind::all_gather, 4, 1e3) == near((5e-6 + 40e-6) / 2));
}

TEST_CASE("the bytes are a ring's, and the latency is the rest of the measured time", "[collective][measured]") {
  // Two ranks send 1 GB each at 10 GB/s; measured 0.2 s + 10 us - 20 us (the first 100 kB cost nothing more).
  const CoupledFlow two = flow_of(measured_node(8), CollectiveKind::all_reduce, 2);
  CHECK(two.sent(Bytes{1e9}).value == 1e9);
  CHECK(two.latency(Bytes{1e9}).value == near(0.2 - 10e-6 - 0.1));
  CHECK(two.sent(Bytes{1e6 + 0.7}).value == 1e6); // whole bytes
  // Pairs: each rank sends a half to the other one.
  CHECK(flow_of(measured_node(8), CollectiveKind::all_to_all, 2).sent(Bytes{1e9}).value == 0.5e9);
  // A ring of eight would send 1.75 GB in 0.175 s. What took 0.1 s sends what that carries, but for the 50 us that an
  // empty buffer takes.
  const CoupledFlow eight = flow_of(measured_node(8), CollectiveKind::all_reduce, 8);
  CHECK(eight.sent(Bytes{1e9}).value == near((1e9 - 100e3) / 1e9 * 0.1 * 10e9));
  CHECK(eight.latency(Bytes{1e9}).value == near(50e-6));
  CHECK(eight.sent(Bytes{50e3}).value == 0);
}

TEST_CASE("ports of another bandwidth than was measured at stretch the bytes alone", "[collective][measured]") {
  // Measured at 20 GB/s, 1 GB among two took 0.05 s of bandwidth; at 10 GB/s it takes 0.1 s. And the other way round.
  const double took = test::seconds_of(kMeasured[0], 1e9);
  CHECK(flow_of(measured_node(2, "20 GB/s"), CollectiveKind::all_reduce, 2).time(Bytes{1e9}).value ==
        near(took - 0.05 + 0.1));
  CHECK(flow_of(measured_node(2, "5 GB/s"), CollectiveKind::all_reduce, 2).time(Bytes{1e9}).value ==
        near(10e-6 + (took - 10e-6) / 2)); // all of the time but that of an empty buffer is bandwidth
}

TEST_CASE("why a collective has no measured time", "[collective][measured]") {
  const auto why = [](const Platform& platform, CollectiveKind kind, const std::vector<DeviceId>& devices) {
    Router router(platform);
    return why_not_wanted(kind, devices, router, "measured");
  };
  const Platform platform = cluster({2, 16, "device", "1 us", false, "10 GB/s"});
  CHECK(why(platform, CollectiveKind::all_reduce, {0, 1}) == "");
  CHECK(why(platform, CollectiveKind::all_reduce, {0, 16}) ==
        "its ranks are on several nodes, and times were measured within one");
  CHECK(why(platform, CollectiveKind::all_gather, first_devices(9)) ==
        "no all-gather among 9 devices was measured, nor among both fewer and more");
  CHECK(why(platform, CollectiveKind::all_reduce, {0}) == "its ranks are on no switch at which times were measured");
  CHECK(why(cluster({1, 2}), CollectiveKind::all_reduce, {0, 1}) ==
        "its ranks are on no switch at which times were measured");
}

TEST_CASE("auto takes what was measured, and every other algorithm can still be named", "[collective][measured]") {
  const Platform platform = measured_node(8);
  const Platform plain = cluster({1, 8, "device", "1 us", true});
  Router router(platform), plain_router(plain);
  for (const std::string_view name : {"ring", "tree", "nvls"}) {
    const auto named = [&](Router& of) {
      return seconds_of(ways_of(CollectiveKind::all_reduce, first_devices(8), of, name).front().flows, Bytes{1e9});
    };
    CHECK(named(router) == named(plain_router));
  }
  // Where nothing was measured, auto is what it was: the nine ranks of a node.
  const Platform more = cluster({1, 9, "device", "1 us", true, "10 GB/s"});
  Router more_router(more);
  CHECK(ways_of(CollectiveKind::all_reduce, first_devices(9), more_router, "auto").size() == 3);
}

TEST_CASE("the shipped tables: every kind among every number of devices, and times never fall",
          "[collective][measured]") {
  int switches = 0;
  for (const auto& file : test::yaml_files(test::platforms_folder())) {
    const Platform platform = load_platform(yaml::load(file), test::shipped_types());
    const bool measured = std::any_of(platform.vertices.begin(), platform.vertices.end(),
                                      [](const Vertex& vertex) { return vertex.measured_at.value > 0; });
    switches += measured ? 1 : 0;
    for (const CollectiveKind kind : kKinds) {
      for (int devices = 2; measured && devices <= (platform.name == "gb200-nvl72" ? 4 : 8); ++devices) {
        CAPTURE(platform.name, static_cast<int>(kind), devices);
        const CoupledFlow flow = flow_of(platform, kind, devices);
        double before = 0;
        for (double bytes = 1; bytes < 1e11; bytes *= 1.3) {
          const double now = flow.time(Bytes{bytes}).value;
          CHECK(now >= before * (1 - 1e-4)); // numbers in files are rounded
          CHECK(flow.latency(Bytes{bytes}).value >= 0);
          before = now;
        }
      }
    }
  }
  CHECK(switches >= 8);
}

} // namespace
} // namespace stagecraft
