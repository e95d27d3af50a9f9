// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/adapt.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "sim/strategy/heuristic/balance.hpp"
#include "sim/strategy/heuristic/placements.hpp"
#include "sim/study/compare/describe_rounds.hpp"
#include "sim/study/planning/evaluate.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

// The true speeds of all devices, 0 once they have left.
class History {
public:
  History(const Study& study, const AdaptOptions& options)
      : options_(options), seed_(study.seed), devices_(study.platform.devices.size()) {}

  std::vector<double> speeds(int iteration) const {
    std::vector<double> speeds(devices_, 1.0);
    for (const AdaptEvent& event : options_.events) { // in order of time
      if (event.iteration <= iteration) {
        speeds[event.device] = event.leaves ? 0 : event.speed;
      }
    }
    return speeds;
  }

  // The same for every policy: a function of seed, iteration and device.
  std::vector<double> jittered(int iteration) const {
    std::vector<double> now = speeds(iteration);
    if (options_.jitter > 0) {
      std::mt19937_64 random(seed_ * 1'000'003 + static_cast<std::uint64_t>(iteration));
      std::normal_distribution<double> normal(1, options_.jitter);
      for (double& speed : now) {
        speed *= std::max(normal(random), 0.1);
      }
    }
    return now;
  }

  std::vector<DeviceId> present(int iteration) const {
    const std::vector<double> now = speeds(iteration);
    std::vector<DeviceId> devices;
    for (std::size_t d = 0; d < now.size(); ++d) {
      if (now[d] > 0) {
        devices.push_back(static_cast<DeviceId>(d));
      }
    }
    return devices;
  }

  // Where the round that starts at `first` ends: after round_iterations, or where a device leaves or, with
  // `at_every_event`, anything changes.
  int round_end(int first, bool at_every_event) const {
    int end = std::min(first + options_.round_iterations, options_.iterations);
    for (const AdaptEvent& event : options_.events) {
      if (event.iteration > first && (event.leaves || at_every_event)) {
        end = std::min(end, event.iteration);
      }
    }
    return end;
  }

private:
  const AdaptOptions& options_;
  std::uint64_t seed_;
  std::size_t devices_;
};

// Runs plans on the engine; each plan with the same speeds only once.
class Bench {
public:
  Bench(StudyCosts& costs, const AdaptOptions& options, int micro_batches, const History& history)
      : costs_(costs), options_(options), micro_batches_(micro_batches), history_(history) {}

  int replays() const { return replays_; }

  /// The means over iterations first … end - 1.
  Evaluation run(const Plan& plan, int first, int end) {
    std::vector<Entry>& known = entries_of(plan);
    std::vector<std::vector<double>> fresh;
    std::vector<std::vector<double>> all;
    for (int i = first; i < end; ++i) {
      all.push_back(of_used(plan, history_.jittered(i)));
      if (find(known, all.back()) == known.end() && std::find(fresh.begin(), fresh.end(), all.back()) == fresh.end()) {
        fresh.push_back(all.back());
      }
    }
    std::vector<Evaluation> measured = evaluate_at(costs_, plan, *options_.schedule, micro_batches_, fresh);
    replays_ += static_cast<int>(fresh.size());
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      known.push_back({fresh[i], std::move(measured[i])});
    }
    std::vector<const Evaluation*> round;
    for (const auto& speeds : all) {
      round.push_back(&find(known, speeds)->measured);
    }
    return mean(round);
  }

private:
  struct Entry {
    std::vector<double> speeds;
    Evaluation measured;
  };

  static std::vector<Entry>::iterator find(std::vector<Entry>& known, const std::vector<double>& speeds) {
    return std::find_if(known.begin(), known.end(), [&](const Entry& entry) { return entry.speeds == speeds; });
  }

  // The speeds of a plan's devices; the others count as 1, since they do not matter.
  static std::vector<double> of_used(const Plan& plan, const std::vector<double>& speeds) {
    std::vector<double> used(speeds.size(), 1.0);
    for (const DeviceId device : devices_of(plan)) {
      used[device] = speeds[device];
    }
    return used;
  }

  std::vector<Entry>& entries_of(const Plan& plan) {
    for (auto& [stages, entries] : known_) {
      if (stages == plan.stages) {
        return entries;
      }
    }
    return known_.emplace_back(plan.stages, std::vector<Entry>{}).second;
  }

  static Evaluation mean(const std::vector<const Evaluation*>& round) {
    Evaluation result = *round.front();
    if (!result.why_not.empty()) {
      return result;
    }
    const auto count = static_cast<double>(round.size());
    const auto average = [&](auto&& value) {
      double sum = 0;
      for (const Evaluation* one : round) {
        sum += value(*one);
      }
      return Seconds{sum / count};
    };
    result.iteration = average([](const Evaluation& one) { return one.iteration.value; });
    for (std::size_t d = 0; d < result.devices.size(); ++d) {
      result.busy[d] = average([&](const Evaluation& one) { return one.busy[d].value; });
      result.tail[d] = average([&](const Evaluation& one) { return one.tail[d].value; });
    }
    const Seconds squares = average([&](const Evaluation& one) {
      const double off = one.iteration / result.iteration - 1;
      return off * off;
    });
    result.noise = count > 1 ? std::sqrt(squares.value / (count - 1)) : 0;
    return result;
  }

  StudyCosts& costs_;
  const AdaptOptions& options_;
  int micro_batches_;
  const History& history_;
  std::vector<std::pair<std::vector<Stage>, std::vector<Entry>>> known_;
  int replays_ = 0;
};

