// Replays measured pipelines: 1F1B with merged blocking sends and receives, every micro-batch at its own clocks.
// Nothing is fitted on the run that it predicts; docs/validation/clocks.md says what is fitted on which runs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/replay/replay.hpp"
#include "sim/schedule/task_graph/retime.hpp"
#include "sim/validate/grid_search.hpp"
#include "sim/validate/perseus_power.hpp"
#include "sim/validate/validators.hpp"

namespace stagecraft {
namespace {

using perseus::Clocks;
using perseus::Data;
using perseus::GpuPower;
using perseus::InstructionTimes;
using perseus::StageTimes;

constexpr std::array kFiles = {"runs.csv", "stages.csv", "plans.csv"};

constexpr int kGpusPerNode = 4; // on both machines (Chung et al. 2024, section 6.1); rank r runs stage r mod stages
constexpr double kPerMilli = 1e3;

/// What the files do not record: seconds of an exchange between neighbouring stages within a node and between nodes,
/// and of the gradient reduction.
struct Communication {
  double inside = 0, between = 0, reduction = 0;
};
constexpr std::array kParts = {&Communication::inside, &Communication::between, &Communication::reduction};

// The known times of an instruction by clock. Where the run's own window is in the pool, it leaves out each clock at
// which that window is more than `largest_share` of the pool.
std::map<int, double> known_times(const InstructionTimes& times, const perseus::MeasuredRun& run, const Clocks& own,
                                  double largest_share) {
  std::map<int, double> known;
  for (const auto& [clock, pool] : times.pooled) {
    const auto used = static_cast<double>(std::count(own.begin(), own.end(), clock));
    if (!run.pooled ||
        used * run.iterations * run.data_parallel * run.tensor_parallel <= largest_share * pool.samples) {
      known[clock] = pool.seconds;
    }
  }
  known[times.highest] = times.at_highest;
  return known;
}

// Seconds of an instruction at a clock, on a straight line between the neighbouring clocks over the period of a clock
// cycle. The pool at a clock counts only where the run's own window is not in it; where that leaves too few clocks, the
// window may be a tenth of the pool. Nothing where there are still too few.
std::optional<double> seconds_at(const InstructionTimes& times, int clock, const perseus::MeasuredRun& run,
                                 const Clocks& own) {
  constexpr double kTenth = 0.1;
  if (clock == 0 || clock >= times.highest) {
    return times.at_highest;
  }
  std::map<int, double> known = known_times(times, run, own, 0);
  if (known.size() < 2) {
    known = known_times(times, run, own, kTenth);
  }
  if (known.size() < 2) {
    return std::nullopt;
  }
  auto above = known.lower_bound(clock);
  above = above == known.begin() ? std::next(above) : above; // below the lowest: the line through the lowest two
  const auto below = std::prev(above);
  const double share = (1.0 / clock - 1.0 / below->first) / (1.0 / above->first - 1.0 / below->first);
  return below->second + share * (above->second - below->second);
}

/// A measured run, ready to be replayed.
class Pipeline {
public:
  Pipeline(const perseus::MeasuredRun& run, const std::vector<StageTimes>& stages) : run_(&run), stages_(&stages) {
    for (int s = 0; s < run.stages && why_not_.empty(); ++s) {
      forward_.push_back(times_of(s, "forward", stages[s].forward, run.clocks[s].forward));
      backward_.push_back(times_of(s, "backward", stages[s].backward, run.clocks[s].backward));
    }
    if (why_not_.empty()) {
      build();
    }
  }

  const perseus::MeasuredRun& run() const { return *run_; }
  const std::string& why_not() const { return why_not_; }

  /// Iteration time.
  double seconds(const Communication& communication) {
    for (Work& work : graph_.works) {
      if (work.transfers()) {
        work.seconds = work.latency =
            Seconds{leaves_node(std::min(work.stage, work.to_stage)) ? communication.between : communication.inside};
      }
    }
    const ReplayRequest request{graph_, platform_};
    const Timeline timeline = std::move(replay_analytic({&request, 1}).front());
    return timeline.end() + communication.reduction;
  }

  /// Whether data from this stage to the next crosses nodes.
  static bool leaves_node(int stage) { return (stage + 1) % kGpusPerNode == 0; }

  /// Calls `add(seconds, clock as a share of the highest)` for every instruction of one copy of the pipeline.
  template <class Add> void for_each_instruction(const Add& add) const {
    for (int s = 0; s < run_->stages; ++s) {
      for (int m = 0; m < run_->micro_batches; ++m) {
        add(forward_[s][m], share_of((*stages_)[s].forward, run_->clocks[s].forward[m]));
        add(backward_[s][m], share_of((*stages_)[s].backward, run_->clocks[s].backward[m]));
      }
    }
  }

