// Which samples count, and when there are enough, with a simulated clock.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"

#include "calibrate/cpu/sampler.hpp"

namespace stagecraft::cpu {
namespace {

TEST_CASE("a reading is contaminated by a context switch or by extra wall time", "[cpu]") {
  // 3 % and 10 us beyond the processor's own time may be the clocks'.
  CHECK_FALSE(contaminated({.cpu = 1e-3, .wall = 1.039e-3, .switches = 0}));
  CHECK(contaminated({.cpu = 1e-3, .wall = 1.041e-3, .switches = 0}));
  CHECK(contaminated({.cpu = 1e-3, .wall = 1e-3, .switches = 1}));
  CHECK_FALSE(contaminated({.cpu = 1e-6, .wall = 10e-6, .switches = 0}));
}

// A kernel of 1 ms; each sample takes `noise` more, and may be contaminated. The clock advances as it runs.
struct Machine {
  std::vector<double> noise = {0};
  std::function<bool(int sample)> is_contaminated = [](int) { return false; };
  double clock = 0, once = 1e-3;
  int taken = 0, most_runs = 0;

  gpu::Timing measure(const Sampling& sampling) {
    return sample(
        [this](int runs) {
          const double cpu = runs * once * (1 + noise[static_cast<std::size_t>(taken) % noise.size()]);
          const bool bad = is_contaminated(taken);
          ++taken;
          most_runs = std::max(most_runs, runs);
          clock += bad ? 2 * cpu : cpu;
          return Reading{bad ? 1.5 * cpu : cpu, bad ? 2 * cpu : cpu, bad ? 1 : 0};
        },
        sampling, [this] { return clock; });
  }
};

TEST_CASE("steady samples stop at the least number", "[cpu]") {
  Machine machine;
  const gpu::Timing timing = machine.measure({});
  CHECK(timing.seconds.samples == 5);
  CHECK(timing.seconds.median == Approx(1e-3));
  CHECK(timing.dropped == 0);
  CHECK(machine.taken == 2 + 5); // with the warm-up
}

TEST_CASE("noisy samples go on until the median is known", "[cpu]") {
  Machine machine;
  machine.once = 0.25e-3;
  machine.noise = {0, 0.02, 0.01, 0.03, -0.01}; // quartiles 0 and 0.02: deviation 1.5 %, so 1.2533 x 1.5 % / sqrt(n)
  const gpu::Timing timing = machine.measure({});
  CHECK(timing.seconds.samples > 15); // (1.2533 x 0.02 / 1.349 / 0.004)^2 = 21.6, where quartiles sit exactly
  CHECK(timing.seconds.samples <= 30);
  CHECK(timing.seconds.median == Approx(0.25e-3 * 1.01).epsilon(0.01));
}

TEST_CASE("slow kernels take few samples", "[cpu]") {
  Machine machine;
  machine.once = 0.1; // two samples last longer than the rule's 0.05 s
  CHECK(machine.measure({}).seconds.samples == 3);
}

TEST_CASE("short kernels run many times a sample", "[cpu]") {
  Machine machine;
  machine.once = 1e-6;
  const gpu::Timing timing = machine.measure({});
  CHECK(timing.seconds.median == Approx(1e-6));
  CHECK(machine.most_runs >= 200); // 200 us
  CHECK(machine.most_runs < 2000);
}

TEST_CASE("contaminated samples are dropped and counted", "[cpu]") {
  Machine machine;
  machine.is_contaminated = [](int sample) { return sample % 3 == 0; };
  const gpu::Timing timing = machine.measure({});
  CHECK(timing.seconds.median == Approx(1e-3)); // with the contaminated ones it would be 1.5 ms
  CHECK(timing.seconds.samples == 5);
  CHECK(timing.dropped == 2); // samples 2 … 8, of which 3 and 6
  CHECK(timing.variant.empty());
}

TEST_CASE("where the core is always shared all samples count, and the line says so", "[cpu]") {
  Machine machine;
  machine.is_contaminated = [](int) { return true; };
  const gpu::Timing timing = machine.measure({});
  CHECK(timing.variant == "shared core");
  CHECK(timing.seconds.samples >= 3);
  CHECK(timing.dropped == 0);
  CHECK(machine.clock < 1); // it does not wait for better times
}

} // namespace
} // namespace stagecraft::cpu
