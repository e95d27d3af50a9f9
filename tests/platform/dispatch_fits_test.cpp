// Times of dispatch and combine kernels: reading them, and between what was measured.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/format/yaml.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

constexpr const char* kFits = R"(
dispatches:
  source: made up
  links: {inside: 100 GB/s, between: 50 GB/s}
  times:
    - {op: dispatch, nodes: 1, processors: 20, start: 10 us, per_token: 1 ns, own: 1e-12, inside: 2e-12}
    - {op: dispatch, nodes: 2, processors: 10, start: 20 us, between: 8e-12}
    - {op: dispatch, nodes: 2, processors: 20, start: 10 us, between: 4e-12}
    - {op: dispatch, nodes: 8, processors: 20, start: 50 us, between: 12e-12}
)";

KernelFits fits() { return read_kernel_fits(yaml::parse(kFits, "fits.yaml")); }

// Of two kernels each has its own lines, and where those of one were not measured the other's stand for it.
TEST_CASE("a line is of the kernels that send", "[platform][dispatch]") {
  KernelFits both = fits();
  DispatchFit hybrid = both.dispatches.front();
  hybrid.kernels = "hybridep";
  hybrid.line.inside = 1e-12;
  both.dispatches.push_back(hybrid);
  CHECK(find_dispatch(both, "dispatch", 1, 20, "deepep")->inside == Approx(2e-12));
  CHECK(find_dispatch(both, "dispatch", 1, 20, "hybridep")->inside == Approx(1e-12));
  CHECK(find_dispatch(both, "dispatch", 2, 20, "hybridep")->between == Approx(4e-12));
}

TEST_CASE("a line where it was measured", "[platform][dispatch]") {
  const DispatchLine line = *find_dispatch(fits(), "dispatch", 1, 20);
  CHECK(line.start.value == Approx(10e-6));
  CHECK(line.per_token.value == Approx(1e-9));
  CHECK(line.own == Approx(1e-12));
  CHECK(line.inside == Approx(2e-12));
  CHECK(line.between == 0);
  CHECK(line.links == DispatchLinks{BytesPerSecond{100e9}, BytesPerSecond{50e9}});
  CHECK_FALSE(find_dispatch(fits(), "combine", 1, 20));
}

TEST_CASE("between numbers of multiprocessors lines are interpolated over their inverse", "[platform][dispatch]") {
  // 1/15 is a third of the way from 1/20 to 1/10.
  const DispatchLine line = *find_dispatch(fits(), "dispatch", 2, 15);
  CHECK(line.start.value == Approx(10e-6 * 2 / 3 + 20e-6 / 3));
  CHECK(line.between == Approx(4e-12 * 2 / 3 + 8e-12 / 3));
  CHECK(find_dispatch(fits(), "dispatch", 2, 5)->between == Approx(8e-12)); // fewer than were measured
  CHECK(find_dispatch(fits(), "dispatch", 2, 100)->between == Approx(4e-12));
}

TEST_CASE("between numbers of nodes lines are interpolated over their logarithm", "[platform][dispatch]") {
  CHECK(find_dispatch(fits(), "dispatch", 4, 20)->start.value == Approx((10e-6 + 50e-6) / 2));
  CHECK(find_dispatch(fits(), "dispatch", 64, 20)->between == Approx(12e-12));
}

TEST_CASE("times of one node say nothing of several", "[platform][dispatch]") {
  KernelFits one_node = fits();
  one_node.dispatches.resize(1);
  CHECK(find_dispatch(one_node, "dispatch", 1, 20));
  CHECK_FALSE(find_dispatch(one_node, "dispatch", 2, 20));
}

TEST_CASE("a derived device has another bandwidth and the same start", "[platform][dispatch]") {
  KernelFits scaled = fits();
  scaled.scale = FitScale{};
  scaled.scale->collectives = 2;
  const DispatchLine line = *find_dispatch(scaled, "dispatch", 2, 20);
  CHECK(line.start.value == Approx(10e-6));
  CHECK(line.between == Approx(2e-12));
}

TEST_CASE("what a file of dispatches may not say", "[platform][dispatch]") {
  const auto message = [](std::string text, const std::string& old, const std::string& other) {
    text.replace(text.find(old), old.size(), other);
    try {
      read_kernel_fits(yaml::parse(text, "fits.yaml"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message(kFits, "processors: 10", "processors: 20") ==
        "fits.yaml:8:7: a second fit of a dispatch among 2 nodes by 20 multiprocessors of deepep; allowed: each once");
  CHECK(message(kFits, "op: dispatch", "op: send") == "fits.yaml:6:12: unknown op 'send'; known: dispatch, combine");
  CHECK(message(kFits, "between: 50 GB/s", "between: 0") != "");
}

} // namespace
} // namespace stagecraft
