// DAPPLE (Fan et al. 2021): stages with replicas for synchronous pipelines, placed on servers by three policies.
// docs/model.md, "DAPPLE".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"
#include "sim/strategy/dynamic_programming/dapple_latency.hpp"
#include "sim/strategy/dynamic_programming/device_sets.hpp"

namespace stagecraft {
namespace {
constexpr double kNearTie = 0.06;     // the error of the latency formula on uneven stages
constexpr double kClearly = 1 + 1e-6; // times a value: more by far more than ties decide
constexpr int kMostDappleStates = 600, kMostStages = 16, kMostPairs = 12, kMostReplayed = 24, kCoarseStates = 64;
constexpr std::size_t kMostDappleDevices = 256, kMostEdges = 4000;

// The stages of a pipeline: the edges that take their devices, and the states where they end.
struct Candidate {
  std::vector<int> edges, states;
  double score = 0, latency = 0;
};

class DappleSearch {
public:
  DappleSearch(const Problem& problem, AntichainStates states, DeviceSets sets)
      : problem_(problem), states_(std::move(states)), costs_(cost_states(problem_, states_)), sets_(std::move(sets)),
        last_(states_.count() - 1), indivisible_(states_.count(), 0) {
    for (int state = 0; state <= last_; ++state) {
      for (OperatorId op = 0; op < problem_.model.size(); ++op) {
        const bool whole = has_bit(states_.ideals.row(state), op) && !problem_.model.operators[op].divisible;
        indivisible_[state] += whole ? 1 : 0;
      }
    }
    measure_work();
    measure_devices();
    pick_few_states();
  }

  const AntichainStates& states() const { return states_; }

  // The pipelines of two stages with the best scores, and for each number of stages the one with the least block, with
  // and without reductions, wherever memory ends.
  const std::vector<Candidate>& candidates() {
    if (unbound_.empty()) {
      unbound_ = find_candidates(0);
    }
    return unbound_;
  }

  // The same of `total` stages, each of which fits in memory under the request's schedule.
  std::vector<Candidate> fitting_candidates(const PlanRequest& request, int total) {
    in_flight_.clear();
    for (int stage = 0; stage < total; ++stage) {
      in_flight_.push_back(request.in_flight(stage, total));
    }
    versions_ = request.versions;
    return find_candidates(total);
  }
  Plan plan_of(const Candidate& candidate) const {
    Plan plan;
    int from = 0;
    for (std::size_t s = 0; s < candidate.states.size(); ++s) {
      std::vector<OperatorId> operators;
      for (OperatorId op = 0; op < problem_.model.size(); ++op) {
        if (has_bit(states_.ideals.row(candidate.states[s]), op) && !has_bit(states_.ideals.row(from), op)) {
          operators.push_back(op);
        }
      }
      plan.stages.push_back(
          make_replicated_stage(problem_, std::move(operators), sets_.edges[candidate.edges[s]].devices));
      from = candidate.states[s];
    }
    plan.objective = Objective{"latency", Seconds{candidate.score}};
    return plan;
  }

private:
  struct Cell {
    double block = kInfinity;
    std::int32_t edge = -1, state = -1; // the last stage's edge, and the state where that stage begins
  };
  // [state]; empty until one of them has a block. Those that have one lie from `first` to `last`.
  struct Row {
    std::vector<Cell> cells;
    std::int32_t first = 0, last = -1;

    double block(int state) const { return cells.empty() ? kInfinity : cells[state].block; }
    void set(int state, const Cell& cell) {
      first = last < 0 ? state : std::min(first, state);
      last = std::max(last, state);
      cells[state] = cell;
    }
  };
  using Rows = std::vector<Row>; // [node]

