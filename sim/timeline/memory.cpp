// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/memory.hpp"

#include <map>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

// What a device holds of one micro-batch of one stage: several stashes if iterations overlap.
struct Held {
  std::vector<std::size_t> stashes; // indices into MemoryUse::stashes, oldest first
  std::vector<Bytes> left;          // what is left of each stash
  std::vector<Bytes> recomputed;
};

// Takes up to `wanted` from an amount, and all of it if only a rounding error would be left.
Bytes take(Bytes& amount, Bytes wanted) {
  constexpr double kRounding = 1e-9;
  const Bytes taken = wanted.value >= amount.value * (1 - kRounding) ? amount : wanted;
  amount -= taken;
  return taken;
}

class Walk {
public:
  Walk(const TaskGraph& graph, const Timeline& timeline, std::size_t device)
      : graph_(graph), timeline_(timeline), program_(graph.program_of(device)) {
    use_.fixed = graph.fixed_memory[device];
  }

  MemoryUse run() {
    hold_earlier_work();
    now_.bytes = use_.fixed.total() + now_.stashed + now_.recompute;
    use_.steps.push_back(now_);
    use_.peak = {0, program_.front(), now_.bytes};
    for (int iteration = 0; iteration < timeline_.iterations; ++iteration) {
      const std::size_t base = static_cast<std::size_t>(iteration) * graph_.tasks();
      for (const TaskId task : program_) {
        const Work& work = work_of(task);
        if (work.acquire.value > 0) {
          acquire(task, timeline_.start[base + task]);
        }
        if (work.release.value > 0) {
          release(task, timeline_.finish[base + task]);
        }
      }
    }
    const double end = timeline_.finish[graph_.tasks() * (timeline_.iterations - 1) + program_.back()];
    for (const auto& [key, held] : held_) {
      for (const std::size_t open : held.stashes) {
        use_.stashes[open].to = end;
      }
    }
    return std::move(use_);
  }

private:
  const Work& work_of(TaskId task) const { return graph_.works[graph_.work[task]]; }
  Held& held_of(TaskId task) { return held_[{work_of(task).stage, graph_.micro_batch[task]}]; }

  // If iterations overlap, the work that ran ahead holds its memory already when the first iteration begins.
  void hold_earlier_work() {
    for (const TaskId task : program_) {
      for (int n = graph_.ahead.empty() ? 0 : graph_.ahead[task]; n > 0; --n) {
        const Work& work = work_of(task);
        if (work.acquire.value > 0) {
          hold(task, 0);
        }
        if (work.release.value > 0) {
          let_go(task, 0);
        }
      }
    }
  }

  void acquire(TaskId task, double time) {
    hold(task, time);
    step(time);
    if (now_.bytes > use_.peak.bytes) {
      use_.peak = {time, task, now_.bytes};
    }
  }

  void release(TaskId task, double time) {
    let_go(task, time);
    step(time);
  }

  void step(double time) {
    now_.time = time;
    now_.bytes = use_.fixed.total() + now_.stashed + now_.recompute;
    use_.steps.push_back(now_);
  }

  void hold(TaskId task, double time) {
    const Work& work = work_of(task);
    Held& held = held_of(task);
    if (work.kind == TaskKind::recompute) {
      held.recomputed.push_back(work.acquire);
      now_.recompute += work.acquire;
      return;
    }
    if (work.kind == TaskKind::backward && !held.left.empty()) { // gradients kept for W
      held.left.front() += work.acquire;
      now_.stashed += work.acquire;
      return;
    }
    held.stashes.push_back(use_.stashes.size());
    use_.stashes.push_back({work.stage, graph_.micro_batch[task], work.acquire, time, time});
    held.left.push_back(work.acquire);
    now_.stashed += work.acquire;
    ++now_.in_flight;
  }

  // Releases memory: first what recompute restored, then the stash.
  void let_go(TaskId task, double time) {
    Held& held = held_of(task);
    Bytes wanted = work_of(task).release;
    if (!held.recomputed.empty()) {
      const Bytes taken = take(held.recomputed.front(), wanted);
      now_.recompute -= taken;
      wanted -= taken;
      if (held.recomputed.front().value == 0) {
        held.recomputed.erase(held.recomputed.begin());
      }
    }
    if (!held.stashes.empty() && wanted.value > 0) {
      now_.stashed -= take(held.left.front(), wanted);
      if (held.left.front().value == 0) {
        use_.stashes[held.stashes.front()].to = time;
        held.stashes.erase(held.stashes.begin());
        held.left.erase(held.left.begin());
        --now_.in_flight;
      }
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::span<const TaskId> program_;
  std::map<std::pair<std::int32_t, std::int32_t>, Held> held_; // by stage and micro-batch
  MemoryStep now_;
  MemoryUse use_;
};

} // namespace

MemoryUse memory_over_time(const TaskGraph& graph, const Timeline& timeline, std::size_t device) {
  return Walk(graph, timeline, device).run();
}

Bytes held_at_start(const TaskGraph& graph, std::size_t device) {
  Bytes held;
  if (!graph.ahead.empty()) {
    for (const TaskId task : graph.program_of(device)) {
      const Work& work = graph.works[graph.work[task]];
      held += (work.acquire - work.release) * graph.ahead[task];
    }
  }
  return held;
}

} // namespace stagecraft