// A policy: asked for a plan at the start of a round, and told the measurements at its end.
struct Policy {
  std::string name;
  bool at_every_event; ///< a round ends wherever anything changes
  std::function<PlanResult(int first)> plan;
  std::function<std::string(const Evaluation&)> observe; ///< returns what the policy does about them
};

std::string missing_device(const Plan& plan, const std::vector<DeviceId>& present, const Platform& platform) {
  for (const DeviceId device : devices_of(plan)) {
    if (std::find(present.begin(), present.end(), device) == present.end()) {
      return "'" + platform.devices[device].name + "' has left, and its operators have nowhere to run";
    }
  }
  return "";
}

AdaptPolicy run_policy(const Policy& policy, const Study& study, Bench bench, const Problem& problem,
                       const History& history) {
  AdaptPolicy result{.name = policy.name};
  Plan before;
  for (int first = 0; first < study.adapt->iterations && result.why_not.empty();) {
    PlanResult next = policy.plan(first);
    if (const Infeasible* reason = std::get_if<Infeasible>(&next)) {
      result.why_not = reason->reason;
      break;
    }
    Plan& plan = std::get<Plan>(next);
    result.why_not = missing_device(plan, history.present(first), study.platform);
    if (!result.why_not.empty()) {
      break;
    }
    const int end = history.round_end(first, policy.at_every_event);
    const Evaluation measured = bench.run(plan, first, end);
    std::string action = policy.observe(measured);
    if (!measured.why_not.empty()) { // known before the round starts: the plan is dropped and no time passes
      result.why_not = policy.name == "dynamic" ? "" : measured.why_not;
      continue;
    }
    AdaptRound& round = result.rounds.emplace_back();
    round = {.first = first, .iterations = end - first, .iteration = measured.iteration};
    round.new_plan = !before.stages.empty() && plan.stages != before.stages;
    if (round.new_plan) {
      const Migration moved = migration(problem, before, plan);
      round.migrated = moved.bytes;
      round.migration = moved.time;
    }
    BalanceRound waits{.devices = measured.devices};
    for (const Seconds busy : measured.busy) {
      waits.waiting.push_back(measured.iteration - busy);
    }
    round.largest_waiting = waits.largest_waiting();
    round.mean_waiting = waits.mean_waiting();
    round.action = std::move(action);
    before = std::move(plan);
    first = end;
  }
  result.replays = bench.replays();
  return result;
}

AdaptPolicy run_never(StudyMemo& memo, const Bench& bench, const History& history, int count) {
  const Study& study = memo.costs.study();
  const Problem& believed = memo.costs.believed(count);
  Balancer balancer(plan_request(memo, believed, *study.adapt->schedule, history.present(0)), study.balance);
  PlanResult first = balancer.propose();
  return run_policy({"never", false, [&](int) { return first; }, [](const Evaluation&) { return "stay"; }}, study,
                    bench, memo.costs.problem(count), history);
}

AdaptPolicy run_dynamic(StudyMemo& memo, const Bench& bench, const History& history, int count) {
  const Study& study = memo.costs.study();
  const Problem& believed = memo.costs.believed(count);
  std::vector<DeviceId> devices = history.present(0);
  Balancer balancer(plan_request(memo, believed, *study.adapt->schedule, devices), study.balance);
  const auto plan = [&](int first) {
    if (devices != history.present(first)) {
      devices = history.present(first);
      balancer.set_devices(devices);
    }
    return balancer.propose();
  };
  const auto observe = [&](const Evaluation& measured) {
    balancer.observe(measured);
    return balancer.rounds().back().action;
  };
  AdaptPolicy result = run_policy({"dynamic", false, plan, observe}, study, bench, memo.costs.problem(count), history);
  result.balancing = describe_rounds(balancer.rounds(), *study.model, study.platform);
  result.searching = static_cast<int>(std::count_if(balancer.rounds().begin(), balancer.rounds().end(),
                                                    [](const BalanceRound& round) { return !round.held; }));
  return result;
}

