// One run, one row of a result: a split under a schedule, with everything measured. Plain values; the JSON keys have
// the same names (docs/formats/results.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/cost_model.hpp"
#include "sim/timeline/metrics.hpp"
#include "sim/workload/training/context.hpp"
#include "sim/workload/training/experts.hpp"

namespace stagecraft {

/// A stage with names in place of numbers, as results show it.
struct RunStage {
  std::vector<std::string> operators, devices;
  std::vector<double> shares;
  int data_parallel = 1, tensor_parallel = 1;
  int turns = 1;     ///< groups of its replicas that take whole micro-batches in turn
  Context context{}; ///< of the ranks that share a replica's tokens
  Experts experts{}; ///< of the ranks that share experts
  bool sequence_parallel = false;
  std::string tensor_rule = "megatron"; ///< by which a tensor group shares operators
  int zero = 0;                         ///< what replicas share: the stage of ZeRO
  int shard = 1;                        ///< replicas that share it; others hold the same
  int streams = 0;                      ///< 0: as the training says
  std::string recompute = "none";
  std::vector<std::string> recomputed; ///< operators, where `recompute` is "selective"
  int chunk = 0;
  Seconds seconds; ///< forward + backward of one micro-batch
};

/// What a run recomputes (from its stages; from the study where it has none), and when.
struct RunRecompute {
  std::string what = "none";
  RecomputeRule rule;
  int blocks = 0; ///< so many numbered blocks at a time, each just before its backward; 0: not by blocks
};
/// "full", "by blocks", "selective, lazy, not right after its forward, not of the last micro-batch".
std::string to_text(const RunRecompute& recompute);

/// The loader of each device of the first stage, as it ran.
struct RunLoader {
  int workers = 0, queue = 0;
  std::string host; ///< spin or block
};

/// A round of dynamic balancing, with names. Vectors per device follow `devices`.
struct RunRound {
  struct Group {
    std::vector<std::string> operators, devices;
    std::vector<double> shares; ///< of the devices, where they share the samples unequally
    bool operator==(const Group&) const = default;
  };
  std::vector<Group> stages;
  std::vector<std::string> devices; ///< present
  std::vector<double> weights;
  std::vector<Group> candidates; ///< operators with the devices they may run on
  double step = 1;
  bool held = false;
  Seconds iteration, largest_waiting, mean_waiting;
  std::vector<Seconds> waiting, tail;
  std::vector<double> waiting_shares;
  std::string why_not, action;
};

/// Iteration times of a run in disturbed worlds.
struct RunSpread {
  int samples = 0;
  Seconds low, median, high; ///< the 5 %, 50 % and 95 % quantiles
};
/// The spread of one or more iteration times, in s.
RunSpread spread_of(const std::vector<double>& seconds);

/// How sure a run's figures are under the errors of the cost model.
struct RunConfidence {
  RunSpread iteration;
  double best = 0; ///< share of the draws in which no other run of its block is faster; NaN: no other run is known
};

/// The range in which nine of ten measurements of runs like this lie, by how far off predictions of others were.
struct RunExpected {
  Seconds low, high;
  std::string family; ///< of runs; the narrowest that is known
  int models = 0;     ///< that it rests on
  double median = 0;  ///< their median absolute error
};

/// The same of the memory of the device that is fullest, by its share.
struct RunExpectedMemory {
  std::string device;
  Bytes peak, have;
  Bytes low, high;
  std::string family;
  int models = 0;
  double median = 0;
};

/// The shares of a device type's computing time, optimiser steps aside, that rest on each of kCostSources.
struct CostBasis {
  std::string type;
  double seconds = 0; ///< of all devices of the type, per iteration
  std::array<double, kCostSources.size()> shares{};

