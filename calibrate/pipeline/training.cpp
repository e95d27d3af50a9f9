// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

namespace stagecraft::pipeline {
namespace {

using Eigen::MatrixXd;

// Half the mean square, summed over the outputs; N samples are one step.
double loss_of(const MatrixXd& output, const MatrixXd& targets, double samples) {
  return (output - targets).squaredNorm() / (2 * samples);
}

Layers part_of(const Layers& layers, int begin, int count) {
  return {layers.begin() + begin, layers.begin() + begin + count};
}

} // namespace

Training::Training(const Setting& setting, const Schedule& schedule, TrainingSetup setup)
    : graph_(setting.graph), schedule_(schedule), setup_(std::move(setup)) {
  find_lanes(setting);
  share_out();
  find_receivers();
  check_chain();
  const Layers whole =
      make_perceptron(std::accumulate(setup_.layers.begin(), setup_.layers.end(), 0), setup_.width, setup_.seed);
  int rounds = setup_.iterations;
  for (const std::int32_t ahead : graph_.ahead) {
    rounds = std::max(rounds, setup_.iterations + ahead);
  }
  const int numbers = rounds * schedule_.micro_batches;
  for (int n = 0; n < numbers; ++n) {
    examples_.push_back(make_examples(setup_.width, setup_.samples, setup_.seed, n));
  }
  losses_ = std::vector<std::atomic<double>>(static_cast<std::size_t>(numbers));
  for (Lane& lane : lanes_) {
    const int begin = std::accumulate(setup_.layers.begin(), setup_.layers.begin() + lane.stage, 0);
    lane.weights.push_back(std::make_shared<Layers>(part_of(whole, begin, setup_.layers[lane.stage])));
    lane.last_change = lane.gradients[0] = lane.gradients[1] = zeros_like(*lane.weights.front());
    lane.slots.resize(numbers);
    for (Slot& slot : lane.slots) {
      slot.input = slot.output_gradient = MatrixXd::Constant(setup_.width, end_column(lane) - first_column(lane),
                                                             std::numeric_limits<double>::quiet_NaN());
    }
  }
}

// A lane for each device and stage that F knows, and the first micro-batch that the first stage begins.
void Training::find_lanes(const Setting& setting) {
  const std::size_t stages = setup_.layers.size();
  lane_of_.assign(graph_.devices.size(), std::vector<int>(stages, -1));
  lanes_of_.resize(stages);
  runs_again_.assign(graph_.tasks(), 0);
  std::set<std::array<int, 3>> again; // device, stage, micro-batch
  first_ = std::numeric_limits<int>::max();
  for (TaskId task = 0; task < graph_.tasks(); ++task) {
    const Work& work = graph_.works[graph_.work[task]];
    if (work.kind == TaskKind::recompute) {
      again.insert({work.device, work.stage, graph_.micro_batch[task]});
    }
    if (work.kind != TaskKind::forward || !work.computes()) {
      continue;
    }
    if (int& lane = lane_of_[work.device][work.stage]; lane < 0) {
      lane = static_cast<int>(lanes_.size());
      lanes_.push_back({.device = work.device, .stage = work.stage});
      lanes_of_[work.stage].push_back(lane);
    }
    if (work.stage == 0) {
      const int ahead = graph_.ahead.empty() ? 0 : graph_.ahead[task];
      first_ = std::min(first_, ahead * schedule_.micro_batches + graph_.micro_batch[task]);
    }
  }
  for (TaskId task = 0; task < graph_.tasks(); ++task) {
    const Work& work = graph_.works[graph_.work[task]];
    if (work.kind == TaskKind::forward && again.contains({work.device, work.stage, graph_.micro_batch[task]})) {
      runs_again_[task] = 1;
    }
  }
  for (std::size_t stage = 0; stage < setup_.shares.size(); ++stage) { // in the order of the replicas
    std::vector<int>& lanes = lanes_of_[stage];
    const auto place = [&](int lane) {
      const DeviceId device = graph_.devices[lanes_[lane].device];
      const auto& shares = setup_.shares[stage];
      return std::find_if(shares.begin(), shares.end(), [&](const ReplicaShare& one) { return one.device == device; }) -
             shares.begin();
    };
    std::stable_sort(lanes.begin(), lanes.end(), [&](int a, int b) { return place(a) < place(b); });
  }
  if (setting.graph.devices.empty() || lanes_.empty()) {
    throw std::invalid_argument("there is nothing to train");
  }
}

// Replicas that run the same micro-batches each take a part of them; those that take turns have theirs whole.
void Training::share_out() {
  std::vector<int> forwards(lanes_of_.size(), 0);
  for (const std::int32_t work : graph_.work) {
    forwards[graph_.works[work].stage] += graph_.works[work].kind == TaskKind::forward ? 1 : 0;
  }
  for (std::size_t stage = 0; stage < lanes_of_.size(); ++stage) {
    const std::vector<int>& lanes = lanes_of_[stage];
    if (forwards[stage] == schedule_.micro_batches) {
      continue;
    }
    double begin = 0;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const bool given = stage < setup_.shares.size() && !setup_.shares[stage].empty();
      const double share = given ? setup_.shares[stage][i].share : 1.0 / static_cast<double>(lanes.size());
      Lane& lane = lanes_[lanes[i]];
      if (share < 1) {
        lane.begin = begin;
        lane.end = i + 1 == lanes.size() ? 1 : begin + share;
        begin += share;
      }
      if (first_column(lane) == end_column(lane)) {
        throw std::invalid_argument("a replica of stage " + std::to_string(stage) +
                                    " has no sample; allowed: " + "micro-batches of more samples than replicas");
      }
    }
  }
}

