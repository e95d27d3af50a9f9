// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/group_passes.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/stage_cost/passes/host_launches.hpp"
#include "sim/plan/stage_cost/passes/slowest_times.hpp"
#include "sim/plan/stage_cost/passes/stream_times.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"

namespace stagecraft {
namespace {

// Of the time in which a piece is sent, the product beside it loses this part. Of Llama 3 8B in TorchTitan's tables,
// two pairs with and without asynchronous tensor parallelism: 9.8 and 9.7 % faster (docs/validation/what-ifs.md).
constexpr double kTakenByExchange = 0.6;

// Writes down a pass, operator by operator, and how long it takes so far.
class PassWriter {
public:
  PassWriter(const AxisGroups& groups, double share) : groups_(groups), share_(share) {}

  /// An operator between what it has to be brought and what it leaves to be added up, which the host launches in
  /// `launching`. With `late` the host then waits for counts, before it launches, so long, the next exchange with
  /// experts.
  void run(Seconds seconds, Seconds waits, const std::vector<Exchange>& exchanges, Seconds launching = {},
           std::optional<Seconds> late = {}) {
    exchange(Exchange::When::before, exchanges);
    exchange(Exchange::When::before_weight, exchanges);
    settle(pass_.exchanges.size());
    compute_round(seconds, exchanges);
    launch(launching);
    late_ = late;
    wait(waits);
    exchange(Exchange::When::after_input, exchanges);
    exchange(Exchange::When::after, exchanges);
    settle(pass_.exchanges.size());
  }

  /// Both gradients of an operator, each beside what it need not wait for.
  void run_beside(Seconds input, Seconds weight, Seconds waits, const std::vector<Exchange>& exchanges,
                  Seconds launching = {}) {
    exchange(Exchange::When::before, exchanges);
    settle(pass_.exchanges.size());
    exchange(Exchange::When::before_weight, exchanges);
    const std::size_t for_weight = pass_.exchanges.size();
    compute_round(input, exchanges);
    launch(launching);
    wait(waits);
    exchange(Exchange::When::after_input, exchanges);
    settle(for_weight);
    compute(weight);
    exchange(Exchange::When::after, exchanges);
    settle(pass_.exchanges.size());
  }

  void exchange(const Exchange& whole) {
    if (pass_.computations.empty() || pass_.computations.back().needs < needs_) {
      pass_.computations.push_back({Seconds{0}, needs_});
    }
    const Collective collective = collective_on(whole.kind, groups_.along(whole.axis), whole.bytes * share_);
    const CollectiveCost cost = cost_of(collective);
    const bool counted = whole.when == Exchange::When::round && whole.axis == Axis::tensor; // see beside()
    pass_.exchanges.push_back({whole.kind, collective.bytes, cost.seconds, pass_.computations.size() - 1, whole.axis,
                               counted, cost.processors});
    if (late_ && whole.axis == Axis::experts) {
      pass_.exchanges.back().awaited = true;
      pass_.exchanges.back().launching = *late_;
      late_.reset();
    }
    ends_.push_back(std::max(now_, ends_.empty() ? Seconds{0} : ends_.back()) + cost.seconds);
    exchanging_ += {cost.seconds, cost.latency};
    pass_.of_axes[AxisGroups::place_of(whole.axis)] += cost.seconds;
    is_open_ = false;
  }

  /// Nothing that follows begins before this many exchanges have ended.
  void settle(std::size_t exchanges) {
    if (exchanges > needs_) {
      needs_ = exchanges;
      now_ = std::max(now_, ends_[exchanges - 1]);
      is_open_ = false;
    }
  }

  Seconds so_far() const { return now_; }

