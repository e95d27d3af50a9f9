// The schedule search: sound, within its memory, and never worse than the best named schedule that fits.
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <optional>

#include "sim/schedule/timed_orders.hpp"
#include "tests/catch.hpp"
#include "tests/schedule/timed_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

Schedule made(std::string_view name, const ScheduleRequest& request) {
  return std::get<Schedule>(make_schedule(test::schedule_row(name), request));
}

bool fits(const Schedule& schedule, const ScheduleRequest& request) {
  for (int rank = 0; rank < request.ranks; ++rank) {
    if (test::most_held(schedule, request, rank) > request.room[rank] * (1 + 1e-9)) {
      return false;
    }
  }
  return true;
}

// The least period of named schedules that fit, have one stage per rank, and flush between iterations.
double best_named(const test::Pipeline& pipeline, const ScheduleRequest& request) {
  std::optional<double> best;
  for (const std::string_view name : {"naive", "gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "zb-auto"}) {
    for (const ScheduleRow& row : schedules()) {
      if (row.name == name && fits(made(name, request), request)) {
        const double period = test::replayed_period(pipeline, made(name, request));
        best = std::min(best.value_or(period), period);
      }
    }
  }
  return best.value();
}

TEST_CASE("search is never worse than the best named schedule, and often better", "[schedule][timed]") {
  std::mt19937 random(2);
  int better = 0;
  for (int n = 0; n < 100; ++n) {
    const int ranks = test::pick(random, 2, 8);
    test::Pipeline pipeline = test::uneven_pipeline(random, ranks);
    pipeline.latency *= 2; // hops of up to a forward and a half
    ScheduleRequest request = test::request_of(pipeline, test::pick(random, ranks, 2 * ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      request.room.push_back(test::pick(random, ranks / 2 + 1, 2 * ranks));
    }
    CAPTURE(n, ranks, request.micro_batches);
    const Schedule schedule = made("search", request);
    CHECK(schedule_defects(schedule).empty());
    CHECK(fits(schedule, request));
    const double named = best_named(pipeline, request);
    const double searched = test::replayed_period(pipeline, schedule);
    CHECK(searched <= named * (1 + 1e-9));
    CHECK(searched >= least_times(timed_pipeline(request, 1, StagePlacement::interleaved)).period * (1 - 1e-9));
    better += searched <= 0.95 * named ? 1 : 0;
  }
  CAPTURE(better);
  CHECK(better >= 33);
}

TEST_CASE("search finds the orders that are known to be best", "[schedule][timed]") {
  // With the room of zb-h2, equal stages need not wait at all: 8 micro-batches of 3 s.
  const test::Pipeline pipeline = test::equal_stages(4, 1, {1, 1, 1});
  ScheduleRequest request = test::request_of(pipeline, 8);
  request.room = {7, 7, 7, 7};
  CHECK(test::replayed_period(pipeline, made("search", request)) == near(24));
  // With room for one micro-batch they run one after the other. Rank 0 holds each until it is back, 1 + 1 + 1 + 1 + 1,
  // and W: two ranks, 2 + 2 + 1 each.
  const test::Pipeline two = test::equal_stages(2, 1, {1, 1, 1});
  request = test::request_of(two, 6);
  request.room = {1, 1};
  CHECK(test::replayed_period(two, made("search", request)) == near(6 * 5));
}

TEST_CASE("no order is faster than the least times, and some are as fast", "[schedule][timed]") {
  // Three equal stages, F = B = W = 1, hops of 1, 6 micro-batches. Rank 0 sees its first gradient after 3 F, 2 B and 4
  // hops: 9 s. With room for 4 it has worked 4 of them: 9 - 4 + 6 x 3 = 23 s. Room for 2: each micro-batch takes one of
  // them for 9 + 1 + 1 s, 6 x 11 / 2 = 33 s. Room for 20: work alone, 18 s but for 3 s that rank 0 has no forward for.
  const auto least = [](double room) {
    ScheduleRequest request{.ranks = 3, .micro_batches = 6, .figures = {}, .hops = {1, 1}, .room = {room, room, room}};
    return least_times(timed_pipeline(request, 1, StagePlacement::interleaved));
  };
  CHECK(least(4).period == near(23));
  CHECK(least(2).period == near(33));
  CHECK(least(20).period == near(21));
  // From empty, with room for all, rank 2 begins at 4 and has no wait: 4 + 6 (F + B), and then the last gradient goes
  // back 2 hops and 2 B, or it works off its W, 6: 22 s. Rank 0 with 3 s of waiting, and all its work: 21 s.
  CHECK(least(20).makespan == near(22));
}

TEST_CASE("search uses the replay where there is one", "[schedule][timed]") {
  ScheduleRequest request{.ranks = 4, .micro_batches = 8, .room = {16, 16, 16, 16}};
  std::vector<Schedule> asked;
  request.evaluate = [&](const Schedule& schedule) {
    asked.push_back(schedule);
    return static_cast<double>(asked.size() == 2 ? 1 : 2); // the second is best, for reasons of its own
  };
  const Schedule chosen = made("search", request);
  CHECK(chosen.orders == asked.at(1).orders);
  request.evaluate = [](const Schedule&) { return std::numeric_limits<double>::infinity(); };
  CHECK(std::get<Infeasible>(make_schedule(test::schedule_row("search"), request)).reason ==
        "search found no order that fits");
}

TEST_CASE("search says what it cannot do", "[schedule][timed]") {
  const ScheduleResult large = make_schedule(test::schedule_row("search"), {17, 241});
  CHECK(std::get<Infeasible>(large).reason ==
        "search replays 17 ranks x 241 micro-batches thousands of times; at most 4096");
  const ScheduleResult small =
      make_schedule(test::schedule_row("search"), {.ranks = 1, .micro_batches = 1, .room = {0.5}});
  CHECK(std::get<Infeasible>(small).reason == "rank 0 has no room for the activations of one micro-batch");
}

} // namespace
} // namespace stagecraft
