// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/piper_segments.hpp"

#include <algorithm>

#include "sim/base/improves.hpp"
#include "sim/collective/parameter_server.hpp"

namespace stagecraft {
namespace {
constexpr double kLeastSaved = 1e-9;       // bytes
constexpr std::size_t kMostKept = 4000000; // swaps in memory

bool is_cheaper(const PiperSwap& a, const PiperSwap& b) {
  return std::tie(a.price, a.op, a.option) < std::tie(b.price, b.op, b.option);
}

int fastest_of(const std::vector<PiperItem>& items) {
  const auto least = std::min_element(items.begin(), items.end(),
                                      [](const PiperItem& a, const PiperItem& b) { return a.seconds < b.seconds; });
  return least == items.end() ? -1 : static_cast<int>(least - items.begin());
}

// Adds an operator's swaps; returns the most bytes that one of them saves.
double add_swaps(OperatorId op, const std::vector<PiperItem>& items, int fastest, double held,
                 std::vector<PiperSwap>& swaps) {
  double most = 0;
  for (std::size_t option = 0; option < items.size(); ++option) {
    const double saved = items[fastest].memory(held) - items[option].memory(held);
    const double seconds = items[option].seconds - items[fastest].seconds;
    most = std::max(most, saved);
    if (saved > kLeastSaved) {
      swaps.push_back({seconds / saved, op, static_cast<int>(option), saved, seconds});
    }
  }
  return most;
}

} // namespace

PiperSums::PiperSums(const PiperInstance& instance, const AntichainStates& states)
    : instance_(instance), states_(states), steps_(states.count()), frontier_(states.count()),
      ways_(instance.degrees.size(), std::vector<std::optional<PiperWay>>(instance.devices.size() + 1)),
      forward_(instance.degrees.size()) {
  const ModelGraph& model = instance.problem.model;
  for (OperatorId op = 0; op < model.size(); ++op) {
    output_bytes_.push_back(instance.problem.output_bytes(op));
  }
  for (int state = 0; state < states.count(); ++state) {
    const auto ideal = states.ideals.row(state);
    int from = std::max(0, state - 1);
    while (from > 0 && !is_subset(states.ideals.row(from), ideal)) {
      --from;
    }
    steps_[state].from = from;
    for (OperatorId op = 0; op < model.size(); ++op) {
      if (!has_bit(ideal, op)) {
        continue;
      }
      if (!has_bit(states.ideals.row(from), op)) {
        steps_[state].added.push_back(op);
      }
      const auto& users = model.successors[op];
      if (std::any_of(users.begin(), users.end(), [&](OperatorId user) { return !has_bit(ideal, user); })) {
        frontier_[state].push_back(op);
      }
    }
  }
  indivisible_ = sum([&](OperatorId op) { return model.operators[op].divisible ? 0.0 : 1.0; });
  sources_ = sum([&](OperatorId op) { return model.predecessors[op].empty() ? 1.0 : 0.0; });
}

const PiperWay& PiperSums::way(int degree, int replicas) {
  std::optional<PiperWay>& made = ways_[degree][replicas];
  if (made) {
    return *made;
  }
  made.emplace();
  const double d = replicas;
  for (const std::vector<Configuration>& options : instance_.degrees[degree].options) {
    auto& items = made->items.emplace_back();
    for (const Configuration& one : options) {
      // Once for all micro-batches.
      const double bytes = parameter_server_bytes(one.parameters.value, d) / instance_.problem.micro_batches;
      items.push_back(
          {one.seconds.value / d + bytes * instance_.seconds_per_byte, one.per_micro_batch.value, one.resident.value});
    }
    made->fastest.push_back(fastest_of(items));
  }
  const auto sum_of = [&](double PiperItem::*part) {
    return sum([&](OperatorId op) { return made->fastest[op] < 0 ? 0.0 : made->items[op][made->fastest[op]].*part; });
  };
  made->seconds = sum_of(&PiperItem::seconds);
  made->per_micro_batch = sum_of(&PiperItem::per_micro_batch);
  made->resident = sum_of(&PiperItem::resident);
  return *made;
}

const PiperSwaps& PiperSums::swaps(int degree, int replicas, double held) {
  const std::size_t operators = output_bytes_.size();
  const std::tuple key{degree, replicas, held};
  if (const auto known = swaps_.find(key); known != swaps_.end()) {
    return known->second;
  }
  if (swaps_.size() * operators > kMostKept) {
    swaps_.clear();
  }
  PiperSwaps& made = swaps_[key];
  const PiperWay& way = this->way(degree, replicas);
  std::vector<double> most(operators, 0.0);
  for (OperatorId op = 0; op < static_cast<int>(operators); ++op) {
    most[op] = way.fastest[op] < 0 ? 0 : add_swaps(op, way.items[op], way.fastest[op], held, made.cheapest_first);
  }
  std::sort(made.cheapest_first.begin(), made.cheapest_first.end(), is_cheaper);
  made.saving = sum([&](OperatorId op) { return most[op]; });
  return made;
}

const std::vector<double>& PiperSums::forward(int degree) {
  if (forward_[degree].empty()) {
    forward_[degree] = sum([&](OperatorId op) {
      const PiperDegree& one = instance_.degrees[degree];
      return one.options[op].empty() ? 0.0 : one.forward[op];
    });
  }
  return forward_[degree];
}

PiperSegment::PiperSegment(PiperSums& sums)
    : sums_(sums), instance_(sums.instance()), model_(instance_.problem.model), inside_((model_.size() + 63) / 64) {}

void PiperSegment::set(int lower, int upper, int degree) {
  const bool same_border = lower_ == lower && upper_ == upper;
  lower_ = lower;
  upper_ = upper;
  degree_ = degree;
  weighed_ = 0;
  if (!same_border) {
    measure_borders();
  }
  if (instance_.given) {
    measure_exchanges();
  }
}

// A tensor is paid for once per stage, or in Piper's own files once per edge.
void PiperSegment::measure_borders() {
  const auto below = sums_.states().ideals.row(lower_);
  const auto upto = sums_.states().ideals.row(upper_);
  for (std::size_t word = 0; word < inside_.size(); ++word) {
    inside_[word] = upto[word] & ~below[word];
  }
  border_in_ = border_out_ = 0;
  const auto add = [&](OperatorId maker, double& border, const auto& crosses) {
    const auto& users = model_.successors[maker];
    for (std::size_t edge = 0; edge < users.size(); ++edge) {
      if (crosses(users[edge])) {
        border += instance_.given ? model_.edge_bytes[maker][edge].value : sums_.output_bytes(maker).value;
        if (!instance_.given) {
          break;
        }
      }
    }
  };
  for (const OperatorId maker : sums_.frontier(lower_)) {
    add(maker, border_in_, [&](OperatorId user) { return inside(user); });
  }
  for (const OperatorId maker : sums_.frontier(upper_)) {
    if (inside(maker)) {
      add(maker, border_out_, [&](OperatorId user) { return !inside(user); });
    }
  }
  entering_ = border_in_ + between(sums_.sources()) * instance_.problem.input_bytes().value;
  indivisible_ = between(sums_.indivisible()) > 0;
}

void PiperSegment::measure_exchanges() {
  std::vector<OperatorId> ends;
  for (const OperatorId maker : sums_.frontier(lower_)) {
    const auto& users = model_.successors[maker];
    std::copy_if(users.begin(), users.end(), std::back_inserter(ends), [&](OperatorId user) { return inside(user); });
  }
  const auto& makers = sums_.frontier(upper_);
  std::copy_if(makers.begin(), makers.end(), std::back_inserter(ends), [&](OperatorId op) { return inside(op); });
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  exchanges_.clear();
  for (const OperatorId op : ends) {
    const auto& options = instance_.degrees[degree_].options[op];
    Exchange made{op, std::vector<double>(options.size(), 0.0), {}, 0};
    const auto add = [&](const std::vector<OperatorId>& others, const std::vector<Bytes> Configuration::*side) {
      for (std::size_t edge = 0; edge < others.size(); ++edge) {
        for (std::size_t option = 0; option < options.size() && !inside(others[edge]); ++option) {
          const std::vector<Bytes>& bytes = options[option].*side;
          made.bytes[option] += bytes.empty() ? 0 : bytes[edge].value;
        }
      }
    };
    add(model_.predecessors[op], &Configuration::incoming);
    add(model_.successors[op], &Configuration::outgoing);
    if (std::any_of(made.bytes.begin(), made.bytes.end(), [](double bytes) { return bytes > 0; })) {
      exchanges_.push_back(std::move(made));
    }
  }
}

void PiperSegment::weigh(int replicas) {
  if (weighed_ == replicas) {
    return;
  }
  weighed_ = replicas;
  const PiperWay& way = sums_.way(degree_, replicas);
  const double d = replicas;
  fastest_seconds_ = between(way.seconds) + 2 * (border_in_ + border_out_) / d * instance_.seconds_per_byte;
  fastest_held_ = between(way.per_micro_batch);
  fastest_resident_ = between(way.resident);
  for (Exchange& one : exchanges_) {
    one.items = way.items[one.op];
    for (std::size_t option = 0; option < one.items.size(); ++option) {
      one.items[option].seconds += 2 * one.bytes[option] / d * instance_.seconds_per_byte;
    }
    one.fastest = fastest_of(one.items);
    const PiperItem& now = one.items[one.fastest];
    const PiperItem& before = way.items[one.op][way.fastest[one.op]];
    fastest_seconds_ += now.seconds - before.seconds;
    fastest_held_ += now.per_micro_batch - before.per_micro_batch;
    fastest_resident_ += now.resident - before.resident;
  }
  const Problem& problem = instance_.problem;
  if (!instance_.given) {
    fastest_resident_ += problem.model.memory_given ? 0 : 2 * (entering_ + border_out_) / d;
    fastest_held_ += problem.training.recompute.what != Recompute::none ? entering_ : 0;
  }
}

double PiperSegment::fastest(int replicas) {
  if (indivisible_ && replicas * instance_.degrees[degree_].degree > 1) {
    return kInfinity;
  }
  weigh(replicas);
  return fastest_seconds_;
}

// Sets the swaps of operators that exchange tensors; returns how much more all of them save than the sums over states
// say.
double PiperSegment::own_swaps(double held) {
  own_swaps_.clear();
  double more = 0;
  const PiperWay& way = sums_.way(degree_, weighed_);
  std::vector<PiperSwap> unused;
  for (const Exchange& one : exchanges_) {
    more += add_swaps(one.op, one.items, one.fastest, held, own_swaps_) -
            add_swaps(one.op, way.items[one.op], way.fastest[one.op], held, unused);
  }
  std::sort(own_swaps_.begin(), own_swaps_.end(), is_cheaper);
  return more;
}

// Sets the load; false if not even the least memory fits.
bool PiperSegment::choose(double held, Taken* taken) {
  seconds_ = fastest_seconds_;
  swapped_ = false;
  double excess = fastest_held_ * held + fastest_resident_ - instance_.memory;
  if (excess <= 0) {
    return true;
  }
  const PiperSwaps& swaps = sums_.swaps(degree_, weighed_, held);
  if (between(swaps.saving) + own_swaps(held) < excess) {
    return false;
  }
  const auto exchanges = [&](OperatorId op) {
    return std::any_of(exchanges_.begin(), exchanges_.end(), [&](const Exchange& one) { return one.op == op; });
  };
  auto own = own_swaps_.begin();
  for (auto at = swaps.cheapest_first.begin(); excess >= kLeastSaved || !swapped_;) {
    while (at != swaps.cheapest_first.end() && (!inside(at->op) || exchanges(at->op))) {
      ++at;
    }
    const bool takes_own = own != own_swaps_.end() && (at == swaps.cheapest_first.end() || is_cheaper(*own, *at));
    if (!takes_own && at == swaps.cheapest_first.end()) {
      break;
    }
    const PiperSwap& swap = takes_own ? *own++ : *at++;
    excess -= swap.saved;
    seconds_ += swap.seconds;
    swapped_ = true;
    if (taken != nullptr) {
      taken->emplace_back(swap.op, swap.option);
    }
  }
  return true;
}

// Recomputes the whole stage: only what enters it stays, which no choice per operator accounts for.
bool PiperSegment::choose_all_recomputed(double held, double limit) {
  const Problem& problem = instance_.problem;
  if (instance_.given || problem.training.recompute.what == Recompute::full) {
    return false;
  }
  const double seconds = fastest_seconds_ + between(sums_.forward(degree_)) / weighed_;
  const double memory = entering_ * held + fastest_resident_ + fastest_held_ / weighed_; // restored one at a time
  if (memory > instance_.memory || !improves(seconds, limit)) {
    return false;
  }
  seconds_ = seconds;
  return true;
}

double PiperSegment::load(int replicas, double held, Taken* taken) {
  if (indivisible_ && replicas * instance_.degrees[degree_].degree > 1) {
    return kInfinity;
  }
  weigh(replicas);
  const bool fits = choose(held, taken);
  all_recomputed_ = (!fits || swapped_) && choose_all_recomputed(held, fits ? seconds_ : kInfinity);
  return fits || all_recomputed_ ? seconds_ : kInfinity;
}

double PiperSegment::load(int replicas, double held) { return load(replicas, held, nullptr); }

std::vector<OperatorId> PiperSegment::operators() const {
  std::vector<OperatorId> operators;
  for (OperatorId op = 0; op < model_.size(); ++op) {
    if (inside(op)) {
      operators.push_back(op);
    }
  }
  return operators;
}

PiperStage PiperSegment::stage(int replicas, double held) {
  Taken taken;
  PiperStage made{.load = load(replicas, held, &taken)};
  const PiperDegree& degree = instance_.degrees[degree_];
  const PiperWay& way = sums_.way(degree_, replicas);
  std::vector<int> chosen = way.fastest;
  for (const Exchange& one : exchanges_) {
    chosen[one.op] = one.fastest;
  }
  for (const auto& [op, option] : taken) {
    chosen[op] = option;
  }
  const std::vector<OperatorId> all = operators();
  std::copy_if(all.begin(), all.end(), std::back_inserter(made.recomputed),
               [&](OperatorId op) { return degree.options[op][chosen[op]].recompute; });
  if (all_recomputed_ || made.recomputed.size() == all.size()) {
    made.recompute = Recompute::full;
    made.recomputed.clear();
  } else if (!made.recomputed.empty()) {
    made.recompute = Recompute::selective;
  }
  return made;
}

} // namespace stagecraft
