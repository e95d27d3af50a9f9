// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

// Takes up to `wanted` from an amount, and all of it if only a rounding error would be left.
Bytes take(Bytes& amount, Bytes wanted) {
  constexpr double kRounding = 1e-9;
  const Bytes taken = wanted.value >= amount.value * (1 - kRounding) ? amount : wanted;
  amount -= taken;
  return taken;
}

// What is left of what the micro-batches of a device's stages hold, oldest first: several entries of one micro-batch
// where iterations overlap. Entries are used again, so that there are as many as are held at once.
class Ledger {
public:
  using Entry = std::int32_t;
  static constexpr Entry kNone = -1;

  struct Held {
    Bytes left;
    std::int32_t stash = 0; ///< its index in MemoryUse::stashes
    Entry next = kNone;
  };

  Held& operator[](Entry entry) { return entries_[entry]; }

  void append(Entry& first, Bytes bytes, std::int32_t stash) {
    const Entry entry = free_ != kNone ? std::exchange(free_, entries_[free_].next) : grow();
    entries_[entry] = {bytes, stash, kNone};
    Entry* last = &first;
    while (*last != kNone) {
      last = &entries_[*last].next;
    }
    *last = entry;
  }

  void remove_first(Entry& first) {
    const Entry removed = std::exchange(first, entries_[first].next);
    entries_[removed].next = std::exchange(free_, removed);
  }

private:
  Entry grow() {
    entries_.emplace_back();
    return static_cast<Entry>(entries_.size()) - 1;
  }

  std::vector<Held> entries_;
  Entry free_ = kNone; // the first entry not in use
};

class Walk {
public:
  Walk(const TaskGraph& graph, const Timeline& timeline, std::size_t device, bool keeps_steps)
      : graph_(graph), timeline_(timeline), device_(device), program_(graph.program_of(device)),
        keeps_steps_(keeps_steps), fixed_(graph.fixed_memory[device].total()) {
    use_.fixed = graph.fixed_memory[device];
    use_.context = graph.reserve.context;
    for (const TaskId task : program_) {
      micro_batches_ = std::max(micro_batches_, graph.micro_batch[task] + 1);
    }
  }

  MemoryUse run() {
    hold_earlier_work();
    step(0);
    use_.peak = {now_, program_.front()};
    for (int iteration = 0; iteration < timeline_.iterations; ++iteration) {
      const std::size_t base = static_cast<std::size_t>(iteration) * graph_.tasks();
      const double* const start = timeline_.start.data() + base;
      const double* const finish = timeline_.finish.data() + base;
      for (const TaskId task : program_) {
        const Work& work = work_of(task);
        if (work.acquire.value > 0) {
          acquire(task, work, start[task]);
        }
        if (work.release.value > 0) {
          let_go(task, work, finish[task]);
          step(finish[task]);
        }
      }
    }
    const double end = timeline_.finish[graph_.tasks() * (timeline_.iterations - 1) + program_.back()];
    for (const InStage& in_stage : stages_) {
      for (const Queues& of : in_stage.queues) {
        for (Ledger::Entry open = of.stashes; keeps_steps_ && open != Ledger::kNone; open = ledger_[open].next) {
          use_.stashes[ledger_[open].stash].to = end;
        }
      }
    }
    return std::move(use_);
  }

private:
  // What the device holds of one micro-batch of one stage.
  struct Queues {
    Ledger::Entry stashes = Ledger::kNone, recomputed = Ledger::kNone;
  };

  struct InStage {
    std::int32_t stage;
    std::vector<Queues> queues; // [micro-batch]
  };

  const Work& work_of(TaskId task) const { return graph_.works[graph_.work[task]]; }

  Queues& queues_of(TaskId task, const Work& work) {
    if (work.stage != stage_) {
      look_at(work.stage);
    }
    return of_micro_batch_[graph_.micro_batch[task]];
  }

