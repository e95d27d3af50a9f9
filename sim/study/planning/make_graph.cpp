// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/make_graph.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/stage_cost/passes/pair_seconds.hpp"
#include "sim/plan/stage_cost/passes/stream_times.hpp"
#include "sim/replay/beside_exchange.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/study/measure/measure_graph.hpp"

namespace stagecraft {
namespace {

// The largest number of forwards of the first stage in a row.
int longest_burst(const Schedule& schedule) {
  int longest = 1;
  for (const auto& order : schedule.orders) {
    int burst = 0;
    for (const Action& action : order) {
      burst = action.stage == 0 && action.kind == TaskKind::forward ? burst + 1 : 0;
      longest = std::max(longest, burst);
    }
  }
  return longest;
}

bool blocks_sends(BlockingSends sends, const Schedule& schedule) {
  const bool interleaved = schedule.stages > static_cast<int>(schedule.orders.size());
  return sends == BlockingSends::always || (sends == BlockingSends::unsplit && !schedule.splits_backward) ||
         (sends == BlockingSends::non_interleaved && !schedule.splits_backward && !interleaved);
}

// The passes of a device's replica; null where it exchanges nothing in them.
const GroupPasses* passes_on(const PlanCost& cost, int stage, DeviceId device) {
  const std::vector<ReplicaCost>& replicas = cost.stages[stage].replicas;
  const auto own = std::find_if(replicas.begin(), replicas.end(),
                                [&](const ReplicaCost& replica) { return replica.device == device; });
  const TensorGroup* group = cost.stages[stage].group_of(static_cast<std::size_t>(own - replicas.begin()));
  return group != nullptr ? group->passes.get() : nullptr;
}

// The most that computing is slowed down beside what goes to experts, 1 or more.
double slower_beside_experts(const GroupPass& pass, const DeviceType& type) {
  double slower = 1;
  for (const PassExchange& exchange : pass.exchanges) {
    slower = exchange.axis == Axis::experts ? std::max(slower, slower_beside(exchange, type)) : slower;
  }
  return slower;
}

// What the host does for each part of a pair beside its launches, to go from one pass to the other: streams wait for
// events, and autograd runs for each. By the host of a DGX H100, from functional tests of Megatron-LM
// (docs/validation/constants.md, "Launches of Megatron Core").
constexpr Seconds kHostOfPart{0.27e-3};

// Nothing where all of both is one captured graph.
Seconds host_of_part(const Problem& problem, const OrderedPlan& ordered, const FusedPair& pair,
                     const DeviceType& type) {
  const auto is_captured = [&](int stage) {
    const std::vector<OperatorId>& operators = ordered.plan.stages[stage].operators;
    return std::all_of(operators.begin(), operators.end(),
                       [&](OperatorId op) { return problem.model.operators[op].captured; });
  };
  const bool launches = problem.training.launches.each.value > 0;
  return launches && !(is_captured(pair.forward_stage) && is_captured(pair.backward_stage))
             ? kHostOfPart / type.host_speed
             : Seconds{0};
}

// What a pair takes, relative to one after the other, where ranks share experts: layer by layer, as Megatron-Core runs
// it, or the least that two streams can take. Nothing where they share none.
std::optional<double> part_beside_experts(const Problem& problem, const OrderedPlan& ordered, const FusedPair& pair) {
  const GroupPasses* forward = passes_on(ordered.cost, pair.forward_stage, pair.device);
  const GroupPasses* backward = passes_on(ordered.cost, pair.backward_stage, pair.device);
  if (forward == nullptr || backward == nullptr) {
    return std::nullopt;
  }
  const GroupPass& with_weights = pair.with_weight ? backward->backward : backward->backward_input;
  const std::size_t axis = AxisGroups::place_of(Axis::experts);
  const Seconds rows = forward->forward.of_axes[axis] + with_weights.of_axes[axis];
  if (rows.value <= 0) {
    return std::nullopt;
  }
  const DeviceType& type = problem.platform.type_of(pair.device);
  if (!ordered.schedule.pairs_by_layers) {
    const double slower =
        std::max(slower_beside_experts(forward->forward, type), slower_beside_experts(with_weights, type));
    return std::max(pair.apart - rows + rows * (1 - 1 / slower), rows) / pair.apart;
  }
  // The host launches both, so that it is late for the pair, not for each.
  const GroupPass& prompt_forward = forward->prompt ? forward->prompt->forward : forward->forward;
  const GroupPass& prompt_input = backward->prompt ? backward->prompt->backward_input : backward->backward_input;
  const GroupPass& prompt_backward = !backward->prompt  ? with_weights
                                     : pair.with_weight ? backward->prompt->backward
                                                        : prompt_input;
  const Seconds together =
      seconds_of_pair(split_at_experts(prompt_forward, type), split_at_experts(prompt_backward, prompt_input, type),
                      problem.training.delayed_weights, host_of_part(problem, ordered, pair, type));
  return std::min(1.0, together / (forward->forward.seconds + with_weights.seconds));
}

// What a fused forward and backward take, relative to one after the other: on the streams of their device; or, where
// its ranks share experts, each computing while the other's rows are under way, which is what such schedules are for
// (DeepSeek-AI 2024, 3.2.1; Megatron-Core's TransformerLayerSchedulePlan). Other groups run their kernels one by one.
// Each pair of stages and device is looked at once.
FusedPart fused_part(const Problem& problem, const OrderedPlan& ordered) {
  const auto part_of = [&problem, &ordered](const FusedPair& pair) {
    const Stage& one = ordered.plan.stages[pair.forward_stage];
    const Stage& other = ordered.plan.stages[pair.backward_stage];
    const auto streams_of = [&](const Stage& stage) {
      return stage.streams > 0 ? stage.streams : problem.training.streams;
    };
    const auto share_of = [&](int stage) {
      const std::vector<ReplicaCost>& replicas = ordered.cost.stages[stage].replicas;
      return std::find_if(replicas.begin(), replicas.end(),
                          [&](const ReplicaCost& replica) { return replica.device == pair.device; })
          ->share;
    };
    if (const std::optional<double> part = part_beside_experts(problem, ordered, pair)) {
      return *part;
    }
    const int streams = std::min(streams_of(one), streams_of(other));
    if (streams <= 1 || one.tensor_parallel > 1 || other.tensor_parallel > 1) {
      return 1.0;
    }
    const double together = seconds_side_by_side(problem, {one.operators, share_of(pair.forward_stage)},
                                                 {other.operators, share_of(pair.backward_stage)}, pair.with_weight,
                                                 problem.type_index(pair.device), streams);
    return together < pair.apart.value ? together / pair.apart.value : 1.0;
  };
  using Key = std::tuple<int, int, bool, DeviceId>;
  return [part_of, known = std::map<Key, double>()](const FusedPair& pair) mutable {
    const auto [slot, is_new] =
        known.try_emplace(Key{pair.forward_stage, pair.backward_stage, pair.with_weight, pair.device}, 1.0);
    if (is_new) {
      slot->second = part_of(pair);
    }
    return slot->second;
  };
}

// The task graph, with its transfers ordered where the study says so.
TaskGraph make_graph(const Study& study, const TaskGraphRequest& request) {
  TaskGraph graph = make_task_graph(request);
  if (study.training.ordered_sends) {
    order_transfers(graph);
  }
  return graph;
}

// What the first stage asks of its loader: how many batches in a burst and, where the study leaves the number of
// workers open, the time between batches.
Demand demand_of(const Study& study, const TaskGraphRequest& request, const Loader& loader) {
  Demand demand{.burst = longest_burst(request.schedule)};
  if (!loader.workers) {
    TaskGraphRequest plain = request;
    plain.exchanges = ExchangeTasks::none;
    demand.step = measure_analytic(study, make_graph(study, plain)).iteration / request.schedule.micro_batches;
  }
  return demand;
}

// The graph, or why no engine can replay it: SimGrid counts a transfer's bytes in 64 bits.
std::variant<TaskGraph, Infeasible> make_replayable(const Study& study, const TaskGraphRequest& request) {
  TaskGraph graph = make_graph(study, request);
  if (graph.undivided > 0 && request.exchanges == ExchangeTasks::all) {
    return Infeasible{"every exchange of its tensor-parallel groups is a task, which makes " +
                      to_text(graph.undivided, 0) + " tasks; allowed: at most " + to_text(request.most_tasks, 0) +
                      ", or 'detail: blocks'"};
  }
  for (const Work& work : graph.works) {
    if (work.bytes > physical::kSize.high) {
      return Infeasible{"stage " + std::to_string(work.stage) + " sends " + to_text(Bytes{work.bytes}) +
                        " at once, more than a replay holds; allowed: at most 1e18 B"};
    }
  }
  return graph;
}

// Why a stage's replicas cannot reduce their gradients, or gather their parameters, by the algorithm that the study
// names; "" if all can.
std::string not_reducible(const Problem& problem, const Plan& plan) {
  const std::string_view wanted = problem.training.all_reduce->name;
  if (wanted == kAllReduces.front().name) { // takes whichever can
    return "";
  }
  std::vector<CollectiveKind> kinds = {CollectiveKind::all_reduce};
  if (problem.training.sharding.on()) {
    kinds = problem.training.sharding.broadcasts()
                ? std::vector{CollectiveKind::all_reduce, CollectiveKind::broadcast}
                : std::vector{CollectiveKind::reduce_scatter, CollectiveKind::all_gather};
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
    for (std::size_t rank = 0; rank < degree && stage.devices.size() > degree; ++rank) {
      std::vector<DeviceId> replicas;
      for (std::size_t i = rank; i < stage.devices.size(); i += degree) {
        replicas.push_back(stage.devices[i]);
      }
      for (const CollectiveKind kind : kinds) {
        if (const std::string reason = why_not_wanted(kind, replicas, problem.router, wanted); !reason.empty()) {
          return "stage " + std::to_string(s) + " cannot " +
                 (kind == CollectiveKind::all_gather  ? "gather parameters"
                  : kind == CollectiveKind::broadcast ? "broadcast parameters"
                                                      : "reduce gradients") +
                 " by '" + std::string(wanted) + "': " + reason;
        }
      }
    }
  }
  return "";
}

// Why the replicas of a stage cannot share gradients or weights as the training says; "" if all can.
std::string not_shared(const Problem& problem, const Plan& plan) {
  const Sharding& sharding = problem.training.sharding;
  if (!sharding.on()) {
    return "";
  }
  const bool by_unit = sharding.by_unit();
  if (by_unit && problem.model.memory_given) {
    return "the model's file gives the memory of operators as a whole, so their weights and gradients cannot be "
           "shared; allowed: training.parallel.zero 0 or 1";
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const auto replicas = static_cast<int>(stage.replicas());
    const std::string name = "stage " + std::to_string(s);
    if (by_unit && stage.turns > 1) {
      return name + "'s replicas take micro-batches in turn, so they cannot gather weights or reduce gradients "
                    "together for each; allowed: training.parallel.zero 0 or 1";
    }
    const int apart = stage.axes().expert_replicas(); // that have different experts
    if (sharding.sharing(replicas) % apart != 0) {
      return name + "'s experts are those of " + count_of(apart, "replica") +
             ", and groups of training.parallel.shard " + std::to_string(sharding.group) +
             " share; allowed: a multiple of " + std::to_string(apart);
    }
    if (stage.turns > 1 && sharding.sharing(replicas) != replicas) {
      return name + "'s replicas take micro-batches in turn, and only some of them share states; allowed: "
                    "training.parallel.shard left out";
    }
    if (replicas > 1 && replicas % sharding.sharing(replicas) != 0) {
      return "training.parallel.shard " + std::to_string(sharding.group) + " does not divide the " +
             count_of(replicas, "replica") + " of " + name +
             "; nearest that do: " + nearest_divisors(replicas, sharding.group);
    }
  }
  return "";
}

// Why a stage's replicas cannot gather from second copies, or reduce in two hops, as the training says; "" if all can.
std::string not_quantized(const Problem& problem, const Plan& plan) {
  const Sharding& sharding = problem.training.sharding;
  const bool any =
      sharding.quantized_weights != QuantizedWeights::none || sharding.secondary > 0 || sharding.quantized_gradients;
  for (std::size_t s = 0; s < plan.stages.size() && any; ++s) {
    const Stage& stage = plan.stages[s];
    const auto replicas = static_cast<int>(stage.replicas());
    const std::string name = "stage " + std::to_string(s);
    if (stage.experts.ranks > 1 && (sharding.quantized_weights == QuantizedWeights::int8 || sharding.secondary > 0 ||
                                    sharding.quantized_gradients)) {
      return name + "'s ranks share experts, whose weights and gradients are not made smaller; allowed: no "
                    "'quantized_weights' int8, 'hpz_partition_size' or 'quantized_gradients'";
    }
    const int sharing = sharding.sharing(replicas);
    if (replicas > 1 && sharding.secondary > 0 && sharing % sharding.secondary != 0) {
      return "training.parallel.hpz_partition_size " + std::to_string(sharding.secondary) + " does not divide the " +
             count_of(sharing, "replica") + " of " + name +
             " that share weights; nearest that do: " + nearest_divisors(sharing, sharding.secondary);
    }
    const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
    const auto step = degree * static_cast<std::size_t>(sharing);
    for (std::size_t first = 0; sharding.quantized_gradients && first < stage.devices.size(); first += step) {
      std::map<int, int> inside; // by node
      for (std::size_t i = first; i < first + step; i += degree) {
        ++inside[problem.platform.devices[stage.devices[i]].node];
      }
      const auto unlike = std::find_if(inside.begin(), inside.end(),
                                       [&](const auto& node) { return node.second != inside.begin()->second; });
      if (unlike != inside.end()) {
        return name + " has " + count_of(inside.begin()->second, "replica") + " in one node and " +
               std::to_string(unlike->second) +
               " in another, and gradients of 4 bits go to equal places of all nodes; "
               "allowed: training.parallel.quantized_gradients false";
      }
    }
  }
  return "";
}

// Why devices cannot leave to their hosts what the training says; "" if all can.
std::string not_left(const Problem& problem, const OrderedPlan& ordered) {
  if (!problem.training.offload.on()) {
    return "";
  }
  if (!ordered.schedule.flushes || ordered.schedule.steps_each_micro_batch) {
    return "what is left to hosts is back before the next iteration, and this schedule has no pause there; allowed: no "
           "training.offload, or a schedule that flushes";
  }
  for (const DeviceId device : devices_of(ordered.plan)) {
    if (!problem.router.to_host(device) || !problem.router.from_host(device)) {
      return "'" + problem.platform.devices[device].name +
             "' can leave nothing to its host: no links lead there and back";
    }
  }
  const std::vector<double> held = in_flight(ordered.schedule);
  const auto held_by = [&](int stage, int) { return held[static_cast<std::size_t>(stage)]; };
  const auto shortage = host_shortage(problem, ordered.cost, held_by);
  return shortage ? to_text(*shortage, problem.platform) : "";
}

// Tasks of a graph beyond which its passes are not divided where exchanges slow computations down, as it is then
// replayed some 5 to 60 times, of four iterations each mostly.
constexpr double kMostDivided = 5e5;

// An engine on which no flows share links holds up no exchange.
ExchangeTasks exchanges_of(const Study& study) {
  const ExchangeTasks wanted = study.detail->exchanges;
  return wanted == ExchangeTasks::where_shared && study.engine->replay == replay_analytic ? ExchangeTasks::none
                                                                                          : wanted;
}

} // namespace

std::variant<TaskGraph, Infeasible> graph_of(StudyCosts& costs, const Problem& problem, const OrderedPlan& ordered,
                                             const GraphChoice& choice) {
  const Study& study = costs.study();
  if (std::string reason = not_reducible(problem, ordered.plan); !reason.empty()) {
    return Infeasible{std::move(reason)};
  }
  const Schedule& schedule = ordered.schedule;
  if (problem.training.sharding.on() && (!schedule.flushes || schedule.steps_each_micro_batch)) {
    return Infeasible{"replicas that share the optimiser gather parameters between iterations, and this schedule has "
                      "no pause there; allowed: training.parallel.zero 0, or a schedule that flushes"};
  }
  for (std::string reason :
       {not_shared(problem, ordered.plan), not_quantized(problem, ordered.plan), not_left(problem, ordered)}) {
    if (!reason.empty()) {
      return Infeasible{std::move(reason)};
    }
  }
  if (problem.training.clip_gradients && (!schedule.flushes || schedule.steps_each_micro_batch)) {
    return Infeasible{"gradients are clipped by the norm of all stages' gradients, and this schedule does not wait for "
                      "them; allowed: training.clip_gradients false, or a schedule that flushes"};
  }
  const bool waits = choice.step.value_or(study.training.step) == StepMode::barrier;
  TaskGraphRequest request{.cost = ordered.cost,
                           .schedule = ordered.schedule,
                           .router = costs.router(),
                           .barrier = waits,
                           .blocking_sends = blocks_sends(study.training.blocking_sends, ordered.schedule),
                           .early_recompute = problem.training.recompute.rule.early,
                           .all_reduce = problem.training.all_reduce->name,
                           .exchanges = choice.exchanges.value_or(exchanges_of(study)),
                           .sharding = problem.training.sharding,
                           .offload = problem.training.offload,
                           .clips_gradients = waits && problem.training.clip_gradients,
                           .reserve = problem.training.memory,
                           .fused = fused_part(problem, ordered),
                           .rank_of = ordered.rank_of};
  if (request.exchanges == ExchangeTasks::where_shared && exchanges_slow(study.platform)) {
    request.most_tasks = kMostDivided;
  }
  if (!study.loader) {
    return make_replayable(study, request);
  }
  Loader loader = *study.loader;
  if (ordered.plan.default_loader) {
    loader.workers = loader.queue = 1;
    loader.host = HostWait::spin;
  }
  const auto loading = plan_loading(problem, ordered.plan, ordered.cost, loader, demand_of(study, request, loader));
  if (const Infeasible* reason = std::get_if<Infeasible>(&loading)) {
    return *reason;
  }
  request.loading = &std::get<Loading>(loading);
  return make_replayable(study, request);
} // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the request owns its function

bool is_replayable(const Study& study, int micro_batches) {
  constexpr double kMostActions = 2e7; // their task graph takes about 5 GB
  constexpr double kIterations = 16;   // assumed for a replay with a loader
  const double actions = static_cast<double>(micro_batches) * static_cast<double>(study.platform.devices.size());
  return (study.loader ? kIterations : 1) * actions <= kMostActions;
}

} // namespace stagecraft
