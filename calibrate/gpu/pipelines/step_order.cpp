// Finds an order in which the steps of a pipeline can be given to lanes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "calibrate/gpu/pipelines/carry_out.hpp"

namespace stagecraft::gpu {
namespace {

// The entries of a pipeline, with all inputs and ties that each waits for.
class EntryGraph {
public:
  explicit EntryGraph(const Pipeline& pipeline)
      : pipeline_(pipeline), tasks_(pipeline.work.size()),
        before_(tasks_ * static_cast<std::size_t>(pipeline.iterations)), next_(before_.size()) {
    for (std::size_t entry = 0; entry < before_.size(); ++entry) {
      for (const int next : pipeline.after[entry % tasks_]) {
        add(entry, entry - entry % tasks_ + static_cast<std::size_t>(next));
      }
    }
    for (const PipelineTie& tie : pipeline.ties) {
      const std::size_t ahead = static_cast<std::size_t>(tie.iterations) * tasks_;
      for (std::size_t base = 0; base + ahead < before_.size(); base += tasks_) {
        add(base + static_cast<std::size_t>(tie.from), base + ahead + static_cast<std::size_t>(tie.to));
      }
    }
    heads_.assign(pipeline.devices.size(), 0);
  }

  // Orders entries as they become ready, which is about the order in which they run.
  StepOrder order() {
    std::vector<std::size_t> waits;
    for (const auto& before : before_) {
      waits.push_back(before.size());
    }
    for (std::size_t entry = 0; entry < before_.size(); ++entry) {
      if (waits[entry] == 0 && work_of(entry).kind != PipelineWork::Kind::compute) {
        ready_.push_back(entry);
      }
    }
    for (std::size_t device = 0; device < heads_.size(); ++device) {
      look_at(device, waits);
    }
    StepOrder order;
    order.joined.resize(before_.size());
    std::vector<int> step_of(before_.size(), -1);
    for (std::size_t at = 0; at < ready_.size(); ++at) {
      const std::size_t entry = ready_[at];
      take(entry, order, step_of);
      for (const std::size_t next : next_[entry]) {
        if (--waits[next] == 0) {
          const PipelineWork& work = work_of(next);
          work.kind == PipelineWork::Kind::compute ? look_at(static_cast<std::size_t>(work.device), waits)
                                                   : ready_.push_back(next);
        }
      }
      if (work_of(entry).kind == PipelineWork::Kind::compute) {
        look_at(static_cast<std::size_t>(work_of(entry).device), waits);
      }
    }
    if (ready_.size() < before_.size()) {
      throw std::invalid_argument(pipeline_.name + ": " + std::to_string(before_.size() - ready_.size()) + " of " +
                                  std::to_string(before_.size()) +
                                  " tasks wait for each other; allowed: an order that can run");
    }
    return order;
  }

private:
  void add(std::size_t from, std::size_t to) {
    before_[to].push_back(from);
    next_[from].push_back(to);
  }

  const PipelineWork& work_of(std::size_t entry) const {
    return pipeline_.works[static_cast<std::size_t>(pipeline_.work[entry % tasks_])];
  }

  // Adds the next computation of a device if it is ready.
  void look_at(std::size_t device, const std::vector<std::size_t>& waits) {
    const std::vector<int>& program = pipeline_.programs[device];
    std::size_t& head = heads_[device];
    if (head == program.size() * static_cast<std::size_t>(pipeline_.iterations)) {
      return;
    }
    const std::size_t entry = head / program.size() * tasks_ + static_cast<std::size_t>(program[head % program.size()]);
    if (waits[entry] == 0) {
      ++head;
      ready_.push_back(entry);
    }
  }

  // Adds an entry to the order. A task that waits for a join waits for the steps that the join waits for.
  void take(std::size_t entry, StepOrder& order, std::vector<int>& step_of) const {
    std::vector<int> after;
    for (const std::size_t before : before_[entry]) {
      if (step_of[before] >= 0) {
        after.push_back(step_of[before]);
      } else {
        after.insert(after.end(), order.joined[before].begin(), order.joined[before].end());
      }
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    const PipelineWork& work = work_of(entry);
    if (work.kind == PipelineWork::Kind::join) {
      order.joined[entry] = std::move(after);
      return;
    }
    const bool computes = work.kind == PipelineWork::Kind::compute;
    const int lane = computes ? work.device : static_cast<int>(pipeline_.devices.size()) + work.channel;
    step_of[entry] = static_cast<int>(order.steps.size());
    order.steps.push_back({lane, pipeline_.work[entry % tasks_], std::move(after)});
    order.entries.push_back(static_cast<int>(entry));
  }

  const Pipeline& pipeline_;
  std::size_t tasks_;
  std::vector<std::vector<std::size_t>> before_, next_;
  std::vector<std::size_t> heads_, ready_;
};

} // namespace

StepOrder order_steps(const Pipeline& pipeline) { return EntryGraph(pipeline).order(); }

} // namespace stagecraft::gpu