// Plans with `optimal` and the true speeds, at once whenever they change.
AdaptPolicy run_oracle(StudyMemo& memo, const Bench& bench, const History& history, int count) {
  const Study& study = memo.costs.study();
  const StrategyRow& optimal = find_by_name(strategies(), "optimal", "strategy", {});
  Router router(study.platform);
  std::vector<double> speeds;
  PlanResult current;
  const auto plan = [&](int first) {
    if (const std::vector<double> now = history.speeds(first); now != speeds) {
      speeds = now;
      std::vector<double> positive = now;
      std::replace(positive.begin(), positive.end(), 0.0, 1.0); // devices that left, to which nothing is assigned
      const SpeedWorld world = at_speeds(study.platform, *study.cost, positive);
      const Problem problem = make_problem(*study.model, world.platform, *world.cost, study.training, router, count);
      current = make_plan(optimal, plan_request(memo, problem, *study.adapt->schedule, history.present(first)));
    }
    return current;
  };
  return run_policy({"oracle", true, plan, [](const Evaluation&) { return "stay"; }}, study, bench,
                    memo.costs.problem(count), history);
}

std::string_view name_of(WeightUpdate update) {
  return std::find_if(kWeightUpdates.begin(), kWeightUpdates.end(),
                      [&](const WeightUpdateRow& row) { return row.update == update; })
      ->name;
}

std::string describe(const AdaptEvent& event, const Platform& platform) {
  const std::string name = "'" + platform.devices[event.device].name + "'";
  return event.leaves ? name + " leaves" : name + " at " + to_text(event.speed, 2) + " of its speed";
}

std::vector<AdaptPhase> phases_of(const Study& study, const std::vector<AdaptPolicy>& policies) {
  std::vector<AdaptPhase> phases = {{.first = 0, .end = study.adapt->iterations, .what = "start"}};
  for (const AdaptEvent& event : study.adapt->events) {
    if (event.iteration == phases.back().first) {
      phases.back().what += (phases.back().what == "start" ? " with " : ", ") + describe(event, study.platform);
      continue;
    }
    phases.back().end = event.iteration;
    phases.push_back(
        {.first = event.iteration, .end = study.adapt->iterations, .what = describe(event, study.platform)});
  }
  const AdaptPolicy& dynamic = policies[1];
  for (AdaptPhase& phase : phases) {
    const Seconds target = policies[2].iteration_before(phase.end);
    const auto rounds_to = [&](double tolerance) {
      int count = 0;
      for (const AdaptRound& round : dynamic.rounds) {
        if (round.first >= phase.first && round.first < phase.end) {
          ++count;
          if (round.iteration <= (1 + tolerance) * target) {
            return count;
          }
        }
      }
      return 0;
    };
    phase.rounds_to_5_percent = rounds_to(0.05);
    phase.rounds_to_2_percent = rounds_to(0.02);
  }
  return phases;
}

} // namespace

int AdaptPolicy::iterations() const { return rounds.empty() ? 0 : rounds.back().first + rounds.back().iterations; }

Seconds AdaptPolicy::total() const {
  Seconds sum;
  for (const AdaptRound& round : rounds) {
    sum += round.iterations * round.iteration + round.migration;
  }
  return sum;
}

Bytes AdaptPolicy::migrated() const {
  Bytes sum;
  for (const AdaptRound& round : rounds) {
    sum += round.migrated;
  }
  return sum;
}

Seconds AdaptPolicy::migration() const {
  Seconds sum;
  for (const AdaptRound& round : rounds) {
    sum += round.migration;
  }
  return sum;
}

Seconds AdaptPolicy::iteration_before(int end) const {
  Seconds last;
  for (const AdaptRound& round : rounds) {
    last = round.first + round.iterations <= end ? round.iteration : last;
  }
  return last;
}

Adaptation adapt(StudyMemo& memo) {
  const Study& study = memo.costs.study();
  const AdaptOptions& options = *study.adapt;
  const int count = study.training.micro_batches.front();
  const History history(study, options);
  const Bench bench(memo.costs, options, count, history);
  Adaptation result{.model = study.model->name,
                    .platform = study.platform.name,
                    .schedule = std::string(options.schedule->name),
                    .engine = std::string(study.engine->name),
                    .placement = std::string(row_of(study.balance.placement).name),
                    .update = std::string(name_of(study.balance.update)),
                    .micro_batches = count};
  for (const Device& device : study.platform.devices) {
    result.devices.push_back(device.name);
  }
  result.policies.push_back(run_never(memo, bench, history, count));
  result.policies.push_back(run_dynamic(memo, bench, history, count));
  result.policies.push_back(run_oracle(memo, bench, history, count));
  result.phases = phases_of(study, result.policies);
  return result;
}

} // namespace stagecraft
