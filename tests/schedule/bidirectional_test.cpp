// Schedules of two flows over the same ranks: Chimera, DualPipe and DualPipeV.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/schedule/random_pipelines.hpp"
#include "tests/schedule/worked_examples.hpp"

namespace stagecraft {
namespace {

using test::near;

// clang-format off
const std::vector<test::WorkedOrder> kOrders = {
    {"chimera", 4, 4, 1,
     {"F0@0 F1@0 F2@3 B2@3 F3@3 B3@3 B0@0 B1@0",
      "F0@1 F2@2 F1@1 F3@2 B2@2 B0@1 B3@2 B1@1",
      "F2@1 F0@2 F3@1 F1@2 B0@2 B2@1 B1@2 B3@1",
      "F2@0 F3@0 F0@3 B0@3 F1@3 B1@3 B2@0 B3@0"}},
    {"chimera", 4, 8, 1,
     {"F0@0 F1@0 F4@3 B4@3 F5@3 B5@3 B0@0 F2@0 B1@0 F3@0 F6@3 B6@3 F7@3 B7@3 B2@0 B3@0",
      "F0@1 F4@2 F1@1 F5@2 B4@2 B0@1 B5@2 B1@1 F2@1 F6@2 F3@1 F7@2 B6@2 B2@1 B7@2 B3@1",
      "F4@1 F0@2 F5@1 F1@2 B0@2 B4@1 B1@2 B5@1 F6@1 F2@2 F7@1 F3@2 B2@2 B6@1 B3@2 B7@1",
      "F4@0 F5@0 F0@3 B0@3 F1@3 B1@3 B4@0 F6@0 B5@0 F7@0 F2@3 B2@3 F3@3 B3@3 B6@0 B7@0"}},
    {"dualpipe", 4, 8, 1,
     {"F0@0 F1@0 F2@0 F4@3 B4@3 W4@3 F5@3 F3@0+B5@3+W5@3 F6@3+B0@0+W0@0 B6@3+W6@3 F7@3+B1@0+W1@0 B7@3+W7@3"
         " B2@0 W2@0 B3@0 W3@0",
      "F0@1 F4@2 F1@1 F5@2 F2@1 B4@2+W4@2 F6@2+B0@1+W0@1 F3@1+B5@2+W5@2 F7@2+B1@1+W1@1 B6@2+W6@2 B2@1+W2@1"
         " B7@2 B3@1 W7@2 W3@1",
      "F4@1 F0@2 F5@1 F1@2 F6@1 B0@2+W0@2 F2@2+B4@1+W4@1 F7@1+B1@2+W1@2 F3@2+B5@1+W5@1 B2@2+W2@2 B6@1+W6@1"
         " B3@2 B7@1 W3@2 W7@1",
      "F4@0 F5@0 F6@0 F0@3 B0@3 W0@3 F1@3 F7@0+B1@3+W1@3 F2@3+B4@0+W4@0 B2@3+W2@3 F3@3+B5@0+W5@0 B3@3+W3@3"
         " B6@0 W6@0 B7@0 W7@0"}},
    {"dualpipe-v", 2, 8, 2,
     {"F0@0 F1@0 F2@0 F0@3 B0@3 W0@3 F1@3 F3@0+B1@3+W1@3 F2@3+B0@0+W0@0 F4@0+B2@3+W2@3 F3@3+B1@0+W1@0"
         " F5@0+B3@3+W3@3 F4@3+B2@0+W2@0 F6@0+B4@3+W4@3 F5@3+B3@0+W3@0 F7@0+B5@3+W5@3 F6@3+B4@0+W4@0 B6@3+W6@3"
         " F7@3+B5@0+W5@0 B7@3+W7@3 B6@0 W6@0 B7@0 W7@0",
      "F0@1 F0@2 F1@1 F1@2 F2@1 B0@2+W0@2 F2@2+B0@1+W0@1 F3@1+B1@2+W1@2 F3@2+B1@1+W1@1 F4@1+B2@2+W2@2"
         " F4@2+B2@1+W2@1 F5@1+B3@2+W3@2 F5@2+B3@1+W3@1 F6@1+B4@2+W4@2 F6@2+B4@1+W4@1 F7@1+B5@2+W5@2"
         " F7@2+B5@1+W5@1 B6@2+W6@2 B6@1+W6@1 B7@2 B7@1 W7@2 W7@1"}},
};
// clang-format on

const std::vector<test::Example> kExamples = {
    {"chimera", 4, 4, 1, 1, 2, 0, 0, 16, 0, {3, 4, 4, 3}},
    {"chimera", 4, 8, 1, 1, 1, 0, 0, 18, 0, {3, 4, 4, 3}},
    {"chimera", 4, 8, 1, 1, 2, 0, 0, 30, 0, {3, 4, 4, 3}},
    {"chimera", 4, 16, 1, 1, 2, 0, 0, 58, 0, {3, 4, 4, 3}}, // made for equal F and B: 1f1b takes 57
    {"dualpipe", 4, 8, 1, 1, 1, 1, 0, 26, 0, {5, 5, 5, 5}},
    {"dualpipe", 4, 8, 1, 1, 1, 1, 0, 24, 0, {5, 5, 5, 5}, 2.5 / 3},
    {"dualpipe", 8, 20, 1, 1, 1, 1, 0, 66, 0, {9, 9, 9, 9, 9, 9, 9, 9}},
    {"dualpipe", 8, 20, 1, 1, 1, 1, 0, 59, 0, {9, 9, 9, 9, 9, 9, 9, 9}, 2.5 / 3},
    {"dualpipe-v", 2, 8, 2, 2, 2, 2, 0, 50, 0, {5, 5}},
    {"dualpipe-v", 2, 8, 2, 2, 2, 2, 0, 44, 0, {5, 5}, 2.5 / 3},
    {"dualpipe-v", 4, 10, 2, 2, 2, 2, 0, 66, 0, {9, 9, 9, 9}},
    {"dualpipe-v", 4, 10, 2, 2, 2, 2, 0, 59, 0, {9, 9, 9, 9}, 2.5 / 3},
};

TEST_CASE("orders of two flows are the published ones", "[schedule]") {
  for (const test::WorkedOrder& worked : kOrders) {
    test::check_order(worked);
  }
}

TEST_CASE("two flows take the published time and hold the published activations", "[schedule]") {
  for (const test::Example& example : kExamples) {
    test::check_example(example);
  }
}

double makespan(const char* name, int p, int m, int chunks, const test::StageTimes& device, double fused = 1) {
  return test::makespan_of(
      test::pipeline_of({name, p, m, chunks, device.forward, device.input, device.weight, 0, 0, 0, {}, fused}),
      test::schedule_of(name, p, m, chunks));
}

bool same(double got, double expected) { return std::abs(got - expected) <= 1e-9 * std::max(1.0, expected); }

TEST_CASE("chimera takes 2M + P - 2 where F and B take 1 each and P divides M", "[schedule][closed-form]") {
  for (int p = 2; p <= 16; p += 2) {
    for (int m = p; m <= 64; m += p) {
      CAPTURE(p, m);
      CHECK(makespan("chimera", p, m, 1, {1, 1, 0}) == near(2 * m + p - 2));
      const std::vector<int> held = most_held(test::schedule_of("chimera", p, m));
      for (int rank = 0; rank < p; ++rank) { // P / 2 + 1 at the ends, P in the middle
        CHECK(held[rank] == p / 2 + 1 + std::min(rank, p - 1 - rank));
      }
    }
  }
}

// Per direction M / 2 micro-batches; F & B beside each other, B the whole backward. The first rank's bubble is
// (P / 2 - 1)(F&B + B - 3W) (DeepSeek-AI 2024, table 2). It holds where tF = tB >= tW; for other times see below.
TEST_CASE("dualpipe's bubble is (P/2 - 1)(F&B + B - 3W)", "[schedule][closed-form]") {
  for (const test::StageTimes& t : {test::StageTimes{1, 1, 1}, {1.5, 1.5, 1.5}, {1, 1, 0.5}, {2, 2, 0.25}}) {
    const double both = t.forward + t.input + t.weight;
    const double bubble = both + t.input + t.weight - 3 * t.weight;
    for (int p = 2; p <= 16; p += 2) {
      int wrong = 0;
      for (int m = 2 * p; m <= 64; m += 2) {
        wrong += same(makespan("dualpipe", p, m, 1, t), m * both + (p / 2 - 1) * bubble) ? 0 : 1;
        const Schedule schedule = test::schedule_of("dualpipe", p, m);
        wrong += most_held(schedule) == std::vector<int>(p, p + 1) ? 0 : 1;
      }
      CAPTURE(p);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("dualpipe-v's bubble is (P - 1)(F&B + B - 3W)", "[schedule][closed-form]") {
  for (const test::StageTimes& t : {test::StageTimes{1, 1, 1}, {1.5, 1.5, 1.5}, {1, 1, 0.5}, {2, 2, 0.25}}) {
    const double both = t.forward + t.input + t.weight; // of a stage; a device has two
    const double bubble = both + t.input + t.weight - 3 * t.weight;
    for (int p = 1; p <= 16; ++p) {
      int wrong = 0;
      for (int m = 2 * p; m <= 40; ++m) {
        const test::StageTimes device{2 * t.forward, 2 * t.input, 2 * t.weight};
        wrong += same(makespan("dualpipe-v", p, m, 2, device), 2 * m * both + (p - 1) * bubble) ? 0 : 1;
        const Schedule schedule = test::schedule_of("dualpipe-v", p, m, 2);
        wrong += most_held(schedule) == std::vector<int>(p, 2 * p + 1) ? 0 : 1;
      }
      CAPTURE(p);
      CHECK(wrong == 0);
    }
  }
}

// The formula takes a hop for as long in the one direction as in the other. Between two ranks the first B and the
// last ones come later by tF - tB where F is the longer, and W that fills the wait for B stands out by tW - tB where it
// is the longer; where B is the longer, F hides in it, once at most.
double beyond_the_formula(double hops, const test::StageTimes& t) {
  return hops * std::max(0.0, t.forward - t.input) + hops * std::max(0.0, t.weight - t.input) -
         std::min(hops * std::max(0.0, t.input - t.forward), t.forward);
}

TEST_CASE("with uneven passes the dualpipes miss their formula by what a hop differs", "[schedule][closed-form]") {
  std::mt19937 random(29);
  for (int n = 0; n < 200; ++n) {
    const test::StageTimes t{test::pick(random, 1, 16) / 4.0, test::pick(random, 1, 16) / 4.0,
                             test::pick(random, 1, 16) / 4.0};
    const double both = t.forward + t.input + t.weight;
    const double bubble = both + t.input - 2 * t.weight;
    const int p = test::pick(random, 1, 8);
    const int m = 4 * p + 2 * test::pick(random, 0, 8);
    CAPTURE(p, m, t.forward, t.input, t.weight);
    CHECK(makespan("dualpipe", 2 * p, m, 1, t) == near(m * both + (p - 1) * bubble + beyond_the_formula(p - 1, t)));
    CHECK(makespan("dualpipe-v", p, m, 2, {2 * t.forward, 2 * t.input, 2 * t.weight}) ==
          near(2 * m * both + (p - 1) * bubble + beyond_the_formula(p - 1, t)));
  }
}

std::string refusal(const char* name, int p, int m) {
  return std::get<Infeasible>(make_schedule(test::schedule_row(name), {p, m, 1})).reason;
}

TEST_CASE("two flows refuse what they cannot run and name the nearest that they can", "[schedule]") {
  CHECK_THAT(refusal("chimera", 3, 4), Catch::EndsWith("nearest: 2 or 4"));
  CHECK_THAT(refusal("chimera", 1, 4), Catch::EndsWith("nearest: 2"));
  CHECK_THAT(refusal("chimera", 4, 7), Catch::EndsWith("nearest: 6 or 8"));
  CHECK_THAT(refusal("chimera", 4, 1), Catch::EndsWith("nearest: 2"));
  CHECK_THAT(refusal("dualpipe", 5, 20), Catch::EndsWith("nearest: 4 or 6"));
  CHECK_THAT(refusal("dualpipe", 4, 7), Catch::EndsWith("nearest: 8"));
  CHECK_THAT(refusal("dualpipe", 4, 9), Catch::EndsWith("nearest: 8 or 10"));
  CHECK_THAT(refusal("dualpipe-v", 4, 7), Catch::EndsWith("nearest: 8"));
}

TEST_CASE("each half of the micro-batches runs in its own direction", "[schedule]") {
  for (const std::string name : {"chimera", "dualpipe"}) {
    const Schedule schedule = test::schedule_of(name, 4, 8);
    for (int rank = 0; rank < 4; ++rank) {
      for (const Action& action : schedule.orders[rank]) {
        CHECK(action.stage == (action.micro_batch < 4 ? rank : 3 - rank));
      }
    }
  }
}

// Stage 0 of chimera on four ranks: rank 0 holds 2 of its own and 1 of stage 3 at most, rank 3 the same the other way.
TEST_CASE("a stage on two ranks counts where it holds most", "[schedule][in-flight]") {
  CHECK(in_flight(test::schedule_of("chimera", 4, 4)) == std::vector<double>{2, 2, 2, 1});
}

TEST_CASE("fused tasks start together and hold up one another", "[schedule][defects]") {
  using enum TaskKind;
  Schedule schedule{.name = "fused", .stages = 2, .micro_batches = 2};
  // F1 fused with B0 on rank 0: B0 of rank 1 must come before F1 there.
  schedule.orders = {{{forward, 0, 0}, {forward, 1, 0}, {backward, 0, 0, true}, {backward, 1, 0}},
                     {{forward, 0, 1}, {backward, 0, 1}, {forward, 1, 1}, {backward, 1, 1}}};
  CHECK(schedule_defects(schedule).empty());
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0+B0@0 B1@0");
  CHECK(most_held(schedule) == std::vector<int>{2, 1});
  std::swap(schedule.orders[1][1], schedule.orders[1][2]);
  CHECK(schedule_defects(schedule) ==
        std::vector<std::string>{"deadlock: B0@0 on rank 0 waits for B0@1; F1@1 on rank 1 waits for F1@0"});
  schedule.orders[0].front().fused = true;
  CHECK_THAT(schedule_defects(schedule).front(), Catch::Contains("F0@0 on rank 0 is fused with nothing"));
}

TEST_CASE("a task cannot be fused with what it needs, but for backward as a whole", "[schedule][defects]") {
  using enum TaskKind;
  Schedule schedule{.name = "fused", .stages = 1, .micro_batches = 1, .splits_backward = true};
  schedule.orders = {{{forward, 0, 0}, {backward, 0, 0}, {weight, 0, 0, true}}};
  CHECK(schedule_defects(schedule).empty());
  schedule.orders[0][1].fused = true;
  CHECK(schedule_defects(schedule) == std::vector<std::string>{"deadlock: B0@0 on rank 0 waits for F0@0"});
}

} // namespace
} // namespace stagecraft
