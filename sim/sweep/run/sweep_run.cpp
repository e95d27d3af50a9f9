// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/run/sweep_run.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "sim/base/process/worker_pool.hpp"
#include "sim/base/system/clock.hpp"
#include "sim/base/system/file.hpp"

namespace stagecraft {
namespace {

// One pass over points by one engine: gives them to workers and stores their results.
class SweepPass {
public:
  SweepPass(SweepPoints& points, SweepStore& store, const SweepOptions& options, const std::string& engine,
            SweepOutcome& outcome)
      : points_(points), store_(store), options_(options), outcome_(outcome), engine_(engine),
        worker_(points, store.keys(), options.shard, engine) {
    give_back({.end = combinations(points.inputs().sweep)});
  }

  /// Limits the pass to these points.
  void only(std::vector<Point> chosen) {
    std::sort(chosen.begin(), chosen.end(),
              [](const Point& a, const Point& b) { return std::pair(a.number, a.run) < std::pair(b.number, b.run); });
    waiting_.clear();
    waiting_units_ = 0;
    for (std::size_t end = chosen.size(); end > 0;) {
      const std::size_t first = (end - 1) / kMostUnits * kMostUnits;
      const std::span<const Point> part = std::span(chosen).subspan(first, end - first);
      give_back({.points = {part.begin(), part.end()}});
      end = first;
    }
  }

  void run(std::uint64_t all) {
    all_ = all;
    WorkerPool pool;
    pool.workers = options_.workers;
    pool.work = [this](const std::string& task) { return to_bytes(worker_.work(task_from(task))); };
    pool.next = [this] { return next(); };
    pool.answered = [this](const std::string& task, const std::string& answer) { return answered(task, answer); };
    pool.lost = [this](const std::string& task, const std::string& why) { lost(task, why); };
    pool.tick = [this] { return tick(); };
    stagecraft::run(pool);
    commit();
  }

private:
  void give_back(SweepTask task) {
    if (task.units() > 0) {
      waiting_units_ += task.units();
      waiting_.push_front(std::move(task));
    }
  }

  // Takes the first units that wait: fewer near the end, so that all workers end together (guided self-scheduling,
  // Polychronopoulos and Kuck 1987). A worker gives back the units that it cannot do in time.
  std::optional<std::string> next() {
    if (waiting_.empty()) {
      return std::nullopt;
    }
    SweepTask task = std::move(waiting_.front());
    waiting_.pop_front();
    const std::uint64_t share = waiting_units_ / (2 * static_cast<std::uint64_t>(options_.workers));
    waiting_units_ -= task.units();
    const std::uint64_t most = std::clamp<std::uint64_t>(share, 1, kMostUnits);
    if (task.units() > most) {
      auto [now, later] = task.split(most);
      give_back(std::move(later));
      task = std::move(now);
    }
    return to_bytes(task);
  }

  bool answered(const std::string& bytes, const std::string& answer) {
    const SweepTask task = task_from(bytes);
    TaskResult result = task_result_from(answer);
    give_back(task.split(result.units).second);
    give_back({.points = std::move(result.left)});
    outcome_.computed += result.done.size();
    store_.add(outcome_.sweep, std::move(result.done));
    SweepTask absent{.are_absent = true};
    for (const auto& [point, key] : result.known) {
      if (store_.has(outcome_.sweep, key, point.number, point.run, options_.retry)) {
        ++outcome_.found;
      } else {
        absent.points.push_back(point);
      }
    }
    give_back(std::move(absent));
    return tick();
  }

  // A worker died over a task. The task's parts are tried again until the point that kills its worker is alone; that
  // point has failed.
  void lost(const std::string& bytes, const std::string& why) {
    const SweepTask task = task_from(bytes);
    if (task.units() > 1) {
      auto [one, other] = task.split(task.units() / 2);
      give_back(std::move(other));
      give_back(std::move(one));
    } else if (task.points.empty()) {
      const std::optional<SweepPoints::Opened> opened = points_.open(task.first);
      for (std::uint32_t run = opened ? opened->points() : 0; run-- > 0;) {
        give_back({.points = {{task.first, run}}});
      }
    } else if (const Point& point = task.points.front(); ++deaths_[{point.number, point.run}] < kMostDeaths) {
      give_back(task);
    } else {
      fail(point, why + ", " + std::to_string(kMostDeaths) + " times");
    }
  }

