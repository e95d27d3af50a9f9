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
constexpr int kMicroBatches = 64;

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

// A pipeline that fills f times takes as long as f iterations, one after the other: the next fill's first forward on
// the first rank follows its last backward, and all others follow from it.
TEST_CASE("each fill of a pipeline takes the time of one", "[schedule][closed-form]") {
  for (const ScheduleRow& row : schedules()) {
    CAPTURE(row.name);
    constexpr int kInOne = 8;
    const int p = 4, chunks = chunks_of(row, 2);
    const auto make = [&](int micro_batches, int fills) {
      return make_schedule(row, {.ranks = p, .micro_batches = micro_batches, .chunks = 2, .fills = fills});
    };
    const ScheduleResult one = make(kInOne, 1), three = make(3 * kInOne, 3);
    if (std::holds_alternative<Infeasible>(one)) { // of one device alone
      CHECK(std::holds_alternative<Infeasible>(three));
      continue;
    }
    if (!std::get<Schedule>(one).flushes) {
      CHECK_THAT(std::get<Infeasible>(three).reason, Catch::EndsWith("never drains; allowed: 'pipeline_fills' 1"));
      continue;
    }
    const Schedule &once = std::get<Schedule>(one), &all = std::get<Schedule>(three);
    CHECK(all.micro_batches == 3 * kInOne);
    CHECK(all.fills == 3);
    CHECK(schedule_defects(all).empty());
    CHECK(in_flight(all) == in_flight(once));
    for (int rank = 0; rank < p; ++rank) {
      std::vector<Action> last(all.orders[rank].end() - static_cast<std::ptrdiff_t>(once.orders[rank].size()),
                               all.orders[rank].end());
      for (Action& action : last) {
        action.micro_batch -= 2 * kInOne;
      }
      CHECK(last == once.orders[rank]);
    }
    test::Pipeline pipeline = test::equal_stages(p, chunks, {1.5, 2.25, row.splits_backward ? 1.0 : 0});
    pipeline.stage_placement = row.stage_placement;
    CHECK(test::run(pipeline, all).end() <= 3 * test::run(pipeline, once).end() + 1e-9);
    CHECK(test::run(pipeline, all).end() > 2 * test::run(pipeline, once).end());
  }
  const ScheduleRow& row = find_by_name(schedules(), "1f1b", "schedule", {});
  CHECK(std::get<Infeasible>(make_schedule(row, {.ranks = 2, .micro_batches = 9, .fills = 2})).reason ==
        "9 micro-batches are no multiple of 'pipeline_fills' 2");
}

// 1F1B drains whole: (M / f + P - 1) (tf + tb) for each fill, but for what the first rank is done before the others.
TEST_CASE("1f1b that fills twice takes twice (M / 2 + P - 1)(tf + tb)", "[schedule][closed-form]") {
  for_all([&](int p, int m) {
    const Schedule twice = repeat(test::schedule_of("1f1b", p, m), 2);
    return same(test::run(test::equal_stages(p, 1, {1.5, 2.25, 0}), twice).end(), 2 * (m + p - 1) * 3.75);
  });
}

TEST_CASE("combined 1f1b takes P (tf + tb) and M - 1 pairs", "[schedule][closed-form]") {
  // The last rank: its first forward ends at P tf, then come M - 1 pairs and one backward, whose gradient goes back.
  // Without a gain from pairs that is what 1f1b takes.
  for (const double part : {1.0, 0.8}) {
    CAPTURE(part);
    for_all([&](int p, int m) {
      test::Pipeline pipeline = test::equal_stages(p, 1, {1.5, 2.25, 0});
      pipeline.fused = part;
      const Schedule schedule = test::schedule_of("combined-1f1b", p, m);
      return schedule_defects(schedule).empty() &&
             same(test::run(pipeline, schedule).end(), p * 3.75 + (m - 1) * part * 3.75);
    });
  }
}

