// Streams on one device: worked numbers, and bounds that no schedule can beat.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "sim/base/improves.hpp"
#include "sim/cost/kernel_power.hpp"
#include "sim/cost/streams.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

Approx near(double value) { return Approx(value).epsilon(1e-9); }

// a -> {b, c, d} -> e, of 1, 3, 2, 2 and 1 s.
KernelGraph fork(double gap, double share) {
  KernelGraph graph;
  for (const double seconds : {1, 3, 2, 2, 1}) {
    graph.kernels.push_back({.gap = gap, .work = seconds - gap, .compute = share, .bandwidth = 0});
  }
  graph.predecessors = {{}, {0}, {0}, {0}, {1, 2, 3}};
  return graph;
}

TEST_CASE("two streams by hand", "[cost][streams]") {
  // Levels {a}, {b | c, d}, {e}: 1 + max(3, 2 + 2) + 1.
  const KernelGraph graph = fork(0, 0.5);
  CHECK(levels_of(graph) == std::vector<int>{0, 1, 1, 1, 2});
  CHECK(sequential_seconds(graph) == near(9));
  CHECK(layered_seconds(graph, 2, 0) == near(6));
  CHECK(layered_seconds(graph, 2, 0.25) == near(6.5)); // two boundaries
  CHECK(layered_seconds(graph, 1, 0) == near(9));
  CHECK(unsynchronised_seconds(graph, 2) == near(6));
  CHECK(layered_seconds(fork(0, 0.3), 3, 0) == near(5)); // the longest path
}

TEST_CASE("kernels that fill the device gain nothing but the gaps", "[cost][streams]") {
  CHECK(layered_seconds(fork(0, 1), 2, 0) == near(9));
  CHECK(layered_seconds(fork(0, 1), 3, 0) == near(9));
  // Three kernels of 0.75: shares of 2.25 make 7 s of work with three at work until 2 s of each are done (4.5 s), then
  // b has a second left alone.
  CHECK(layered_seconds(fork(0, 0.75), 3, 0) == near(1 + 4.5 + 1 + 1));
  // Gaps of half a second: stream 0 b; stream 1 c, d. All gaps but the first of a level lie beside work.
  //   0.5-: b and c share 1.5 + 1.5 = 3 s of work until 3.5; d's gap beside b's last second 3.5-4, d and b share
  //   0.5 and 0.5 s until 5, d alone until 6.
  CHECK(layered_seconds(fork(0.5, 1), 2, 0) == near(1 + 6 + 1));
}

TEST_CASE("kernels bound by different resources run beside each other", "[cost][streams]") {
  KernelGraph graph;
  graph.kernels = {{.work = 2, .compute = 1, .bandwidth = 0.2}, {.work = 2, .compute = 0.1, .bandwidth = 0.8}};
  graph.predecessors = {{}, {}};
  CHECK(layered_seconds(graph, 2, 0) == near(2 * 1.1)); // the demand for arithmetic is 1.1 times the device's
}

TEST_CASE("a kernel with slack moves to the level where it costs least", "[cost][streams]") {
  // a(1) -> b(4) -> c(1), and d(4) beside them: with a it would take 4 + 4 + 1, beside b it costs nothing.
  KernelGraph graph;
  for (const double seconds : {1, 4, 1, 4}) {
    graph.kernels.push_back({.work = seconds, .compute = 0.5, .bandwidth = 0});
  }
  graph.predecessors = {{}, {0}, {1}, {}};
  CHECK(layered_seconds(graph, 2, 0) == near(1 + 4 + 1));
}

TEST_CASE("cheap element-wise kernels run inside their producer", "[cost][streams]") {
  KernelGraph graph;
  graph.kernels = {{.gap = 1, .work = 4},
                   {.gap = 1, .work = 0.5, .element_wise = true},
                   {.gap = 1, .work = 0.5, .element_wise = true},
                   {.gap = 1, .work = 2, .element_wise = true}}; // not cheap
  graph.predecessors = {{}, {0}, {1}, {2}};
  const KernelGraph fused = fuse_cheap(graph, 1);
  REQUIRE(fused.kernels.size() == 2);
  CHECK(fused.kernels[0].seconds() == near(6));
  CHECK(fused.predecessors[1] == std::vector<int>{0});
  CHECK(sequential_seconds(fused) == near(9)); // of 11: two launches less
}