  // `total`: how many stages, each of which must fit in memory; 0: of any number, and memory is not looked at.
  std::vector<Candidate> find_candidates(int total) {
    total_ = total;
    bounds_.clear();
    std::vector<Candidate> found;
    if (total == 0 || total == 2) {
      found = best_pairs();
    }
    double least = kInfinity;
    for (const Candidate& pair : found) {
      least = std::min(least, pair.score);
    }
    const std::size_t pairs = found.size();
    for (const double slack :
         total == 0 ? std::vector<double>{kInfinity} : std::vector<double>{1.25, 2, 4, kInfinity}) {
      for (const bool amortised : {false, true}) {
        least_blocks(amortised, slack == kInfinity ? kInfinity : slack * balanced_, least, found);
      }
      if (found.size() > pairs) {
        break;
      }
    }
    return found;
  }

  // The least memory of a stage at one place on its share of the samples, as a difference of sums up to a state: `need`
  // up to the state itself, `least_after` up to whichever state from there on needs least. left: what all stages after
  // the state need together, at least.
  struct Bounds {
    std::vector<double> need, least_after, left; // [state], bytes
  };

  // left_[state]: the least work after the state, as a share of the whole model. speed_left_[node]: how much of that
  // the devices not in use do per second. least_after_[type][state]: the least time up to this state or any later one,
  // which ends the inner loop early.
  void measure_work() {
    std::vector<double> speed;
    for (const auto& seconds : costs_.seconds) {
      speed.push_back(1 / std::max(seconds.back(), 1e-300));
      std::vector<double>& least = least_after_.emplace_back(seconds);
      for (int state = last_; state > 0; --state) {
        least[state - 1] = std::min(least[state - 1], least[state]);
      }
    }
    for (int state = 0; state <= last_; ++state) {
      chain_ = chain_ && static_cast<int>(costs_.above[state].size()) == last_ - state;
      left_.push_back(costs_.weighted.back() - costs_.weighted[state]);
    }
    std::vector<double> used(sets_.leaving.size(), 0.0);
    for (const DeviceSets::Edge& edge : sets_.edges) {
      used[edge.to] = used[edge.from];
      for (std::size_t type = 0; type < speed.size(); ++type) {
        used[edge.to] += edge.of_type[type] * speed[type];
      }
    }
    const double all = *std::max_element(used.begin(), used.end());
    for (const double part : used) {
      speed_left_.push_back(all - part + kTie * all);
    }
    balanced_ = costs_.weighted.back() / all;
  }

  // For each edge, its device types and least memory; for each node, the memory of the devices not in use. The edges
  // that enter a node are numbered, so that a table can hold the paths between edges that can follow each other.
  void measure_devices() {
    std::vector<int> entering(sets_.leaving.size(), 0);
    std::vector<double> used(sets_.leaving.size(), 0.0);
    for (const DeviceSets::Edge& edge : sets_.edges) {
      auto& types = types_.emplace_back();
      for (std::size_t type = 0; type < edge.of_type.size(); ++type) {
        if (edge.of_type[type] > 0) {
          types.push_back({type, edge.of_type[type]});
        }
      }
      Bytes least{kInfinity};
      double all = 0;
      for (const DeviceId device : edge.devices) {
        least = std::min(least, problem_.platform.type_of(device).memory);
        all += problem_.platform.type_of(device).memory.value;
      }
      least_memory_.push_back(least);
      used[edge.to] = used[edge.from] + all;
      entering_.push_back(entering[edge.to]++);
    }
    const double all = *std::max_element(used.begin(), used.end());
    for (const double before : used) {
      memory_left_.push_back(std::isinf(all) ? kInfinity : (all - before) + kTie * all);
    }
    for (const DeviceSets::Edge& edge : sets_.edges) {
      paths_.emplace_back(entering[edge.from]);
    }
  }

