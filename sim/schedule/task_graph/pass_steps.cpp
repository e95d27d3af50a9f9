// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/pass_steps.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/schedule/task_graph/pass_part.hpp"
#include "sim/schedule/task_graph/work_of_flow.hpp"

namespace stagecraft {
namespace {

// Data of two vendors' devices goes through hosts, and slows nothing down.
bool is_of_one_vendor(const Team& team, const Platform& platform) {
  return std::all_of(team.devices.begin(), team.devices.end(), [&](DeviceId device) {
    return platform.type_of(device).vendor == platform.type_of(team.devices.front()).vendor;
  });
}

std::optional<PassSteps> steps_of(const Work& work, const ExchangePlan& plan, const Platform& platform) {
  const PassPart made(plan.passes[work.steps], work.part_begin, work.part_end);
  const GroupPass& part = *made;
  const auto& of_device = plan.teams_of.at({work.stage, work.device});
  PassSteps steps;
  std::vector<std::size_t> ended = {0}; // [exchanges of the part]: those of the steps
  for (const PassExchange& exchange : part.exchanges) {
    const std::int32_t number = of_device[AxisGroups::place_of(exchange.axis)];
    const Team* const team = number < 0 ? nullptr : plan.teams[number].team;
    if (team == nullptr || team->group.ways == nullptr || !is_of_one_vendor(*team, platform)) {
      return std::nullopt;
    }
    bool is_first = true;
    for (const CoupledFlow& flow : flows_of(plan.teams[number], exchange)) {
      if (is_first || !flow.beside) {
        steps.exchanges.push_back({exchange.after, {}});
      }
      is_first = false;
      Work& made_of_flow = steps.exchanges.back().flows.emplace_back(
          work_of_flow(TaskKind::exchange, work.device, work.stage, -1, -1, flow, exchange.bytes));
      made_of_flow.slows = !exchange.counted;
    }
    ended.push_back(steps.exchanges.size());
  }
  for (const PassComputation& one : part.computations) {
    steps.computations.push_back({one.seconds, ended[one.needs]});
  }
  return steps;
}

} // namespace

void note_steps(TaskGraph& graph, const ExchangePlan& plan, const Platform& platform) {
  std::map<std::tuple<const GroupPass*, double, double, double, double>, std::int32_t> known;
  for (Work& work : graph.works) {
    if (work.steps < 0) {
      continue;
    }
    if (platform.type_of(graph.devices[work.device]).beside_exchange == BesideExchange{}) {
      work.steps = -1;
      continue;
    }
    const TimedPass& pass = plan.passes[work.steps];
    const auto [at, is_new] = known.try_emplace(
        {pass.pass, pass.before.value, pass.after.value, work.part_begin, work.part_end}, std::int32_t{-1});
    if (is_new) {
      if (std::optional<PassSteps> steps = steps_of(work, plan, platform)) {
        at->second = static_cast<std::int32_t>(graph.steps.size());
        graph.steps.push_back(*std::move(steps));
      }
    }
    work.steps = at->second;
  }
}

} // namespace stagecraft
