// Contiguous placement by weights. In a running pipeline a device takes M times its load to finish, so the greedy gives
// each device in turn as much as it finishes within a common limit, the smallest one with which everything is placed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/strategy/heuristic/balance.hpp"
#include "sim/strategy/heuristic/placement.hpp"
#include "sim/strategy/heuristic/placements.hpp"

namespace stagecraft {
namespace {

class Fill {
public:
  Fill(const PlanRequest& request, std::span<const double> weights)
      : request_(request), problem_(request.problem), weights_(weights), devices_(static_cast<int>(weights.size())) {
    const PathCost path = mean_path(request);
    const auto& successors = problem_.model.successors;
    const auto transfer = [&](int from, int) { return path.time(problem_.output_bytes(from)).value; };
    order_ = order_by_rank(successors, upward_ranks(successors, mean_seconds(request), transfer));
    for (int d = 0; d + 1 < devices_; ++d) {
      hops_.push_back(problem_.path(request_.devices[d], request_.devices[d + 1]));
    }
    fill_cuts();
  }

  /// The first operator of each device, and the end of the last one's operators. If `limit` is too small to place all
  /// operators, that end comes before the end of the order.
  std::vector<int> ends(double limit, bool& memory_bound) const {
    std::vector<int> ends = {0};
    for (int d = 0; d < devices_; ++d) {
      ends.push_back(end_of(d, ends.back(), limit, memory_bound));
    }
    return ends;
  }

  bool is_whole(const std::vector<int>& ends) const { return ends.back() == static_cast<int>(order_.size()); }

  /// A limit that is enough for any split: each operator on the slowest device that has its kernel, and any cut over
  /// any hop.
  double enough() const {
    double sum = 0;
    for (const OperatorId op : order_) {
      double largest = 0;
      for (int d = 0; d < devices_; ++d) {
        const double time = seconds(d, op);
        largest = std::isinf(time) ? largest : std::max(largest, time);
      }
      sum += largest;
    }
    for (const Bytes cut : cuts_) {
      for (int d = 0; d + 1 < devices_; ++d) {
        sum = std::max(sum, 2 * hops_[d].time(cut).value);
      }
    }
    return sum;
  }

  Plan plan(const std::vector<int>& ends) const {
    Plan plan;
    for (int d = 0; d < devices_; ++d) {
      if (ends[d] < ends[d + 1]) {
        Stage& stage = plan.stages.emplace_back();
        stage.operators.assign(order_.begin() + ends[d], order_.begin() + ends[d + 1]);
        std::sort(stage.operators.begin(), stage.operators.end());
        stage.devices = {request_.devices[d]};
        recompute_as_trained(problem_, stage);
      }
    }
    return plan;
  }

  std::string reason(const std::vector<int>& ends) const {
    std::vector<Bytes> need;
    const OperatorId op = order_[ends.back()];
    for (int d = 0; d < devices_; ++d) {
      need.push_back(memory(d, ends[d], ends[d + 1]) + placed_bytes(request_, op, held(d)));
    }
    // Earlier devices may have room, but in a contiguous plan this operator can no longer go there.
    const auto last = std::find(ends.begin() + 1, ends.end(), ends.back()) - ends.begin() - 1;
    return why_no_device(request_, op, static_cast<int>(last), need);
  }

private:
  // cuts_[k]: bytes of the distinct tensors made before position k of the order and needed from there on.
  void fill_cuts() {
    std::vector<int> position(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) {
      position[order_[k]] = static_cast<int>(k);
    }
    cuts_.assign(order_.size() + 1, Bytes{0});
    for (const OperatorId op : order_) {
      int last = position[op];
      for (const OperatorId user : problem_.model.successors[op]) {
        last = std::max(last, position[user]);
      }
      for (int k = position[op] + 1; k <= last; ++k) {
        cuts_[k] += problem_.output_bytes(op);
      }
    }
  }

  double seconds(int d, OperatorId op) const {
    return problem_.seconds(problem_.type_index(request_.devices[d]), op) / weights_[d];
  }

  double held(int d) const { return request_.in_flight(d, devices_); }

  // What a stage of consecutive operators holds.
  struct Amounts {
    double parameters = 0;
    Activations stash;
  };
  void add(OperatorId op, Amounts& amounts) const {
    amounts.parameters += problem_.model.operators[op].parameters;
    amounts.stash += problem_.stash(op);
  }

  // The memory of the operators at positions first … end - 1 as one stage on a device that holds `held` micro-batches.
  Bytes memory(const Amounts& amounts, int first, int end, double held) const {
    return memory(amounts, first, cuts_[end], held);
  }
  Bytes memory(const Amounts& amounts, int first, Bytes output, double held) const {
    return stage_memory(problem_.training, amounts.parameters, amounts.stash, cuts_[first], output,
                        problem_.training.recompute.what)
        .total(held, request_.versions);
  }

  Bytes memory(int d, int first, int end) const {
    Amounts amounts;
    for (int k = first; k < end; ++k) {
      add(order_[k], amounts);
    }
    return memory(amounts, first, end, held(d));
  }

  // The largest end with which device d stays within `limit` and its memory, and the next hop carries the cut both ways
  // within `limit`. A larger end is never worse for later devices, so taking the largest finds a split if there is one.
  int end_of(int d, int first, double limit, bool& memory_bound) const {
    int best = first;
    double load = 0;
    Amounts amounts;
    const int all = static_cast<int>(order_.size());
    const int type = problem_.type_index(request_.devices[d]);
    const Bytes have = problem_.platform.types[type].memory;
    const bool limited = !std::isinf(have.value) && first < all;
    const double held_here = limited ? held(d) : 0;
    for (int end = first + 1; end <= all; ++end) {
      load += problem_.seconds(type, order_[end - 1]) / weights_[d];
      if (load > limit) {
        break;
      }
      add(order_[end - 1], amounts);
      if (limited && memory(amounts, first, end, held_here) > have) {
        memory_bound = true;
        if (memory(amounts, first, Bytes{0}, held_here) > have) { // so will all larger ends, whatever they send
          break;
        }
        continue;
      }
      const bool carried = end == all || d + 1 == devices_ || 2 * hops_[d].time(cuts_[end]).value <= limit;
      best = carried ? end : best;
    }
    return best;
  }

  const PlanRequest& request_;
  const Problem& problem_;
  std::span<const double> weights_;
  int devices_;
  std::vector<OperatorId> order_;
  std::vector<Bytes> cuts_;
  std::vector<PathCost> hops_; // [device]: to the next one
};

} // namespace

PlanResult place_contiguous(const PlanRequest& request, std::span<const double> weights) {
  const Fill fill(request, weights);
  bool memory_bound = false;
  double low = 0;
  double high = fill.enough() * (1 + kTie);
  std::vector<int> ends = fill.ends(high, memory_bound);
  if (!fill.is_whole(ends)) {
    return Infeasible{fill.reason(ends)};
  }
  constexpr double kPrecision = 1e-10; // relative; closer limits differ only by rounding
  while (high - low > kPrecision * high) {
    const double middle = (low + high) / 2;
    std::vector<int> tried = fill.ends(middle, memory_bound);
    if (fill.is_whole(tried)) {
      high = middle;
      ends = std::move(tried);
    } else {
      low = middle;
    }
  }
  Plan plan = fill.plan(ends);
  plan.memory_bound = memory_bound;
  return plan;
}

} // namespace stagecraft