  // Shares are in proportion to speed, so a stage takes 1 / sum of speeds.
  double seconds_of(const std::vector<std::vector<double>>& upto, int edge, int from, int to) const {
    double speed = 0;
    for (const auto& [type, count] : types_[edge]) {
      speed += count / std::max(0.0, upto[type][to] - costs_.seconds[type][from]);
    }
    return 1 / speed;
  }
  double seconds(int edge, int from, int to) const { return seconds_of(costs_.seconds, edge, from, to); }

  // Every replica sends its share at once, over the slowest path between the two sets.
  double sending(int from_edge, int to_edge, int state) {
    const auto& from = sets_.edges[from_edge].devices;
    const auto& to = sets_.edges[to_edge].devices;
    std::optional<PathCost>& known = paths_[to_edge][entering_[from_edge]];
    if (!known) {
      known.emplace();
      for (const DeviceId a : from) {
        for (const DeviceId b : to) {
          known = slowest_of(*known, problem_.path(a, b));
        }
      }
    }
    const double parallel = static_cast<double>(std::min(from.size(), to.size()));
    return known->time(Bytes{costs_.cut_bytes[state] / parallel}).value;
  }

  double reduction(int edge, int from, int to) const {
    const double bytes =
        (costs_.parameters[to] - costs_.parameters[from]) * parameter_bytes(problem_.training).gradient;
    return stagecraft::seconds_of({CollectiveKind::all_reduce, sets_.edges[edge].group, Bytes{bytes}}).value;
  }

  bool can_be(int edge, int from, int to, int stage) const {
    const auto& devices = sets_.edges[edge].devices;
    if (devices.size() > 1 && indivisible_[to] > indivisible_[from]) {
      return false;
    }
    if (total_ == 0) {
      return true;
    }
    const double share = 1.0 / static_cast<double>(devices.size());
    const StageMemory need =
        stage_memory(problem_.training, costs_.parameters[to] - costs_.parameters[from],
                     (costs_.stash[to] - costs_.stash[from]) * share,
                     Bytes{costs_.cut_bytes[from] + costs_.input_bytes[to] - costs_.input_bytes[from]} * share,
                     Bytes{costs_.cut_bytes[to]} * share, problem_.training.recompute.what);
    return need.total(in_flight_[stage], versions_) <= least_memory_[edge];
  }

  const Bounds& bounds_of(int stage, std::size_t devices) {
    const auto [slot, is_new] = bounds_.try_emplace({stage, devices});
    if (is_new) {
      slot->second = total_ > 0 ? measure_memory(stage, 1.0 / static_cast<double>(devices)) : no_bounds();
    }
    return slot->second;
  }

  Bounds no_bounds() const {
    const std::vector<double> none(states_.count(), 0.0);
    return {none, none, none};
  }

  Bounds measure_memory(int stage, double share) const {
    const Training& training = problem_.training;
    const double per_parameter = stage_memory(training, 1, {}, {}, {}, Recompute::none).fixed(versions_).value;
    const double held_later =
        stage + 1 < total_ ? *std::min_element(in_flight_.begin() + stage + 1, in_flight_.end()) : 0;
    Bounds bounds = no_bounds();
    for (int state = last_; state >= 0; --state) {
      const double need =
          costs_.parameters[state] * per_parameter + (costs_.stash[state] * share).total(in_flight_[stage]).value;
      bounds.need[state] = need;
      bounds.least_after[state] = state == last_ ? need : std::min(need, bounds.least_after[state + 1]);
      bounds.left[state] = (costs_.parameters[last_] - costs_.parameters[state]) * per_parameter +
                           (costs_.stash[last_] - costs_.stash[state]).total(held_later).value;
    }
    return bounds;
  }

  void rate(Candidate& candidate) {
    std::vector<PipelinePart> parts;
    for (std::size_t s = 0; s < candidate.states.size(); ++s) {
      const int from = s == 0 ? 0 : candidate.states[s - 1];
      if (s > 0) {
        const double sent = sending(candidate.edges[s - 1], candidate.edges[s], from);
        parts.push_back({sent, sent, 0});
      }
      const double both = seconds(candidate.edges[s], from, candidate.states[s]);
      parts.push_back({both / 3, both * 2 / 3, reduction(candidate.edges[s], from, candidate.states[s])});
    }
    candidate.score = dapple_score(parts, problem_.micro_batches);
    candidate.latency = dapple_latency(parts, problem_.micro_batches);
  }

