// SPDX-License-Identifier: Apache-2.0
#include "sim/study/plan_ahead.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "sim/base/bytes.hpp"
#include "sim/base/process/worker_pool.hpp"
#include "sim/study/fit_changes.hpp"
#include "sim/study/make_graph.hpp"
#include "sim/study/plan_scenario.hpp"

namespace stagecraft {
namespace {

using Numbers = std::vector<std::uint32_t>; // of scenarios

class Ahead {
public:
  Ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers, const ProgressCall& progress)
      : memo_(memo), scenarios_(scenarios), workers_(workers), progress_(progress) {}

  // Plans of one key come from one group, in their order. A strategy that asks for the plans of others comes after
  // them.
  void run() {
    const auto by_problem = [](const Scenario& one) {
      return std::tuple(one.strategy, one.micro_batches, one.recompute);
    };
    const auto by_strategy = [](const Scenario& one) { return std::tuple(one.strategy, 0, 0); };
    plan(groups_of([](const Scenario& one) { return !one.strategy->reference; }, by_problem));
    plan(groups_of([](const Scenario& one) { return one.strategy->reference; }, by_problem));
    std::sort(unplanned_.begin(), unplanned_.end());
    const auto is_unplanned = [&](const Scenario& one) {
      return std::binary_search(unplanned_.begin(), unplanned_.end(), number_of(one));
    };
    find_changes(groups_of([&](auto& one) { return is_unplanned(one) && !one.strategy->reference; }, by_strategy));
    find_changes(groups_of([&](auto& one) { return is_unplanned(one) && one.strategy->reference; }, by_strategy));
  }

private:
  std::uint32_t number_of(const Scenario& one) const { return static_cast<std::uint32_t>(&one - scenarios_.data()); }

  // The scenarios of which this is asked, those of one key together, in the order of the first of each.
  template <class Asked, class Key> std::vector<Numbers> groups_of(const Asked& is_asked, const Key& key_of) const {
    std::vector<Numbers> groups;
    std::map<std::tuple<const StrategyRow*, int, int>, std::size_t> group_of;
    for (const Scenario& one : scenarios_) {
      if (one.strategy == nullptr || !is_asked(one)) {
        continue;
      }
      const auto [group, is_new] = group_of.try_emplace(key_of(one), groups.size());
      if (is_new) {
        groups.emplace_back();
      }
      groups[group->second].push_back(number_of(one));
    }
    return groups;
  }

  void plan(const std::vector<Numbers>& groups) {
    const auto work = [this](const Numbers& group) {
      Numbers unplanned;
      for (const std::uint32_t number : group) {
        const Scenario& scenario = scenarios_[number];
        const bool allowed = is_replayable(memo_.costs.study(), scenario.micro_batches);
        const bool planned = allowed && std::holds_alternative<Plan>(plan_scenario(memo_, scenario).result);
        if (!planned && looks_for_change(scenario)) {
          unplanned.push_back(number);
        }
      }
      std::string bytes;
      put_list(bytes, unplanned);
      return bytes;
    };
    share_out(groups, work, [this](const Numbers& group, std::string_view answer) {
      const Numbers unplanned = ByteReader(answer).take_list<std::uint32_t>();
      unplanned_.insert(unplanned_.end(), unplanned.begin(), unplanned.end());
      tell(group.size() - unplanned.size());
    });
  }

  void find_changes(const std::vector<Numbers>& groups) {
    const auto work = [this](const Numbers& group) {
      std::string bytes;
      for (const std::uint32_t number : group) {
        put_text(bytes, smallest_fitting_change(memo_, scenarios_[number]));
      }
      return bytes;
    };
    share_out(groups, work, [this](const Numbers& group, std::string_view answer) {
      ByteReader texts(answer);
      for (const std::uint32_t number : group) {
        keep_fitting_change(memo_, scenarios_[number], std::string(texts.take_text()));
      }
      tell(group.size());
    });
  }

  // Does each group's work, which leaves plans in the memo, and takes its answer; in another process where there are
  // several workers. What a child dies of comes up again in this process.
  template <class Work, class Take>
  void share_out(const std::vector<Numbers>& groups, const Work& work, const Take& take) {
    if (workers_ <= 1 || groups.size() <= 1) {
      std::for_each(groups.begin(), groups.end(), [&](const Numbers& group) { take(group, work(group)); });
      return;
    }
    const auto group_in = [&](const std::string& task) -> const Numbers& {
      return groups[ByteReader(task).take<std::size_t>()];
    };
    std::size_t given = 0;
    std::vector<std::string> lost;
    WorkerPool pool;
    pool.workers = workers_;
    pool.work = [&](const std::string& task) {
      const std::size_t before = memo_.plans.plannings();
      std::string bytes;
      put_text(bytes, work(group_in(task)));
      put_text(bytes, memo_.plans.made_since(before));
      return bytes;
    };
    pool.next = [&]() -> std::optional<std::string> {
      if (given == groups.size()) {
        return std::nullopt;
      }
      std::string task;
      put(task, given++);
      return task;
    };
    pool.answered = [&](const std::string& task, const std::string& answer) {
      ByteReader reader(answer);
      const std::string_view own = reader.take_text();
      memo_.plans.take(reader.take_text());
      take(group_in(task), own);
      return true;
    };
    pool.lost = [&](const std::string& task, const std::string&) { lost.push_back(task); };
    pool.tick = [] { return true; };
    stagecraft::run(pool);
    std::for_each(lost.begin(), lost.end(),
                  [&](const std::string& task) { take(group_in(task), work(group_in(task))); });
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
  Numbers unplanned_; // scenarios that a change might make fit
};

} // namespace

void plan_ahead(StudyMemo& memo, const std::vector<Scenario>& scenarios, int workers, const ProgressCall& progress) {
  Ahead(memo, scenarios, workers, progress).run();
}

} // namespace stagecraft
