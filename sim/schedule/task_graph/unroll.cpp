// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/task_graph/unroll.hpp"

#include <stdexcept>

#include "sim/schedule/task_graph/add_edges.hpp"

namespace stagecraft {
namespace {

// Edges stay within an iteration; only ties lead into a later one.
std::vector<Edge> edges_over(const TaskGraph& graph, int iterations) {
  std::vector<Edge> edges;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const TaskId base = iteration * graph.tasks();
    for (TaskId task = 0; task < graph.tasks(); ++task) {
      for (const TaskId next : graph.successors_of(task)) {
        edges.push_back({base + task, base + next});
      }
      for (const Tie& tie : graph.ties_of(task)) {
        if (iteration + tie.iterations < iterations) {
          edges.push_back({base + task, base + tie.iterations * graph.tasks() + tie.to});
        }
      }
    }
  }
  return edges;
}

} // namespace

TaskGraph unroll(const TaskGraph& graph, int iterations) {
  if (graph.workers > 0) {
    throw std::invalid_argument("a loader's order cannot be told again");
  }
  TaskGraph all;
  all.devices = graph.devices;
  all.legs = graph.legs;
  all.members = graph.members;
  all.group_legs = graph.group_legs;
  all.fixed_memory = graph.fixed_memory;
  all.reserve = graph.reserve;
  all.channels = graph.channels;
  all.joins = graph.joins * iterations;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (TaskId task = 0; task < graph.tasks(); ++task) {
      all.work.push_back(all.tasks());
      all.works.push_back(graph.works[graph.work[task]]);
      all.micro_batch.push_back(graph.micro_batch[task]);
    }
  }
  add_edges(all, edges_over(graph, iterations));
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    all.program_begin.push_back(static_cast<std::int32_t>(all.program.size()));
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (const TaskId task : graph.program_of(device)) {
        all.program.push_back(iteration * graph.tasks() + task);
      }
    }
  }
  all.program_begin.push_back(static_cast<std::int32_t>(all.program.size()));
  return all;
}

} // namespace stagecraft