// A transfer ends at the devices whose tasks wait for it, in this iteration or a later one. What is fused waits with
// its first task, whatever that one's stage.
void Training::find_receivers() {
  receivers_.resize(graph_.tasks());
  for (TaskId task = 0; task < graph_.tasks(); ++task) {
    const Work& work = graph_.works[graph_.work[task]];
    if (work.kind != TaskKind::transfer || std::abs(work.to_stage - work.stage) != 1) {
      continue; // a perceptron has no skips
    }
    const auto add = [&](TaskId next) {
      const Work& to = graph_.works[graph_.work[next]];
      const int lane = to.computes() ? lane_of_[to.device][work.to_stage] : -1;
      if (lane >= 0) {
        receivers_[task].push_back(lane);
      }
    };
    for (const TaskId next : graph_.successors_of(task)) {
      add(next);
    }
    for (const Tie& tie : graph_.ties_of(task)) {
      add(tie.to);
    }
  }
}

void Training::check_chain() const {
  std::vector<char> joined(lanes_of_.size(), 0); // with the stage before
  for (const std::vector<int>& stages : lane_of_) {
    for (std::size_t stage = 1; stage < stages.size(); ++stage) {
      joined[stage] |= static_cast<char>(stages[stage] >= 0 && stages[stage - 1] >= 0);
    }
  }
  for (TaskId task = 0; task < graph_.tasks(); ++task) {
    if (!receivers_[task].empty()) {
      const Work& work = graph_.works[graph_.work[task]];
      joined[std::max(work.stage, work.to_stage)] = 1;
    }
  }
  for (std::size_t stage = 1; stage < joined.size(); ++stage) {
    if (joined[stage] == 0) {
      throw std::invalid_argument(
          "stage " + std::to_string(stage) +
          " needs nothing of the stage before it; allowed: " + "plans whose stages are a chain");
    }
  }
}

int Training::number(const Job& job) const {
  const int ahead = graph_.ahead.empty() ? 0 : graph_.ahead[job.task];
  return (job.iteration + ahead) * schedule_.micro_batches + graph_.micro_batch[job.task];
}

int Training::first_column(const Lane& lane) const {
  return static_cast<int>(std::lround(lane.begin * setup_.samples));
}
int Training::end_column(const Lane& lane) const { return static_cast<int>(std::lround(lane.end * setup_.samples)); }

// Those samples that both have.
void Training::copy_columns(const MatrixXd& from, const Lane& sender, MatrixXd& to, const Lane& receiver) const {
  const int begin = std::max(first_column(sender), first_column(receiver));
  const int count = std::min(end_column(sender), end_column(receiver)) - begin;
  if (count > 0) {
    to.middleCols(begin - first_column(receiver), count) = from.middleCols(begin - first_column(sender), count);
  }
}

// What the neighbouring stage made on this same device needs no transfer.
void Training::gather(Lane& lane, int number, bool forwards) {
  Slot& slot = lane.slots[number];
  MatrixXd& to = forwards ? slot.input : slot.output_gradient;
  const int neighbour = lane.stage + (forwards ? -1 : 1);
  if (const int index = lane_of_[lane.device][neighbour]; index >= 0) {
    const Lane& other = lanes_[index];
    const MatrixXd& from = forwards ? other.slots[number].output : other.slots[number].input_gradient;
    if (from.size() > 0) {
      copy_columns(from, other, to, lane);
    }
  }
  if (!to.allFinite()) {
    throw std::runtime_error("not all of micro-batch " + std::to_string(number) + " has arrived from stage " +
                             std::to_string(neighbour));
  }
}