  /// Micro-batches times the slowest stage: a baseline.
  double busiest_stage() const {
    double most = 0;
    for (int s = 0; s < run_->stages; ++s) {
      double busy = 0;
      for (int m = 0; m < run_->micro_batches; ++m) {
        busy += (*stages_)[s].load + forward_[s][m] + backward_[s][m];
      }
      most = std::max(most, busy);
    }
    return most;
  }

private:
  static double share_of(const InstructionTimes& times, int clock) {
    return clock == 0 ? 1.0 : std::min(1.0, static_cast<double>(clock) / times.highest);
  }

  std::vector<double> times_of(int stage, const char* instruction, const InstructionTimes& times,
                               const Clocks& clocks) {
    std::vector<double> seconds;
    const std::string where = " of stage " + std::to_string(stage);
    if (!why_not_.empty()) {
      return seconds;
    }
    if (clocks.empty()) {
      why_not_ = std::string("plans.csv has no clock for the ") + instruction + where;
    } else if (times.highest == 0) {
      why_not_ = std::string("stages.csv has no baseline time for the ") + instruction + where;
    }
    for (std::size_t m = 0; m < clocks.size() && why_not_.empty(); ++m) {
      const auto time = seconds_at(times, clocks[m], *run_, clocks);
      if (!time) {
        why_not_ = std::string("the ") + instruction + where + " is known at too few clocks that this run did not use";
      }
      seconds.push_back(time.value_or(0));
    }
    return seconds;
  }

  // Loading is host work before a forward on the stage's own GPU: it takes the time, and not the power, of computing.
  void build() {
    platform_ = make_star_platform({}, run_->stages, BytesPerSecond{kInfinity}, Seconds{0});
    PlanCost cost;
    for (int s = 0; s < run_->stages; ++s) {
      cost.stages.push_back({.replicas = {ReplicaCost{.device = s}}});
      if (s > 0) {
        cost.edges.push_back({s - 1, s, Bytes{0}});
      }
    }
    const ScheduleRow& row = find_by_name(schedules(), "1f1b", "schedule", {});
    const ScheduleResult made = make_schedule(row, {run_->stages, run_->micro_batches, 1});
    Router router(platform_);
    graph_ = make_task_graph({.cost = cost,
                              .schedule = std::get<Schedule>(made),
                              .router = router,
                              .barrier = false,
                              .blocking_sends = true});
    retime(graph_, [&](TaskKind kind, int stage, int micro_batch) {
      return Seconds{kind == TaskKind::forward ? forward_[stage][micro_batch] + (*stages_)[stage].load
                                               : backward_[stage][micro_batch]};
    });
  }

