// Worked examples of the schedules: orders, makespans, periods and activations held, as drawn in the literature.
// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/worked_examples.hpp"

namespace stagecraft {
namespace {

using test::near;

TEST_CASE("orders are the published ones", "[schedule]") {
  for (const test::WorkedOrder& worked : test::worked_orders()) {
    test::check_order(worked);
  }
}

const std::vector<test::Example> kExamples = {
    {"gpipe", 4, 8, 1, 1, 1, 0, 0, 22, 22, {8, 8, 8, 8}},
    {"1f1b", 4, 8, 1, 1, 1, 0, 0, 22, 22, {4, 3, 2, 1}},
    {"interleaved", 4, 8, 2, 1, 1, 0, 0, 19, 19, {11, 9, 7, 5}},
    {"gpipe", 4, 8, 1, 1, 2, 0, 0, 33, 33, {8, 8, 8, 8}},
    {"1f1b", 4, 8, 1, 1, 2, 0, 0, 33, 33, {4, 3, 2, 1}},
    {"interleaved", 4, 8, 2, 1, 2, 0, 0, 28.5, 28.5, {11, 9, 7, 5}},
    {"interleaved", 4, 8, 4, 1, 2, 0, 0, 26.25, 0, {}},
    {"gpipe", 2, 4, 1, 1, 1, 0, 0, 10, 10, {4, 4}},
    {"1f1b", 2, 4, 1, 1, 1, 0, 0, 10, 10, {2, 1}},
    {"1f1b", 2, 4, 1, 1, 2, 0, 0, 15, 15, {2, 1}},
    {"interleaved", 2, 4, 2, 1, 2, 0, 0, 13.5, 13.5, {5, 3}},
    {"zb-h1", 2, 4, 1, 1, 1, 1, 0, 13, 13, {2, 2}},
    {"zb-h1", 4, 8, 1, 1, 1, 1, 0, 27, 27, {4, 4, 4, 4}},
    {"zb-h1", 4, 8, 1, 1, 1.2, 0.8, 0, 28.2, 28.2, {4, 4, 4, 4}},
    {"1f1b", 4, 2, 1, 1, 2, 0, 0, 15, 15, {2, 2, 2, 1}}, // fewer micro-batches than ranks
    {"gpipe", 4, 2, 1, 1, 2, 0, 0, 15, 15, {2, 2, 2, 2}},
    {"1f1b", 4, 8, 1, 1, 2, 0, 0.5, 41, 0, {}}, // slow links cost 1F1B more than GPipe
    {"gpipe", 4, 8, 1, 1, 2, 0, 0.5, 36, 0, {}},
    {"1f1b", 4, 8, 1, 1, 2, 0, 1, 49, 0, {}},
    {"gpipe", 4, 8, 1, 1, 2, 0, 1, 39, 0, {}},
    {"1f1b", 4, 16, 1, 1, 2, 0, 1, 85, 0, {}},
    {"gpipe", 4, 16, 1, 1, 2, 0, 1, 63, 0, {}},
    {"eager-1f1b", 4, 8, 1, 1, 2, 0, 0, 33, 0, {7, 5, 3, 1}},
    {"eager-1f1b", 4, 8, 1, 1, 2, 0, 0.5, 36, 0, {7, 5, 3, 1}},
    {"eager-1f1b", 4, 8, 1, 1, 2, 0, 1, 39, 0, {7, 5, 3, 1}},
    {"breadth-first", 4, 8, 2, 1, 2, 0, 0, 28.5, 28.5, {16, 16, 16, 16}},
    {"breadth-first", 2, 4, 2, 1, 1, 0, 0, 9, 9, {8, 8}},
    {"zb-h2", 4, 8, 1, 1, 1, 1, 0, 27, 24, {7, 7, 7, 7}}, // no bubble once the steps are local
    {"zb-h2", 2, 4, 1, 1, 1, 1, 0, 13, 12, {3, 3}},
    {"hanayo", 4, 4, 2, 1, 2, 0, 0, 18, 0, {}}, // a bubble of 6 in 18
    {"hanayo", 4, 4, 4, 1, 2, 0, 0, 15.25, 0, {}},
};

TEST_CASE("equal stages take the published time and hold the published activations", "[schedule]") {
  for (const test::Example& example : kExamples) {
    test::check_example(example);
    const Schedule schedule = test::schedule_of(example.schedule, example.ranks, example.micro_batches, example.chunks);
    CHECK(test::run(test::pipeline_of(example), schedule).end() == near(example.makespan));
  }
}

TEST_CASE("on uneven stages 1f1b beats gpipe and the estimate from the slowest stage", "[schedule]") {
  struct Case {
    std::vector<double> forward, backward;
    int micro_batches;
    double one_f_one_b, gpipe;
  };
  // By hand, 1F1B with F = [1,2,1], B = [2,4,2]: the middle stage works from 1 on without a pause for 6 (2 + 4) = 36,
  // but for its wait of 1 + 2 - 2 = 1 for the first gradient, and the first stage ends 2 after it: 1 + 36 + 1 + 2 = 40.
  const std::vector<Case> cases = {
      {{1, 2, 1}, {2, 4, 2}, 6, 40, 42}, {{2, 1, 1}, {4, 2, 2}, 6, 38, 42}, {{3, 1, 2}, {1, 5, 2}, 7, 49, 62}};
  for (const Case& one : cases) {
    test::Pipeline pipeline;
    pipeline.ranks = 3;
    for (std::size_t s = 0; s < 3; ++s) {
      pipeline.stages.push_back({one.forward[s], one.backward[s], 0});
    }
    CHECK(test::run(pipeline, test::schedule_of("1f1b", 3, one.micro_batches)).end() == near(one.one_f_one_b));
    CHECK(test::run(pipeline, test::schedule_of("gpipe", 3, one.micro_batches)).end() == near(one.gpipe));
  }
}

TEST_CASE("recompute enters an order as published", "[schedule][recompute]") {
  const std::vector<char> all(4, 1);
  const test::Pipeline pipeline = test::equal_stages(4, 1, {1, 2, 0, 0, 1});
  for (const test::RecomputeOrder& worked : test::recompute_orders()) {
    CAPTURE(worked.schedule, worked.skip_after_own_forward, worked.except_last_micro_batch);
    const RecomputeRule rule{.skip_after_own_forward = worked.skip_after_own_forward,
                             .except_last_micro_batch = worked.except_last_micro_batch};
    const Schedule schedule = add_recompute(test::schedule_of(worked.schedule, 4, 8), all, rule);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CHECK(to_text(schedule.orders[rank]) == worked.orders[rank]);
    }
    CHECK(schedule_defects(schedule).empty());
    CHECK(test::run(pipeline, schedule).end() == near(worked.makespan));
    if (worked.lazy_makespan > 0) {
      CHECK(test::run(pipeline, schedule, {.early_recompute = false}).end() == near(worked.lazy_makespan));
    }
  }
}

TEST_CASE("recompute that waits for the gradient counts as a longer backward pass", "[schedule][recompute]") {
  // R fused with B: tb + tf instead of tb, so (M + P - 1) (2 tf + tb).
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 10; ++m) {
      const std::vector<char> all(p, 1);
      const Schedule schedule = add_recompute(test::schedule_of("1f1b", p, m), all, {});
      const test::Pipeline pipeline = test::equal_stages(p, 1, {1, 1.5, 0, 0, 1});
      CHECK(test::run(pipeline, schedule, {.early_recompute = false}).end() == near((m + p - 1) * 3.5));
    }
  }
}

