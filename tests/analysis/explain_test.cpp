// Explanations of runs: where the time goes, and what would help, by hand and as laws.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "sim/analysis/explain.hpp"
#include "sim/replay/engines.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/timeline/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/plan/tensor_chain.hpp"
#include "tests/schedule/pipelines.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft {
namespace {

Explanation explained(const test::PipelineRun& run, ReplayFunction engine = replay_analytic) {
  return explain({run.graph, run.timeline, run.platform, engine});
}

double share_of(const Explanation& explanation, std::string_view cause) {
  for (const TimeShare& share : explanation.shares) {
    if (share.cause == cause) {
      return share.time.value;
    }
  }
  return 0;
}

double with(const Explanation& explanation, std::string_view part) {
  for (const Sensitivity& one : explanation.sensitivities) {
    if (one.part == part) {
      return one.iteration.value;
    }
  }
  FAIL("no part " << part);
  return 0;
}

TEST_CASE("equal stages lose time only to fill and drain", "[explain]") {
  // gpipe and 1f1b: (M + P - 1)(F + B) in all, of which M (F + B) are computed: 8 x 3, and 3 x 3 are lost.
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const auto run = test::run(test::equal_stages(4, 1, {1, 2, 0}), test::schedule_of(schedule, 4, 8));
    const Explanation explanation = explained(run);
    CHECK(explanation.iteration.value == Approx(33));
    CHECK(share_of(explanation, "forward") == Approx(8));
    CHECK(share_of(explanation, "backward") == Approx(16));
    CHECK(share_of(explanation, "fill and drain") == Approx(9));
    CHECK(share_of(explanation, "unequal stages") == Approx(0).margin(1e-9));
    CHECK(share_of(explanation, "transfers between stages") == Approx(0).margin(1e-9));
  }
}

TEST_CASE("the table of an iteration adds up, and says what a piece below 0 means", "[explain]") {
  // Of 10 s 0.04 % and 0.02 % are too little for rows of their own; together they are one.
  Explanation explanation{
      .iteration = Seconds{10},
      .shares = {{"forward", Seconds{9.994}}, {"optimizer", Seconds{0.004}}, {"fill and drain", Seconds{0.002}}}};
  std::string text = to_text(explanation, false);
  CHECK_THAT(text, Catch::Matches("[^]*forward +9.994 s +99.9 %\nall else +6.000 ms +0.1 %\nin all +10.00 s *\n"
                                  "Computing is the mean over devices[^]*"));
  CHECK_THAT(text, !Catch::Contains("Below 0"));
  explanation.shares = {{"forward", Seconds{11}}, {"unequal stages", Seconds{-1}}};
  text = to_text(explanation, false);
  CHECK_THAT(text, !Catch::Contains("all else"));
  CHECK_THAT(text, Catch::Contains("Below 0: with it the iteration is shorter"));
}

TEST_CASE("the costs of unequal stages and of transfers are told apart", "[explain]") {
  // Forwards of 1 and 3 s, backwards alike, eight micro-batches, two stages, gpipe. The slow stage is busy 48 s, and
  // before and after it the other one works 1 s: 50. In the mean 32 s are computed; equal stages of 2 s would take
  // 2 (8 + 1) 2 = 36. Each transfer of 5 bytes at 1 B/s takes longer than a stage: with transfers that meet nobody 5 s
  // are added each way: 60.
  const test::Pipeline pipeline{{{1, 1, 0}, {3, 3, 0}}, 2, {5}, 1, 0};
  const Explanation explanation = explained(test::run(pipeline, test::schedule_of("gpipe", 2, 8)));
  CHECK(explanation.iteration.value == Approx(60));
  CHECK(share_of(explanation, "forward") + share_of(explanation, "backward") == Approx(32));
  CHECK(share_of(explanation, "fill and drain") == Approx(4));
  CHECK(share_of(explanation, "unequal stages") == Approx(14));
  CHECK(share_of(explanation, "transfers between stages") == Approx(10));
}