  const perseus::MeasuredRun* run_;
  const std::vector<StageTimes>* stages_;
  std::string why_not_;
  std::vector<std::vector<double>> forward_, backward_; ///< [stage][micro-batch]
  Platform platform_;
  TaskGraph graph_;
};

/// A run to predict. Halves alternate in the order of the file; the power law of each is fitted on the other.
struct MeasuredCase {
  Pipeline pipeline;
  int half = 0;
  double seconds = 0; ///< predicted
};

double squared_error(double predicted, double measured) {
  const double error = predicted / measured - 1;
  return error * error;
}

// Least squares of the relative errors over the runs of one configuration.
Communication fit_communication(const std::vector<Pipeline*>& runs) {
  const perseus::MeasuredRun& first = runs.front()->run();
  Communication fitted;
  std::vector<double*> unknowns;
  std::vector<double> largest;
  const auto add = [&](double& unknown, double most) {
    unknowns.push_back(&unknown);
    largest.push_back(most);
  };
  bool inside = false;
  bool between = false;
  for (int s = 0; s + 1 < first.stages; ++s) {
    (Pipeline::leaves_node(s) ? between : inside) = true;
  }
  if (inside) {
    add(fitted.inside, first.seconds / first.micro_batches);
  }
  if (between) {
    add(fitted.between, first.seconds / first.micro_batches);
  }
  if (first.data_parallel > 1) {
    add(fitted.reduction, first.seconds);
  }
  const auto set = [&](std::span<const double> values) {
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      *unknowns[i] = values[i];
    }
  };
  const auto cost = [&](std::span<const double> values) {
    set(values);
    double sum = 0;
    for (Pipeline* run : runs) {
      sum += squared_error(run->seconds(fitted), run->run().seconds);
    }
    return sum;
  };
  const std::vector<double> best = least_on_grids(cost, largest);
  set(best);
  return fitted;
}

// Energy of all GPUs: busy power falls with the clock as a power law, blocked power stays.
double joules_of(const Pipeline& pipeline, double seconds, const GpuPower& power, double exponent) {
  const perseus::MeasuredRun& run = pipeline.run();
  double busy = 0;
  double joules = 0;
  pipeline.for_each_instruction([&](double time, double share) {
    busy += time;
    joules += time * power.busy * (share < 1 ? std::pow(share, exponent) : 1.0);
  });
  return run.copies() * (joules + power.blocked * (run.stages * seconds - busy));
}

using Powers = std::map<std::string, GpuPower>; ///< by configuration

// The exponent that fits the runs at reduced clocks of one half best, of those that have `name` as `of`.
std::optional<double> fit_exponent(const std::vector<MeasuredCase>& cases, std::string perseus::MeasuredRun::*of,
                                   const std::string& name, const Powers& powers, int half) {
  std::vector<const MeasuredCase*> runs;
  for (const MeasuredCase& one : cases) {
    const perseus::MeasuredRun& run = one.pipeline.run();
    if (one.half == half && !run.full_clock && run.*of == name && powers.at(run.configuration).why_not.empty()) {
      runs.push_back(&one);
    }
  }
  if (runs.empty()) {
    return std::nullopt;
  }
  constexpr double kMostExponent = 4; // dynamic power is at most cubic in the clock
  const double most[] = {kMostExponent};
  return least_on_grids(
             [&](std::span<const double> exponent) {
               double sum = 0;
               for (const MeasuredCase* one : runs) {
                 const perseus::MeasuredRun& run = one->pipeline.run();
                 sum += squared_error(
                     joules_of(one->pipeline, run.seconds, powers.at(run.configuration), exponent.front()), run.joules);
               }
               return sum;
             },
             most)
      .front();
}

class Validator {
public:
  explicit Validator(Data data) : data_(std::move(data)) {}

  Validation run() {
    std::vector<std::string> configurations;
    for (const perseus::MeasuredRun& run : data_.runs) {
      if (std::find(configurations.begin(), configurations.end(), run.configuration) == configurations.end()) {
        configurations.push_back(run.configuration);
      }
    }
    for (const std::string& configuration : configurations) {
      predict_times(configuration);
    }
    find_powers();
    for (const MeasuredCase& one : cases_) {
      report(one);
    }
    return std::move(validation_);
  }

private:
  // Makes the cases of one configuration, and times them all.
  void predict_times(const std::string& configuration) {
    const auto stages = data_.stages.find(configuration);
    std::optional<Pipeline> reference;
    std::vector<MeasuredCase> cases;
    for (const perseus::MeasuredRun& run : data_.runs) {
      if (run.configuration != configuration) {
        continue;
      }
      if (stages == data_.stages.end() || static_cast<int>(stages->second.size()) != run.stages) {
        validation_.skipped.push_back({run.name(), "stages.csv does not have the stages of this configuration"});
        continue;
      }
      Pipeline pipeline(run, stages->second);
      if (!pipeline.why_not().empty()) {
        validation_.skipped.push_back({run.name(), pipeline.why_not()});
      } else if (run.plan == perseus::kReference) {
        validation_.skipped.push_back(
            {run.name(), "the reference: instruction times at the highest clock are from its window"});
        reference.emplace(std::move(pipeline));
      } else {
        cases.push_back({std::move(pipeline), static_cast<int>(cases.size() % 2)});
      }
    }
    if (!cases.empty()) {
      fit(configuration, reference ? &*reference : nullptr, cases);
    }
  }

  // Times every run with the communication fitted to all other runs of its configuration, except those of cold GPUs.
  void fit(const std::string& configuration, Pipeline* reference, std::vector<MeasuredCase>& cases) {
    Communication least{kInfinity, kInfinity, kInfinity};
    Communication most;
    for (MeasuredCase& one : cases) {
      std::vector<Pipeline*> others;
      if (reference != nullptr) {
        others.push_back(reference);
      }
      for (MeasuredCase& other : cases) {
        if (&other != &one && !other.pipeline.run().cold) {
          others.push_back(&other.pipeline);
        }
      }
      const Communication fitted = others.empty() ? Communication{} : fit_communication(others);
      one.seconds = one.pipeline.seconds(fitted);
      for (double Communication::*part : kParts) {
        least.*part = std::min(least.*part, fitted.*part);
        most.*part = std::max(most.*part, fitted.*part);
      }
    }
    constexpr std::array kNames = {"an exchange within a node", "an exchange between nodes", "gradient reduction"};
    std::string note;
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      if (most.*kParts[i] > 0) {
        note += (note.empty() ? configuration + ": as the others of each run say, " : "; ") + std::string(kNames[i]) +
                " takes " + to_text(kPerMilli * (least.*kParts[i]), 2) + " to " +
                to_text(kPerMilli * (most.*kParts[i]), 2) + " ms";
      }
    }
    if (!note.empty()) {
      validation_.notes.push_back(note + ".");
    }
    std::move(cases.begin(), cases.end(), std::back_inserter(cases_));
  }

