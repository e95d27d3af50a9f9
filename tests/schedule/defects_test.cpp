// schedule_defects: every row of the table is sound, and each way to break an order is found and named.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

std::string defects_of(const Schedule& schedule) { return join(schedule_defects(schedule), "\n"); }

TEST_CASE("every schedule is sound for all small numbers, or says why it is impossible", "[schedule][conformance]") {
  for (const ScheduleRow& row : schedules()) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 12; ++m) {
        for (int v = 1; v <= chunks_of(row, 3); ++v) {
          const ScheduleResult made = make_schedule(row, {p, m, v});
          const ScheduleResult again = make_schedule(row, {p, m, v});
          if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
            CHECK(!reason->reason.empty());
            continue;
          }
          const Schedule& schedule = std::get<Schedule>(made);
          const std::string defects = defects_of(schedule);
          if (!defects.empty() || schedule != std::get<Schedule>(again)) {
            CAPTURE(row.name, p, m, v, defects);
            FAIL_CHECK("unsound, or not the same twice");
          }
          CHECK(schedule.name == row.name);
          CHECK(schedule.orders.size() == static_cast<std::size_t>(p));
          CHECK(in_flight(schedule).size() == static_cast<std::size_t>(p) * chunks_of(row, v));
        }
      }
    }
  }
}

TEST_CASE("only an order that is said to be timed follows the stages' figures", "[schedule][conformance]") {
  for (const ScheduleRow& row : schedules()) {
    if (row.in_turn) {
      continue; // follows the replicas
    }
    bool follows = false;
    for (const int p : {2, 4}) {
      for (const int m : {2, 5, 8}) {
        ScheduleRequest request{p, m, chunks_of(row, 2)};
        const ScheduleResult alike = make_schedule(row, request);
        const int stages = p * chunks_of(row, 2);
        for (int stage = 0; stage < stages; ++stage) {
          request.figures.push_back(
              {.forward = 1.0 + stage, .backward_input = 3.0 - stage % 3, .backward_weight = 0.5});
        }
        request.hops.assign(stages - 1, 0.25);
        request.room.assign(p, 2.0 * m);
        const ScheduleResult uneven = make_schedule(row, request);
        const Schedule* one = std::get_if<Schedule>(&alike);
        const Schedule* other = std::get_if<Schedule>(&uneven);
        follows = follows || (one == nullptr) != (other == nullptr) || (one != nullptr && *one != *other);
      }
    }
    CAPTURE(row.name);
    CHECK(follows == row.timed);
  }
}

TEST_CASE("names of schedules are unique and have a line of help", "[schedule][conformance]") {
  std::vector<std::string> names = names_of(schedules());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (const ScheduleRow& row : schedules()) {
    CHECK(!row.help.empty());
  }
}

TEST_CASE("a missing action is named", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("1f1b", 2, 2); // F0 F1 B0 B1 | F0 B0 F1 B1
  schedule.orders[0].pop_back();
  CHECK(defects_of(schedule) == "B1@0 is missing");
}

TEST_CASE("a missing weight gradient is named only where backward is split", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("zb-h1", 1, 1); // F0 B0 W0
  schedule.orders[0].pop_back();
  CHECK(defects_of(schedule) == "W0@0 is missing");
  schedule.splits_backward = false;
  CHECK(defects_of(schedule).empty());
}

TEST_CASE("a weight gradient where backward is whole is a defect", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("zb-h1", 1, 1);
  schedule.splits_backward = false;
  CHECK_THAT(defects_of(schedule), Catch::Contains("W0@0"));
}

TEST_CASE("an action that is not the work of a schedule is a defect", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("1f1b", 1, 1);
  schedule.orders[0].push_back({TaskKind::optimizer, 0, 0});
  CHECK_THAT(defects_of(schedule), Catch::Contains("O0@0"));
}

TEST_CASE("a repeated action is named once", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("gpipe", 1, 2);
  schedule.orders[0].push_back({TaskKind::backward, 0, 0});
  schedule.orders[0].push_back({TaskKind::backward, 0, 0});
  CHECK(defects_of(schedule) == "B0@0 appears more than once, again on rank 0");
}

