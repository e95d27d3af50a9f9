// What a platform file becomes: numbering, names, links.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/load_platform.hpp"
#include "sim/platform/route.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using test::near;
using test::node_text;
using test::platform_of;

TEST_CASE("devices, nodes and vertices are numbered in the order of the file", "[platform]") {
  const Platform platform =
      platform_of(node_text("x", "count: 2, devices: [{type: b}, {type: a, count: 2}], links: ["
                                 "{kind: pcie-switch, bandwidth: 1 GB/s, latency: 0}]") +
                      node_text("y", "devices: [{type: a}], links: [{kind: host-link, bandwidth: 1 GB/s, latency: 0}]"),
                  "topology: switch, bandwidth: 1 GB/s, latency: 0");
  const std::vector<std::string> names = {"x-0/b-0", "x-0/a-1", "x-0/a-2", "x-1/b-0", "x-1/a-1", "x-1/a-2", "y/a-0"};
  REQUIRE(names_of(platform.devices) == names);
  CHECK(names_of(platform.nodes) == std::vector<std::string>{"x-0", "x-1", "y"});
  CHECK(names_of(platform.types) == std::vector<std::string>{"b", "a"}); // as they are met
  CHECK(platform.type_of(3).name == "b");
  CHECK(platform.devices[6].node == 2);
  for (size_t vertex = 0; vertex < platform.vertices.size(); ++vertex) {
    const Vertex& at = platform.vertices[vertex];
    CHECK((at.kind == Vertex::Kind::device) == (vertex < 7));
    if (vertex < 7) {
      CHECK(at.index == static_cast<int>(vertex));
      CHECK(at.name == names[vertex]);
    } else if (vertex < 10) {
      CHECK(at.kind == Vertex::Kind::host);
      CHECK(at.index == static_cast<int>(vertex) - 7);
    }
  }
  // Each way: 2 x (1 uplink + 3 devices), 1 host link, 3 NICs.
  CHECK(platform.links.size() == 2 * (2 * 4 + 1 + 3) + 3 + 3); // and each disk and memory
}

TEST_CASE("a node without a count keeps its name, with one it gets a number", "[platform]") {
  CHECK(platform_of(node_text("n", "devices: [{type: a}]")).nodes.front().name == "n");
  CHECK(platform_of(node_text("n", "count: 1, devices: [{type: a}]")).nodes.front().name == "n-0");
}

TEST_CASE("a host in SI units", "[platform]") {
  const Host host = platform_of(node_text("n", "devices: [{type: a}]")).nodes.front().host;
  CHECK(host.cores == 8);
  CHECK(host.core_speed.value == near(1e9));
  CHECK(host.memory.value == near(1073741824.0));
  CHECK(host.idle.value == near(10));
  CHECK(host.core_busy.value == near(2));
  CHECK(host.core_spin.value == near(1));
  CHECK(host.price.rate.value == near(0));
}

TEST_CASE("own device types stand before those of the folder", "[platform]") {
  const std::string text = "name: test\ndevice_types:\n" + test::type_text("t4-16gb", "me") + "nodes:\n" +
                           node_text("n", "devices: [{type: t4-16gb}]");
  CHECK(load_platform(yaml::parse(text, "test.yaml"), test::shipped_types()).types.front().vendor == "me");
}

TEST_CASE("links may say how far they are off", "[platform]") {
  const auto spread = [](const std::string& text) {
    const std::string links = "links: [{kind: host-link, bandwidth: 1 GB/s, latency: 0" + text + "}]";
    return platform_of(node_text("n", "devices: [{type: a, count: 2}], " + links)).links.front().spread;
  };
  CHECK(spread("") == 0);
  CHECK(spread(", spread: 0.25") == 0.25);
  CHECK(spread(", spread: 1") == 1);
  CHECK_THROWS_WITH(spread(", spread: 1.01"), Catch::Contains("0 to 1"));
  CHECK_THROWS_WITH(spread(", spread: -0.1"), Catch::Contains("0 to 1"));
}

TEST_CASE("a device type of one's own may stand in a file beside the platform", "[platform]") {
  const std::string folder = test::source_dir() / "platforms/devices/";
  const auto beside = [&](const std::string& file) {
    const std::string text =
        "name: test\ndevice_types: [" + file + "]\nnodes:\n" + node_text("n", "devices: [{type: t4-16gb}]");
    return load_platform(yaml::parse(text, folder + "test.yaml"), {});
  };
  CHECK(beside("t4-16gb.yaml").types.front().name == "t4-16gb");
  CHECK_THROWS_WITH(beside("../pcie-v100.yaml"),
                    Catch::Contains("test.yaml:2:16: '../pcie-v100.yaml' is no file beside"));
  CHECK_THROWS_WITH(beside("none.yaml"), Catch::Contains("none.yaml"));
}

