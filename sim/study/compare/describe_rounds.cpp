// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/describe_rounds.hpp"

namespace stagecraft {

std::vector<RunRound> describe_rounds(const std::vector<BalanceRound>& rounds, const ModelGraph& model,
                                      const Platform& platform) {
  const auto group = [&](const std::vector<OperatorId>& operators, const std::vector<DeviceId>& devices) {
    RunRound::Group named;
    for (const OperatorId op : operators) {
      named.operators.push_back(model.operators[op].name);
    }
    for (const DeviceId device : devices) {
      named.devices.push_back(platform.devices[device].name);
    }
    return named;
  };
  std::vector<RunRound> described;
  for (const BalanceRound& round : rounds) {
    RunRound& named = described.emplace_back();
    for (const Stage& stage : round.stages) {
      named.stages.push_back(group(stage.operators, stage.devices));
      named.stages.back().shares = stage.shares;
    }
    for (const Candidates& candidates : round.candidates) {
      named.candidates.push_back(group(candidates.operators, candidates.devices));
    }
    named.devices = group({}, round.devices).devices;
    named.weights = round.weights;
    named.step = round.step;
    named.held = round.held;
    named.iteration = round.iteration;
    named.largest_waiting = round.largest_waiting();
    named.mean_waiting = round.mean_waiting();
    named.waiting = round.waiting;
    named.tail = round.tail;
    named.waiting_shares = round.waiting_shares();
    named.why_not = round.why_not;
    named.action = round.action;
  }
  return described;
}

} // namespace stagecraft
