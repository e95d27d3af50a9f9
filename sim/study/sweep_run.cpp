// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

#include "sim/base/worker_pool.hpp"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One pass over points by one engine: gives them out, and stores what comes back.
class SweepPass {
public:
  SweepPass(SweepPoints& points, SweepStore& store, const SweepOptions& options, const std::string& engine,
            SweepOutcome& outcome)
      : points_(points), store_(store), options_(options), outcome_(outcome), engine_(engine),
        worker_(points, store.keys(), options.shard, engine), units_(combinations(points.inputs().sweep)) {}

  /// These points alone, instead of all.
  void only(std::vector<Point> chosen) {
    std::sort(chosen.begin(), chosen.end(),
              [](const Point& a, const Point& b) { return std::pair(a.number, a.run) < std::pair(b.number, b.run); });
    units_ = chosen.size();
    chosen_ = std::move(chosen);
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
    store_.commit();
  }

private:
  // A task that was given out.
  struct Given {
    SweepTask task;
    Clock::time_point start = Clock::now();
  };

  std::optional<std::string> next() {
    SweepTask task;
    if (!alone_.empty()) {
      task = std::move(alone_.front());
      alone_.pop_front();
    } else if (!absent_.empty()) {
      const auto size = static_cast<std::ptrdiff_t>(
          std::min<std::size_t>(absent_.size(), static_cast<std::size_t>(std::max(1.0, next_size() * density()))));
      task.points.assign(absent_.begin(), absent_.begin() + size);
      task.are_absent = true;
      absent_.erase(absent_.begin(), absent_.begin() + size);
    } else if (next_unit_ < units_) {
      const std::uint64_t end = next_unit_ + std::min(units_ - next_unit_, static_cast<std::uint64_t>(next_size()));
      if (chosen_) {
        const auto first = chosen_->begin();
        task.points.assign(first + static_cast<std::ptrdiff_t>(next_unit_), first + static_cast<std::ptrdiff_t>(end));
      } else {
        task.first = next_unit_;
        task.end = end;
      }
      next_unit_ = end;
    } else {
      return std::nullopt;
    }
    std::string bytes = to_bytes(task);
    given_[bytes] = {std::move(task), Clock::now()};
    return bytes;
  }

  bool answered(const std::string& task, const std::string& answer) {
    const auto found = given_.find(task);
    const Given given = std::move(found->second);
    given_.erase(found);
    TaskResult result = task_result_from(answer);
    const std::size_t points = result.done.size() + result.known.size();
    outcome_.computed += result.done.size();
    store_.add(outcome_.sweep, std::move(result.done));
    for (const auto& [point, key] : result.known) {
      if (store_.has(outcome_.sweep, key, point.number, point.run, options_.retry)) {
        ++outcome_.found;
      } else {
        absent_.push_back(point);
      }
    }
    if (given.task.points.empty() != chosen_.has_value()) { // else it is one of a few that come again
      learn(seconds_since(given.start), units_of(given.task), points);
    }
    return tick();
  }

  // What next_unit_ counts: combinations, or points where those are chosen.
  static std::uint64_t units_of(const SweepTask& task) {
    return task.points.empty() ? task.end - task.first : task.points.size();
  }

  // How many units the next task gets: fewer near the end, so that all workers end together (guided self-scheduling,
  // Polychronopoulos and Kuck 1987).
  double next_size() const {
    const auto left = static_cast<double>(units_ - next_unit_);
    constexpr double kShare = 0.5, kLeast = 1.0 / 32; // of what is left for each worker, of a task
    return std::max(1.0, std::clamp(kShare * left / options_.workers, kLeast * chunk_, chunk_));
  }

  // Tasks of about a tenth of a second, half of which a task waits for the one before.
  void learn(double seconds, std::uint64_t units, std::size_t points) {
    constexpr double kWanted = 0.2;
    constexpr double kMost = 2000; // points; a task of them has room in a pipe
    learned_units_ += static_cast<double>(units);
    learned_points_ += static_cast<double>(points);
    const double fits = kWanted / std::max(1e-7, seconds / static_cast<double>(units));
    chunk_ = std::max(1.0, std::min({fits, 2.0 * chunk_, kMost / density()}));
  }

  // Points for each unit.
  double density() const {
    constexpr double kLeast = 1e-3;
    return learned_units_ > 0 ? std::max(kLeast, learned_points_ / learned_units_) : 1;
  }

