// What the harness for GPUs plans to measure.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tests/catch.hpp"

#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::gpu {
namespace {

const Group& group_of(const std::vector<Group>& groups, const std::string& name) {
  for (const Group& group : groups) {
    if (group.name == name) {
      return group;
    }
  }
  throw std::logic_error("no group " + name);
}

std::size_t count(const std::vector<Group>& groups, const std::string& text) {
  std::size_t found = 0;
  for (const Group& group : groups) {
    for (const Point& point : group.points) {
      found += to_text(point).find(text) != std::string::npos ? 1 : 0;
    }
  }
  return found;
}

TEST_CASE("no point is measured twice in one place", "[gpu][sweep]") {
  std::set<std::string> seen;
  const Kernel known = parse_kernel("gemm forward bf16 batch=1 m=4096 n=4096 k=4096");
  for (const Group& group : plan_sweep({}, {known})) {
    for (const Point& point : group.points) {
      INFO(group.name << ": " << to_text(point));
      CHECK(seen.insert(std::to_string(group.processors) + std::string(section_of(point)) + identity(point)).second);
    }
  }
}

TEST_CASE("the shape list comes first and is left out of the grid", "[gpu][sweep]") {
  const Kernel known = parse_kernel("gemm forward bf16 batch=1 m=4096 n=4096 k=4096");
  const Kernel own = parse_kernel("gemm forward bf16 batch=1 m=4097 n=4099 k=4093");
  const auto groups = plan_sweep({}, {known, own}), without = plan_sweep({}, {});
  CHECK(groups.front().name == "shapes");
  CHECK(groups.front().points.size() == 2);
  CHECK(group_of(groups, "gemm").points.size() + 1 == group_of(without, "gemm").points.size());
  CHECK(without.front().weight == 0);
}

TEST_CASE("the groups are those that --groups may name, in their order", "[gpu][sweep]") {
  std::vector<std::string> names;
  for (const Group& group : plan_sweep({}, {})) {
    if (names.empty() || names.back() != group.name) {
      names.push_back(group.name);
    }
  }
  CHECK(names == group_names());
}

TEST_CASE("links between devices are measured where there are several", "[gpu][sweep]") {
  CHECK(group_of(plan_sweep({}, {}), "peers").points.empty());
  CHECK(group_of(plan_sweep({}, {}), "collectives").points.empty());
  const auto groups = plan_sweep({4, 132, 8, 80e9}, {});
  CHECK(!group_of(groups, "peers").points.empty());
  CHECK(count(groups, "op: all-reduce, devices: 2") > 0);
  CHECK(count(groups, "op: all-reduce, devices: 4") > 0);
  CHECK(count(groups, "op: all-reduce, devices: 8") == 0);
}

TEST_CASE("partitions leave multiprocessors for others", "[gpu][sweep]") {
  std::vector<int> sizes;
  for (const Group& group : plan_sweep({1, 132, 8, 80e9}, {})) {
    if (group.processors > 0) {
      sizes.push_back(group.processors);
    }
  }
  CHECK(sizes == std::vector<int>{8, 16, 32, 64}); // 128 would leave 4 of 132, less than a unit
  for (const Group& group : plan_sweep({1, 132, 0, 80e9}, {})) {
    CHECK(group.processors == 0);
  }
}

TEST_CASE("a shape list is measured on the device and on every partition", "[gpu][sweep]") {
  const Kernel kernel = parse_kernel("gemm forward bf16 batch=1 m=300 n=200 k=100");
  int places = 0;
  for (const Group& group : plan_sweep({1, 132, 8, 80e9}, {kernel})) {
    places += static_cast<int>(std::count_if(group.points.begin(), group.points.end(), [&](const Point& point) {
      const auto* one = std::get_if<KernelPoint>(&point);
      return one != nullptr && one->kernel == kernel && one->regime == Regime::burst;
    }));
  }
  CHECK(places == 5); // 132, 8, 16, 32 and 64 multiprocessors
}

// Place of the first point, or the last one, of a group whose words have a part.
std::size_t place(const Group& group, const std::string& part, bool last) {
  std::size_t found = group.points.size();
  for (std::size_t i = 0; i < group.points.size(); ++i) {
    if (to_text(group.points[i]).find(part) != std::string::npos && (last || found == group.points.size())) {
      found = i;
    }
  }
  REQUIRE(found < group.points.size());
  return found;
}

TEST_CASE("what transformers need comes first, and convolutions last", "[gpu][sweep]") {
  const auto groups = plan_sweep({}, {});
  CHECK(groups[1].name == "launch");
  CHECK(groups.back().name == "convolution");
  const Group& gemm = group_of(groups, "gemm");
  CHECK(place(gemm, " bf16 ", true) < place(gemm, " fp8 ", false));
  CHECK(place(gemm, " fp8 ", true) < place(gemm, " fp16 ", false));
  const Group& elementwise = group_of(groups, "elementwise");
  for (const char* op : {"rms-norm", "swiglu", "rotary", "cross-entropy", "clip", "cast", "adam"}) {
    CHECK(place(elementwise, op, true) < place(elementwise, "batch-norm", false));
  }
}

TEST_CASE("kernels that do not fit into memory are left out", "[gpu][sweep]") {
  const double memory = 2e9;
  const auto groups = plan_sweep({1, 132, 8, memory}, {});
  CHECK(count(groups, "gemm") < count(plan_sweep({}, {}), "gemm"));
  for (const Point& point : group_of(groups, "gemm").points) {
    CHECK(bytes_of(std::get<KernelPoint>(point).kernel) <= 0.4 * memory);
  }
}

TEST_CASE("each prefix of an order that is spread covers the whole", "[gpu][sweep]") {
  CHECK(spread_order(0).size() == 1 - 1);
  CHECK(spread_order(1) == std::vector<std::size_t>{0});
  CHECK(spread_order(6) == std::vector<std::size_t>{0, 4, 2, 1, 5, 3}); // of 0 4 2 6 1 5 3 7 those below 6
  const auto order = spread_order(1000);
  CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == 1000);
  const std::set<std::size_t> quarter(order.begin(), order.begin() + 250);
  for (std::size_t window = 0; window + 10 <= 1000; window += 10) {
    CHECK(quarter.lower_bound(window) != quarter.lower_bound(window + 10));
  }
}

TEST_CASE("a convolution's output is as large as its window fits", "[gpu][sweep]") {
  CHECK(output_extent(224, 7, 2, 3) == 112);
  CHECK(output_extent(56, 1, 2, 0) == 28);
}

} // namespace
} // namespace stagecraft::gpu