  // The score of two stages if transfers and reductions took no time: a lower bound.
  double computing_score(int first, int second, int cut) const {
    const double before = seconds(first, 0, cut);
    const double after = seconds(second, cut, last_);
    return ((problem_.micro_batches - 1) * std::max(before, after) + before + after) * (1 - kTie);
  }

  std::vector<Candidate> best_pairs() {
    std::vector<Candidate> best; // ascending in score
    for (const int first : sets_.leaving[0]) {
      for (const int second : sets_.leaving[sets_.edges[first].to]) {
        for (int cut = 1; cut < last_; ++cut) {
          const bool is_full = best.size() == static_cast<std::size_t>(kMostPairs);
          if (is_full && computing_score(first, second, cut) >= best.back().score) {
            continue;
          }
          Candidate pair{{first, second}, {cut, last_}};
          rate(pair);
          if ((is_full && !improves(pair.score, best.back().score)) || !can_be(first, 0, cut, 0) ||
              !can_be(second, cut, last_, 1)) {
            continue;
          }
          if (is_full) {
            best.pop_back();
          }
          const auto at = std::upper_bound(best.begin(), best.end(), pair,
                                           [](const auto& a, const auto& b) { return a.score < b.score; });
          best.insert(at, std::move(pair));
        }
      }
    }
    return best;
  }

  using Above = std::vector<std::vector<std::int32_t>>; // [state]: where a stage that begins there may end

  // The pipeline with the least block for each number of stages. A search over few states limits the one over all. A
  // cell keeps only one pipeline, so the limit may turn out too low; then the search runs again without it.
  void least_blocks(bool amortised, double at_most, double least, std::vector<Candidate>& found) {
    const int most = std::min({total_ > 0 ? total_ : kMostStages, last_, static_cast<int>(sets_.leaving.size())});
    std::vector<double> limits(most, at_most);   // limit for the block of each stage
    std::vector<double> coarse(most, kInfinity); // [stages - 1]
    const std::size_t before = found.size();
    if (last_ > 2 * kCoarseStates) {
      fill_blocks(few_above_, limits, amortised, least, [&](int stages, double block, const auto& /*trace*/) {
        coarse[stages - 1] = block;
        return kInfinity;
      });
      double largest = 0;
      for (int stage = most; stage-- > 0;) {
        constexpr double kRounding = 1e-6;
        largest = total_ > 0 && stage + 1 != total_ ? largest : std::max(largest, coarse[stage] * (1 + kRounding));
        limits[stage] = std::min(at_most, largest);
      }
    }
    int missed = 0;
    const auto keep = [&](int stages, double block, const auto& trace) {
      if (block == kInfinity) {
        missed += coarse[stages - 1] < kInfinity ? 1 : 0;
        return kInfinity;
      }
      found.push_back(trace());
      return found.back().score;
    };
    fill_blocks(costs_.above, limits, amortised, least, keep);
    if (missed > 0) {
      found.resize(before);
      fill_blocks(costs_.above, std::vector<double>(most, at_most), amortised, least, keep);
    }
  }