// Layer by layer a pair's backward gives back what its forward takes, so that it holds no more than before.
TEST_CASE("combined 1f1b pairs each forward after the warm-up with the oldest backward", "[schedule]") {
  const Schedule schedule = test::schedule_of("combined-1f1b", 2, 4);
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0 F2@0 F3@0+B0@0 B1@0 B2@0 B3@0");
  CHECK(to_text(schedule.orders[1]) == "F0@1 F1@1+B0@1 F2@1+B1@1 F3@1+B2@1 B3@1");
  CHECK(most_held(schedule) == std::vector<int>{3, 1}); // min(2 (P - 1 - r) + 1, M)
  CHECK(to_text(backwards_first(schedule.orders[1])) == "F0@1 B0@1+F1@1 B1@1+F2@1 B2@1+F3@1 B3@1");
  CHECK(to_text(test::schedule_of("combined-1f1b", 1, 1).orders[0]) == "F0@0 B0@0"); // nothing to pair
}

// Two ranks of two chunks: stages 0 and 2, 1 and 3. Megatron-Core's warm-up is 2 (P - 1 - r) + (v - 1) P + 1 forwards.
TEST_CASE("combined interleaved pairs each forward after the warm-up with an earlier backward", "[schedule]") {
  const Schedule schedule = test::schedule_of("combined-interleaved", 2, 2, 2);
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0 F0@2 F1@2 B0@2 B1@2 B0@0 B1@0"); // a warm-up of 5, more than all
  CHECK(to_text(schedule.orders[1]) == "F0@1 F1@1 F0@3 F1@3+B0@3 B1@3 B0@1 B1@1");
  CHECK(most_held(test::schedule_of("combined-interleaved", 4, 8, 2)) == std::vector<int>{11, 9, 7, 5});
  for_all([](int p, int m) { // of one chunk it is combined 1f1b
    return test::schedule_of("combined-interleaved", p, m).orders == test::schedule_of("combined-1f1b", p, m).orders;
  });
  for (const int chunks : {2, 3, 4}) {
    for_all([&](int p, int m) {
      return schedule_defects(test::schedule_of("combined-interleaved", p, m, chunks)).empty();
    });
  }
}