TEST_CASE("direct links alone may join devices, if they join every two", "[platform]") {
  const std::string links = "links: [{kind: nvlink-pair, bandwidth: 1 GB/s, latency: 0, pairs: ";
  const std::string three = "devices: [{type: a, count: 3}], " + links;
  CHECK_NOTHROW(platform_of(node_text("n", three + "[[0, 1], [1, 2], [0, 2]]}]")));
  CHECK_THROWS_WITH(platform_of(node_text("n", three + "[[0, 1], [1, 2]]}]")),
                    Catch::Contains("'n/a-0' and 'n/a-2' cannot reach each other"));
  // Two vendors' devices need their host.
  CHECK_THROWS_WITH(platform_of(node_text("n", "devices: [{type: a}, {type: b}], " + links + "[[0, 1]]}]")),
                    Catch::Contains("'n/a-0' and 'n/b-1' cannot reach each other"));
}

TEST_CASE("a NIC per device joins no hosts, so two vendors' nodes stay apart", "[platform]") {
  const std::string links = "links: [{kind: host-link, bandwidth: 1 GB/s, latency: 0}]";
  const std::string nodes =
      node_text("x", "devices: [{type: a}], " + links) + node_text("y", "devices: [{type: b}], " + links);
  CHECK_NOTHROW(platform_of(nodes, "topology: switch, bandwidth: 1 GB/s, latency: 0"));
  CHECK_THROWS_WITH(platform_of(nodes, "topology: switch, nic: device, bandwidth: 1 GB/s, latency: 0"),
                    Catch::Contains("'x/a-0' and 'y/b-0' cannot reach each other"));
}

TEST_CASE("the largest platform loads, one device more does not", "[platform]") {
  const std::string links = "devices: [{type: a, count: 8}], links: [{kind: nvswitch, bandwidth: 1 GB/s, latency: 0}]";
  const std::string network = "topology: switch, nic: device, bandwidth: 1 GB/s, latency: 0";
  CHECK(platform_of(node_text("n", "count: 12500, " + links), network).devices.size() == 100'000);
  CHECK_THROWS_WITH(
      platform_of(node_text("n", "count: 12500, " + links) + node_text("m", "devices: [{type: a}]"), network),
      Catch::Contains("more than 100000 devices"));
}

TEST_CASE("a sweep may set the network's bandwidth", "[platform]") {
  const auto file = test::platforms_folder() / "mixed-v100-p100.yaml";
  for (const double gigabits : {1.0, 10.0}) {
    yaml::Node document = yaml::load(file);
    yaml::set(document, "network.bandwidth", std::to_string(gigabits) + " Gb/s", {"sweep", 0, 0});
    const Platform platform = load_platform(document, test::shipped_types());
    Router router(platform);
    CHECK(router.cost(0, 7).seconds_per_byte == near(8 / (gigabits * 1e9)));
  }
}

TEST_CASE("an NVSwitch may say that it reduces, no other link", "[platform]") {
  const auto with = [](const std::string& kind, const std::string& more) {
    return platform_of(node_text("n", "devices: [{type: a, count: 2}], links: [{kind: " + kind +
                                          ", bandwidth: 1 GB/s, latency: 0" + more + "}]"));
  };
  const auto reduces = [](const Platform& platform) {
    return std::any_of(platform.vertices.begin(), platform.vertices.end(),
                       [](const Vertex& vertex) { return vertex.reduces; });
  };
  CHECK_FALSE(reduces(with("nvswitch", "")));
  CHECK(reduces(with("nvswitch", ", reduces: true")));
  CHECK_THROWS_WITH(with("pcie-switch", ", reduces: true"), Catch::Contains("reduces"));
}

TEST_CASE("an NVSwitch may say at what bandwidth collectives of its devices were measured", "[platform]") {
  const auto with = [](const std::string& devices, const std::string& link) {
    return platform_of(node_text("n", "devices: [" + devices + "], links: [{bandwidth: 1 GB/s, latency: 0, " + link +
                                          "}, {kind: host-link, bandwidth: 1 GB/s, latency: 0}]"));
  };
  const auto measured_at = [](const Platform& platform) {
    BytesPerSecond most{};
    for (const Vertex& vertex : platform.vertices) {
      most = std::max(most, vertex.measured_at);
    }
    return most.value;
  };
  const std::string two = "{type: m, count: 2}";
  CHECK(measured_at(with(two, "kind: nvswitch")) == 0);
  CHECK(measured_at(with(two, "kind: nvswitch, measured_at: 3 GB/s")) == 3e9);
  CHECK_NOTHROW(with(two + ", {type: a}", "kind: nvswitch, devices: [0, 1], measured_at: 3 GB/s"));
  CHECK_THROWS_WITH(with(two + ", {type: a}", "kind: nvswitch, measured_at: 3 GB/s"),
                    Catch::StartsWith("test.yaml:") &&
                        Catch::Contains("'measured_at' of a switch of two device types"));
  CHECK_THROWS_WITH(with("{type: a, count: 2}", "kind: nvswitch, measured_at: 3 GB/s"),
                    Catch::Contains("the fits of 'a' have no collectives"));
  CHECK_THROWS_WITH(with(two, "kind: pcie-switch, measured_at: 3 GB/s"), Catch::Contains("unknown key 'measured_at'"));
  CHECK_THROWS_WITH(with(two, "kind: nvswitch, measured_at: 3"), Catch::Contains("unit"));
  CHECK_THROWS_WITH(with(two, "kind: nvswitch, measured_at: 0 GB/s"), Catch::Contains("1 B/s to 1e18 B/s"));
}

} // namespace
} // namespace stagecraft
