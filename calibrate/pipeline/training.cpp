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

#include "sim/schedule/pace.hpp"

namespace stagecraft::pipeline {
namespace {

using Eigen::MatrixXd;

// Half the mean square error, summed over outputs; `samples` samples are one step.
double loss_of(const MatrixXd& output, const MatrixXd& targets, double samples) {
  return (output - targets).squaredNorm() / (2 * samples);
}

Layers part_of(const Layers& layers, int begin, int count) {
  return {layers.begin() + begin, layers.begin() + begin + count};
}

} // namespace

Training::Training(const Setting& setting, const Schedule& schedule, TrainingSetup setup)
    : graph_(setting.graph), schedule_(schedule), setup_(std::move(setup)) {
  find_replicas(setting);
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
  for (Replica& replica : replicas_) {
    const int begin = std::accumulate(setup_.layers.begin(), setup_.layers.begin() + replica.stage, 0);
    replica.weights.push_back(std::make_shared<Layers>(part_of(whole, begin, setup_.layers[replica.stage])));
    replica.last_change = zeros_like(*replica.weights.front());
    replica.gradients.fill(replica.last_change);
    replica.slots.resize(numbers);
    for (Slot& slot : replica.slots) {
      slot.input = slot.output_gradient = MatrixXd::Constant(setup_.width, end_column(replica) - first_column(replica),
                                                             std::numeric_limits<double>::quiet_NaN());
    }
  }
}

// Makes a replica for each device and stage that has a forward, and finds the first micro-batch that the first stage
// begins.
void Training::find_replicas(const Setting& setting) {
  const std::size_t stages = setup_.layers.size();
  replica_of_.assign(graph_.devices.size(), std::vector<int>(stages, -1));
  replicas_of_.resize(stages);
  runs_again_.assign(graph_.tasks(), 0);
  std::set<std::array<int, 3>> again; // device, stage, micro-batch with recompute
  first_ = std::numeric_limits<int>::max();
  for (TaskId task = 0; task < graph_.tasks(); ++task) {
    const Work& work = graph_.works[graph_.work[task]];
    if (work.kind == TaskKind::recompute) {
      again.insert({work.device, work.stage, graph_.micro_batch[task]});
    }
    if (work.kind != TaskKind::forward || !work.computes()) {
      continue;
    }
    if (int& replica = replica_of_[work.device][work.stage]; replica < 0) {
      replica = static_cast<int>(replicas_.size());
      replicas_.push_back({.device = work.device, .stage = work.stage});
      replicas_of_[work.stage].push_back(replica);
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
    std::vector<int>& replicas = replicas_of_[stage];
    const auto place = [&](int replica) {
      const DeviceId device = graph_.devices[replicas_[replica].device];
      const auto& shares = setup_.shares[stage];
      return std::find_if(shares.begin(), shares.end(), [&](const ReplicaShare& one) { return one.device == device; }) -
             shares.begin();
    };
    std::stable_sort(replicas.begin(), replicas.end(), [&](int a, int b) { return place(a) < place(b); });
  }
  if (setting.graph.devices.empty() || replicas_.empty()) {
    throw std::invalid_argument("there is nothing to train");
  }
}

// Replicas that run the same micro-batches get a part of each; replicas that take turns get whole ones.
void Training::share_out() {
  std::vector<int> forwards(replicas_of_.size(), 0);
  for (const std::int32_t work : graph_.work) {
    forwards[graph_.works[work].stage] += graph_.works[work].kind == TaskKind::forward ? 1 : 0;
  }
  for (std::size_t stage = 0; stage < replicas_of_.size(); ++stage) {
    const std::vector<int>& replicas = replicas_of_[stage];
    if (forwards[stage] == schedule_.micro_batches) {
      continue;
    }
    double begin = 0;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const bool given = stage < setup_.shares.size() && !setup_.shares[stage].empty();
      const double share = given ? setup_.shares[stage][i].share : 1.0 / static_cast<double>(replicas.size());
      Replica& replica = replicas_[replicas[i]];
      if (share < 1) {
        replica.begin = begin;
        replica.end = i + 1 == replicas.size() ? 1 : begin + share;
        begin += share;
      }
      if (first_column(replica) == end_column(replica)) {
        throw std::invalid_argument("a replica of stage " + std::to_string(stage) +
                                    " has no sample; allowed: " + "micro-batches of more samples than replicas");
      }
    }
  }
}

// The receivers of a transfer are the devices whose tasks wait for it, in this iteration or a later one. A fused task
// waits where its first task does, whatever the stage of that.
void Training::find_receivers() {
  receivers_.resize(graph_.tasks());
  for (TaskId task = 0; task < graph_.tasks(); ++task) {
    const Work& work = graph_.works[graph_.work[task]];
    if (work.kind != TaskKind::transfer || std::abs(work.to_stage - work.stage) != 1) {
      continue; // a perceptron has no skip connections
    }
    const auto add = [&](TaskId next) {
      const Work& to = graph_.works[graph_.work[next]];
      const int replica = to.computes() ? replica_of_[to.device][work.to_stage] : -1;
      if (replica >= 0) {
        receivers_[task].push_back(replica);
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
  std::vector<char> joined(replicas_of_.size(), 0); // [stage]: whether it shares a device with the stage before
  for (const std::vector<int>& stages : replica_of_) {
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

int Training::first_column(const Replica& replica) const {
  return static_cast<int>(std::lround(replica.begin * setup_.samples));
}
int Training::end_column(const Replica& replica) const {
  return static_cast<int>(std::lround(replica.end * setup_.samples));
}

// Copies the samples that both replicas have.
void Training::copy_columns(const MatrixXd& from, const Replica& sender, MatrixXd& to, const Replica& receiver) const {
  const int begin = std::max(first_column(sender), first_column(receiver));
  const int count = std::min(end_column(sender), end_column(receiver)) - begin;
  if (count > 0) {
    to.middleCols(begin - first_column(receiver), count) = from.middleCols(begin - first_column(sender), count);
  }
}

// Takes what the neighbouring stage made on this device, which needs no transfer, and checks that everything has
// arrived.
void Training::gather(Replica& replica, int number, bool forwards) {
  Slot& slot = replica.slots[number];
  MatrixXd& to = forwards ? slot.input : slot.output_gradient;
  const int neighbour = replica.stage + (forwards ? -1 : 1);
  if (const int index = replica_of_[replica.device][neighbour]; index >= 0) {
    const Replica& other = replicas_[index];
    const MatrixXd& from = forwards ? other.slots[number].output : other.slots[number].input_gradient;
    if (from.size() > 0) {
      copy_columns(from, other, to, replica);
    }
  }
  if (!to.allFinite()) {
    throw std::runtime_error("not all of micro-batch " + std::to_string(number) + " has arrived from stage " +
                             std::to_string(neighbour));
  }
}

void Training::compute(const Job& job) {
  const int index = replica_of_[job.work.device][job.work.stage];
  Replica& replica = replicas_[index];
  if (job.work.kind == TaskKind::optimizer) {
    step(replica);
    return;
  }
  const int one = number(job);
  if (one < first_) {
    return; // begun before the run
  }
  switch (job.work.kind) {
  case TaskKind::forward:
    return run_forward(replica, job, one);
  case TaskKind::recompute:
    return run_again(replica, one);
  case TaskKind::backward:
    return run_backward(replica, one);
  case TaskKind::weight:
    return add_gradients(replica, one);
  default:
    throw std::runtime_error("a task that is no part of training");
  }
}

// The number of the step that the gradient of a micro-batch belongs to. A late step belongs to the round before the one
// in which it runs, so that the first of them does nothing.
int Training::step_of(const Replica& replica, int number) const {
  return pace_of(schedule_).steps_late ? number / schedule_.micro_batches + 1 : replica.steps;
}

Layers& Training::gradients_of(Replica& replica, int step) const {
  return replica.gradients[static_cast<std::size_t>(step) % replica.gradients.size()];
}

void Training::run_forward(Replica& replica, const Job& job, int number) {
  Slot& slot = replica.slots[number];
  if (replica.stage == 0) {
    slot.input = examples(number).inputs.middleCols(first_column(replica), end_column(replica) - first_column(replica));
  } else {
    gather(replica, number, true);
  }
  const int ahead = graph_.ahead.empty() ? 0 : graph_.ahead[job.task];
  slot.used = schedule_.predicts_weights && ahead > 0 // XPipe: predicted along the last step (Guan et al. 2019)
                  ? std::make_shared<Layers>(sum(*replica.weights.front(), ahead, replica.last_change))
                  : replica.weights.front();
  slot.steps = replica.steps;
  slot.waits = true;
  slot.outputs = pipeline::forward(*slot.used, slot.input, last(replica));
  slot.output = slot.outputs.back();
  replica.most_held = std::max(replica.most_held, ++replica.held);
  count_versions(replica, number);
  if (last(replica)) {
    const MatrixXd targets =
        examples(number).targets.middleCols(first_column(replica), end_column(replica) - first_column(replica));
    losses_[number] += loss_of(slot.output, targets, setup_.samples);
    const double together = schedule_.steps_each_micro_batch ? static_cast<double>(replicas_of_[replica.stage].size())
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

void Training::run_again(Replica& replica, int number) {
  Slot& slot = replica.slots[number];
  slot.outputs = pipeline::forward(weights_of(replica, slot), slot.input, last(replica));
}

void Training::run_backward(Replica& replica, int number) {
  Slot& slot = replica.slots[number];
  if (!std::exchange(slot.waits, false)) {
    return; // done already: a backward in several parts
  }
  if (!last(replica)) {
    gather(replica, number, false);
  }
  if (slot.outputs.empty()) {
    throw std::runtime_error("the activations of micro-batch " + std::to_string(number) + " are missing");
  }
  slot.gradients = pipeline::backward(weights_of(replica, slot), slot.outputs, slot.output_gradient, last(replica));
  slot.input_gradient = slot.gradients.input;
  slot.used.reset();
  if (!schedule_.splits_backward) {
    add_gradients(replica, number);
  }
}

void Training::add_gradients(Replica& replica, int number) {
  Slot& slot = replica.slots[number];
  const int step = step_of(replica, number);
  add_weight_gradients(gradients_of(replica, step), slot.input, slot.outputs, slot.gradients);
  const bool of_nothing = pace_of(schedule_).steps_late && slot.steps == 0; // the first late step changes no weights
  replica.stale_sum += step - slot.steps - (of_nothing ? 1 : 0);
  ++replica.updates;
  --replica.held;
  slot.outputs.clear();
  slot.gradients = {};
}

// Adds the gradients of all replicas, in the same order on each; a step before the first micro-batch does nothing.
void Training::step(Replica& replica) {
  Layers total = zeros_like(*replica.weights.front());
  for (const int other : replicas_of_[replica.stage]) {
    total = sum(total, 1, gradients_of(replicas_[other], replica.steps));
  }
  replica.last_change = sum(zeros_like(total), -setup_.rate, total);
  replica.weights.insert(replica.weights.begin(),
                         std::make_shared<Layers>(sum(*replica.weights.front(), 1, replica.last_change)));
  const std::size_t kept = schedule_.versions.empty() ? 1 : static_cast<std::size_t>(schedule_.versions[replica.stage]);
  replica.weights.resize(std::min(replica.weights.size(), kept));
  ++replica.steps;
  gradients_of(replica, replica.steps + (pace_of(schedule_).steps_late ? 1 : 0)) =
      zeros_like(total); // of the next gradients
}

void Training::count_versions(Replica& replica, int number) {
  std::set<const Layers*> alive = {replica.weights.front().get()};
  for (int n = 0; n <= number; ++n) {
    alive.insert(replica.slots[n].used.get());
  }
  alive.erase(nullptr);
  replica.versions = std::max(replica.versions, static_cast<int>(alive.size()));
}

void Training::transfer(const Job& job, int /*channel*/) {
  const int one = number(job);
  if (one < first_ || receivers_[job.task].empty()) {
    return;
  }
  const bool forwards = job.work.to_stage > job.work.stage;
  const Replica& sender = replicas_[replica_of_[job.work.device][job.work.stage]];
  for (const int receiver : receivers_[job.task]) {
    Replica& replica = replicas_[receiver];
    const Slot& from = sender.slots[one];
    copy_columns(forwards ? from.output : from.input_gradient, sender,
                 forwards ? replica.slots[one].input : replica.slots[one].output_gradient, replica);
  }
}

TrainingResult Training::result() const {
  TrainingResult result;
  for (const std::vector<int>& replicas : replicas_of_) {
    const Replica& first = replicas_[replicas.front()];
    const Layers& weights = *first.weights.front();
    result.layers.insert(result.layers.end(), weights.begin(), weights.end());
    double stale = 0;
    int updates = 0, versions = 0, held = 0;
    for (const int index : replicas) {
      const Replica& replica = replicas_[index];
      result.replicas_differ = std::max(result.replicas_differ, largest_difference(*replica.weights.front(), weights));
      stale += replica.stale_sum;
      updates += replica.updates;
      versions = std::max(versions, replica.versions);
      held = std::max(held, replica.most_held);
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
