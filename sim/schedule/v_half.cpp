// V-Half and V-Min: two stages per rank, placed in a V, with about half and a third of 1F1B's activations (Qi et al.
// 2024, "Pipeline Parallelism with Controllable Memory"): one pattern repeated for every micro-batch, squeezed at both
// ends.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kMostPacked = 4096; // ranks x micro-batches; time grows with it times the micro-batches

// Forward on the way down and up, backward on the way down and up, in slots of equal length; W fills what is free.
enum Pass { kForwardDown, kForwardUp, kBackwardDown, kBackwardUp, kWeight };
constexpr int kInterval = 6; // slots per micro-batch and rank: F, B, W of two stages

using Slots = std::array<std::vector<int>, 5>; // [pass]: slots, ascending
using Pattern = std::array<int, 4>;            // [pass]: slot of the first micro-batch

// The gaps keep the four passes, and those of other micro-batches, out of each other's slots.
Pattern v_half(int rank, int ranks) {
  const int gap = ranks % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * ranks - 2 - rank, 3 * ranks + gap - 1 + 2 * rank, 6 * ranks + gap - 2 - rank};
}
Pattern v_min(int rank, int ranks) {
  const int gap = ranks % 3 == 0 ? 2 : 0;
  return {rank, 2 * ranks - 1 - rank, 2 * ranks + gap + rank, 4 * ranks + gap - 1 - rank};
}

class Squeeze {
public:
  Squeeze(int ranks, int micro_batches, Pattern (*pattern)(int rank, int ranks))
      : ranks_(ranks), micro_batches_(micro_batches), slots_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Pattern first = pattern(rank, ranks);
      for (int pass = 0; pass < kWeight; ++pass) {
        for (int m = 0; m < micro_batches; ++m) {
          slots_[rank][pass].push_back(first[pass] + kInterval * m);
        }
      }
    }
  }

  std::vector<std::vector<Action>> run() {
    place_weights();
    advance(true);
    run_at_once();
    drop_weights();
    advance(false);
    place_weights();
    run_at_once();
    drop_weights();
    std::vector<std::vector<Action>> orders;
    for (int rank = 0; rank < ranks_; ++rank) {
      orders.push_back(order(rank));
    }
    return orders;
  }