TEST_CASE("what exchanges take from computing is told as theirs", "[explain]") {
  // gpipe, two stages with forwards of 2 s and backwards of 1 s, two micro-batches, transfers of 1 s: 3 · (2 + 1) s
  // without them, and 2 s for the first there and the last back. The second stage's first forward takes 7/3 s beside
  // one, and its last backward 4/3 s, so that all ends 2/3 s later.
  auto run = test::run({{{2, 1, 0}, {2, 1, 0}}, 2, {1}, 1, 0}, test::schedule_of("gpipe", 2, 2));
  CHECK(explained(run).iteration.value == Approx(11));
  run.platform.types.front().beside_exchange = {.matrix = 1.5, .other = 1};
  const ReplayRequest request{run.graph, run.platform};
  run.timeline = replay_analytic({&request, 1}).front();
  const Explanation explanation = explained(run);
  CHECK(explanation.iteration.value == Approx(35.0 / 3));
  CHECK(share_of(explanation, "forward") == Approx(4));
  CHECK(share_of(explanation, "backward") == Approx(2));
  CHECK(share_of(explanation, "fill and drain") == Approx(3));
  CHECK(share_of(explanation, "transfers between stages") == Approx(8.0 / 3));
}

// As in tests/schedule/exchange_tasks_test.cpp: exchanges of 3, 6 and 3 s, of which the slow device has 3 s of the
// second beside its own work. The other waits for it 1 s and 2.5 s more, which is no exchange.
TEST_CASE("waiting for a slower peer within a pass is not told as exchanging", "[explain]") {
  test::Chain world(KernelKind::normalization, 2);
  const PlanCost cost = cost_plan(world.problem, test::grouped({{0, 1, 2}}, {{0, 1}}, {2}));
  const Schedule schedule = test::schedule_of("1f1b", 1, 1);
  const TaskGraph graph =
      make_task_graph({.cost = cost, .schedule = schedule, .router = world.router, .exchanges = ExchangeTasks::all});
  const std::vector<SpeedChange> slow = {{1, Seconds{0}, 0.5}};
  const ReplayRequest request{graph, world.platform, 1, slow};
  const Timeline timeline = replay_analytic({&request, 1}).front();
  const Explanation explanation = explain({graph, timeline, world.platform, replay_analytic});
  CHECK(share_of(explanation, "tensor-parallel collectives") == Approx(((3 + 6 + 3) + (3 + 3 + 3)) / 2.0));
}

TEST_CASE("a run says for which slowest devices all wait", "[explain]") {
  const auto run = test::run(test::equal_stages(4, 1, {1, 2, 0}), test::schedule_of("1f1b", 4, 8));
  const auto summary = [&](std::vector<SlowestDevice> slowest) {
    return summary_of(explain({run.graph, run.timeline, run.platform, replay_analytic, nullptr, std::move(slowest)}));
  };
  CHECK(summary({}).size() + 1 == summary({{"x", 4, 1.015}}).size());
  CHECK(summary({{"x", 4, 1.015}})[1] ==
        "All wait for the slowest of 4 x, whose products take 1.5 % longer than the mean device's.");
}

TEST_CASE("parts are ranked by how much a faster one helps", "[explain]") {
  // The pipeline above: the path is 1 + 5 + 48 + 5 + 1. A tenth more speed saves 1/11 of a part's seconds on it.
  const test::Pipeline pipeline{{{1, 1, 0}, {3, 3, 0}}, 2, {5}, 1, 0};
  const Explanation explanation = explained(test::run(pipeline, test::schedule_of("gpipe", 2, 8)));
  CHECK(with(explanation, "all x") == Approx(60 - 50.0 / 11));
  CHECK(with(explanation, "node/x-1") == Approx(60 - 48.0 / 11));
  CHECK(with(explanation, "node/x-0") == Approx(60 - 2.0 / 11));
  CHECK(with(explanation, "all links within nodes") == Approx(60 - 10.0 / 11));
  CHECK(with(explanation, "latencies of all links") == Approx(60));
  CHECK(explanation.sensitivities[0].part == "all x");
  CHECK(explanation.sensitivities[1].part == "node/x-1");
  // Twice as fast, 25 + 10 s, and four times, 12.5 + 10, devices would still help most; not with 6.25 + 10. With
  // links twice as fast, 6.25 + 5, it is they again.
  REQUIRE(explanation.next.size() == 2);
  CHECK(explanation.next[0].mended == "all x");
  CHECK(explanation.next[0].factor == 8);
  CHECK(explanation.next[0].iteration.value == Approx(16.25));
  CHECK(explanation.next[0].sensitivities[0].part == "all links within nodes");
  CHECK(explanation.next[1].mended == "all links within nodes");
  CHECK(explanation.next[1].factor == 2);
  CHECK(explanation.next[1].iteration.value == Approx(11.25));
  CHECK(explanation.next[1].sensitivities[0].part == "all x");
}

