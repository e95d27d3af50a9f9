// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/judge.hpp"

#include <algorithm>
#include <cmath>
#include <list>

#include "sim/base/improves.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/system/clock.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/strategy/split_by_hand.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

// A planner's choice in one case, before its replay.
struct Choice {
  std::vector<std::size_t> scenarios; // one per draw; none where it gave no plan
  std::string why_not;
  int micro_batches = 1;
  double planning_seconds = 0;
  std::optional<Seconds> manual;
};

// One model on one platform.
class JudgedCase {
public:
  JudgedCase(const JudgeStudy& study, const Study& read) : study_(study), read_(read), memo_(read, counts_) {}

  std::vector<JudgedPlan> judge() {
    std::vector<Choice> choices;
    for (const Planner& planner : study_.planners) {
      choices.push_back(planner.strategy != nullptr ? choose(planner) : ask(planner));
    }
    std::vector<Prepared> prepared = prepare(memo_, scenarios_);
    replay(memo_.costs, prepared);
    std::vector<JudgedPlan> judged;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      judged.push_back(describe(study_.planners[i], choices[i], prepared));
    }
    return judged;
  }

  // Seconds to measure each operator, with the smallest micro-batch, on one device of each type that has its kernel.
  double profile_seconds() {
    const Problem& problem = memo_.costs.problem(
        *std::max_element(read_.training.micro_batches.begin(), read_.training.micro_batches.end()));
    double seconds = 0;
    for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
      for (OperatorId op = 0; op < problem.model.size(); ++op) {
        const double once =
            problem.forward[type][op] + problem.backward_input[type][op] + problem.backward_weight[type][op];
        seconds += std::isinf(once) ? 0 : once;
      }
    }
    return study_.manual->profile_repetitions * seconds;
  }