  // A[n][node][state]: the least block of n stages up to the state on the node's devices. If `amortised`, a block
  // includes each micro-batch's part of the reductions. A pipeline takes at least M times its block, so blocks beyond
  // the best score are dropped. Calls keep(stages, block, trace) for the best pipeline of each number of stages; it
  // returns the pipeline's score.
  template <class Keep>
  void fill_blocks(const Above& above, const std::vector<double>& limits, bool amortised, double least,
                   const Keep& keep) {
    const int most = static_cast<int>(limits.size());
    std::vector<Rows> cells(most + 1, Rows(sets_.leaving.size())); // [stages]
    cells[0][0].cells.resize(last_ + 1);
    cells[0][0].set(0, {0, -1, -1});
    for (int n = 0; n < most; ++n) {
      for (std::size_t edge = 0; edge < sets_.edges.size(); ++edge) {
        const double limit = std::min(limits[n], (1 + kNearTie) * least / problem_.micro_batches);
        const DeviceSets::Edge& set = sets_.edges[edge];
        extend(above, cells[n][set.from], cells[n + 1][set.to], static_cast<int>(edge), n, limit, amortised,
               n + 1 == total_ || n + 1 == most);
      }
      if (total_ > 0 && n + 1 != total_) {
        continue;
      }
      std::size_t best = 0;
      for (std::size_t node = 1; node < sets_.leaving.size(); ++node) {
        best = improves(cells[n + 1][node].block(last_), cells[n + 1][best].block(last_)) ? node : best;
      }
      const double score = keep(n + 1, cells[n + 1][best].block(last_), [&] {
        Candidate candidate = trace(cells, n + 1, best);
        rate(candidate);
        return candidate;
      });
      least = std::min(least, score);
    }
  }

  Candidate trace(const std::vector<Rows>& cells, int stages, std::size_t node) const {
    Candidate candidate;
    int state = last_;
    for (int stage = stages; stage > 0; --stage) {
      const Cell& cell = cells[stage][node].cells[state];
      candidate.edges.insert(candidate.edges.begin(), cell.edge);
      candidate.states.insert(candidate.states.begin(), state);
      state = cell.state;
      node = sets_.edges[cell.edge].from;
    }
    return candidate;
  }

  // Some states, each of which holds the one before it.
  void pick_few_states() {
    std::vector<std::int32_t> nested = {0};
    while (!costs_.above[nested.back()].empty()) {
      nested.push_back(costs_.above[nested.back()].front());
    }
    std::vector<std::int32_t> few;
    for (std::size_t i = 0; i <= kCoarseStates; ++i) {
      few.push_back(nested[i * (nested.size() - 1) / kCoarseStates]);
    }
    few.erase(std::unique(few.begin(), few.end()), few.end());
    few_above_.resize(costs_.above.size());
    for (std::size_t at = 0; at < few.size(); ++at) {
      few_above_[few[at]].assign(few.begin() + static_cast<std::ptrdiff_t>(at) + 1, few.end());
    }
  }

  void extend(const Above& above_of, const Row& before, Row& after, int edge, int stage, double limit, bool amortised,
              bool must_end) {
    if (before.last < 0) {
      return;
    }
    const DeviceSets::Edge& set = sets_.edges[edge];
    const Bounds& bytes = bounds_of(stage, set.devices.size());
    after.cells.resize(last_ + 1);
    const double most_bytes = least_memory_[edge].value * (1 + kTie);
    const double most_work = limit * speed_left_[set.to] * (1 + kTie);
    const auto first = std::partition_point(left_.begin(), left_.end(), [&](double left) { return left > most_work; });
    const auto nearest = static_cast<std::int32_t>(first - left_.begin()); // used if states form a chain
    const std::vector<double> base = blocks_before(before, edge, stage, limit);
    for (int k = before.first; k <= std::min(before.last, last_ - 1); ++k) {
      if (base[k] > limit || base[k] == kInfinity) {
        continue;
      }
      const double enough =
          base[k + 1] <= limit && is_replaced(edge, k, stage, bytes) ? base[k + 1] * kClearly : kInfinity;
      const auto& above = above_of[k];
      auto at = must_end ? above.end() - 1 : above.begin();
      if (chain_ && !must_end) {
        at = std::lower_bound(at, above.end(), nearest);
      }
      for (; at != above.end(); ++at) {
        if (total_ > 0 && bytes.least_after[*at] - bytes.need[k] > most_bytes) {
          break;
        }
        if (left_[*at] > most_work || bytes.left[*at] > memory_left_[set.to] ||
            !improves(base[k], after.cells[*at].block)) {
          continue;
        }
        const double busy = seconds(edge, k, *at);
        if ((chain_ ? busy : seconds_of(least_after_, edge, k, *at)) > limit || (busy > enough && *at > k + 1)) {
          break;
        }
        const double spread = amortised ? reduction(edge, k, *at) / problem_.micro_batches : 0;
        const double block = std::max(base[k], busy + spread);
        if (block <= limit && improves(block, after.cells[*at].block) && can_be(edge, k, *at, stage)) {
          after.set(*at, {block, edge, k});
        }
      }
    }
  }

