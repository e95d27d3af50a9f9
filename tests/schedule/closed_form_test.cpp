// Closed forms of schedules on equal stages without communication, for every small number of ranks and micro-batches.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr int kRanks = 16;
constexpr int kMicroBatches = 32;

// Calls `check` for every P and M; one assertion per P keeps the loop quick.
template <class Check> void for_all(const Check& check) {
  for (int p = 1; p <= kRanks; ++p) {
    int wrong = 0;
    for (int m = 1; m <= kMicroBatches; ++m) {
      wrong += check(p, m) ? 0 : 1;
    }
    CAPTURE(p);
    CHECK(wrong == 0);
  }
}

bool same(double got, double expected) { return std::abs(got - expected) <= 1e-9 * std::max(1.0, expected); }

double makespan(std::string_view name, int p, int m, int chunks, const test::StageTimes& device) {
  return test::run(test::equal_stages(p, chunks, device), test::schedule_of(name, p, m, chunks)).end();
}

TEST_CASE("gpipe, 1f1b and eager 1f1b take (M + P - 1)(tf + tb)", "[schedule][closed-form]") {
  for (const std::string_view name : {"gpipe", "1f1b", "eager-1f1b"}) {
    CAPTURE(name);
    for_all([&](int p, int m) { return same(makespan(name, p, m, 1, {1.5, 2.25, 0}), (m + p - 1) * 3.75); });
  }
}

TEST_CASE("naive takes M P (tf + tb)", "[schedule][closed-form]") {
  for_all([](int p, int m) { return same(makespan("naive", p, m, 1, {1, 2, 0}), m * p * 3.0); });
}

TEST_CASE("accumulate takes M (tf + tb) on one rank and refuses more", "[schedule][closed-form]") {
  for_all([](int p, int m) {
    const ScheduleResult made = make_schedule(test::schedule_row("accumulate"), {p, m, 1});
    return p == 1 ? same(makespan("accumulate", 1, m, 1, {1, 2, 0}), m * 3.0)
                  : std::holds_alternative<Infeasible>(made);
  });
}

TEST_CASE("interleaved takes (M + (P - 1) / v)(tf + tb) where P divides M, and refuses other M",
          "[schedule][closed-form]") {
  for (const int v : {1, 2, 3, 4}) {
    CAPTURE(v);
    for_all([&](int p, int m) {
      if (m % p == 0) {
        return same(makespan("interleaved", p, m, v, {1, 2, 0}), (m + (p - 1.0) / v) * 3);
      }
      const ScheduleResult made = make_schedule(test::schedule_row("interleaved"), {p, m, v});
      return v == 1 || std::holds_alternative<Infeasible>(made);
    });
  }
}

TEST_CASE("the refusal of interleaved names the nearest numbers that would do", "[schedule]") {
  const auto reason = [](int p, int m) {
    return std::get<Infeasible>(make_schedule(test::schedule_row("interleaved"), {p, m, 2})).reason;
  };
  CHECK_THAT(reason(4, 10), Catch::Contains("nearest: 8 or 12"));
  CHECK_THAT(reason(4, 3), Catch::Contains("nearest: 4"));
}

TEST_CASE("zb-h1 takes M(tF + tB + tW) + (P - 1)(tF + tB - tW)", "[schedule][closed-form]") {
  // Qi et al. 2023, for enough micro-batches that every rank's delayed W fill its bubble: M >= P, and tW <= tF, tB.
  for (const test::StageTimes& times : {test::StageTimes{1, 1, 1}, {1, 1.2, 0.8}, {1.5, 1.25, 1}}) {
    for_all([&](int p, int m) {
      const double expected =
          m * (times.forward + times.input + times.weight) + (p - 1) * (times.forward + times.input - times.weight);
      return m < p || same(makespan("zb-h1", p, m, 1, times), expected);
    });
  }
}

TEST_CASE("gpipe pays each hop's latency twice, once per direction", "[schedule][closed-form]") {
  for_all([](int p, int m) {
    const Schedule schedule = test::schedule_of("gpipe", p, m);
    const double got = test::run(test::equal_stages(p, 1, {1, 2, 0}, 0.5), schedule).end();
    return same(got, (m + p - 1) * 3.0 + 2 * (p - 1) * 0.5);
  });
}

// Activations that rank s holds at most, in chunks.
double formula(std::string_view name, int p, int m, int s) {
  return name == "gpipe"        ? m
         : name == "1f1b"       ? std::min(p - s, m)
         : name == "eager-1f1b" ? std::min(2 * (p - s) - 1, m)
         : name == "zb-h1"      ? std::min(p, m)
                                : 1;
}

TEST_CASE("each schedule holds the activations of its formula", "[schedule][closed-form][in-flight]") {
  for (const std::string_view name : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "naive"}) {
    CAPTURE(name);
    for_all([&](int p, int m) {
      const std::vector<double> held = in_flight(test::schedule_of(name, p, m));
      bool right = true;
      for (int s = 0; s < p; ++s) {
        right = right && held[s] == formula(name, p, m, s);
      }
      return right;
    });
  }
}

TEST_CASE("interleaved holds min(2(P-1-s) + (v-1)P + 1, vM) chunks on rank s", "[schedule][closed-form][in-flight]") {
  for (const int v : {2, 3, 4}) {
    for_all([&](int p, int m) {
      if (m % p != 0) {
        return true;
      }
      const std::vector<double> held = in_flight(test::schedule_of("interleaved", p, m, v));
      bool right = true;
      for (int s = 0; s < p; ++s) {
        double rank = 0;
        for (int chunk = 0; chunk < v; ++chunk) {
          rank += held[chunk * p + s];
        }
        right = right && rank == std::min(2 * (p - 1 - s) + (v - 1) * p + 1, v * m);
      }
      return right;
    });
  }
}

TEST_CASE("the order of the schedules by time and memory is the literature's", "[schedule]") {
  // P = 4, M = 8, F = B = W = 1 of a device: at 1f1b's memory on the first rank, zb-h1's bubble is a third of 1f1b's.
  const double work = 8 * 3;
  const double one_f_one_b = makespan("1f1b", 4, 8, 1, {1, 1, 1}) - work;
  const double zero_bubble = makespan("zb-h1", 4, 8, 1, {1, 1, 1}) - work;
  CHECK(one_f_one_b == near(9));
  CHECK(zero_bubble == near(3));
}

} // namespace
} // namespace stagecraft