TEST_CASE("a micro-batch that is not recomputed still waits for its gradient", "[schedule][recompute]") {
  // The last of two micro-batches is kept; the last stage's B takes 3 s:
  //   rank 0: F0 0-1, F1 1-2, R0 6-7 (its gradient is there at 6), B0 7-9, B1 10-12 (its gradient is there at 10)
  //   rank 1: F0 1-2, R0 2-3, B0 3-6, F1 6-7, B1 7-10
  const std::vector<char> all(2, 1);
  const Schedule schedule = add_recompute(test::schedule_of("1f1b", 2, 2), all, {.except_last_micro_batch = true});
  const test::Pipeline pipeline{{{1, 2, 0, 0, 1}, {1, 3, 0, 0, 1}}, 2, {}, 1, 0};
  CHECK(test::run(pipeline, schedule, {.early_recompute = false}).end() == near(12));
  // R0 of rank 0 may start at 2 now: B0 6-8, B1 still 10-12.
  CHECK(test::run(pipeline, schedule, {.early_recompute = true}).end() == near(12));
}

TEST_CASE("only what an order recomputes is executed", "[schedule][recompute]") {
  // Two ranks, two micro-batches, one of them recomputed: F, B and R on both ranks, both ways over the boundary, steps.
  const std::vector<char> all(2, 1);
  const Schedule schedule = add_recompute(test::schedule_of("1f1b", 2, 2), all, {.except_last_micro_batch = true});
  const test::Pipeline pipeline = test::equal_stages(2, 1, {1, 2, 0, 0, 1});
  CHECK(test::run(pipeline, schedule).graph.executed() == 4 + 4 + 2 + 4 + 2);
}

TEST_CASE("only the stages asked for recompute", "[schedule][recompute]") {
  const std::vector<char> second = {0, 1};
  const Schedule schedule = add_recompute(test::schedule_of("1f1b", 2, 2), second, {});
  CHECK(to_text(schedule.orders[0]) == "F0@0 F1@0 B0@0 B1@0");
  CHECK(to_text(schedule.orders[1]) == "F0@1 R0@1 B0@1 F1@1 R1@1 B1@1");
}

} // namespace
} // namespace stagecraft
