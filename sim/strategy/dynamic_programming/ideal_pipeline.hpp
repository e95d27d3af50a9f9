// Min-max dynamic programming over antichain states and devices. `antichain` and `optimal` differ in their states, in
// what a cut costs, and in the devices that may follow each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/plan/device_classes.hpp"
#include "sim/plan/estimate/plan_request.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"

namespace stagecraft {

/// How fast each device type is: 1 / time of the whole model, counting the operators whose kernel it has; 0 if there
/// are none. The search uses it to bound the work that the devices left can do.
struct TypeSpeeds {
  std::vector<double> of_type;
  double of(const Problem& problem, DeviceId device) const { return of_type[problem.type_index(device)]; }
};
TypeSpeeds type_speeds(const Problem& problem, const StateCosts& costs);

/// The devices that may be used, stage by stage. A node stands for the devices used so far and the one used last; node
/// 0 is the start.
struct DeviceChoices {
  struct Next {
    int node = 0;
    PathCost path; ///< from the last device of this node to that of the next
  };
  struct Node {
    DeviceId device = -1; ///< or one like it; -1 at the start
    int stages = 0;
    double speed_left = 0; ///< speed of the devices that may still follow, as in TypeSpeeds
    Bytes memory_left;     ///< memory of the same devices
    std::vector<Next> next;
  };
  std::vector<Node> nodes; ///< ascending in stages
  int most_stages = 0;
  bool in_order = false; ///< what may follow a node follows from its device alone, however many stages it has
};

/// The stages found: stage i ends at states[i] and runs on the device of nodes[i].
struct IdealPipeline {
  std::vector<int> states, nodes;
  double bottleneck = 0;
  bool memory_bound = false; ///< a better one does not fit
};

/// The best pipelines over some states without a limit of memory, which are the same under every schedule: by the
/// devices of the choices and what may follow them, the exact number of stages, and `at_most`.
using UnlimitedPipelines = std::map<std::tuple<std::vector<int>, int, double>, std::optional<IdealPipeline>>;

/// More devices than this are refused: the number of choices alone grows with their square and cube.
inline constexpr std::size_t kMostPipelineDevices = 256;
/// The reason when a request has more, or "".
std::string too_many_devices(const PlanRequest& request);

/// The steps that the search takes at worst, and the most that are allowed: about ten seconds if nothing is pruned.
double work_of(const DeviceChoices& choices, const StateCosts& costs);
inline constexpr double kMostPipelineWork = 1e10;

/// Finds the pipeline with the least bottleneck, max over stages of forward + backward time and over boundaries of 2
/// (latency + cut bytes / bandwidth), whose stages fit in memory; ties go to fewer stages. `exact_stages` > 0 asks for
/// exactly that many. No value if none fits, or none is as good as `at_most`. Cost at worst: edges of the choices *
/// pairs of states, and again for each number of stages if memory binds. Comparing the work left with the speed left
/// prunes most of it. `unlimited`: those over these states that are known; more are added.
std::optional<IdealPipeline> best_ideal_pipeline(const PlanRequest& request, const AntichainStates& states,
                                                 const StateCosts& costs, const DeviceChoices& choices,
                                                 int exact_stages, double at_most, UnlimitedPipelines& unlimited);

/// Why no pipeline was found: the kernel that is missing, or the bytes that the best pipeline without memory limits
/// lacks, and where.
Infeasible why_no_pipeline(const PlanRequest& request, const AntichainStates& states, const StateCosts& costs,
                           const DeviceChoices& choices, int exact_stages);

/// The operators between two consecutive states of a pipeline, stage by stage; devices are those of the nodes.
Plan make_ideal_plan(const PlanRequest& request, const AntichainStates& states, const IdealPipeline& pipeline,
                     const std::vector<DeviceId>& devices);

/// Devices in the order given, each used at most once, any of them left out; or, with `all`, none left out. Among
/// devices of one class the first is taken: using a later one instead would change nothing.
DeviceChoices ordered_choices(const Problem& problem, const TypeSpeeds& speeds, const std::vector<DeviceId>& devices,
                              bool all);

/// The request's devices, repeated once per chunk.
std::vector<DeviceId> chunked_devices(const PlanRequest& request);

} // namespace stagecraft