  // [state]: the least block of a pipeline whose next stage takes the edge's devices and begins at the state; infinite
  // where it is of no use.
  std::vector<double> blocks_before(const Row& before, int edge, int stage, double limit) {
    const double most_work = limit * speed_left_[sets_.edges[edge].from] * (1 + kTie);
    std::vector<double> base(last_ + 1, kInfinity);
    for (int k = before.first; k <= std::min(before.last, last_ - 1); ++k) {
      const Cell& cell = before.cells[k];
      if (cell.block <= limit && cell.block < kInfinity && left_[k] <= most_work) {
        base[k] = stage == 0 ? 0 : std::max(cell.block, 2 * sending(cell.edge, edge, k));
      }
    }
    return base;
  }

  // Whether, in a chain, a stage that begins at the next state takes clearly less time than one that begins at `k`, and
  // fits wherever that one fits. What ties decide is far less.
  bool is_replaced(int edge, int k, int stage, const Bounds& bytes) const {
    constexpr double kClear = 1e-8;
    const bool is_shorter = std::all_of(types_[edge].begin(), types_[edge].end(), [&](const auto& type) {
      const std::vector<double>& upto = costs_.seconds[type.first];
      return upto[k + 1] - upto[k] > kClear * upto.back();
    });
    if (!chain_ || !is_shorter || total_ == 0 || std::isinf(least_memory_[edge].value)) {
      return chain_ && is_shorter;
    }
    const double share = 1.0 / static_cast<double>(sets_.edges[edge].devices.size());
    const double incoming =
        costs_.cut_bytes[k + 1] - costs_.cut_bytes[k] - costs_.input_bytes[k + 1] + costs_.input_bytes[k];
    const Bytes border = stage_memory(problem_.training, 0, {}, Bytes{share}, {}, problem_.training.recompute.what)
                             .total(in_flight_[stage], 1);
    return bytes.need[k + 1] - bytes.need[k] - incoming * border.value > kClear * least_memory_[edge].value;
  }