  // A device has few stages, and often one.
  [[gnu::noinline]] void look_at(std::int32_t stage) {
    auto known = std::find_if(stages_.begin(), stages_.end(), [&](const InStage& one) { return one.stage == stage; });
    if (known == stages_.end()) {
      known = stages_.insert(known, {stage, std::vector<Queues>(micro_batches_)});
    }
    stage_ = stage;
    of_micro_batch_ = known->queues.data();
  }

  // If iterations overlap, the work that ran ahead holds its memory already when the first iteration begins.
  void hold_earlier_work() {
    for (const TaskId task : graph_.ahead.empty() ? std::span<const TaskId>{} : program_) {
      for (int n = graph_.ahead[task]; n > 0; --n) {
        const Work& work = work_of(task);
        if (work.acquire.value > 0) {
          hold(task, work, 0);
        }
        if (work.release.value > 0) {
          let_go(task, work, 0);
        }
      }
    }
  }

  void acquire(TaskId task, const Work& work, double time) {
    hold(task, work, time);
    step(time);
    if (now_.bytes > use_.peak.bytes) {
      use_.peak = {now_, task};
    }
  }

  void step(double time) {
    now_.time = time;
    const Bytes tensors = fixed_ + now_.stashed + now_.recompute;
    now_.bytes = graph_.held(device_, tensors);
    now_.fragments = tensors * graph_.reserve.fragmentation;
    if (keeps_steps_) {
      use_.steps.push_back(now_);
    }
  }

  void hold(TaskId task, const Work& work, double time) {
    Queues& held = queues_of(task, work);
    if (work.kind == TaskKind::recompute) {
      ledger_.append(held.recomputed, work.acquire, 0);
      now_.recompute += work.acquire;
      return;
    }
    now_.stashed += work.acquire;
    if (work.kind == TaskKind::backward && held.stashes != Ledger::kNone) { // gradients kept for W
      ledger_[held.stashes].left += work.acquire;
      return;
    }
    ledger_.append(held.stashes, work.acquire, static_cast<std::int32_t>(use_.stashes.size()));
    if (keeps_steps_) {
      use_.stashes.push_back({work.stage, graph_.micro_batch[task], work.acquire, time, time});
    }
    ++now_.in_flight;
  }

  // Releases memory: first what recompute restored, then the stash.
  void let_go(TaskId task, const Work& work, double time) {
    Queues& held = queues_of(task, work);
    Bytes wanted = work.release;
    if (held.recomputed != Ledger::kNone) {
      Bytes& left = ledger_[held.recomputed].left;
      const Bytes taken = take(left, wanted);
      now_.recompute -= taken;
      wanted -= taken;
      if (left.value == 0) {
        ledger_.remove_first(held.recomputed);
      }
    }
    if (held.stashes != Ledger::kNone && wanted.value > 0) {
      Ledger::Held& oldest = ledger_[held.stashes];
      now_.stashed -= take(oldest.left, wanted);
      if (oldest.left.value == 0) {
        if (keeps_steps_) {
          use_.stashes[oldest.stash].to = time;
        }
        ledger_.remove_first(held.stashes);
        --now_.in_flight;
      }
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::size_t device_;
  std::span<const TaskId> program_;
  bool keeps_steps_;
  Bytes fixed_;
  std::int32_t micro_batches_ = 0;
  std::vector<InStage> stages_; // in the order in which they first hold something
  std::int32_t stage_ = -1;     // the one looked at, and what it holds of each micro-batch
  Queues* of_micro_batch_ = nullptr;
  Ledger ledger_;
  MemoryStep now_;
  MemoryUse use_;
};

} // namespace

MemoryUse memory_over_time(const TaskGraph& graph, const Timeline& timeline, std::size_t device) {
  return Walk(graph, timeline, device, true).run();
}

MemoryUse peak_memory(const TaskGraph& graph, const Timeline& timeline, std::size_t device) {
  return Walk(graph, timeline, device, false).run();
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
