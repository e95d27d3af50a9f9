// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/plan_ahead.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "sim/base/bytes.hpp"
#include "sim/base/process/worker_pool.hpp"
#include "sim/study/planning/fit_changes.hpp"
#include "sim/study/planning/make_graph.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

using Numbers = std::vector<std::uint32_t>; // of scenarios

class Ahead {
public:
  Ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers, const ProgressCall& progress)
      : memo_(memo), scenarios_(scenarios), workers_(workers), progress_(progress) {}

  // Plans of one key come from one group, in their order. A strategy that asks for the plans of others comes after
  // them.
  void plan() {
    for (const bool reference : {false, true}) {
      share_out(groups_of(reference, true), [this](const Numbers& group) {
        for (const std::uint32_t number : group) {
          if (is_replayable(memo_.costs.study(), scenarios_[number].micro_batches)) {
            plan_scenario(memo_, scenarios_[number]);
          }
        }
        return std::string();
      });
    }
  }

  // A change may be another number of micro-batches, so all plans of a strategy come from one group.
  void find_changes() {
    for (const bool reference : {false, true}) {
      share_out(groups_of(reference, false), [this](const Numbers& group) {
        std::string texts;
        for (const std::uint32_t number : group) {
          put_text(texts, smallest_fitting_change(memo_, scenarios_[number]));
        }
        return texts;
      });
    }
  }

private:
  // The scenarios of strategies that are, or are not, references: those of one planner together, or of one planner and
  // problem.
  std::vector<Numbers> groups_of(bool reference, bool by_problem) const {
    std::vector<Numbers> groups;
    std::map<std::tuple<const StrategyRow*, int, int>, std::size_t> group_of;
    for (std::uint32_t number = 0; number < scenarios_.size(); ++number) {
      const Scenario& one = scenarios_[number];
      if (one.strategy == nullptr || one.strategy->reference != reference) {
        continue;
      }
      const StrategyRow& planner = planner_of(*one.strategy, *memo_.costs.study().model, memo_.costs.devices().size());
      const auto key = std::tuple(&planner, by_problem ? one.micro_batches : 0, by_problem ? one.recompute : 0);
      const auto [group, is_new] = group_of.try_emplace(key, groups.size());
      if (is_new) {
        groups.emplace_back();
      }
      groups[group->second].push_back(number);
    }
    return groups;
  }

  // Does each group's work, which leaves its results in the memo. From another process the plans come back as bytes,
  // what schedules hold, and the texts of changes, one for each scenario, where there are any.
  void share_out(const std::vector<Numbers>& groups, const std::function<std::string(const Numbers&)>& work) {
    SharedTasks tasks{.count = groups.size()};
    tasks.work = [&](std::size_t group) {
      const std::size_t plannings = memo_.plans.plannings(), counts = memo_.counts.made.size();
      std::string bytes;
      put_text(bytes, work(groups[group]));
      put_text(bytes, memo_.plans.made_since(plannings));
      put_text(bytes, memo_.counts.made_since(counts));
      return bytes;
    };
    tasks.take = [&](std::size_t group, const std::string& result) {
      ByteReader bytes(result);
      ByteReader texts(bytes.take_text());
      memo_.plans.take(bytes.take_text());
      memo_.counts.take(bytes.take_text());
      for (std::size_t i = 0; i < groups[group].size() && !texts.done(); ++i) {
        keep_fitting_change(memo_, scenarios_[groups[group][i]], std::string(texts.take_text()));
      }
      tell(groups[group].size());
    };
    tasks.here = [&](std::size_t group) {
      work(groups[group]);
      tell(groups[group].size());
    };
    stagecraft::share_out(workers_, tasks);
  }

  void tell(std::size_t count) {
    done_ += count;
    if (progress_) {
      progress_(done_, scenarios_.size());
    }
  }

  StudyMemo& memo_;
  const std::vector<Scenario>& scenarios_;
  int workers_;
  const ProgressCall& progress_;
  std::size_t done_ = 0;
};

} // namespace

void plan_ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers, const ProgressCall& progress) {
  Ahead(memo, scenarios, workers, progress).plan();
}

void find_changes_ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers,
                        const ProgressCall& progress) {
  Ahead(memo, scenarios, workers, progress).find_changes();
}

} // namespace stagecraft