  GroupPass take() {
    settle(pass_.exchanges.size());
    if (pass_.computations.empty() || pass_.computations.back().needs < needs_) {
      pass_.computations.push_back({Seconds{0}, needs_});
    }
    pass_.seconds = now_;
    pass_.exchanged.all = now_ - computing_;
    pass_.exchanged.hidden = std::max(Seconds{0}, exchanging_.all - (pass_.exchanged.all - given_));
    const bool any = exchanging_.all.value > 0;
    pass_.exchanged.latency =
        any ? exchanging_.latency * ((pass_.exchanged.all - given_) / exchanging_.all) : Seconds{0};
    return std::move(pass_);
  }

private:
  void exchange(Exchange::When when, const std::vector<Exchange>& exchanges) {
    for (const Exchange& one : exchanges) {
      if (one.when == when) {
        exchange(one);
      }
    }
  }

  // An operator beside what goes round the ranks of an axis: in each step a rank computes with the piece that it has
  // and sends it on. Of a context axis these are keys and values (Liu et al. 2023); their gradients follow one step
  // behind, and go one step further, home. Of a tensor axis they are what a product reads, or what is added up of its
  // parts, each of which ends where it belongs (Wang et al. 2023, "Overlap communication with dependent computation").
  void compute_round(Seconds seconds, const std::vector<Exchange>& exchanges) {
    Bytes sent, returned;
    Axis axis = Axis::context;
    for (const Exchange& one : exchanges) {
      if (one.when == Exchange::When::round) {
        (one.kind == CollectiveKind::all_gather ? sent : returned) += one.bytes;
        axis = one.axis;
      }
    }
    if (sent.value == 0 && (axis == Axis::context || returned.value == 0)) {
      compute(seconds);
      return;
    }
    const int steps = groups_.along(axis).ranks;
    const auto shift = [&](Bytes bytes) {
      exchange({CollectiveKind::shift, bytes / steps, Exchange::When::round, axis});
    };
    for (int step = 0; step < steps; ++step) {
      const std::size_t before = pass_.exchanges.size();
      const Bytes moved = (step + 1 < steps ? sent : Bytes{0}) + (step > 0 ? returned : Bytes{0});
      if (moved.value > 0) {
        shift(moved);
      }
      settle(before);
      compute(beside(seconds / steps, moved.value > 0 && axis == Axis::tensor));
    }
    settle(pass_.exchanges.size());
    if (returned.value > 0 && axis == Axis::context) {
      shift(returned);
      settle(pass_.exchanges.size());
    }
  }

  // A piece of a product, slower where the last exchange goes on beside it: both need memory and multiprocessors.
  Seconds beside(Seconds piece, bool moves) const {
    return moves ? piece + kTakenByExchange * std::min(piece, pass_.exchanges.back().seconds) : piece;
  }

  // With what was computed last, or is computed first.
  void launch(Seconds launching) {
    (pass_.computations.empty() ? early_ : pass_.computations.back().launching) += launching;
  }

  void compute(Seconds seconds) {
    computing_ += seconds;
    add(seconds);
  }

  // What a file says that an operator's neighbours in other stages add to its time.
  void wait(Seconds seconds) {
    given_ += seconds;
    add(seconds);
  }

  void add(Seconds seconds) {
    if (seconds.value == 0) {
      return;
    }
    if (!is_open_) {
      pass_.computations.push_back({Seconds{0}, needs_, std::exchange(early_, Seconds{0})});
      is_open_ = true;
    }
    pass_.computations.back().seconds += seconds;
    now_ += seconds;
  }