TEST_CASE("a micro-batch of a stage on two ranks is named", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("1f1b", 2, 1);
  schedule.orders[0] = {{TaskKind::forward, 0, 0}};
  schedule.orders[1].push_back({TaskKind::backward, 0, 0});
  CHECK(defects_of(schedule) == "B0@0 is on rank 1, but micro-batch 0 of stage 0 runs on rank 0");
}

TEST_CASE("micro-batches and stages beyond the schedule's numbers are named", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("1f1b", 1, 2);
  schedule.orders[0].push_back({TaskKind::forward, 2, 0});
  CHECK(defects_of(schedule) == "F2@0 on rank 0 is outside 1 stages and 2 micro-batches");
  schedule.orders[0].back() = {TaskKind::forward, 0, 1};
  CHECK_THAT(defects_of(schedule), Catch::Contains("F0@1 on rank 0 is outside"));
  schedule.orders[0].back() = {TaskKind::forward, -1, 0};
  CHECK_THAT(defects_of(schedule), Catch::Contains("is outside"));
}

TEST_CASE("backward before forward on one rank is a deadlock", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("1f1b", 1, 1);
  std::swap(schedule.orders[0][0], schedule.orders[0][1]);
  CHECK(defects_of(schedule) == "deadlock: B0@0 on rank 0 waits for F0@0");
}

TEST_CASE("a cycle over two ranks is told from end to end", "[schedule][defects]") {
  // Rank 0 wants micro-batch 1's gradient before it sends micro-batch 1; rank 1 wants that micro-batch first.
  Schedule schedule = test::schedule_of("1f1b", 2, 2);
  using enum TaskKind;
  schedule.orders[0] = {{forward, 0, 0}, {backward, 0, 0}, {forward, 1, 0}, {backward, 1, 0}};
  schedule.orders[1] = {{forward, 1, 1}, {backward, 1, 1}, {forward, 0, 1}, {backward, 0, 1}};
  CHECK(defects_of(schedule) == "deadlock: B0@0 on rank 0 waits for B0@1; F1@1 on rank 1 waits for F1@0");
}

TEST_CASE("too few tasks for the numbers of a schedule are told at once", "[schedule][defects]") {
  Schedule schedule = test::schedule_of("1f1b", 1, 1);
  schedule.stages = schedule.micro_batches = 1 << 24;
  CHECK(defects_of(schedule) == "2 tasks are too few for 16777216 stages and 16777216 micro-batches");
}

TEST_CASE("a deadlock's cycle leaves out tasks that only wait for it", "[schedule][defects]") {
  // Rank 0 waits for ranks 1 and 2, which wait for each other.
  Schedule schedule = test::schedule_of("1f1b", 3, 2);
  using enum TaskKind;
  schedule.orders[1] = {{forward, 0, 1}, {backward, 0, 1}, {forward, 1, 1}, {backward, 1, 1}};
  schedule.orders[2] = {{forward, 0, 2}, {forward, 1, 2}, {backward, 0, 2}, {backward, 1, 2}};
  CHECK(defects_of(schedule) == "deadlock: B0@1 on rank 1 waits for B0@2; F1@2 on rank 2 waits for F1@1");
}

TEST_CASE("a broken order of every schedule is found", "[schedule][defects]") {
  for (const ScheduleRow& row : schedules()) {
    const int p = row.name == "accumulate" ? 1 : row.bidirectional ? 4 : 3;
    const Schedule sound = test::schedule_of(row.name, p, 8, chunks_of(row, 2));
    for (std::size_t at = 0; at < sound.orders[0].size(); ++at) {
      Schedule missing = sound;
      missing.orders[0].erase(missing.orders[0].begin() + static_cast<std::ptrdiff_t>(at));
      Schedule repeated = sound;
      repeated.orders[0].push_back(sound.orders[0][at]);
      CAPTURE(row.name, at);
      CHECK(schedule_defects(missing).size() == 1);
      CHECK(schedule_defects(repeated).size() == 1);
    }
    Schedule reversed = sound;
    std::reverse(reversed.orders[0].begin(), reversed.orders[0].end());
    for (Action& action : reversed.orders[0]) {
      action.fused = false;
    }
    CHECK_THAT(defects_of(reversed), Catch::StartsWith("deadlock: "));
  }
}

} // namespace
} // namespace stagecraft
