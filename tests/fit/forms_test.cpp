// Each form finds the truth that its samples were made from; shapes are held back as whole values.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include "sim/base/random.hpp"
#include "sim/platform/fits/kernel_features.hpp"
#include "tests/catch.hpp"

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/forms/fit_family.hpp"
#include "calibrate/fit/forms/fit_grid.hpp"
#include "calibrate/fit/forms/fit_line.hpp"
#include "calibrate/fit/forms/fit_power.hpp"
#include "calibrate/fit/forms/kernel_forms.hpp"

namespace stagecraft::fit {
namespace {

Catch::Detail::Approx close(double expected, double share) { return Catch::Detail::Approx(expected).epsilon(share); }

const Roofline kRoofline{FlopsPerSecond{1e14}, BytesPerSecond{1e12}, Seconds{3e-6}};

Kernel gemm(double m, double n, double k) {
  return {KernelOp::gemm, KernelPass::forward, Precision::bf16, {1, m, n, k}};
}

// Every product of these sizes, timed by `time`.
template <class Time> KernelSamples products(const std::vector<double>& sizes, const Time& time) {
  KernelSamples samples;
  for (const double m : sizes) {
    for (const double n : sizes) {
      for (const double k : sizes) {
        const Kernel kernel = gemm(m, n, k);
        samples.push_back({kernel, Seconds{time(kernel)}, ""});
      }
    }
  }
  return samples;
}

double by_feature(std::string_view name, const Kernel& kernel, double processors) {
  return kernel_features()[static_cast<std::size_t>(feature_called(name))].value(kernel, processors);
}

TEST_CASE("a grid finds a smooth residual and the share of half-empty waves", "[fit]") {
  const double processors = 100;
  const auto truth = [&](const Kernel& kernel) {
    const double residual = 0.8 - 0.05 * std::log(kernel.shape[1]) +
                            0.002 * std::log(kernel.shape[2]) * std::log(kernel.shape[3]) +
                            0.3 * by_feature("wave-128x128", kernel, processors);
    return time_of(kRoofline, kernel).value * std::exp(residual);
  };
  const KernelSamples samples = products({96, 128, 320, 512, 900, 1024, 2048, 3000, 4096, 8192}, truth);
  const GridForm form{{{"rows", 6}, {"columns", 6}, {"depth", 6}}, {"wave-64x64", "wave-128x128"}, 0.01};
  const ResidualGrid grid = fit_grid(samples, form, kRoofline, processors);
  CHECK(grid.axes[0].nodes.size() == 6);
  for (const Kernel& unseen : {gemm(700, 700, 700), gemm(5000, 1500, 100), gemm(128, 6000, 400)}) {
    INFO(to_text(unseen));
    CHECK(time_of(grid, unseen, processors).value == close(truth(unseen), 0.02));
  }
  CHECK(grid.corrections[1].coefficient == close(0.3, 0.1));
}

TEST_CASE("a few wild samples do not draw a grid", "[fit]") {
  Random random(5);
  const auto truth = [](const Kernel& kernel) { return 1.5 * time_of(kRoofline, kernel).value; };
  KernelSamples samples = products({128, 256, 512, 1024, 2048, 4096}, truth);
  for (KernelSample& sample : samples) {
    sample.time = sample.time * (random.unit() < 0.08 ? 3 : 1);
  }
  const ResidualGrid grid = fit_grid(samples, {{{"rows", 4}, {"columns", 4}, {"depth", 4}}, {}, 0.1}, kRoofline, 1);
  CHECK(time_of(grid, gemm(700, 700, 700), 1).value == close(truth(gemm(700, 700, 700)), 0.03));
}

TEST_CASE("a fit finds a family's coefficients and drops terms that play no part", "[fit]") {
  const auto truth = [](const Kernel& kernel) {
    return 4e-6 + 2e-14 * flops_of(kernel).value + 3e-12 * bytes_of(kernel).value;
  };
  const KernelSamples samples = products({16, 64, 256, 1024, 4096}, truth);
  const KernelFamily family = fit_family(samples, {"launch", "flops", "bytes", "wave-flops-128x128"}, 10);
  REQUIRE(family.ways.size() == 1);
  for (const FitTerm& term : family.ways.front()) {
    const std::string_view name = kernel_features()[static_cast<std::size_t>(term.feature)].name;
    const double expected = name == "launch" ? 4e-6 : name == "flops" ? 2e-14 : name == "bytes" ? 3e-12 : 0;
    INFO(name);
    CHECK(term.coefficient == Catch::Detail::Approx(expected).epsilon(1e-6).margin(1e-20));
  }
}

TEST_CASE("segments end where the truth's do", "[fit]") {
  const auto truth = [](double bytes) {
    return bytes <= 1e5 ? 5e-6 + bytes * 1e-11 : bytes <= 1e7 ? 9e-6 + bytes * 4e-12 : 3e-5 + bytes * 3e-12;
  };
  std::vector<LinePoint> points;
  for (double bytes = 512; bytes < 1e9; bytes *= 2) {
    points.push_back({bytes, Seconds{truth(bytes)}});
    points.push_back({bytes, Seconds{truth(bytes)}});
  }
  const PiecewiseLine line = fit_line(points, 3);
  REQUIRE(line.segments.size() == 3);
  CHECK(line.segments[0].start.value == close(5e-6, 1e-6));
  CHECK(line.segments[0].upto == close(512.0 * 128 * std::sqrt(2.0), 1e-9)); // between 65 536 and 131 072
  CHECK(line.segments[1].seconds_per_byte == close(4e-12, 1e-6));
  CHECK(line.segments[2].seconds_per_byte == close(3e-12, 1e-6));
  CHECK(fit_line(points, 1).segments.size() == 1);
  const PiecewiseLine chosen = fit_line_validated(points, 1);
  CHECK(chosen.segments.size() >= 3);
  CHECK(chosen.error.mean < 0.05);
  CHECK(chosen.error.points > 20);
  const PiecewiseLine straight = interpolate(points);
  CHECK(straight.time(512 * 1024).value == close(truth(512 * 1024), 1e-9));
  CHECK(straight.time(1).value > 0);
}

TEST_CASE("a line through one size, and through times that fall", "[fit]") {
  CHECK(fit_line({{1e3, Seconds{1e-5}}}, 4).time(1e3).value == close(1e-5, 1e-9));
  CHECK(interpolate({{1e3, Seconds{1e-5}}}).time(5e3).value == close(1e-5, 1e-9));
  const PiecewiseLine falling = interpolate({{1e3, Seconds{3e-5}}, {2e3, Seconds{1e-5}}, {4e3, Seconds{2e-5}}});
  CHECK(falling.time(1500).value == close(2e-5, 1e-9));
  CHECK(falling.time(4000).value == close(2e-5, 1e-9));
}

TEST_CASE("a collective's time has knots where the protocol changes, and never falls", "[fit]") {
  // 10 us to 64 kB; then 1 ns a byte, and from 1 MB on half of that. One size was disturbed.
  const auto truth = [](double bytes) {
    return bytes <= 64e3 ? 10e-6 : bytes <= 1e6 ? 10e-6 + (bytes - 64e3) * 1e-9 : 946e-6 + (bytes - 1e6) * 0.5e-9;
  };
  std::vector<LinePoint> points;
  for (const double bytes : {1e3, 4e3, 16e3, 64e3, 250e3, 500e3, 1e6, 4e6, 16e6}) {
    points.push_back({bytes, Seconds{truth(bytes) * (bytes == 4e3 ? 1.5 : 1)}});
    points.push_back({bytes, Seconds{truth(bytes) * 1.6}});
  }
  const PiecewiseLine line = fit_collective(points);
  CHECK(line.segments.size() == 4); // to the first size, flat, and the two slopes
  for (const double bytes : {1.0, 1e3, 4e3, 10e3, 64e3, 100e3, 750e3, 2e6, 16e6, 1e9}) {
    CAPTURE(bytes);
    CHECK(line.time(bytes).value == Approx(truth(bytes)).epsilon(1e-9));
  }
  CHECK(line.error.points == 4);
  CHECK(line.error.scheme == "every second size held back");
  // Of one size, a rate: twice the bytes take longer.
  const PiecewiseLine single = fit_collective({{1e3, Seconds{1e-6}}});
  CHECK(single.time(1e3).value == Approx(1e-6));
}

TEST_CASE("where a library changes its protocol between two sizes far apart, each side keeps its own line", "[fit]") {
  // 10 us + 14 ns/B, and from 10 kB on 200 us + 4 ns/B: 150 us just before, 240 after.
  const auto truth = [](double bytes) { return bytes < 10e3 ? 10e-6 + bytes * 14e-9 : 200e-6 + bytes * 4e-9; };
  std::vector<LinePoint> points;
  for (const double bytes : {1e3, 4e3, 16e3, 64e3}) {
    points.push_back({bytes, Seconds{truth(bytes)}});
  }
  const PiecewiseLine line = fit_collective(points, {10e3});
  // Half way from the chord of 4 kB and 16 kB, 66 and 264 us, to the lines of 1 and 4 kB and of 16 and 64 kB.
  const auto chord = [](double bytes) { return 66e-6 + (bytes - 4e3) * 198e-6 / 12e3; };
  for (const double bytes : {5e3, 8e3, 12e3, 15e3}) {
    CAPTURE(bytes);
    CHECK(line.time(bytes).value == Approx((chord(bytes) + truth(bytes)) / 2));
  }
  for (const LinePoint& point : points) {
    CHECK(line.time(point.bytes).value == Approx(point.time.value));
  }
  // Nothing is put between sizes that lie close, at the ends, or where no change is.
  CHECK(fit_collective(points, {2e3, 40e3}).segments == fit_collective(points).segments);
  CHECK(fit_collective(points).time(8e3).value == Approx(chord(8e3)));
  // A line that would leave the times at both ends stays within, and the time does not fall.
  const std::vector<LinePoint> steep = {
      {1e3, Seconds{1e-6}}, {4e3, Seconds{40e-6}}, {16e3, Seconds{50e-6}}, {64e3, Seconds{500e-6}}};
  const PiecewiseLine within = fit_collective(steep, {10e3});
  for (double bytes = 1e3, last = 0; bytes < 64e3; bytes += 100) {
    CHECK(within.time(bytes).value >= last);
    last = within.time(bytes).value;
  }
  CHECK(within.time(10e3).value == Approx(45e-6)); // half way to 50 us, and to 40
}

TEST_CASE("power is a sum below its cap", "[fit]") {
  const auto state = [](const char* name, double flops, double bytes) {
    return MeasuredPower{name,
                         Watts{std::min(700.0, 120 + flops * 5e-13 + bytes * 4e-11)},
                         Seconds{8},
                         FlopsPerSecond{flops},
                         BytesPerSecond{bytes},
                         {}};
  };
  std::vector<MeasuredPower> states = {state("matmul", 2e14, 1e12), state("matmul", 6e14, 5e11), state("copy", 0, 4e12),
                                       state("matmul", 3e14, 3e12), state("matmul", 9e14, 4e12)};
  CHECK_FALSE(fit_power(states)); // without idle
  states.push_back({"idle", Watts{75}, Seconds{8}, {}, {}, {}});
  states.push_back({"blocked", Watts{110}, Seconds{5}, {}, {}, {}}); // no work, so it says nothing of what work costs
  const auto fit = fit_power(states);
  REQUIRE(fit);
  CHECK(fit->cap.value == close(700, 1e-9));
  CHECK(fit->idle.value == close(75, 1e-9));
  CHECK(fit->base.value == close(120, 1e-6));
  CHECK(fit->per_flops == close(5e-13, 1e-6));
  CHECK(fit->per_bytes == close(4e-11, 1e-6));
  CHECK(fit->error.points == 5);
}

TEST_CASE("whole values are held back, about the share asked for", "[fit]") {
  const KernelSamples samples = products({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, [](const Kernel&) { return 1e-5; });
  const auto keys = block_keys(samples);
  double share = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<bool> held = hold_back(keys, 0.2, seed);
    CHECK(held == hold_back(keys, 0.2, seed));
    // A sample that is held has a dimension no other sample of whose value is known.
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (!held[i]) {
        continue;
      }
      bool whole = false;
      for (std::size_t d = 1; d <= 3; ++d) {
        bool none_known = true;
        for (std::size_t j = 0; j < samples.size(); ++j) {
          none_known = none_known && (held[j] || keys[j][d] != keys[i][d]);
        }
        whole = whole || none_known;
      }
      REQUIRE(whole);
    }
    share += static_cast<double>(std::count(held.begin(), held.end(), true)) / 40 / static_cast<double>(held.size());
  }
  CHECK(share == close(0.2, 0.25));
  CHECK(hold_back({{1}, {1}, {2}}, 0.5, 1) == std::vector<bool>(3, false)); // only ends
}

TEST_CASE("the form is chosen by shapes held back, and its error is honest", "[fit]") {
  Random random(9);
  const auto truth = [&](const Kernel& kernel) {
    return (4e-6 + 2e-14 * flops_of(kernel).value + 3e-12 * bytes_of(kernel).value) * (1 + 0.1 * (random.unit() - 0.5));
  };
  const KernelSamples samples = products({16, 64, 256, 1024, 4096}, truth);
  const KernelFit fit = fit_kernel(samples, kRoofline, 10, {});
  REQUIRE(fit.family); // the truth is a sum: no grid does better on values that it has not seen
  CHECK(fit.name == "gemm/forward/bf16");
  // Uniform noise of +-5 % has a mean of 2.5 %.
  CHECK(fit.family->error.mean == close(0.025, 0.25));
  CHECK(fit.family->error.points > 30);
}

Kernel gelu(double rows, double columns) {
  return {KernelOp::gelu, KernelPass::forward, Precision::fp32, {rows, columns}};
}

TEST_CASE("one sample gives a rate, not a constant", "[fit]") {
  const KernelFit product = fit_kernel({{gemm(128, 256, 256), Seconds{160e-6}, ""}}, kRoofline, 1, {});
  CHECK(time_by(product, gemm(256, 256, 256), 1).value == close(320e-6, 1e-9));
  const KernelFit memory = fit_kernel({{gelu(64, 1024), Seconds{40e-6}, ""}}, kRoofline, 1, {});
  CHECK(time_by(memory, gelu(32, 1024), 1).value == close(20e-6, 1e-9));
}

// A processor: 0.6 ns a number while operands fit into the cache, 0.9 ns beyond 2^20 numbers.
TEST_CASE("a few points over four orders of magnitude are not missed by factors", "[fit]") {
  const auto truth = [](const Kernel& kernel) {
    const double numbers = kernel.shape[0] * kernel.shape[1];
    return numbers * (numbers < 1 << 20 ? 0.6e-9 : 0.9e-9);
  };
  KernelSamples samples;
  for (const Kernel& kernel :
       {gelu(64, 4096), gelu(5, 768), gelu(4096, 64), gelu(16384, 64), gelu(21845, 768), gelu(42, 768)}) {
    samples.push_back({kernel, Seconds{truth(kernel)}, ""});
  }
  const KernelFit fit = fit_kernel(samples, kRoofline, 1, {});
  for (const Kernel& unseen : {gelu(8, 768), gelu(512, 64), gelu(1365, 768), gelu(100, 4096), gelu(262144, 64)}) {
    const double factor = time_by(fit, unseen, 1).value / truth(unseen);
    INFO(to_text(unseen) << " is off by " << factor);
    CHECK(factor > 0.6);
    CHECK(factor < 1.6);
  }
}

TEST_CASE("where a line by bytes is nearer than any grid, the line is taken", "[fit]") {
  KernelSamples samples; // 2 us and 1 ps a byte, whatever the rows and columns
  for (const double columns : {64, 768, 4096}) {
    for (const double numbers : {1 << 12, 1 << 15, 1 << 18, 1 << 20, 1 << 22, 1 << 24}) {
      const Kernel kernel = gelu(std::ceil(numbers / columns), columns);
      samples.push_back({kernel, Seconds{2e-6 + 1e-12 * bytes_of(kernel).value}, ""});
    }
  }
  const KernelFit fit = fit_kernel(samples, kRoofline, 1, {});
  CHECK_FALSE(fit.grid);
  CHECK(time_by(fit, gelu(3000, 300), 1).value == close(2e-6 + 1e-12 * 8 * 9e5, 0.01));
}

} // namespace
} // namespace stagecraft::fit
