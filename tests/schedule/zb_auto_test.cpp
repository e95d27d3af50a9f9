// zb-auto: worked figures, its cap, and never worse than the orders written by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/schedule/timed_pipelines.hpp"

namespace stagecraft {
namespace {

using test::near;

Schedule made(std::string_view name, const ScheduleRequest& request) {
  return std::get<Schedule>(make_schedule(test::schedule_row(name), request));
}

TEST_CASE("zb-auto with the memory of 1f1b is zb-h1, with twice that it has no bubble", "[schedule][timed]") {
  struct Case {
    int ranks, micro_batches;
    double room, period;
  };
  // F = B = W = 1. M 3 is all work; zb-h1 waits (P-1)(F+B-W) = P-1 more.
  for (const Case& one : {Case{4, 8, 4, 27}, Case{4, 8, 7, 24}, Case{8, 24, 8, 79}, Case{8, 24, 15, 72}}) {
    CAPTURE(one.ranks, one.room);
    const test::Pipeline pipeline = test::equal_stages(one.ranks, 1, {1, 1, 1});
    ScheduleRequest request = test::request_of(pipeline, one.micro_batches);
    request.room.assign(one.ranks, one.room);
    CHECK(test::replayed_period(pipeline, made("zb-auto", request)) == near(one.period));
  }
}

TEST_CASE("zb-auto without a given room uses the memory of 1f1b", "[schedule][timed]") {
  ScheduleRequest request{.ranks = 4, .micro_batches = 8};
  const Schedule schedule = made("zb-auto", request);
  request.room = {4, 4, 4, 4};
  CHECK(made("zb-auto", request) == schedule);
}

TEST_CASE("on uneven stages zb-auto is sound, within its room and no worse than orders by hand", "[schedule][timed]") {
  std::mt19937 random(11);
  int gained = 0;
  for (int n = 0; n < 150; ++n) {
    const int ranks = test::pick(random, 1, 7);
    const test::Pipeline pipeline = test::uneven_pipeline(random, ranks);
    ScheduleRequest request = test::request_of(pipeline, test::pick(random, 1, 20));
    for (StageFigures& figures : request.figures) {
      figures.activation = test::pick(random, 2, 6) / 4.0;
      figures.kept = test::pick(random, 0, 4) / 4.0;
      request.room.push_back(figures.activation + test::pick(random, 0, 8 * ranks) / 4.0);
    }
    CAPTURE(n, ranks, request.micro_batches);
    const Schedule schedule = made("zb-auto", request);
    CHECK(schedule_defects(schedule).empty());
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(test::most_held(schedule, request, rank) <= request.room[rank] * (1 + 1e-9));
    }
    const double period = test::replayed_period(pipeline, schedule);
    for (const ScheduleRow& row : schedules()) {
      if (row.name != "zb-h1" && row.name != "zb-h2") {
        continue;
      }
      const Schedule hand = made(row.name, request);
      bool fits = true;
      for (int rank = 0; rank < ranks; ++rank) {
        fits = fits && test::most_held(hand, request, rank) <= request.room[rank];
      }
      if (fits) {
        const double by_hand = test::replayed_period(pipeline, hand);
        CHECK(period <= by_hand * (1 + 1e-9));
        gained += period < by_hand * 0.98 ? 1 : 0;
      }
    }
  }
  CHECK(gained > 10);
}

TEST_CASE("zb-auto asks the replay where there is one", "[schedule][timed]") {
  // A judge that likes nothing better than zb-h1's order gets that order.
  ScheduleRequest request{.ranks = 4, .micro_batches = 8, .room = {16, 16, 16, 16}};
  const Schedule hand = made("zb-h1", request);
  CHECK(made("zb-auto", request).orders != hand.orders);
  request.evaluate = [&](const Schedule& schedule) { return schedule.orders == hand.orders ? 1.0 : 2.0; };
  CHECK(made("zb-auto", request).orders == hand.orders);
}

TEST_CASE("zb-auto says what it cannot do", "[schedule][timed]") {
  ScheduleRequest request{.ranks = 2, .micro_batches = 4, .room = {1, 0.5}};
  const ScheduleResult small = make_schedule(test::schedule_row("zb-auto"), request);
  CHECK(std::get<Infeasible>(small).reason == "rank 1 has no room for the activations of one micro-batch");
  request.room = {1, 1};
  CHECK(std::holds_alternative<Schedule>(make_schedule(test::schedule_row("zb-auto"), request)));
  const ScheduleResult large = make_schedule(test::schedule_row("zb-auto"), {1001, 1000});
  CHECK(std::get<Infeasible>(large).reason ==
        "zb-auto orders 1001 ranks x 1000 micro-batches one by one; at most 1000000");
}

} // namespace
} // namespace stagecraft