void Training::compute(const Job& job) {
  const int index = lane_of_[job.work.device][job.work.stage];
  Lane& lane = lanes_[index];
  if (job.work.kind == TaskKind::optimizer) {
    step(lane);
    return;
  }
  const int one = number(job);
  if (one < first_) {
    return; // begun before the run
  }
  switch (job.work.kind) {
  case TaskKind::forward:
    return run_forward(lane, job, one);
  case TaskKind::recompute:
    return run_again(lane, one);
  case TaskKind::backward:
    return run_backward(lane, one);
  case TaskKind::weight:
    return add_gradients(lane, one);
  default:
    throw std::runtime_error("a task that is no part of training");
  }
}

// How many steps older than the newest the weights of a forward are. Of orders that keep versions and step once a round
// those that all stages have when the round's first micro-batch begins: PipeDream-2BW's two (Narayanan et al. 2021b,
// §3.1). Of all others the newest.
int Training::age(const Lane& lane, int number) const {
  if (schedule_.versions.empty() || schedule_.steps_each_micro_batch || schedule_.predicts_weights) {
    return 0;
  }
  const int round = number / schedule_.micro_batches;
  const int wanted = std::max(0, round - static_cast<int>(std::lround(schedule_.staleness[lane.stage])));
  return lane.steps - std::min(wanted, lane.steps);
}

void Training::run_forward(Lane& lane, const Job& job, int number) {
  Slot& slot = lane.slots[number];
  if (lane.stage == 0) {
    slot.input = examples(number).inputs.middleCols(first_column(lane), end_column(lane) - first_column(lane));
  } else {
    gather(lane, number, true);
  }
  const int ahead = graph_.ahead.empty() ? 0 : graph_.ahead[job.task], older = age(lane, number);
  slot.used = schedule_.predicts_weights && ahead > 0 // XPipe: where the last step leads (Guan et al. 2019)
                  ? std::make_shared<Layers>(sum(*lane.weights.front(), ahead, lane.last_change))
                  : lane.weights.at(older);
  slot.steps = lane.steps - older;
  slot.waits = true;
  slot.outputs = pipeline::forward(*slot.used, slot.input, last(lane));
  slot.output = slot.outputs.back();
  lane.most_held = std::max(lane.most_held, ++lane.held);
  count_versions(lane, number);
  if (last(lane)) {
    const MatrixXd targets =
        examples(number).targets.middleCols(first_column(lane), end_column(lane) - first_column(lane));
    losses_[number] += loss_of(slot.output, targets, setup_.samples);
    const double together = schedule_.steps_each_micro_batch ? static_cast<double>(lanes_of_[lane.stage].size())
                                                             : static_cast<double>(schedule_.micro_batches);
    slot.output_gradient = (slot.output - targets) / (setup_.samples * together);
  }
  if (runs_again_[job.task] != 0) {
    slot.outputs.clear();
  }
  if (!keeps_weights()) {
    slot.used.reset();
  }
}

void Training::run_again(Lane& lane, int number) {
  Slot& slot = lane.slots[number];
  slot.outputs = pipeline::forward(weights_of(lane, slot), slot.input, last(lane));
}

void Training::run_backward(Lane& lane, int number) {
  Slot& slot = lane.slots[number];
  if (!std::exchange(slot.waits, false)) {
    return; // done: a backward of several parts
  }
  if (!last(lane)) {
    gather(lane, number, false);
  }
  if (slot.outputs.empty()) {
    throw std::runtime_error("the activations of micro-batch " + std::to_string(number) + " are not there");
  }
  slot.gradients = pipeline::backward(weights_of(lane, slot), slot.outputs, slot.output_gradient, last(lane));
  slot.input_gradient = slot.gradients.input;
  slot.used.reset();
  if (!schedule_.splits_backward) {
    add_gradients(lane, number);
  }
}

void Training::add_gradients(Lane& lane, int number) {
  Slot& slot = lane.slots[number];
  add_weight_gradients(lane.gradients[lane.steps % 2], slot.input, slot.outputs, slot.gradients);
  lane.stale_sum += lane.steps - slot.steps;
  ++lane.updates;
  --lane.held;
  slot.outputs.clear();
  slot.gradients = {};
}