  // The powers of each configuration, and how they fall with the clock.
  void find_powers() {
    for (const MeasuredCase& one : cases_) {
      const perseus::MeasuredRun& run = one.pipeline.run();
      const auto [slot, is_new] = powers_.try_emplace(run.configuration);
      if (is_new) {
        slot->second = perseus::power_of(data_, run.configuration, run.gpu);
        note_power(run.configuration, slot->second);
      }
    }
    for (const MeasuredCase& one : cases_) {
      const perseus::MeasuredRun& run = one.pipeline.run();
      const auto [slot, is_new] = exponents_.try_emplace(run.configuration);
      if (!is_new || !powers_.at(run.configuration).why_not.empty()) {
        continue;
      }
      std::string note = run.configuration + ": exponent of busy power over the clock";
      for (const int half : {0, 1}) {
        std::optional<double>& exponent = slot->second[half];
        exponent = fit_exponent(cases_, &perseus::MeasuredRun::configuration, run.configuration, powers_, half);
        if (!exponent) { // no run of its own: those of the GPU type
          exponent = fit_exponent(cases_, &perseus::MeasuredRun::gpu, run.gpu, powers_, half);
        }
        note += (half == 0 ? ", half " : "; half ") + std::to_string(half + 1) + ": " +
                (exponent ? to_text(*exponent, 3) : "none");
      }
      validation_.notes.push_back(note + ".");
    }
  }

  void note_power(const std::string& configuration, const GpuPower& power) {
    if (power.why_not.empty()) {
      validation_.notes.push_back(
          configuration + ": " + to_text(power.busy, 1) + " W busy and " + to_text(power.blocked, 1) +
          " W blocked, from " + power.from +
          (power.borrowed() ? ", as it has no reference of its own: energies may be off by " + percent(power.spread, 1)
                            : "") +
          ".");
    }
  }

  void report(const MeasuredCase& one) {
    const perseus::MeasuredRun& run = one.pipeline.run();
    const int other = 1 - one.half;
    ValidationRow row{run.name(), "iteration_seconds", run.full_clock ? "full clock" : "reduced clocks", run.seconds,
                      one.seconds};
    validation_.rows.push_back(row);
    row.predicted = one.pipeline.busiest_stage();
    validation_.baselines["micro-batches x slowest stage"].push_back(row);
    const GpuPower& power = powers_.at(run.configuration);
    const std::optional<double>& exponent = exponents_.at(run.configuration)[other];
    if (!power.why_not.empty() || (!run.full_clock && !exponent)) {
      validation_.skipped.push_back(
          {run.name(), "energy: " + (power.why_not.empty() ? std::string("no run at reduced clocks in the other half")
                                                           : power.why_not)});
      return;
    }
    row.metric = "energy_joules";
    row.group += power.borrowed() ? ", power of another configuration" : "";
    row.measured = run.joules;
    row.predicted = joules_of(one.pipeline, one.seconds, power, exponent.value_or(0));
    validation_.rows.push_back(row);
    row.predicted = power.mean * run.ranks() * one.seconds;
    validation_.baselines["mean power of the reference x time"].push_back(row);
  }

  Data data_;
  std::vector<MeasuredCase> cases_;
  Powers powers_;
  std::map<std::string, std::array<std::optional<double>, 2>> exponents_; ///< by configuration: fitted on each half
  Validation validation_;
};

} // namespace

bool is_perseus(const std::filesystem::path& folder) {
  return std::all_of(kFiles.begin(), kFiles.end(),
                     [&](const char* name) { return std::filesystem::is_regular_file(folder / name); });
}

Validation validate_perseus(const std::filesystem::path& folder, const ValidateOptions& /*options*/) {
  Validation validation = Validator(perseus::read(folder)).run();
  validation.source = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  for (const char* name : kFiles) {
    validation.inputs.push_back((folder / name).string());
  }
  return validation;
}

} // namespace stagecraft