  const AxisGroups& groups_;
  double share_;
  GroupPass pass_;
  std::vector<Seconds> ends_; // [exchange]
  Seconds now_, computing_, given_;
  Exchanged exchanging_;        // one after another
  Seconds early_;               // launches before anything is computed
  std::optional<Seconds> late_; // launches behind a wait for counts, of an exchange to come
  std::size_t needs_ = 0;       // exchanges that have ended before what follows
  bool is_open_ = false;        // whether what follows belongs to the last computation
};

} // namespace

Seconds forward_seconds(const OperatorTime& time, const RankShare& of_operator, const AxisGroups& groups,
                        double share) {
  PassWriter pass(groups, share);
  pass.run(time.forward, given_wait(of_operator, groups.along(Axis::tensor), share), of_operator.forward);
  return pass.so_far();
}

Seconds backward_seconds(const OperatorTime& time, const RankShare& of_operator, const AxisGroups& groups,
                         double share) {
  PassWriter pass(groups, share);
  pass.run_beside(time.backward_input, time.backward_weight, given_wait(of_operator, groups.along(Axis::tensor), share),
                  of_operator.backward);
  return pass.so_far();
}

namespace {

// What kernels of these times leave idle of the slowest of the types: the others only leave more.
RestOfPasses kernels_at_rest(const Problem& problem, const Stage& stage, const TensorSplit& split,
                             const std::vector<int>& types, double share, const std::vector<OperatorTime>& times) {
  RestOfPasses least{Seconds{kInfinity}, Seconds{kInfinity}};
  for (const int type : types) {
    RestOfPasses sum;
    for (std::size_t at = 0; at < times.size(); ++at) {
      sum += rest_of(problem.model.operators[stage.operators[at]], split.operators[at].shard,
                     problem.platform.types[type], problem.samples * share, problem.training.precision, times[at]);
    }
    least = {std::min(least.forward, sum.forward), std::min(least.backward, sum.backward)};
  }
  return least;
}

// Exchanges that are begun for an operator: one that goes round is begun once for each of the other ranks.
int begun(const std::vector<Exchange>& exchanges, const AxisGroups& groups) {
  int count = 0;
  for (const Exchange& one : exchanges) {
    count += one.when == Exchange::When::round ? groups.along(one.axis).ranks - 1 : 1;
  }
  return count;
}

// What the host launches for the operators of a stage, at the speed of the slowest.
std::vector<OperatorLaunches> launches_in_groups(const Problem& problem, const Stage& stage, const TensorSplit& split,
                                                 const std::vector<int>& types, const AxisGroups& groups) {
  if (problem.training.launches.each.value == 0) {
    return std::vector<OperatorLaunches>(stage.operators.size());
  }
  double host_speed = kInfinity;
  for (const int type : types) {
    host_speed = std::min(host_speed, problem.platform.types[type].host_speed);
  }
  std::vector<Shard> shards;
  std::vector<BegunExchanges> all;
  for (const RankShare& part : split.operators) {
    shards.push_back(part.shard);
    all.push_back({begun(part.forward, groups), begun(part.backward, groups)});
  }
  return launches_of_each(problem, stage.operators, shards, all, host_speed);
}

// Passes take no less than the host that launches their kernels and exchanges lets them; where it is late, the device
// rests. `passes` are those of a host that never is. Returns by how much it has launched a backward before the device
// has computed it.
Seconds bound_by_host(const std::vector<OperatorLaunches>& launches, const GroupPasses& passes,
                      std::vector<OperatorTime>& times, RestOfPasses& rest) {
  std::vector<Seconds> forward, exchanging;
  Seconds backward, launching;
  for (std::size_t at = 0; at < times.size(); ++at) {
    forward.push_back(times[at].forward);
    exchanging.push_back(passes.of_operators.forward[at] - times[at].forward);
    backward += times[at].backward_input + times[at].backward_weight;
    launching += launches[at].backward_input + launches[at].backward_weight;
  }
  const Seconds alone = sum_of(forward);
  forward = forward_beside_host(launches, forward, exchanging);
  const Seconds exchanged = passes.backward.exchanged.all;
  const double longer = longer_beside_host(launching, backward, exchanged);
  for (std::size_t at = 0; at < times.size(); ++at) {
    times[at] = {forward[at], times[at].backward_input * longer, times[at].backward_weight * longer};
  }
  rest.forward += sum_of(forward) - alone;
  rest.backward += backward * (longer - 1);
  return std::max(Seconds{0}, backward + exchanged - launching);
}

std::vector<Exchange> without_weight(std::vector<Exchange> exchanges) {
  std::erase_if(exchanges, [](const Exchange& one) { return one.when == Exchange::When::before_weight; });
  return exchanges;
}

// The gradient of an operator's weights, micro-batch after micro-batch, and beside it what the next one's waits for.
Seconds weight_alone(Seconds weight, const RankShare& part, const AxisGroups& groups, double share) {
  Seconds gathers;
  for (const Exchange& one : part.backward) {
    gathers += one.when == Exchange::When::before_weight
                   ? seconds_of(collective_on(one.kind, groups.along(one.axis), one.bytes * share))
                   : Seconds{0};
  }
  return std::max(weight, gathers);
}

bool goes_in_pieces(const std::vector<Exchange>& exchanges) {
  return std::any_of(exchanges.begin(), exchanges.end(),
                     [](const Exchange& one) { return one.axis == Axis::tensor && one.when == Exchange::When::round; });
}

// What goes round a tensor group, at once.
Seconds at_once(const std::vector<Exchange>& exchanges, const AxisGroups& groups, double share) {
  Seconds sum;
  for (const Exchange& one : exchanges) {
    if (one.axis == Axis::tensor && one.when == Exchange::When::round) {
      sum += seconds_of(collective_on(one.kind, groups.along(one.axis), one.bytes * share));
    }
  }
  return sum;
}

// The times of products that are computed in pieces: `pieces` has the times of each piece of the axis's. Few rows are
// slow, so several pieces are computed at once (Transformer Engine's user buffers have three streams for them). With
// what they lose to exchanges beside them they take no longer than the whole product and the exchange behind it.
void cut_into_pieces(const RankShare& part, OperatorId op, const AxisGroups& groups, double share, SlowestTimes& pieces,
                     OperatorTime& time) {
  const bool forward = goes_in_pieces(part.forward), backward = goes_in_pieces(part.backward);
  if (!forward && !backward) {
    return;
  }
  const int count = groups.along(Axis::tensor).ranks;
  const OperatorTime piece = pieces.of(op, part.shard);
  const auto in_pieces = [&](Seconds of_piece, Seconds whole, const std::vector<Exchange>& exchanges) {
    return std::min(of_piece * count, whole + at_once(exchanges, groups, share) * (1 - kTakenByExchange));
  };
  time.forward = forward ? in_pieces(piece.forward, time.forward, part.forward) : time.forward;
  time.backward_input =
      backward ? in_pieces(piece.backward_input, time.backward_input, part.backward) : time.backward_input;
}

// What operators of these times and the exchanges between them make of each pass.
GroupPasses write_passes(const Stage& stage, const TensorSplit& split, const AxisGroups& groups, double share,
                         const std::vector<OperatorTime>& times, const std::vector<OperatorLaunches>& launches) {
  GroupPasses passes;
  const Group& group = groups.along(Axis::tensor);
  PassWriter forward(groups, share), recompute(groups, share), terms(groups, 1);
  OperatorSeconds& of = passes.of_operators;
  for (std::size_t at = 0; at < times.size(); ++at) {
    const RankShare& part = split.operators[at];
    const Seconds waits = given_wait(part, group, share);
    const Seconds before = forward.so_far(), before_again = recompute.so_far();
    forward.run(times[at].forward, waits, part.forward, launches[at].forward,
                launches[at].waits ? std::optional(launches[at].late) : std::nullopt);
    if (stage.recomputes(stage.operators[at])) {
      recompute.run(times[at].forward, waits, part.forward);
    }
    of.forward.push_back(forward.so_far() - before);
    of.recompute.push_back(recompute.so_far() - before_again);
    of.backward_weight.push_back(times[at].backward_weight);
    if (part.terms.value > 0) {
      terms.exchange({CollectiveKind::all_reduce, part.terms});
    }
    passes.backward_weight += times[at].backward_weight;
  }
  PassWriter backward(groups, share), input(groups, share);
  of.backward.resize(times.size());
  of.backward_input.resize(times.size());
  for (std::size_t at = times.size(); at-- > 0;) {
    const RankShare& part = split.operators[at];
    const Seconds waits = given_wait(part, group, share);
    const Seconds before = backward.so_far(), before_input = input.so_far();
    const Seconds launching = launches[at].backward_input;
    if (part.deferred) {
      passes.deferred += weight_alone(times[at].backward_weight, part, groups, share);
      backward.run_beside(times[at].backward_input, Seconds{0}, waits, without_weight(part.backward), launching);
    } else {
      backward.run_beside(times[at].backward_input, times[at].backward_weight, waits, part.backward,
                          launching + launches[at].backward_weight);
    }
    input.run(times[at].backward_input, waits, part.backward, launching);
    of.backward[at] = backward.so_far() - before;
    of.backward_input[at] = input.so_far() - before_input;
  }
  passes.forward = forward.take();
  passes.recompute = recompute.take();
  passes.terms = terms.take();
  passes.backward = backward.take();
  passes.backward_input = input.take();
  return passes;
}

// Time of the kernels that put rows, which come from each rank in the order of all experts, in that of the device's
// own, or back in that of the ranks: Megatron-LM's sort_chunks_by_idxs() (MoEAlltoAllTokenDispatcher), TorchTitan's
// second permutation. Each reads and writes them.
Seconds sorting(const Problem& problem, const std::vector<int>& types, const AxisGroups& groups, double share,
                const std::vector<Exchange>& exchanges) {
  Seconds sum;
  for (const Exchange& one : exchanges) {
    if (!one.sorts) {
      continue;
    }
    Seconds slowest;
    for (const int index : types) {
      const DeviceType& type = problem.platform.types[static_cast<std::size_t>(index)];
      const Bytes rows = one.bytes * (share / groups.along(one.axis).ranks);
      slowest = std::max(slowest, type.launch_overhead +
                                      2 * rows / (type.memory_bandwidth * problem.training.kernel_speed.other));
    }
    sum += slowest;
  }
  return sum;
}

// What each operator of the stage takes of the slowest of the types, with the pieces that its products are cut into and
// what falls to the replica of it.
std::vector<OperatorTime> slowest_times(const Problem& problem, const Stage& stage, const TensorSplit& split,
                                        const std::vector<int>& types, const AxisGroups& groups, double share,
                                        const std::vector<double>& loads) {
  SlowestTimes slowest(problem, types, share);
  const int count = groups.along(Axis::tensor).ranks;
  SlowestTimes pieces(problem, types, share / count);
  std::vector<OperatorTime> times;
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    times.push_back(slowest.of(stage.operators[at], split.operators[at].shard));
    cut_into_pieces(split.operators[at], stage.operators[at], groups, share, pieces, times.back());
    if (!loads.empty() && loads[at] != 1) {
      OperatorTime& time = times.back();
      time = {time.forward * loads[at], time.backward_input * loads[at], time.backward_weight * loads[at]};
    }
    times.back().forward += sorting(problem, types, groups, share, split.operators[at].forward);
    times.back().backward_input += sorting(problem, types, groups, share, split.operators[at].backward);
  }
  return times;
}

} // namespace