// The gradients of all replicas, in one order everywhere; a step before the first micro-batch does nothing.
void Training::step(Lane& lane) {
  Layers total = zeros_like(*lane.weights.front());
  for (const int other : lanes_of_[lane.stage]) {
    total = sum(total, 1, lanes_[other].gradients[lane.steps % 2]);
  }
  lane.last_change = sum(zeros_like(total), -setup_.rate, total);
  lane.weights.insert(lane.weights.begin(), std::make_shared<Layers>(sum(*lane.weights.front(), 1, lane.last_change)));
  const std::size_t kept = schedule_.versions.empty() ? 1 : static_cast<std::size_t>(schedule_.versions[lane.stage]);
  lane.weights.resize(std::min(lane.weights.size(), kept));
  ++lane.steps;
  lane.gradients[lane.steps % 2] = zeros_like(total);
}

void Training::count_versions(Lane& lane, int number) {
  std::set<const Layers*> alive = {lane.weights.front().get()};
  for (int n = 0; n <= number; ++n) {
    alive.insert(lane.slots[n].used.get());
  }
  alive.erase(nullptr);
  lane.versions = std::max(lane.versions, static_cast<int>(alive.size()));
}

void Training::transfer(const Job& job, int /*way*/) {
  const int one = number(job);
  if (one < first_ || receivers_[job.task].empty()) {
    return;
  }
  const bool forwards = job.work.to_stage > job.work.stage;
  const Lane& sender = lanes_[lane_of_[job.work.device][job.work.stage]];
  for (const int receiver : receivers_[job.task]) {
    Lane& lane = lanes_[receiver];
    const Slot& from = sender.slots[one];
    copy_columns(forwards ? from.output : from.input_gradient, sender,
                 forwards ? lane.slots[one].input : lane.slots[one].output_gradient, lane);
  }
}

TrainingResult Training::result() const {
  TrainingResult result;
  for (const std::vector<int>& lanes : lanes_of_) {
    const Lane& first = lanes_[lanes.front()];
    const Layers& weights = *first.weights.front();
    result.layers.insert(result.layers.end(), weights.begin(), weights.end());
    double stale = 0;
    int updates = 0, versions = 0, held = 0;
    for (const int index : lanes) {
      const Lane& lane = lanes_[index];
      result.replicas_differ = std::max(result.replicas_differ, largest_difference(*lane.weights.front(), weights));
      stale += lane.stale_sum;
      updates += lane.updates;
      versions = std::max(versions, lane.versions);
      held = std::max(held, lane.most_held);
    }
    result.staleness.push_back(updates > 0 ? stale / updates : 0);
    result.versions.push_back(versions);
    result.held.push_back(held);
  }
  for (int i = 0; i < setup_.iterations; ++i) {
    const int begin = std::max(first_, i * schedule_.micro_batches), end = (i + 1) * schedule_.micro_batches;
    double loss = 0;
    for (int n = begin; n < end; ++n) {
      loss += losses_[n] / (end - begin);
    }
    result.losses.push_back(loss);
  }
  return result;
}

TrainingResult train_sequentially(const TrainingSetup& setup, int micro_batches) {
  TrainingResult result;
  result.layers =
      make_perceptron(std::accumulate(setup.layers.begin(), setup.layers.end(), 0), setup.width, setup.seed);
  for (int i = 0; i < setup.iterations; ++i) {
    Layers total = zeros_like(result.layers);
    double loss = 0;
    for (int m = 0; m < micro_batches; ++m) {
      const Examples examples = make_examples(setup.width, setup.samples, setup.seed, i * micro_batches + m);
      const std::vector<MatrixXd> outputs = forward(result.layers, examples.inputs, true);
      loss += loss_of(outputs.back(), examples.targets, setup.samples) / micro_batches;
      const MatrixXd error = (outputs.back() - examples.targets) / (setup.samples * micro_batches);
      add_weight_gradients(total, examples.inputs, outputs, backward(result.layers, outputs, error, true));
    }
    result.layers = sum(result.layers, -setup.rate, total);
    result.losses.push_back(loss);
  }
  result.staleness.assign(setup.layers.size(), 0);
  result.versions.assign(setup.layers.size(), 1);
  result.held.assign(setup.layers.size(), 1);
  return result;
}

} // namespace stagecraft::pipeline
