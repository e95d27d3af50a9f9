// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>

#include "sim/base/worker_pool.hpp"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_ours(const Digest& key, const SweepShard& shard) {
  constexpr int kByte = 256;
  return (key.bytes[0] * kByte + key.bytes[1]) % shard.count == shard.index - 1;
}

// One pass over points by one engine: gives out those that the store lacks, and stores what comes back.
class SweepPass {
public:
  SweepPass(SweepPoints& points, SweepStore& store, const SweepOptions& options, std::string engine,
            SweepOutcome& outcome)
      : points_(points), store_(store), options_(options), engine_(std::move(engine)), outcome_(outcome),
        combinations_(combinations(points.inputs().sweep)) {}

  /// These points alone, instead of all.
  void only(std::vector<Point> chosen) {
    std::sort(chosen.begin(), chosen.end(),
              [](const Point& a, const Point& b) { return std::pair(a.number, a.run) < std::pair(b.number, b.run); });
    chosen_ = std::move(chosen);
  }

  void run(std::uint64_t all) {
    all_ = all;
    WorkerPool pool;
    pool.workers = options_.workers;
    pool.work = [this, counts = std::make_shared<ScheduleCounts>()](const std::string& task) {
      const auto [engine, points] = points_from(task);
      return to_bytes(evaluate(points_.inputs(), engine, points, *counts));
    };
    pool.next = [this] { return next(); };
    pool.answered = [this](const std::string& task, const std::string& answer) { return answered(task, answer); };
    pool.lost = [this](const std::string& task, const std::string& why) { lost(task, why); };
    pool.tick = [this] { return tick(); };
    stagecraft::run(pool);
    store_.commit();
  }

private:
  // A point that was given out, with what its row says beside the result.
  struct Given {
    Point point;
    PointRow row;
  };

  struct Task {
    std::vector<Given> given;
    Clock::time_point start = Clock::now();
  };

  // The next point that is ours and not done; nothing: no more.
  std::optional<Given> next_point() {
    for (;;) {
      if (chosen_) {
        if (next_chosen_ == chosen_->size()) {
          return std::nullopt;
        }
        const Point point = (*chosen_)[next_chosen_++];
        if (!current_ || current_->number != point.number) {
          open(point.number);
        }
        if (std::optional<Given> found = make(point.run)) {
          return found;
        }
        continue;
      }
      if (!current_ || next_run_ >= std::max<std::size_t>(1, kind_->runs.size())) {
        do {
          if (next_combination_ == combinations_) {
            return std::nullopt;
          }
        } while (!open(next_combination_++));
        next_run_ = 0;
      }
      if (std::optional<Given> found = make(next_run_++)) {
        return found;
      }
    }
  }

  bool open(std::uint64_t number) {
    current_ = combination(points_.inputs().sweep, number);
    if (!current_) {
      return false;
    }
    kind_ = &points_.kind_of(*current_);
    fingerprint_ = points_.fingerprint_of(*current_, *kind_);
    settings_ = json_of(current_->settings);
    return true;
  }

  std::optional<Given> make(std::uint32_t run) {
    const bool runs = run < kind_->runs.size();
    if (runs && !is_allowed(points_.inputs().sweep, *current_, kind_->runs[run])) {
      return std::nullopt;
    }
    Given given{{current_->number, run}, {}};
    PointRow& row = given.row;
    row.key = SweepPoints::key(fingerprint_, *current_, *kind_, run, engine_);
    if (!is_ours(row.key, options_.shard)) {
      return std::nullopt;
    }
    if (store_.has(outcome_.sweep, row.key, current_->number, run, options_.retry)) {
      ++outcome_.found;
      return std::nullopt;
    }
    row.number = current_->number;
    row.run = run;
    row.settings = settings_;
    row.engine = engine_.empty() ? kind_->engine : engine_;
    if (runs) {
      row.strategy = kind_->runs[run].strategy;
      row.schedule = kind_->runs[run].schedule;
      row.micro_batches = kind_->runs[run].micro_batches;
      row.recompute = kind_->recompute[run];
      return given;
    }
    row.status = PointStatus::failed;
    row.reason = kind_->error;
    store_.add(outcome_.sweep, std::move(row));
    ++outcome_.computed;
    return std::nullopt;
  }