GroupPasses group_passes(const Problem& problem, const Stage& stage, const TensorSplit& split,
                         const std::vector<int>& types, const AxisGroups& groups, double share,
                         const std::vector<double>& loads) {
  std::vector<OperatorTime> times = slowest_times(problem, stage, split, types, groups, share, loads);
  RestOfPasses rest = kernels_at_rest(problem, stage, split, types, share, times);
  const std::vector<OperatorLaunches> launches = launches_in_groups(problem, stage, split, types, groups);
  GroupPasses passes = write_passes(stage, split, groups, share, times, launches);
  Seconds ahead;
  if (problem.training.launches.each.value > 0) {
    const RestOfPasses busy = rest;
    ahead = bound_by_host(launches, passes, times, rest);
    if (rest.forward > busy.forward || rest.backward > busy.backward) { // it is late
      GroupPasses prompt = std::exchange(passes, write_passes(stage, split, groups, share, times, launches));
      if (groups.along(Axis::experts).ranks > 1) {
        passes.prompt = {std::move(prompt.forward), std::move(prompt.backward), std::move(prompt.backward_input)};
      }
    }
  }
  Seconds computed_forward, computed_backward;
  for (const OperatorTime& time : times) {
    computed_forward += time.forward;
    computed_backward += time.backward_input + time.backward_weight;
  }
  passes.rest = parts_of(rest, computed_forward, computed_backward);
  passes.ahead = ahead;
  return passes;
}

} // namespace stagecraft