TEST_CASE("waiting for links that others use is told apart from transferring", "[explain]") {
  // Two stages and a transfer of 4 bytes every second: alone each takes 4 s, the last is made at 4 and there at 8.
  // Where they share the link, the last of 16 bytes is there at 1 + 16.
  const test::Pipeline pipeline{{{1, 1, 0}, {1, 1, 0}}, 2, {4}, 1, 0};
  const test::PipelineRun run = test::run(pipeline, test::schedule_of("gpipe", 2, 4), {.engine = replay_simgrid});
  const Explanation explanation = explained(run, replay_simgrid);
  const double alone = test::run(pipeline, test::schedule_of("gpipe", 2, 4)).end();
  CHECK(share_of(explanation, "sharing of links") == Approx(run.end() - alone).margin(1e-6));
  CHECK(share_of(explanation, "sharing of links") > 1);
}

// A study of one run, replayed and explained.
struct ExplainedStudy {
  Study study;
  ScheduleCounts counts;
  StudyMemo memo;
  ComparisonResult result;
  Explanation explanation;

  explicit ExplainedStudy(const std::string& text)
      : study(test::study(text)), memo(study, counts), result(compare(memo)) {
    const Prepared& run = result.prepared.front();
    REQUIRE(run.run.feasible);
    explanation = explain({*run.graph, run.timeline, study.platform, replay_analytic});
  }
};

// Two stages whose hand-over is all that counts: 8 forwards and 8 backwards of 1 s each, on either device.
TEST_CASE("hand-over between stages is told apart from computing, and no faster device shortens it", "[explain]") {
  ExplainedStudy of("model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: 32, "
                    "micro_batch_size: 1, precision: bf16, optimizer: sgd, hand_over: 1 s, parallel: {pipeline: 2}}\n"
                    "compare: {strategies: [mesh], schedules: [1f1b]}\n");
  const Explanation& explanation = of.explanation;
  CHECK(share_of(explanation, "hand-over between stages") == Approx(16));
  CHECK(share_of(explanation, "forward") < 0.1);
  CHECK(with(explanation, "all h100-sxm-80gb") == Approx(explanation.iteration.value).epsilon(1e-3));
}

// One pipeline rank of eight tensor ranks: an iteration is what they compute and what they exchange meanwhile, of which
// faster devices shorten the first, wider links and shorter latencies the second.
TEST_CASE("collectives of a tensor-parallel group are told apart from computing", "[explain]") {
  const std::string detail = GENERATE("blocks", "all");
  ExplainedStudy of("model: gpt2-medium\nplatform: dgx-h100\nengine: analytic\ndetail: " + detail +
                    "\ntraining: {global_batch: 4, precision: bf16, parallel: {tensor: 8}, exchange_beside: false}\n"
                    "compare: {strategies: [mesh], schedules: [accumulate]}\n");
  const Explanation& explanation = of.explanation;
  const PlanCost cost = cost_plan(of.memo.costs.problem(1, 0), of.result.prepared.front().plan);
  const GroupPasses& passes = *cost.stages.front().groups.front().passes;
  const double exchange = (passes.forward.exchanged.all + passes.backward.exchanged.all).value;
  const double latency = (passes.forward.exchanged.latency + passes.backward.exchanged.latency).value;
  const double iteration = explanation.iteration.value;
  CAPTURE(detail);
  CHECK(latency > 0);
  CHECK(exchange > latency);
  CHECK(share_of(explanation, "tensor-parallel collectives") == Approx(exchange));
  CHECK(share_of(explanation, "forward") == Approx((passes.forward.seconds - passes.forward.exchanged.all).value));
  CHECK(with(explanation, "all h100-sxm-80gb") == Approx(exchange + (iteration - exchange) / 1.1));
  CHECK(with(explanation, "all links within nodes") == Approx(iteration - (exchange - latency) / 11));
  CHECK(with(explanation, "latencies of all links") == Approx(iteration - latency / 11));
}