  const Problem& problem_;
  AntichainStates states_;
  StateCosts costs_;
  DeviceSets sets_;
  int last_;
  int total_ = 0;
  bool chain_ = true;            // every state holds the one before it
  std::vector<int> indivisible_; // [state]
  std::vector<double> left_, speed_left_;
  std::vector<std::vector<double>> least_after_;
  double balanced_ = 0;                                            ///< the block if all work were spread evenly
  std::vector<std::vector<std::pair<std::size_t, double>>> types_; // [edge]: device types and how many
  std::vector<Bytes> least_memory_;                                // [edge]
  std::vector<double> memory_left_;                                // [node]
  std::vector<int> entering_;                                      // [edge]: its number at the node it leads to
  std::vector<std::vector<std::optional<PathCost>>> paths_;        // [edge][number of the one before]
  std::vector<double> in_flight_;                                  // [stage] of `total_`
  int versions_ = 1;                                               // of the weights, under the same schedule
  std::vector<Candidate> unbound_;                                 // candidates(), once they were asked for
  Above few_above_;
  std::map<std::pair<int, std::size_t>, Bounds> bounds_; // [stage, devices of it]
};

// Among the candidates whose scores are within the formula's error of the best, the fastest in replay; without a
// replay, the one with the least latency.
PlanResult choose(const PlanRequest& request, const DappleSearch& search, std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  PlanResult best = Infeasible{"no pipeline was found"};
  std::string why_not;
  double least = kInfinity;
  double least_score = kInfinity;
  int replayed = 0;
  for (const Candidate& candidate : candidates) {
    Plan plan = search.plan_of(candidate);
    if (const auto shortage = plan_shortage(request.problem, plan, 1, request.in_flight, request.versions)) {
      why_not = why_not.empty() ? to_text(*shortage, request.problem.platform) : why_not;
      continue;
    }
    least_score = std::min(least_score, candidate.score);
    if (candidate.score > (1 + kNearTie) * least_score || replayed >= std::min(kMostReplayed, request.budget)) {
      break;
    }
    double seconds = candidate.latency;
    if (request.evaluate) {
      ++replayed;
      const Evaluation measured = request.evaluate(plan);
      seconds = measured.why_not.empty() ? measured.iteration.value : kInfinity;
    }
    if (std::holds_alternative<Infeasible>(best) || improves(seconds, least)) {
      least = seconds;
      best = std::move(plan);
    }
  }
  return least_score < kInfinity || why_not.empty() ? best : PlanResult{Infeasible{why_not}};
}

// A search, and of how many devices the groups are that it places.
struct CoarseSearch {
  DappleSearch search;
  int grain = 1;
};

// The finest groups with few enough sets.
CoarseSearch begin_search(const Problem& problem, const std::vector<DeviceId>& devices, int most, int cap) {
  int grain = 1;
  auto sets = device_sets(problem, devices, most, grain, kMostEdges);
  while (!sets) {
    grain *= 2;
    sets = device_sets(problem, devices, most, grain, kMostEdges);
  }
  return {DappleSearch(problem, antichain_states(problem.model, cap), std::move(*sets)), grain};
}

} // namespace

PlanResult split_dapple(const PlanRequest& request) {
  const Problem& problem = request.problem;
  if (request.devices.size() > kMostDappleDevices) {
    return Infeasible{std::to_string(request.devices.size()) + " devices are too many for dapple; allowed: at most " +
                      std::to_string(kMostDappleDevices)};
  }
  const AbleDevices able = able_devices(request);
  if (able.devices.empty()) {
    return Infeasible{able.lacks};
  }
  const int count = static_cast<int>(able.devices.size());
  const int most = problem.divisible_at_will ? count : static_cast<int>(std::min<double>(count, problem.samples));
  const int cap = std::min(request.state_cap, kMostDappleStates);
  const auto coarse = kept_for<CoarseSearch>(request, [&] { return begin_search(problem, able.devices, most, cap); });
  DappleSearch& search = coarse->search;
  PlanResult result = choose(request, search, search.candidates());
  if (std::holds_alternative<Infeasible>(result)) {
    std::vector<Candidate> fitting;
    for (int stages = 1; stages <= std::min(count, kMostStages); ++stages) {
      const std::vector<Candidate> more = search.fitting_candidates(request, stages);
      fitting.insert(fitting.end(), more.begin(), more.end());
    }
    PlanResult smaller = choose(request, search, std::move(fitting));
    if (Plan* plan = std::get_if<Plan>(&smaller)) {
      plan->memory_bound = true;
      result = std::move(smaller);
    }
  }
  if (Plan* plan = std::get_if<Plan>(&result)) {
    plan->note = note_of(search.states(), cap);
    if (coarse->grain > 1) {
      plan->note += (plan->note.empty() ? "" : "; ") + std::string("devices were taken in groups of ") +
                    std::to_string(coarse->grain);
    }
  }
  return result;
}

} // namespace stagecraft