  double of(CostSource source) const { return shares[static_cast<std::size_t>(source)]; }
  /// The share of kernels that were measured on the device, in these shapes or in others.
  double measured() const { return of(CostSource::fit) + of(CostSource::table); }
  /// The source of the largest share; `fit` where it is what was measured().
  CostSource main() const;
};
/// The same over all types of a run.
CostBasis whole_of(const std::vector<CostBasis>& types);
/// "93.0 % fits to measurements, 7.0 % the roofline".
std::string in_words(const CostBasis& basis);

/// What a run was asked to be, and what planning made of it.
struct AskedRun {
  std::string strategy, schedule; ///< as asked for
  std::string order; ///< the order that ran: the schedule's, or "list" where the plan's shape does not fit it
  std::string engine;
  int micro_batches = 1;
  RunRecompute recompute;
  std::string note; ///< what a reader must know of the plan
  std::optional<Objective> objective;
  std::vector<RunRound> rounds; ///< rounds of a strategy that measures its plans round by round
  double planning_seconds = 0;  ///< of this program; not deterministic
  double tokens = 0;            ///< of the whole training, as the study says; 0: not said
};

/// What was measured of a run: the same for all runs with equal plan and order. Per-device vectors follow `devices`.
/// Where `feasible` is false only `why_not` and `would_fit` have values, and the metrics if it was replayed.
struct MeasuredRun {
  bool feasible = false;
  std::string why_not;   ///< why it is not feasible
  std::string would_fit; ///< the smallest change that makes it feasible, or ""
  std::vector<std::string> devices, unused_devices;
  std::vector<RunStage> stages;
  Metrics metrics;
  std::vector<double> staleness;                    ///< of each stage, in optimiser steps; empty: no gradient is late
  std::optional<RunSpread> perturbed;               ///< where the study perturbs
  std::optional<RunConfidence> confidence;          ///< where the study asks for it
  std::optional<RunExpected> expected;              ///< where runs like it were measured
  std::optional<RunExpectedMemory> expected_memory; ///< the same, where the training names a framework
  double samples_per_second = 0, speedup = 0;
  double tokens_per_second = 0; ///< 0: the model has no tokens
  /// Model FLOPs utilization, and the same of what the devices compute: the part of the nominal matrix peak of those in
  /// use. 0: a peak is not known, or the model has no products.
  double mfu = 0, hfu = 0;
  Joules energy_per_sample;
  Dollars cost_per_million_samples;
  std::vector<CostBasis> cost_basis; ///< of each device type in use
  std::vector<NamedPrice> prices;    ///< of the device types in use and of their hosts, where the run costs money
  Seconds data_stall;                ///< the longest that a device waits for its loader; 0: data is always ready
  std::optional<RunLoader> loader;
  Seconds estimate, bottleneck, lower_bound;
  /// The least bottleneck of any pipeline of one stage per device that fits under this schedule, where `optimal` ran
  /// and proved it.
  std::optional<Seconds> optimal_bottleneck;
  int folded_replicas = 1; ///< the most that one simulated replica stands for
  /// Devices that are alike, by their places in `devices`, the simulated one first; empty: each is simulated.
  std::vector<std::vector<std::int32_t>> classes;
  bool per_device = false; ///< results list the figures of each device, however many there are
  std::string busiest_link;
  double busiest_link_share = 0;
  double replay_seconds = 0; ///< of this program; not deterministic

  /// Whether results list the figures of each device. Those of the classes say the same.
  bool lists_devices() const {
    constexpr std::size_t kMost = 64;
    return per_device || devices.size() <= kMost;
  }
  /// Whether every gradient is of the weights that it updates, as in training without a pipeline. An asynchronous
  /// schedule is not, also where it has one stage alone, since it may step several times an iteration.
  bool is_exact() const { return staleness.empty(); }
  /// Iteration time over the bound, minus 1; 0 without a bound.
  double over_bound() const { return lower_bound.value > 0 ? metrics.iteration / lower_bound - 1 : 0; }
};

/// A row of a result: what was asked and what was measured.
struct Run : AskedRun, MeasuredRun {};

/// What a comparison ranks first: runs of exact training, or whatever takes the least time.
enum class RankBy { exact, throughput };
struct RankByRow {
  std::string_view name, help;
  RankBy rank;
};
inline constexpr std::array kRankings = {
    RankByRow{"exact", "exact training first, asynchronous schedules after it", RankBy::exact},
    RankByRow{"throughput", "by time alone, asynchronous schedules among the others", RankBy::throughput},
};

/// The block of a ranking in which a run stands, the least first: 0, or 1 where it is asynchronous and exact training
/// is ranked first; 2 where it is infeasible.
inline int block_of(const MeasuredRun& run, RankBy rank) {
  return !run.feasible ? 2 : rank == RankBy::exact && !run.is_exact() ? 1 : 0;
}

struct Comparison {
  std::string model, platform;
  int global_batch = 1;
  std::vector<Run> runs;                ///< ranked: by block, feasible ones by iteration time
  std::vector<std::string> verdict;     ///< sentences
  std::vector<std::string> inputs = {}; ///< files, for readers to find
  std::string bound_holds_for = {};     ///< which plans the lower bound of the winner's block covers, in words
  RankBy rank = RankBy::exact;

  /// Whether a run stands in the winner's block, so that the two may be compared by their time alone.
  bool competes(const Run& run) const { return run.feasible && block_of(run, rank) == block_of(runs.front(), rank); }
};

/// Where a run comes from, for readers to find: names and files.
struct RunOrigin {
  std::string model, platform;
  std::vector<std::string> inputs = {};
};

/// A further key of a JSON object, with its value as JSON, which may be long; "": left out.
struct JsonPart {
  std::string key, value;
};

/// Documents of schema stagecraft/1; `timing` false leaves out what differs from call to call. `of_run` has further
/// keys of ranked runs, by their number.
std::string to_json(const Comparison& comparison, bool timing,
                    const std::map<std::size_t, std::vector<JsonPart>>& of_run = {});
std::string to_json(const Run& run, const RunOrigin& origin, bool timing, const std::vector<JsonPart>& parts = {});

/// The list `rounds` of a run, as JSON.
std::string to_json(const std::vector<RunRound>& rounds);

/// One line per run; lists joined by semicolons.
std::string to_csv(const Comparison& comparison);

/// What a million samples cost, marked where that rests on an assumed price.
std::string cost_of_million(const Run& run);

/// The prices of all feasible runs, each once.
std::vector<NamedPrice> prices_of(const std::vector<Run>& runs);

/// A remark for a run whose gradients come late: by how many steps in the stage where they are latest.
std::string staleness_remark(const std::vector<double>& staleness);

/// Remarks on what a run's figures do not show: its plan's note, late gradients, what it recomputes.
std::vector<std::string> remarks_of(const Run& run);

} // namespace stagecraft