TEST_CASE("what groups exchange in passes is named by each axis once", "[explain]") {
  const ExplainedStudy of("model: gpt2-medium\nplatform: dgx-h100\nengine: analytic\n"
                          "training: {global_batch: 4, precision: bf16, parallel: {tensor: 2, context: 4}}\n"
                          "compare: {strategies: [mesh], schedules: [accumulate]}\n");
  CHECK(share_of(of.explanation, "tensor-parallel and context-parallel collectives") > 0);
}

// Stages of equal layers under 1F1B wait for one stage's forward and backward; a last backward that is divided between
// reductions of gradients is still one.
TEST_CASE("buckets of gradients change neither fill and drain nor unequal stages", "[explain]") {
  const auto explained_with = [](const std::string& bucket) {
    return ExplainedStudy("model: gpt2\nplatform: nvlink-v100\nengine: analytic\n"
                          "training: {global_batch: 32, micro_batches: 8, precision: fp16, gradient_bucket: " +
                          bucket +
                          ", parallel: {pipeline: 2}}\n"
                          "compare: {strategies: [mesh], schedules: [1f1b]}\n")
        .explanation;
  };
  const Explanation whole = explained_with("1 GB"), buckets = explained_with("1 MB");
  for (const std::string piece : {"fill and drain", "unequal stages"}) {
    CAPTURE(piece);
    CHECK(share_of(whole, piece) > 0);
    CHECK(share_of(buckets, piece) == Approx(share_of(whole, piece)));
  }
}

TEST_CASE("shares and the path add up to the iteration, whatever the schedule and the engine", "[explain]") {
  const test::Pipeline uneven{{{1, 2, 1, 0.5}, {3, 1, 2, 0.25}, {2, 2, 2, 1}, {1, 1, 1, 0.5}}, 4, {2, 5, 1}, 1, 0.5};
  for (const ScheduleRow& row : schedules()) {
    const ScheduleResult made = make_schedule(row, {4, 8, 1});
    if (std::holds_alternative<Infeasible>(made) || std::get<Schedule>(made).stages != 4) {
      continue;
    }
    for (const EngineRow& engine : kEngines) {
      INFO(row.name << " " << engine.name);
      test::PipelineRun run =
          test::run(uneven, std::get<Schedule>(made), {.iterations = 4, .barrier = false, .engine = engine.replay});
      run.timeline.window = 2;
      const Explanation explanation = explained(run, engine.replay);
      double shares = 0, path = 0;
      for (const TimeShare& share : explanation.shares) {
        shares += share.time.value;
      }
      for (const PathShare& share : explanation.path) {
        path += share.time.value;
      }
      CHECK(shares == Approx(explanation.iteration.value));
      CHECK(path == Approx(explanation.iteration.value));
      CHECK(explanation.iteration.value == Approx(measure(run.graph, run.timeline, run.platform).iteration.value));
      for (const Sensitivity& one : explanation.sensitivities) { // private links: faster never is slower
        CHECK((engine.replay != replay_analytic || one.iteration.value <= explanation.iteration.value * (1 + 1e-9)));
      }
    }
  }
}

// The first scenario of a study, with every device of its plan.
struct FirstRun {
  FirstRun(const std::string& text, int micro_batches)
      : study(test::study(text + "compare: {strategies: [mesh], schedules: [1f1b]}\n")), memo(study, counts),
        one(run_scenario(memo, {.strategy = study.strategies.front(),
                                .schedule = study.schedules.front().row,
                                .micro_batches = micro_batches})),
        whole(whole_run(memo.costs, one)) {}

  Explanation explained(const TaskGraph* folded = nullptr) const {
    return explain({whole.graph, whole.timeline, study.platform, study.engine->replay, folded});
  }

  Study study;
  ScheduleCounts counts;
  StudyMemo memo;
  Prepared one;
  WholeRun whole;
};

