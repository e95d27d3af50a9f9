// The reference `best-known`, and small studies whose best plan is found by trying all: they grade planners, the bound
// and the reference itself. docs/validation/planners.md has the grades.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/strategy/heuristic/group_plans.hpp"
#include "sim/strategy/heuristic/placement.hpp"
#include "sim/study/planning/evaluate.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "tests/study/random_studies.hpp"

namespace stagecraft::test {
namespace {

constexpr int kOperators = 4, kMicroBatches = 4; // of four.yaml

// Every placement of single operators on single devices.
void add_placements(const PlanRequest& request, std::vector<Plan>& plans) {
  const int devices = static_cast<int>(request.devices.size());
  std::vector<int> place(kOperators, 0);
  for (int at = 0; at < kOperators;) {
    plans.push_back(make_segment_plan(request, place));
    for (at = 0; at < kOperators && ++place[at] == devices; ++at) {
      place[at] = 0;
    }
  }
}

// Every chain of stages between these bounds, with every choice of a stage, or none, for each device.
void add_chains(const PlanRequest& request, const std::vector<int>& bounds, std::vector<Plan>& plans) {
  const int stages = static_cast<int>(bounds.size()) - 1;
  std::vector<int> stage_of(request.devices.size(), 0); // `stages`: idle
  for (std::size_t at = 0; at < stage_of.size();) {
    StageGroups state{.bounds = bounds, .groups = std::vector<std::vector<DeviceId>>(stages)};
    for (std::size_t d = 0; d < stage_of.size(); ++d) {
      (stage_of[d] == stages ? state.idle : state.groups[stage_of[d]]).push_back(request.devices[d]);
    }
    if (std::none_of(state.groups.begin(), state.groups.end(), [](auto& group) { return group.empty(); })) {
      plans.push_back(make_group_plan(request, state));
    }
    for (at = 0; at < stage_of.size() && ++stage_of[at] > stages; ++at) {
      stage_of[at] = 0;
    }
  }
}

// Every chain with several stages on each device, where the schedule wants that.
void add_chunked(const PlanRequest& request, const std::vector<int>& bounds, std::vector<Plan>& plans) {
  const int stages = static_cast<int>(bounds.size()) - 1;
  if (request.chunks == 1 || stages % request.chunks != 0) {
    return;
  }
  std::vector<DeviceId> order = request.devices;
  std::sort(order.begin(), order.end());
  const auto ranks = static_cast<std::size_t>(stages / request.chunks);
  do {
    const std::vector<DeviceId> used(order.begin(), order.begin() + std::min(ranks, order.size()));
    StageGroups state{.bounds = bounds};
    for (const DeviceId device : place_stages(used, request.chunks, request.stage_placement)) {
      state.groups.push_back({device});
    }
    if (used.size() == ranks) {
      plans.push_back(make_group_plan(request, state));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Each plan once more with a change to its stages, where that is another plan.
template <class Change> void add_changed(std::vector<Plan>& plans, Change change) {
  const std::size_t before = plans.size();
  for (std::size_t i = 0; i < before; ++i) {
    Plan plan = plans[i];
    std::for_each(plan.stages.begin(), plan.stages.end(), change);
    if (plan.stages != plans[i].stages) {
      plans.push_back(std::move(plan));
    }
  }
}

std::vector<Plan> all_plans(const PlanRequest& request) {
  std::vector<Plan> plans;
  add_placements(request, plans);
  for (int cuts = 0; cuts < 1 << (kOperators - 1); ++cuts) {
    std::vector<int> bounds = {0};
    for (int op = 1; op < kOperators; ++op) {
      if (((cuts >> (op - 1)) & 1) != 0) {
        bounds.push_back(op);
      }
    }
    bounds.push_back(kOperators);
    add_chunked(request, bounds, plans);
    if (bounds.size() <= request.devices.size() + 1) {
      add_chains(request, bounds, plans);
    }
  }
  add_changed(plans, [](Stage& stage) { stage.shares.clear(); }); // equal shares
  add_changed(plans, [](Stage& stage) {                           // of three devices at most one stage has several
    stage.shares.clear();
    stage.tensor_parallel = static_cast<int>(stage.devices.size());
  });
  add_changed(plans, [](Stage& stage) { stage.streams = 4; }); // as `layered` runs its kernels
  plans.erase(std::remove_if(plans.begin(), plans.end(),       // widths that three devices cannot share
                             [&](const Plan& plan) {
                               const Problem& problem = request.problem;
                               return !plan_defects(plan, problem.model, problem.platform).empty();
                             }),
              plans.end());
  return plans;
}

// The least iteration of all these plans under all schedules of the study.
double brute_force(StudyMemo& memo) {
  double least = kInfinity;
  for (const StudySchedule& schedule : memo.costs.study().schedules) {
    const Scenario scenario{.strategy = &find_by_name(strategies(), "uniform", "strategy", {}),
                            .schedule = schedule.row,
                            .micro_batches = kMicroBatches};
    const std::vector<Plan> plans = all_plans(plan_request(memo, scenario));
    for (const Evaluation& one : evaluate_on_engine(memo.costs, plans, scenario)) {
      least = one.why_not.empty() ? std::min(least, one.iteration.value) : least;
    }
  }
  return least;
}

// Three devices of one to three types in two nodes, and layers of other sizes.
Study small_study(std::mt19937& random) {
  const std::vector<std::string> types = {"v100-pcie-16gb", "p100-pcie-16gb", "t4-16gb"};
  std::vector<Setting> settings = random_nodes(types, random);
  settings.push_back({"platform.nodes.0.devices.0.count", "2"});
  settings.push_back({"platform.nodes.1.devices.0.count", "1"});
  for (int layer = 0; layer < kOperators; ++layer) {
    settings.push_back({"model.layers." + std::to_string(layer) + ".features",
                        std::to_string(any_of(std::array{256, 1024, 2048, 4096}, random))});
  }
  std::string strategy_names = "best-known"; // `all` leaves it out
  for (const StrategyRow& row : strategies()) {
    strategy_names += row.reference || row.takes_degrees ? "" : ", " + std::string(row.name);
  }
  return study(
      "model: four.yaml\nplatform: two-nodes.yaml\ncost_model: roofline\nengine: analytic\n"
      "training: {global_batch: 16, micro_batches: 4, optimizer: sgd}\ncompare: {strategies: [" +
          strategy_names +
          "], schedules: [accumulate, naive, gpipe, 1f1b, eager-1f1b, interleaved, zb-h1, breadth-first, zb-h2, "
          "hanayo, zb-v, v-half, v-min, chimera, dualpipe, dualpipe-v]}\n",
      settings);
}

// How far above the best plans a planner's are: over all studies, of its best run in each.
struct Grade {
  double sum = 0, worst = 0;
  int found = 0, studies = 0;

  void add(double above) {
    sum += above;
    worst = std::max(worst, above);
    found += above < 1e-6 ? 1 : 0;
    ++studies;
  }
  double mean() const { return sum / studies; }
};

std::string percent_of(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string row_of(const std::string& name, const Grade& grade) {
  return "| `" + name + "` | " + percent_of(grade.mean()) + " | " + percent_of(grade.worst) + " | " +
         std::to_string(grade.found) + " of " + std::to_string(grade.studies) + " |";
}

// What one study adds to the grades: of each planner, and of the bound, by how much it is below.
void grade_study(std::mt19937& random, std::map<std::string, Grade>& planners, Grade& bound) {
  const Study small = small_study(random);
  ScheduleCounts counts;
  StudyMemo memo(small, counts);
  const double best = brute_force(memo);
  std::map<std::string, double> least;
  std::map<std::string, double> reference; // [schedule]
  const Comparison comparison = compare(memo).comparison;
  for (const Run& run : comparison.runs) {
    if (run.feasible) {
      double& own = least.try_emplace(run.strategy, kInfinity).first->second;
      own = std::min(own, run.metrics.iteration.value);
      if (run.strategy == "best-known") {
        reference[run.schedule] = run.metrics.iteration.value;
      }
    }
  }
  for (const Run& run : comparison.runs) {
    if (run.feasible) {
      CAPTURE(run.strategy, run.schedule);
      CHECK(reference.at(run.schedule) <= run.metrics.iteration.value * (1 + 1e-9));
    }
  }
  const double below = comparison.runs.front().lower_bound.value / best;
  CHECK(below <= 1 + 1e-9);
  bound.add(1 - below);
  for (const auto& [name, seconds] : least) {
    CAPTURE(name);
    CHECK(seconds >= best * (1 - 1e-9)); // all plans are among those tried
    planners[name].add(seconds / best - 1);
  }
}

TEST_CASE("all plans of small studies grade the planners, the bound and best-known", "[study][bound][best-known]") {
  constexpr int kStudies = 6;
  std::mt19937 random(61);
  std::map<std::string, Grade> planners;
  Grade bound;
  for (int n = 0; n < kStudies; ++n) {
    CAPTURE(n);
    grade_study(random, planners, bound);
  }
  const Grade& best_known = planners.at("best-known");
  CHECK(best_known.mean() < 0.01);
  CHECK(best_known.worst < 0.05);
  CHECK(bound.mean() < 0.5);
  const std::string page = read_file(kRoot / "docs/validation/planners.md");
  for (const auto& [name, grade] : planners) {
    CHECK_THAT(page, Catch::Contains(row_of(name, grade)));
  }
  CHECK_THAT(page, Catch::Contains(row_of("lower bound, below", bound)));
}

TEST_CASE("best-known runs only where it is named", "[study][best-known]") {
  const Study all = study(chain_study("compare: {strategies: all}\n"));
  CHECK(std::none_of(all.strategies.begin(), all.strategies.end(),
                     [](const StrategyRow* row) { return row->reference; }));
  CHECK(study(chain_study("compare: {strategies: [best-known]}\n")).strategies.front()->reference);
}

// On the study's own engine, which shares links, the reference is no slower than what others found without them.
TEST_CASE("best-known is judged by the study's engine, with links that are shared", "[study][best-known]") {
  const Comparison comparison =
      compare_text(
          chain_study("training: {global_batch: 6, micro_batches: 6}\nengine: simgrid\n"
                      "compare: {strategies: [optimal, uniform, pipedream, mcmc, best-known], schedules: [1f1b]}\n",
                      "{devices: 3, bandwidth: 2 MB/s, latency: 10 ms}"))
          .comparison;
  const double reference = find_run(comparison, "best-known", "1f1b", 6).metrics.iteration.value;
  for (const Run& run : comparison.runs) {
    CAPTURE(run.strategy);
    CHECK(run.feasible);
    CHECK(reference <= run.metrics.iteration.value * (1 + 1e-9));
  }
}

} // namespace
} // namespace stagecraft::test