  void fail(const Point& point, const std::string& why) {
    const std::optional<SweepPoints::Opened> opened = points_.open(point.number);
    check(opened.has_value(), "a combination that a condition rules out was given out");
    std::optional<PointRow> row = points_.row(*opened, point.run, engine_);
    if (row && options_.shard.has(row->key)) {
      row->status = PointStatus::failed;
      row->reason = why;
      store_.add(outcome_.sweep, *row);
      ++outcome_.computed;
    }
  }

  // Counts points as found rather than computed where the store already had them, from another combination or another
  // process.
  void count(std::uint64_t doubles) {
    outcome_.computed -= doubles;
    outcome_.found += doubles;
  }

  void commit() {
    for (const KeptFile& file : points_.new_files()) {
      store_.add_file(outcome_.sweep, file);
    }
    count(store_.commit());
    written_ = 0;
    committed_ = Clock::now();
  }

  // Commits seldom: each commit writes every page of the keys' index that its points touch, which soon is all of them.
  bool tick() {
    constexpr double kBetween = 1;           // second: the most work to repeat when this process is killed
    constexpr std::size_t kAtOnce = 4096;    // points: few enough that workers stay busy while they are written
    constexpr std::size_t kTogether = 16384; // points, a few MiB
    if (seconds_since(committed_) > kBetween || written_ + store_.added() >= kTogether) {
      commit();
    } else if (store_.added() >= kAtOnce) {
      written_ += store_.added();
      count(store_.write());
    }
    outcome_.whole = !options_.progress || options_.progress(outcome_.computed + outcome_.found, all_);
    return outcome_.whole;
  }

  static constexpr int kMostDeaths = 3;
  static constexpr std::uint64_t kMostUnits = 1000; // in a task

  SweepPoints& points_;
  SweepStore& store_;
  const SweepOptions& options_;
  SweepOutcome& outcome_;
  std::string engine_;
  SweepWorker worker_;    // forked children start with a copy
  std::uint64_t all_ = 0; // points
  std::deque<SweepTask> waiting_;
  std::uint64_t waiting_units_ = 0;
  std::map<std::pair<std::uint64_t, std::uint32_t>, int> deaths_; // by point
  std::size_t written_ = 0;                                       // points since the last commit
  Clock::time_point committed_ = Clock::now();
};

// The points that the first pass keeps for the second: the best ones, as many as asked for.
std::vector<Point> survivors(const Sweep& sweep, SweepStore& store, const SweepOutcome& outcome,
                             const SweepShard& shard) {
  const Sweep::Screen& screen = *sweep.screen;
  std::uint64_t keep = (screen.keep + shard.count - 1) / shard.count;
  if (screen.share > 0) {
    const auto feasible = static_cast<double>(store.count(outcome.sweep, PointStatus::feasible, screen.engine, shard));
    keep = static_cast<std::uint64_t>(std::ceil(screen.share * feasible));
  }
  std::vector<Point> chosen;
  for (const RankedPoint& point : store.best(outcome.sweep, sweep.goal, screen.engine, keep, shard)) {
    chosen.push_back({point.row.number, point.row.run});
  }
  return chosen;
}

} // namespace

SweepOutcome run_sweep(SweepPoints& points, SweepStore& store, const SweepOptions& options) {
  const Sweep& sweep = points.inputs().sweep;
  points.check_values();
  const std::uint64_t all = points.count() / options.shard.count;
  SweepOutcome outcome;
  outcome.sweep = store.add_sweep(points.record());
  if (!options.study.empty()) {
    const std::string bytes = read_file(options.study);
    store.add_file(outcome.sweep, kept_file(options.study, Fingerprint().add(bytes).digest(), bytes));
    store.commit();
  }
  if (points.has_first_pass()) {
    SweepPass first(points, store, options, sweep.screen->engine, outcome);
    first.run(all);
    if (outcome.whole) {
      const std::vector<Point> chosen = survivors(sweep, store, outcome, options.shard);
      SweepOptions unsharded = options; // the chosen points are all this shard's
      unsharded.shard = {};
      SweepPass second(points, store, unsharded, "", outcome);
      second.only(chosen);
      second.run(all + chosen.size());
    }
  } else {
    SweepPass(points, store, options, "", outcome).run(all);
  }
  const auto [feasible, infeasible, failed] = store.counts(outcome.sweep);
  outcome.feasible = feasible;
  outcome.infeasible = infeasible;
  outcome.failed = failed;
  return outcome;
}

} // namespace stagecraft