  // A worker died over a task: its points are tried again one by one; one that kills its worker alone has failed.
  void lost(const std::string& task, const std::string& why) {
    const auto found = given_.find(task);
    const SweepTask lost = std::move(found->second.task);
    given_.erase(found);
    if (lost.points.size() == 1) {
      const Point& point = lost.points.front();
      if (++deaths_[{point.number, point.run}] >= kMostDeaths) {
        fail(point, why + ", " + std::to_string(kMostDeaths) + " times");
        return;
      }
    }
    for (const Point& point : lost.points) {
      alone_.push_back({.points = {point}, .are_absent = lost.are_absent});
    }
    for (std::uint64_t number = lost.first; number < lost.end; ++number) {
      const std::optional<SweepPoints::Opened> opened = points_.open(number);
      for (std::uint32_t run = 0; opened && run < opened->points(); ++run) {
        alone_.push_back({.points = {{number, run}}});
      }
    }
  }

  void fail(const Point& point, const std::string& why) {
    const std::optional<SweepPoints::Opened> opened = points_.open(point.number);
    check(opened.has_value(), "a combination that a condition rules out was given out");
    if (std::optional<PointRow> row = points_.row(*opened, point.run, engine_)) {
      row->status = PointStatus::failed;
      row->reason = why;
      store_.add(outcome_.sweep, *row);
      ++outcome_.computed;
    }
  }

  bool tick() {
    constexpr double kBetween = 0.25;   // what an end of this process costs at worst, in work to do again
    constexpr std::size_t kMost = 8192; // some mebibytes
    if (seconds_since(committed_) > kBetween || store_.added() >= kMost) {
      for (const KeptFile& file : points_.new_files()) {
        store_.add_file(outcome_.sweep, file);
      }
      store_.commit();
      committed_ = Clock::now();
    }
    return !options_.progress || options_.progress(outcome_.computed + outcome_.found, all_);
  }

  static constexpr int kMostDeaths = 3;

  SweepPoints& points_;
  SweepStore& store_;
  const SweepOptions& options_;
  SweepOutcome& outcome_;
  std::string engine_;
  SweepWorker worker_; // what forked children start with
  std::optional<std::vector<Point>> chosen_;
  std::uint64_t all_ = 0; // points
  std::uint64_t units_ = 0, next_unit_ = 0;
  std::deque<Point> absent_;    // that a worker could not be sure of
  std::deque<SweepTask> alone_; // after a crash, one by one
  double chunk_ = 4;            // units
  double learned_units_ = 0, learned_points_ = 0;
  std::map<std::string, Given> given_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, int> deaths_; // of a point
  Clock::time_point committed_ = Clock::now();
};

// What the first pass leaves for the second: the best, as many as asked for.
std::vector<Point> survivors(const Sweep& sweep, SweepStore& store, const SweepOutcome& outcome,
                             const SweepShard& shard) {
  const Sweep::Screen& screen = *sweep.screen;
  std::uint64_t keep = (screen.keep + shard.count - 1) / shard.count;
  if (screen.share > 0) {
    const auto feasible = static_cast<double>(store.count(outcome.sweep, PointStatus::feasible, screen.engine));
    keep = static_cast<std::uint64_t>(std::ceil(screen.share * feasible));
  }
  std::vector<Point> chosen;
  for (const RankedPoint& point : store.best(outcome.sweep, sweep.goal, screen.engine, keep)) {
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
  if (sweep.screen) {
    SweepPass first(points, store, options, sweep.screen->engine, outcome);
    first.run(all);
    const std::vector<Point> chosen = survivors(sweep, store, outcome, options.shard);
    SweepOptions whole = options;
    whole.shard = {}; // these are ours already
    SweepPass second(points, store, whole, "", outcome);
    second.only(chosen);
    second.run(all + chosen.size());
  } else {
    SweepPass(points, store, options, "", outcome).run(all);
  }
  for (const KeptFile& file : points.new_files()) {
    store.add_file(outcome.sweep, file);
  }
  store.commit();
  const auto [feasible, infeasible, failed] = store.counts(outcome.sweep);
  outcome.feasible = feasible;
  outcome.infeasible = infeasible;
  outcome.failed = failed;
  return outcome;
}

} // namespace stagecraft