TEST_CASE("a kernel's shares are its demand over what the device can do", "[cost][streams]") {
  DeviceType type;
  type.rates[static_cast<std::size_t>(KernelKind::matmul)].fill(FlopsPerSecond{100});
  type.memory_bandwidth = BytesPerSecond{40};
  type.launch_overhead = Seconds{0.5};
  const Pass pass{.flops = Flops{100}, .moved_elements = 2, .moved_parameters = 1, .kernels = 1};
  // Two samples: 200 FLOP in 2 s at best, 20 B in 0.5 s; it takes 4 s and a launch.
  const StreamKernel kernel = kernel_of(pass, KernelKind::matmul, type, 2, Precision::fp32, Seconds{4.5});
  CHECK(kernel.gap == near(0.5));
  CHECK(kernel.work == near(4));
  CHECK(kernel.compute == near(0.5));
  CHECK(kernel.bandwidth == near(0.125));
  const StreamKernel unknown = kernel_of({.kernels = 1}, KernelKind::matmul, type, 2, Precision::fp32, Seconds{4.5});
  CHECK(unknown.compute == 1); // assumed to fill the device
}

// 0.65 x 100 / 2 = 32.5 instructions a second: 48.75 for each of two samples take 3 of 4 s of work.
TEST_CASE("instructions fill a GPU as floating point does", "[cost][streams]") {
  DeviceType type = test::round_device();
  type.vendor = "nvidia";
  type.rates[static_cast<std::size_t>(KernelKind::elementwise)].fill(FlopsPerSecond{100});
  Pass pass{.flops = Flops{1}, .moved_elements = 2, .kernels = 1};
  pass.instructions = 48.75;
  CHECK(kernel_of(pass, KernelKind::pooling, type, 2, Precision::fp32, Seconds{4.5}).compute == near(0.75));
}

// As above, 200 FLOP and 20 B in 4.5 s: of 4 s of work a part of 0.5 + 0.7 * 0.125 draws full power.
TEST_CASE("a kernel draws power by what it does, and rests for the remainder of its time", "[cost][energy]") {
  DeviceType type;
  type.rates[static_cast<std::size_t>(KernelKind::matmul)].fill(FlopsPerSecond{100});
  type.memory_bandwidth = BytesPerSecond{40};
  type.launch_overhead = Seconds{0.5};
  const auto rest = [&](const Pass& pass, double seconds) {
    return at_rest(pass, KernelKind::matmul, type, 2, Precision::fp32, Seconds{seconds}).value;
  };
  const Pass both{.flops = Flops{100}, .moved_elements = 2, .moved_parameters = 1, .kernels = 1};
  CHECK(rest(both, 4.5) == near(4.5 - 4 * (0.5 + kMemoryPower * 0.125)));
  // However long it takes, what it draws beyond idle is the same energy; at full rate it rests while it is launched.
  CHECK(10 - rest(both, 10) == near(4.5 - rest(both, 4.5)));
  CHECK(rest(both, 2.5) == near(0.5));
  // 400 elements of 4 B, and nothing else: 40 s of the memory's time.
  CHECK(rest({.moved_elements = 200, .kernels = 1}, 40.5) == near(40.5 - 40 * kMemoryPower));
  CHECK(rest({.kernels = 1}, 4.5) == 0); // nothing is known of it
  CHECK(rest(both, kInfinity) == 0);     // a type without the kernel
}

TEST_CASE("nothing is faster than the longest path or the work of a resource, nor slower than one by one",
          "[cost][streams][conformance]") {
  std::mt19937 random(3);
  std::uniform_real_distribution<> uniform(0, 1);
  for (int n = 0; n < 300; ++n) {
    CAPTURE(n);
    KernelGraph graph;
    const int kernels = 1 + static_cast<int>(uniform(random) * 14);
    std::vector<double> path(kernels, 0.0);
    double compute = 0;
    double bandwidth = 0;
    double longest = 0;
    for (int k = 0; k < kernels; ++k) {
      graph.kernels.push_back({.gap = 0.2 * uniform(random),
                               .work = uniform(random),
                               .compute = uniform(random),
                               .bandwidth = uniform(random)});
      graph.predecessors.emplace_back();
      for (int before = 0; before < k; ++before) {
        if (uniform(random) < 0.2) {
          graph.predecessors.back().push_back(before);
          path[k] = std::max(path[k], path[before]);
        }
      }
      path[k] += graph.kernels[k].seconds();
      longest = std::max(longest, path[k]);
      compute += graph.kernels[k].compute * graph.kernels[k].work;
      bandwidth += graph.kernels[k].bandwidth * graph.kernels[k].work;
    }
    const double bound = std::max({longest, compute, bandwidth}) * (1 - 1e-9);
    for (const int streams : {1, 2, 4, 20}) {
      CHECK(layered_seconds(graph, streams, 0) >= bound);
      CHECK(unsynchronised_seconds(graph, streams) >= bound);
      CHECK(best_seconds(graph, streams, 0) <= sequential_seconds(graph) * (1 + 1e-9));
    }
    CHECK(unsynchronised_seconds(graph, 1) == near(sequential_seconds(graph)));
  }
}

} // namespace
} // namespace stagecraft