private:
  struct Item {
    int slot, rank, pass, number;
  };

  // The pass in each slot, or -1 if the slot is free.
  using Passes = std::vector<int>;

  Passes passes(const Slots& slots) const {
    int last = 0;
    for (const auto& pass : slots) {
      last = pass.empty() ? last : std::max(last, pass.back());
    }
    Passes at(last + 1, -1);
    for (int pass = 0; pass < 5; ++pass) {
      for (const int slot : slots[pass]) {
        at[slot] = pass;
      }
    }
    return at;
  }

  void place_weights() {
    for (Slots& slots : slots_) {
      const Passes at = passes(slots);
      int waiting = 0;
      int slot = 0;
      for (; slot < static_cast<int>(at.size()); ++slot) {
        waiting += at[slot] == kBackwardDown || at[slot] == kBackwardUp ? 1 : 0;
        if (at[slot] < 0 && waiting > 0) {
          slots[kWeight].push_back(slot);
          --waiting;
        }
      }
      for (; waiting > 0; --waiting) {
        slots[kWeight].push_back(slot++);
      }
    }
  }

  void drop_weights() {
    for (Slots& slots : slots_) {
      slots[kWeight].clear();
    }
  }

  // What is held after some slots: F takes an activation, W gives it back. W without slots of their own (`waiting`) run
  // in the free ones.
  struct Held {
    int activations = 0, waiting = 0;
    bool operator==(const Held&) const = default;

    void pass(int pass, bool explicit_weights) {
      if (pass == kForwardDown || pass == kForwardUp) {
        ++activations;
      } else if (pass == kWeight) {
        --activations;
      } else if (explicit_weights) {
        return;
      } else if (pass >= 0) {
        ++waiting;
      } else if (waiting > 0) {
        --waiting;
        --activations;
      }
    }
  };

  // A rank's slots while items move to earlier ones.
  struct Row {
    Passes passes;
    std::vector<Held> before; // [slot], and after the last one
    std::vector<char> taken;  // by items that stay where they are

    Row(Passes from, bool explicit_weights)
        : passes(std::move(from)), before(passes.size() + 1), taken(passes.size(), 0) {
      follow(0, static_cast<int>(passes.size()), explicit_weights);
    }

    // Finds what is held from `slot` on, until that is what it was behind `last`.
    void follow(int slot, int last, bool explicit_weights) {
      for (; slot < static_cast<int>(passes.size()); ++slot) {
        Held after = before[slot];
        after.pass(passes[slot], explicit_weights);
        if (slot >= last && after == before[slot + 1]) {
          return;
        }
        before[slot + 1] = after;
      }
    }

    int most() const {
      return std::max_element(before.begin(), before.end(),
                              [](const Held& one, const Held& other) { return one.activations < other.activations; })
          ->activations;
    }

    // The first free slot from `first` on, or its own, to which the item in `slot` can move without more being held
    // than `most`. On the way to its own slot one more is held if it is an F; and one more again if it takes a slot in
    // which a W would have run, until there is a free one for which no W waits.
    int earliest(int slot, int first, int most, bool explicit_weights) const {
      const int taken_by_it = passes[slot] == kForwardDown || passes[slot] == kForwardUp ? 1 : 0;
      int found = slot;
      bool delayed_exceeds = false; // so it would between this slot and that free one
      for (int at = slot - 1; at >= first; --at) {
        const Held& after = before[at + 1];
        if (taken_by_it > 0 && after.activations + 1 > most) {
          break;
        }
        const bool catches_up = at + 1 < slot && passes[at + 1] < 0 && after.waiting == 0;
        delayed_exceeds = after.activations + taken_by_it + 1 > most || (delayed_exceeds && !catches_up);
        const bool delays = !explicit_weights && before[at].waiting > 0;
        if (taken[at] == 0 && !(delays && delayed_exceeds)) {
          found = at;
        }
      }
      return found;
    }

    // Where weights have slots of their own, F holds more, and W less, on the way, and B changes nothing.
    void move(int slot, int to, bool explicit_weights) {
      if (to == slot) {
        return;
      }
      passes[to] = std::exchange(passes[slot], -1);
      if (!explicit_weights || to > slot) {
        follow(std::min(slot, to), std::max(slot, to), explicit_weights);
        return;
      }
      Held held;
      held.pass(passes[to], true);
      for (int at = to + 1; at <= slot && held.activations != 0; ++at) {
        before[at].activations += held.activations;
      }
    }
  };

  // All items by slot, then by rank and pass.
  std::vector<Item> items() const {
    std::vector<std::size_t> place; // [slot]: of its first item, then of its next one
    const auto for_each = [&](auto&& take) {
      for (int rank = 0; rank < ranks_; ++rank) {
        for (int pass = 0; pass < 5; ++pass) {
          for (std::size_t n = 0; n < slots_[rank][pass].size(); ++n) {
            take(Item{slots_[rank][pass][n], rank, pass, static_cast<int>(n)});
          }
        }
      }
    };
    for_each([&](const Item& item) {
      place.resize(std::max(place.size(), static_cast<std::size_t>(item.slot) + 2));
      ++place[item.slot + 1];
    });
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<Item> all(place.empty() ? 0 : place.back());
    for_each([&](const Item& item) { all[place[item.slot]++] = item; });
    return all;
  }

  // The slot of the last thing that an item of passes 0 to 3 waits for; -1: nothing.
  int input(const Item& item) const {
    int last = -1;
    const auto after = [&](int rank, int pass) { last = std::max(last, slots_[rank][pass][item.number]); };
    const bool down = item.pass == kForwardDown || item.pass == kBackwardDown;
    const int from = down ? item.rank - 1 : item.rank + 1;
    if (from >= 0 && from < ranks_) {
      after(from, item.pass);
    }
    if (item.pass != kForwardDown) {
      after(item.rank, item.pass - 1);
    }
    return last;
  }

  // The slot of the backward pass whose weight gradient the item is: they follow the backward passes of both stages.
  int backward_of_weight(const Item& item) const {
    const std::vector<int>& down = slots_[item.rank][kBackwardDown];
    const std::vector<int>& up = slots_[item.rank][kBackwardUp];
    std::size_t ups = 0;
    for (std::size_t downs = 0;;) {
      const bool is_up = downs == down.size() || (ups < up.size() && up[ups] < down[downs]);
      if (downs + ups == static_cast<std::size_t>(item.number)) {
        return is_up ? up[ups] : down[downs];
      }
      ++(is_up ? ups : downs);
    }
  }

  // While the pipeline fills and drains, each item goes to the earliest free slot in which no more is held than before.
  // The steady state in between stays as it is. Without `with_weights` only the drain changes.
  void advance(bool with_weights) {
    int most = 0;
    std::vector<Row> rows;
    for (const Slots& slots : slots_) {
      most = std::max(most, rows.emplace_back(passes(slots), with_weights).most());
    }
    enum { kFills, kSteady, kDrains } phase = kFills;
    for (const Item& item : items()) {
      if (item.pass == kBackwardUp && item.rank == 0 && phase == kFills) {
        phase = kSteady;
      }
      int& at = slots_[item.rank][item.pass][item.number];
      Row& row = rows[item.rank];
      if (phase == kDrains || (phase == kFills && with_weights)) {
        at = row.earliest(item.slot, earliest(item), most, with_weights);
        row.move(item.slot, at, with_weights);
      }
      row.taken[at] = 1;
      if (phase == kSteady && item.pass == kForwardDown && item.rank == 0 && item.number + 1 == micro_batches_) {
        phase = kDrains;
      }
    }
  }

  // The first slot behind what the item waits for and behind the one before it.
  int earliest(const Item& item) const {
    const int last = item.pass == kWeight ? backward_of_weight(item) : input(item);
    return 1 + (item.number > 0 ? std::max(last, slots_[item.rank][item.pass][item.number - 1]) : last);
  }

  // Runs every item as early as its inputs and the order on its rank allow.
  void run_at_once() {
    std::vector<int> free(ranks_, 0);
    for (const Item& item : items()) {
      const int ready = item.pass == kWeight ? 0 : input(item) + 1;
      int& at = slots_[item.rank][item.pass][item.number];
      at = std::max(free[item.rank], ready);
      free[item.rank] = at + 1;
    }
  }

  // The actions by slot, with a W in each free slot; W of the stage on the V's way up come first.
  std::vector<Action> order(int rank) const {
    const int down = rank;
    const int up = 2 * ranks_ - 1 - rank;
    std::array<int, 4> done{};
    std::array<int, 2> weights{};
    std::vector<Action> order;
    const auto weight = [&] {
      for (const int late : {0, 1}) {
        if (weights[late] < done[kBackwardDown + late]) {
          order.push_back({TaskKind::weight, weights[late]++, late == 0 ? up : down});
          return;
        }
      }
    };
    for (const int pass : passes(slots_[rank])) {
      if (pass < 0) {
        weight();
        continue;
      }
      const bool forward = pass == kForwardDown || pass == kForwardUp;
      order.push_back({forward ? TaskKind::forward : TaskKind::backward, done[pass]++,
                       pass == kForwardDown || pass == kBackwardUp ? down : up});
    }
    while (order.size() < static_cast<std::size_t>(kInterval) * micro_batches_) {
      weight();
    }
    return order;
  }

  int ranks_, micro_batches_;
  std::vector<Slots> slots_; // [rank]
};

ScheduleResult squeeze(const ScheduleRequest& request, std::string_view name, Pattern (*pattern)(int rank, int ranks)) {
  if (std::int64_t{request.ranks} * request.micro_batches > kMostPacked) {
    return Infeasible{std::string(name) + " packs " + std::to_string(request.ranks) + " ranks x " +
                      std::to_string(request.micro_batches) + " micro-batches slot by slot; at most " +
                      std::to_string(kMostPacked)};
  }
  Schedule schedule;
  schedule.orders = Squeeze(request.ranks, request.micro_batches, pattern).run();
  return schedule;
}

} // namespace

ScheduleResult make_v_half(const ScheduleRequest& request) { return squeeze(request, "v-half", v_half); }

ScheduleResult make_v_min(const ScheduleRequest& request) { return squeeze(request, "v-min", v_min); }

} // namespace stagecraft