// The last rank ends its warm-up of (v - 1) P + 1 forwards of a v-th each behind P - 1 of the ranks before it; then
// come the pairs, the backwards left, and those of the ranks before it.
TEST_CASE("combined interleaved saves what its pairs save", "[schedule][closed-form]") {
  for (const double part : {1.0, 0.8}) {
    CAPTURE(part);
    for_all([&](int p, int m) {
      if (m % p != 0) {
        return true;
      }
      test::Pipeline pipeline = test::equal_stages(p, 2, {3, 4.5, 0});
      pipeline.fused = part;
      const double end = test::run(pipeline, test::schedule_of("combined-interleaved", p, m, 2)).end();
      const double pairs = 2 * m - (p + 1);
      return same(end, (p - 1) * 3.75 + (p + 1) * 3.75 + pairs * part * 3.75);
    });
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

double makespan_of_chunks(std::string_view name, int p, int m, int chunks, const test::StageTimes& device) {
  test::Pipeline pipeline = test::equal_stages(p, chunks, device);
  pipeline.stage_placement = test::schedule_row(name).stage_placement;
  return test::run(pipeline, test::schedule_of(name, p, m, chunks)).end();
}

// Only the first micro-batch waits P hops; where M < P the ranks are what must be gone through.
TEST_CASE("interleaved and breadth-first take (max(M, P) + (min(M, P) - 1) / v)(tf + tb)", "[schedule][closed-form]") {
  for (const std::string_view name : {"interleaved", "breadth-first"}) {
    for (const int v : {1, 2, 3, 4}) {
      CAPTURE(name, v);
      for_all([&](int p, int m) {
        return same(makespan(name, p, m, v, {1, 2, 0}), (std::max(m, p) + (std::min(m, p) - 1.0) / v) * 3);
      });
    }
  }
}

TEST_CASE("interleaved makes its groups even where P does not divide M", "[schedule]") {
  // Eleven micro-batches on four ranks: a group of six, then one of five.
  const Schedule schedule = test::schedule_of("interleaved", 4, 11, 2);
  CHECK_THAT(to_text(schedule.orders[0]), Catch::StartsWith("F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F0@4 F1@4 F2@4 F3@4 F4@4 "
                                                            "F5@4 F6@0 B0@4 F7@0 B1@4"));
  CHECK(schedule_defects(schedule).empty());
}

TEST_CASE("hanayo with one wave has a bubble of (2P - 2) / (5P - 2) where M = P and B = 2F",
          "[schedule][closed-form]") {
  for (int p = 1; p <= kRanks; ++p) { // a device works P (1 + 2)
    CHECK(makespan_of_chunks("hanayo", p, p, 2, {1, 2, 0}) == near(5 * p - 2));
  }
  CHECK(makespan_of_chunks("hanayo", 4, 4, 4, {1, 2, 0}) == near(15.25)); // two waves: 0.213 of it bubble
}

TEST_CASE("hanayo refuses half a wave", "[schedule]") {
  const ScheduleResult made = make_schedule(test::schedule_row("hanayo"), {4, 4, 3});
  CHECK_THAT(std::get<Infeasible>(made).reason, Catch::EndsWith("nearest: 2 or 4"));
  CHECK_THAT(std::get<Infeasible>(make_schedule(test::schedule_row("hanayo"), {4, 4, 1})).reason,
             Catch::EndsWith("nearest: 2"));
}

// Qi et al. 2023, for M >= 2P - 1: the step is local, so an iteration begins while the one before still drains.
TEST_CASE("zb-h2 has a period of M(tF + tB + tW) + (P - 1) max(0, tF + tB - 2 tW)", "[schedule][closed-form]") {
  for (const test::StageTimes& times : {test::StageTimes{1, 1, 1}, {1.5, 1.25, 1}, {1, 1.2, 0.8}}) {
    for_all([&](int p, int m) {
      if (m < 2 * p - 1) {
        return true;
      }
      const test::PipelineRun run = test::run(test::equal_stages(p, 1, times), test::schedule_of("zb-h2", p, m),
                                              {.iterations = 4, .barrier = false});
      const double bubble = std::max(0.0, times.forward + times.input - 2 * times.weight);
      const double work = m * (times.forward + times.input + times.weight);
      return same(run.end(3) - run.end(2), work + (p - 1) * bubble);
    });
  }
  for_all([](int p, int m) { // alone, equal tasks: the last rank begins P - 1 later
    return m < 2 * p - 1 || same(makespan("zb-h2", p, m, 1, {1, 1, 1}), 3.0 * m + p - 1);
  });
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
         : name == "zb-h2"      ? std::min(2 * p - 1, m)
                                : 1;
}

TEST_CASE("each schedule holds the activations of its formula", "[schedule][closed-form][in-flight]") {
  for (const std::string_view name : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "naive"}) {
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

// g: the first group's micro-batches, P where P divides M.
TEST_CASE("interleaved holds min(2(P-1-s) + (v-1)g + 1, vM) chunks on rank s", "[schedule][closed-form][in-flight]") {
  for (const int v : {2, 3, 4}) {
    for_all([&](int p, int m) {
      const std::vector<int> held = most_held(test::schedule_of("interleaved", p, m, v));
      const int groups = std::max(1, m / p);
      const int g = (m + groups - 1) / groups;
      bool right = true;
      for (int s = 0; s < p; ++s) {
        right = right && held[s] == std::min(2 * (p - 1 - s) + (v - 1) * g + 1, v * m);
      }
      return right;
    });
  }
}

TEST_CASE("breadth-first holds every micro-batch of every chunk", "[schedule][closed-form][in-flight]") {
  for_all([](int p, int m) {
    return in_flight(test::schedule_of("breadth-first", p, m, 3)) == std::vector<double>(3 * p, m);
  });
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