  std::optional<std::string> next() {
    if (!again_.empty()) { // after a crash, one by one
      Given given = std::move(again_.front());
      again_.pop_front();
      std::vector<Given> alone;
      alone.push_back(std::move(given));
      return give(std::move(alone));
    }
    std::vector<Given> given;
    const auto most = static_cast<std::size_t>(next_size());
    given.reserve(most);
    while (given.size() < most) {
      std::optional<Given> found = next_point();
      if (!found) {
        break;
      }
      given.push_back(std::move(*found));
    }
    return given.empty() ? std::nullopt : std::optional(give(std::move(given)));
  }

  std::string give(std::vector<Given> given) {
    std::vector<Point> points;
    points.reserve(given.size());
    for (const Given& one : given) {
      points.push_back(one.point);
    }
    in_flight_ += given.size();
    std::string task = to_bytes(engine_, points);
    tasks_[task] = {std::move(given), Clock::now()};
    return task;
  }

  bool answered(const std::string& task, const std::string& answer) {
    const auto found = tasks_.find(task);
    const std::vector<PointResult> results = results_from(answer);
    std::vector<Given>& given = found->second.given;
    check(results.size() == given.size(), "a worker's answer has another number of points than its task");
    for (std::size_t i = 0; i < given.size(); ++i) {
      PointRow& row = given[i].row;
      row.status = results[i].status;
      row.order = results[i].order;
      row.reason = results[i].reason;
      row.figures = results[i].figures;
      store_.add(outcome_.sweep, std::move(row));
    }
    outcome_.computed += given.size();
    in_flight_ -= given.size();
    learn(seconds_since(found->second.start), given.size());
    tasks_.erase(found);
    return tick();
  }

  // How many points the next task gets: fewer near the end, so that all workers end together (guided self-scheduling,
  // Polychronopoulos and Kuck 1987).
  double next_size() const {
    const std::uint64_t gone = outcome_.computed + outcome_.found + in_flight_;
    const double left = gone < all_ ? static_cast<double>(all_ - gone) : 0;
    constexpr double kShare = 0.5, kLeast = 1.0 / 32; // of what is left for each worker, of a task
    return std::clamp(kShare * left / options_.workers, std::max(1.0, kLeast * chunk_), chunk_);
  }

  // Tasks of about a tenth of a second, half of which a task waits for the one before.
  void learn(double seconds, std::size_t points) {
    constexpr double kWanted = 0.2;
    constexpr double kMost = 2000; // a task of them has room in a pipe
    const double fits = kWanted / std::max(1e-6, seconds / static_cast<double>(points));
    chunk_ = std::clamp(std::min(fits, 2.0 * chunk_), 1.0, kMost);
  }

  // A worker died over a task: its points are tried again one by one; one that kills its worker alone has failed.
  void lost(const std::string& task, const std::string& why) {
    const auto found = tasks_.find(task);
    std::vector<Given> given = std::move(found->second.given);
    tasks_.erase(found);
    in_flight_ -= given.size();
    if (given.size() == 1 && ++deaths_[given.front().row.key] >= kMostDeaths) {
      PointRow& row = given.front().row;
      row.status = PointStatus::failed;
      row.reason = why + ", " + std::to_string(kMostDeaths) + " times";
      store_.add(outcome_.sweep, std::move(row));
      ++outcome_.computed;
      return;
    }
    for (Given& one : given) {
      again_.push_back(std::move(one));
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
  std::string engine_;
  SweepOutcome& outcome_;
  std::uint64_t combinations_ = 0, all_ = 0;
  std::optional<std::vector<Point>> chosen_;
  std::size_t next_chosen_ = 0;
  std::uint64_t next_combination_ = 0;
  std::uint32_t next_run_ = 0;
  std::optional<Combination> current_;
  const SweepPoints::Kind* kind_ = nullptr;
  Fingerprint fingerprint_;
  std::string settings_;
  double chunk_ = 4;
  std::uint64_t in_flight_ = 0; // points
  std::map<std::string, Task> tasks_;
  std::map<Digest, int> deaths_;
  std::deque<Given> again_;
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