// Sixteen nodes of eight: what is folded is replayed in place of 128 devices, and helps as much.
TEST_CASE("faster parts of many are replayed on what is folded, with the same times", "[explain][folding]") {
  const FirstRun run("model: gpt2\nplatform: 16 x dgx-h100\n"
                     "training: {global_batch: 128, micro_batches: 2, precision: bf16, "
                     "parallel: {pipeline: 2, tensor: 2, sequence: true}}\n",
                     2);
  const TaskGraph* folded = folded_of(run.one, run.whole);
  REQUIRE(folded != nullptr);
  const Explanation exact = run.explained(), quick = run.explained(folded);
  CHECK(quick.iteration.value == exact.iteration.value);
  CHECK(quick.sensitivities.size() < exact.sensitivities.size());
  for (const Sensitivity& part : quick.sensitivities) {
    INFO(part.part);
    CHECK(part.iteration.value == Approx(with(exact, part.part)).epsilon(1e-6));
  }
}

// 56 flows of a dispatch wait for all 56 of the one before: whoever walks each way between them walks 56^k.
TEST_CASE("a mixture's exchanges are each followed once, and named by their axis", "[explain][communication]") {
  const FirstRun run("model: gpt-oss-20b\nplatform: 2 x dgx-h100\n"
                     "training: {global_batch: 16, micro_batch_size: 1, precision: bf16, parallel: {expert: 8}}\n",
                     1);
  const Explanation explanation = run.explained();
  const auto expert = std::find_if(explanation.communication.begin(), explanation.communication.end(),
                                   [](const Communication& axis) { return axis.axis == "expert"; });
  REQUIRE(expert != explanation.communication.end());
  CHECK(expert->exposed > Seconds{0});
  CHECK(expert->exposed < explanation.iteration);
  const auto has = [&](const std::string& what) {
    return std::any_of(explanation.path.begin(), explanation.path.end(),
                       [&](const PathShare& share) { return share.what == what; });
  };
  CHECK(has("expert-parallel exchange, stage 0"));
}

// Few devices are looked at one by one, unless a replay of all of them takes more than 200,000 tasks.
TEST_CASE("what a long run needs is asked of what is folded", "[explain][folding]") {
  const FirstRun run("model: gpt2\nplatform: 1 x dgx-h100\n"
                     "training: {global_batch: 8, micro_batches: 1, precision: bf16, parallel: {}}\n",
                     1);
  REQUIRE(run.one.run.devices.size() == 8);
  WholeRun whole;
  whole.graph.work.resize(100'000);
  whole.timeline.iterations = 2;
  CHECK(folded_of(run.one, whole) == nullptr);
  whole.graph.work.push_back(0);
  CHECK(folded_of(run.one, whole) == &*run.one.graph);
}

// One source for both: what the verdict of a comparison says of its winner is the first of explain's list.
TEST_CASE("the verdict and the explanation name the same part", "[explain]") {
  const std::string model = GENERATE("resnet50", "squeezenet", "gpt2");
  const std::string platform = GENERATE("mixed-v100-p100", "ethernet-t4-cluster");
  const ComparisonResult result =
      test::compare_text("model: " + model + "\nplatform: " + platform +
                         "\ntraining: {global_batch: 64, micro_batches: [8]}\n"
                         "compare: {strategies: [uniform, data-parallel, antichain], schedules: [1f1b]}\n");
  const Prepared& winner = result.prepared[result.of_run.front()];
  const Study study = test::study("model: " + model + "\nplatform: " + platform +
                                  "\ntraining: {global_batch: 64, micro_batches: [8]}\n");
  StudyCosts costs(study);
  const WholeRun whole = whole_run(costs, winner);
  const Explanation explanation = explain({whole.graph, whole.timeline, study.platform, study.engine->replay});
  const Sensitivity& first = explanation.sensitivities.front();
  CAPTURE(model, platform, first.part, result.comparison.verdict);
  CHECK(
      std::any_of(result.comparison.verdict.begin(), result.comparison.verdict.end(), [&](const std::string& sentence) {
        return sentence.find("What would help most is a faster part '" + first.part +
                             "': 10 % faster, an iteration takes " +
                             percent(1 - first.iteration / explanation.iteration, 1) + " less.") != std::string::npos;
      }));
}

} // namespace
} // namespace stagecraft