private:
  Choice choose(const Planner& planner) {
    Choice choice;
    Scenario scenario = under_schedule(read_.training.micro_batches.front());
    scenario.strategy = planner.strategy;
    scenario.explain = false;
    const auto start = Clock::now();
    choice.micro_batches = scenario.micro_batches = study_.micro_batches == ChosenBy::replay
                                                        ? fastest(at_every_count(scenario)).micro_batches
                                                        : choose_micro_batches(memo_, scenario);
    plan_scenario(memo_, scenario); // to time it; the memo keeps the plan
    choice.planning_seconds = seconds_since(start);
    for (int draw = 0; draw < planner.draws; ++draw) {
      scenario.seed = planner.draws > 1 ? draw + 1 : 0;
      choice.scenarios.push_back(scenarios_.size());
      scenarios_.push_back(scenario);
    }
    if (study_.manual && planner.strategy->name == "by-hand" && planner.draws == 1) {
      choice.manual = manual_seconds(scenario);
    }
    return choice;
  }

  std::vector<Scenario> at_every_count(Scenario scenario) const {
    std::vector<Scenario> all;
    for (const int count : micro_batches_of(read_, scenario.strategy)) {
      scenario.micro_batches = count;
      all.push_back(scenario);
    }
    return all;
  }

  // The scenario that is fastest in replay; the first where none is feasible.
  Scenario fastest(const std::vector<Scenario>& scenarios) {
    std::vector<Prepared> prepared = prepare(memo_, scenarios);
    replay(memo_.costs, prepared);
    std::size_t best = 0;
    for (std::size_t i = 1; i < prepared.size(); ++i) {
      const Run& run = prepared[i].run;
      const Run& least = prepared[best].run;
      if (run.feasible && (!least.feasible || improves(run.metrics.iteration.value, least.metrics.iteration.value))) {
        best = i;
      }
    }
    return scenarios[best];
  }

  Seconds manual_seconds(const Scenario& scenario) {
    const ManualWork& work = *study_.manual;
    const HandSplit hand = try_by_hand(plan_request(memo_, scenario), work.trials);
    Seconds seconds = hand.trials * (work.edit + work.launch);
    for (const Seconds iteration : hand.tried) {
      seconds += work.iterations * iteration;
    }
    return seconds;
  }

  Scenario under_schedule(int micro_batches) const {
    return {.schedule = study_.schedule.row, .orders = study_.schedule.own.get(), .micro_batches = micro_batches};
  }

  // The numbers of micro-batches; for a schedule from a file the one that can run, or else the first, to say why not.
  std::vector<int> counts_to_ask() {
    const std::vector<int>& all = read_.training.micro_batches;
    return study_.schedule.own != nullptr ? std::vector{choose_micro_batches(memo_, under_schedule(all.front()))} : all;
  }

  // Asks a foreign planner once for every number of micro-batches.
  Choice ask(const Planner& planner) {
    Choice choice;
    std::vector<Scenario> answers;
    std::vector<Seconds> estimates;
    for (const int count : counts_to_ask()) {
      Scenario scenario = under_schedule(count);
      const Problem& problem = memo_.costs.problem(count);
      const auto start = Clock::now();
      const CommandAnswer answer = run_command(planner.command, problem_to_json(problem, scenario.schedule_name()));
      choice.planning_seconds += seconds_since(start);
      std::string why_not = answer.why_not;
      std::optional<Plan> plan;
      if (why_not.empty()) {
        plan = read_answer(planner, answer.output, why_not);
      }
      if (!plan) {
        choice.why_not = choice.why_not.empty() ? why_not : choice.why_not;
        continue;
      }
      const Pace pace = pace_of(scenario, static_cast<int>(plan->stages.size()));
      estimates.push_back(estimate_period(problem, *plan, cost_plan(problem, *plan), pace));
      plans_.push_back(std::move(*plan));
      scenario.plan = &plans_.back();
      answers.push_back(scenario);
    }
    if (!answers.empty()) {
      const auto least = std::min_element(estimates.begin(), estimates.end()) - estimates.begin();
      choice.scenarios = {scenarios_.size()};
      scenarios_.push_back(study_.micro_batches == ChosenBy::replay ? fastest(answers) : answers[least]);
      choice.micro_batches = scenarios_.back().micro_batches;
    }
    return choice;
  }

  std::optional<Plan> read_answer(const Planner& planner, const std::string& output, std::string& why_not) const {
    try {
      Plan plan = read_plan_text({output, planner.name, *read_.model, read_.platform}, "");
      plan.strategy = planner.name;
      why_not = join(plan_defects(plan, *read_.model, read_.platform), "; ");
      return why_not.empty() ? std::optional(std::move(plan)) : std::nullopt;
    } catch (const InputError& failure) {
      why_not = failure.what();
      return std::nullopt;
    }
  }

  JudgedPlan describe(const Planner& planner, const Choice& choice, const std::vector<Prepared>& prepared) {
    JudgedPlan judged{.planner = planner.name,
                      .model = read_.model->name,
                      .platform = read_.platform.name,
                      .micro_batches = choice.micro_batches,
                      .why_not = choice.why_not,
                      .planning_seconds = choice.planning_seconds,
                      .manual_seconds = choice.manual};
    std::vector<const Run*> runs; // the draws that fit
    for (const std::size_t scenario : choice.scenarios) {
      const Run& run = prepared[scenario].run;
      if (run.feasible) {
        runs.push_back(&run);
      } else {
        judged.why_not = run.why_not;
      }
    }
    if (planner.draws > 1) {
      judged.spread = spread_of(planner, runs);
    }
    if (!runs.empty()) {
      std::stable_sort(runs.begin(), runs.end(),
                       [](const Run* a, const Run* b) { return a->metrics.iteration < b->metrics.iteration; });
      const Run& run = *runs[(runs.size() - 1) / 2]; // the median draw, or the only one
      judged.feasible = true;
      judged.why_not.clear();
      judged.note = run.note;
      judged.iteration = run.metrics.iteration;
      judged.estimate = run.estimate;
      judged.bottleneck = run.bottleneck;
      judged.lower_bound = run.lower_bound;
      judged.speedup = run.speedup;
      judged.load_imbalance = run.metrics.load_imbalance;
      judged.staleness = run.staleness;
    }
    return judged;
  }

  static Spread spread_of(const Planner& planner, const std::vector<const Run*>& runs) {
    std::vector<double> iterations;
    for (const Run* run : runs) {
      iterations.push_back(run->metrics.iteration.value);
    }
    constexpr double kLow = 0.05;
    constexpr double kHigh = 0.95;
    return {planner.draws,
            static_cast<int>(runs.size()),
            Seconds{quantile(iterations, 0)},
            Seconds{quantile(iterations, kLow)},
            Seconds{quantile(iterations, 0.5)},
            Seconds{quantile(iterations, kHigh)}};
  }

  const JudgeStudy& study_;
  const Study& read_;
  ScheduleCounts counts_;
  StudyMemo memo_;
  std::vector<Scenario> scenarios_;
  std::list<Plan> plans_; // plans of foreign planners; scenarios point to them
};

yaml::Node with(yaml::Node document, const char* key, const yaml::Node& value) {
  document.entries.push_back({key, value.where, value});
  return document;
}

} // namespace

Judgement judge(const JudgeStudy& study, const ProgressCall& progress) {
  Judgement judgement{.name = study.name, .schedule = std::string(study.schedule.name())};
  const std::size_t all = study.models.size() * study.platforms.size();
  std::size_t done = 0;
  std::vector<double> profiles;
  for (const yaml::Node& model : study.models) {
    for (const yaml::Node& platform : study.platforms) {
      const Study read = load_study(with(with(study.rest, "model", model), "platform", platform), study.folders,
                                    study.settings, Purpose::comparison);
      judgement.engine = read.engine->name;
      JudgedCase one(study, read);
      const std::vector<JudgedPlan> judged = one.judge();
      if (study.manual) {
        profiles.push_back(one.profile_seconds());
      }
      judgement.plans.insert(judgement.plans.end(), judged.begin(), judged.end());
      if (progress) {
        progress(++done, all);
      }
    }
  }
  score(judgement);
  if (!profiles.empty()) {
    judgement.median_profile_seconds = Seconds{quantile(profiles, 0.5)};
  }
  return judgement;
}

} // namespace stagecraft
