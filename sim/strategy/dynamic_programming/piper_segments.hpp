// What a stage between two antichain states costs Piper (Tarnawski et al. 2021), from sums over the states.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/strategy/dynamic_programming/piper_costs.hpp"

namespace stagecraft {

/// The load and memory that an operator adds to a stage.
struct PiperItem {
  double seconds = 0, per_micro_batch = 0, resident = 0;

  double memory(double held) const { return per_micro_batch * held + resident; }
};

/// One tensor degree with one number of replicas; sums are over the fastest options.
struct PiperWay {
  std::vector<std::vector<PiperItem>> items;              ///< [operator][option]
  std::vector<int> fastest;                               ///< [operator]: option; -1 if there is none
  std::vector<double> seconds, per_micro_batch, resident; ///< [state], over its ideal
};

/// An option for an operator that takes less memory than its fastest one.
struct PiperSwap {
  double price = 0; ///< seconds per byte saved
  OperatorId op = 0;
  int option = 0;
  double saved = 0, seconds = 0; ///< bytes less, time more
};

/// The swaps at one number of micro-batches in flight.
struct PiperSwaps {
  std::vector<PiperSwap> cheapest_first;
  std::vector<double> saving; ///< [state]: the most that its operators can save
};

/// Sums over the ideals of all states of one instance, made when first asked for.
class PiperSums {
public:
  /// Both must outlive it.
  PiperSums(const PiperInstance& instance, const AntichainStates& states);

  const PiperInstance& instance() const { return instance_; }
  const AntichainStates& states() const { return states_; }
  const PiperWay& way(int degree, int replicas);
  /// Valid until the next call.
  const PiperSwaps& swaps(int degree, int replicas, double held);
  /// Frees what swaps() has made: the counts in flight of one schedule are seldom those of another.
  void forget_swaps() { swaps_.clear(); }
  /// [state], seconds of the forward passes at a degree; only if the costs are not `given`.
  const std::vector<double>& forward(int degree);
  /// [state]: operators that run on one device only.
  const std::vector<double>& indivisible() const { return indivisible_; }
  /// [state]: operators fed with the model's input.
  const std::vector<double>& sources() const { return sources_; }
  /// Operators of the state's ideal that operators outside it use, ascending.
  const std::vector<OperatorId>& frontier(int state) const { return frontier_[state]; }
  Bytes output_bytes(OperatorId op) const { return output_bytes_[op]; }

  /// [state]: the sum of of(op) over its ideal.
  template <class Of> std::vector<double> sum(const Of& of) const {
    std::vector<double> sums(steps_.size(), 0.0);
    for (std::size_t state = 1; state < steps_.size(); ++state) {
      sums[state] = sums[steps_[state].from];
      for (const OperatorId op : steps_[state].added) {
        sums[state] += of(op);
      }
    }
    return sums;
  }

private:
  struct Step { // a state's ideal is that of the earlier state `from` with `added`
    int from = 0;
    std::vector<OperatorId> added;
  };

  const PiperInstance& instance_;
  const AntichainStates& states_;
  std::vector<Step> steps_;
  std::vector<std::vector<OperatorId>> frontier_;
  std::vector<Bytes> output_bytes_;
  std::vector<double> indivisible_, sources_;
  std::vector<std::vector<std::optional<PiperWay>>> ways_; // [degree][replicas]
  std::vector<std::vector<double>> forward_;               // [degree]
  std::map<std::tuple<int, int, double>, PiperSwaps> swaps_;
};

/// How one stage runs.
struct PiperStage {
  double load = 0; ///< seconds per micro-batch
  Recompute recompute = Recompute::none;
  std::vector<OperatorId> recomputed; ///< the operators, if `recompute` is selective
};

/// The operators between two states at one degree. Unless memory binds, calls take time in proportion to the number of
/// tensors at the borders.
class PiperSegment {
public:
  explicit PiperSegment(PiperSums& sums);

  /// `upper` holds all of `lower`; degrees by their index.
  void set(int lower, int upper, int degree);

  /// The least load with d replicas if memory had no limit.
  double fastest(int replicas);
  /// The least load that memory allows with d replicas and `held` micro-batches in flight, options chosen by the
  /// original's heuristic: start from the fastest, then take the swaps that cost least time per byte saved, in order,
  /// until it fits. Infinite if nothing fits.
  double load(int replicas, double held);
  /// The same, with the options chosen.
  PiperStage stage(int replicas, double held);

  /// Ascending.
  std::vector<OperatorId> operators() const;

private:
  // An operator whose group exchanges tensors because a border separates it from some of its neighbours.
  struct Exchange {
    OperatorId op = 0;
    std::vector<double> bytes;    // [option]
    std::vector<PiperItem> items; // [option], for `weighed_` replicas
    int fastest = 0;
  };
  using Taken = std::vector<std::pair<OperatorId, int>>; // operator, option

  bool inside(OperatorId op) const { return ((inside_[op / 64] >> (op % 64)) & 1) != 0; }
  double between(const std::vector<double>& sums) const { return sums[upper_] - sums[lower_]; }
  void measure_borders();
  void measure_exchanges();
  void weigh(int replicas);
  double own_swaps(double held);
  bool choose(double held, Taken* taken);
  bool choose_all_recomputed(double held, double limit);
  double load(int replicas, double held, Taken* taken);

  PiperSums& sums_;
  const PiperInstance& instance_;
  const ModelGraph& model_;
  int lower_ = 0, upper_ = 0, degree_ = 0;
  std::vector<std::uint64_t> inside_;
  double border_in_ = 0, border_out_ = 0; // bytes of tensors in and out, without exchanges
  double entering_ = 0;                   // border_in_ and the model's input
  bool indivisible_ = false;              // an operator that runs on one device only
  std::vector<Exchange> exchanges_;
  int weighed_ = 0;
  double fastest_seconds_ = 0, fastest_held_ = 0, fastest_resident_ = 0;
  std::vector<PiperSwap> own_swaps_; // swaps of the operators in `exchanges_`
  double seconds_ = 0;
  bool swapped_ = false, all_recomputed_ = false;
};

} // namespace stagecraft
