// Writes schedules in the CSV of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/format/pytorch_csv.hpp"

namespace stagecraft {
namespace {

// One cell: its content, and the step and rank in which it runs if every cell takes one step.
struct Item {
  int rank = 0;
  int step = 0;
  std::size_t begin = 0, end = 0; // indices in the rank's order
};

class Writer {
public:
  Writer(const Schedule& schedule, PytorchDialect dialect)
      : schedule_(schedule), old_(dialect == PytorchDialect::old),
        cells_(static_cast<std::size_t>(schedule.stages) * schedule.micro_batches) {}

  std::variant<std::string, Infeasible> write(bool messages) {
    for (const auto& order : schedule_.orders) {
      for (const Action& action : order) {
        if (action.kind == TaskKind::recompute) {
          return Infeasible{"PyTorch's CSV has no token for recomputation"};
        }
      }
    }
    find_steps();
    std::string text;
    for (const auto& line : messages ? with_messages() : in_steps()) {
      for (std::size_t cell = 0; cell < line.size(); ++cell) {
        text += (cell > 0 ? "," : "") + line[cell];
      }
      text += "\n";
    }
    return too_many_ ? std::variant<std::string, Infeasible>{Infeasible{
                           "PyTorch's CSV fuses one forward with one backward, and nothing else"}}
                     : text;
  }

private:
  std::size_t cell(const Action& action) const {
    return static_cast<std::size_t>(action.stage) * schedule_.micro_batches + action.micro_batch;
  }

  // The step at which a task's inputs are ready; -1: not placed yet.
  int ready(const Action& action) const {
    const auto of = [&](const std::vector<int>& ends, int stage) {
      return stage < 0 || stage >= schedule_.stages
                 ? 0
                 : ends[static_cast<std::size_t>(stage) * schedule_.micro_batches + action.micro_batch];
    };
    const int before = action.kind == TaskKind::forward ? of(forward_, action.stage - 1) : 0;
    const int after = action.kind == TaskKind::backward ? of(backward_, action.stage + 1) : 0;
    return std::min(before, after) < 0 ? -1 : std::max(before, after);
  }

  // Runs the orders in steps of equal length. Since they can run, every round places some items.
  void find_steps() {
    home_.assign(cells_, 0);
    forward_.assign(cells_, -1);
    backward_.assign(cells_, -1);
    const std::size_t ranks = schedule_.orders.size();
    std::vector<std::size_t> cursor(ranks, 0);
    std::vector<int> free(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto& order = schedule_.orders[rank];
        while (cursor[rank] < order.size()) {
          Item item{static_cast<int>(rank), free[rank], cursor[rank], cursor[rank] + 1};
          while (item.end < order.size() && order[item.end].fused) {
            ++item.end;
          }
          bool waits = false;
          for (std::size_t at = item.begin; at < item.end; ++at) {
            const int from = ready(order[at]);
            waits |= from < 0;
            item.step = std::max(item.step, from);
          }
          if (waits) {
            break;
          }
          place(item);
          free[rank] = item.step + 1;
          cursor[rank] = item.end;
          moved = true;
        }
      }
    }
    std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::pair(a.step, a.rank) < std::pair(b.step, b.rank);
    });
  }

  void place(const Item& item) {
    for (std::size_t at = item.begin; at < item.end; ++at) {
      const Action& action = schedule_.orders[item.rank][at];
      home_[cell(action)] = item.rank;
      if (action.kind == TaskKind::forward) {
        forward_[cell(action)] = item.step + 1;
      } else if (action.kind == TaskKind::backward) {
        backward_[cell(action)] = item.step + 1;
      }
    }
    items_.push_back(item);
  }

  std::string_view word_of(const Action& action, bool whole) const {
    if (action.kind == TaskKind::forward) {
      return "F";
    }
    if (action.kind == TaskKind::weight) {
      return "W";
    }
    return whole ? (old_ ? "BW" : "B") : (old_ ? "B" : "I");
  }

  // One token, or two that run together, the forward first.
  std::string text_of(const Item& item) {
    std::string forward;
    std::string other;
    int count = 0;
    const auto& order = schedule_.orders[item.rank];
    for (std::size_t at = item.begin; at < item.end; ++at) {
      const Action& action = order[at];
      const bool with_weight = at + 1 < item.end && action.kind == TaskKind::backward &&
                               order[at + 1] == Action{TaskKind::weight, action.micro_batch, action.stage, true};
      const bool whole = !schedule_.splits_backward || with_weight;
      std::string& side = action.kind == TaskKind::forward ? forward : other;
      too_many_ |= !side.empty();
      side = std::to_string(action.stage) + std::string(word_of(action, whole)) + std::to_string(action.micro_batch);
      ++count;
      at += with_weight ? 1 : 0;
    }
    return count == 1 ? forward + other : "(" + forward + ";" + other + ")OVERLAP_F_B";
  }

  using Lines = std::vector<std::vector<std::string>>;

  Lines in_steps() {
    Lines lines(schedule_.orders.size());
    for (const Item& item : items_) {
      lines[item.rank].resize(item.step); // idle until then
      lines[item.rank].push_back(text_of(item));
    }
    return lines;
  }

  // Writes both ends of a message at once, in one order for all ranks, so that no cycle can arise.
  Lines with_messages() {
    Lines lines(schedule_.orders.size());
    for (const Item& item : items_) {
      lines[item.rank].push_back(text_of(item));
      for (std::size_t at = item.begin; at < item.end; ++at) {
        const Action& action = schedule_.orders[item.rank][at];
        const bool forward = action.kind == TaskKind::forward;
        const int there = action.stage + (forward ? 1 : -1);
        if (action.kind == TaskKind::weight || there < 0 || there >= schedule_.stages) {
          continue;
        }
        const int peer = home_[cell({action.kind, action.micro_batch, there})];
        if (peer != item.rank) {
          const std::string end = (forward ? "F" : "B") + std::to_string(action.micro_batch);
          lines[item.rank].push_back(std::to_string(action.stage) + "SEND_" + end);
          lines[peer].push_back(std::to_string(there) + "RECV_" + end);
        }
      }
    }
    return lines;
  }

  const Schedule& schedule_;
  bool old_;
  std::size_t cells_;
  std::vector<int> home_;               // [stage, micro-batch]: its rank
  std::vector<int> forward_, backward_; // [stage, micro-batch]: step after it; -1: not placed
  std::vector<Item> items_;             // by their steps
  bool too_many_ = false;
};

} // namespace

std::variant<std::string, Infeasible> to_pytorch_csv(const Schedule& schedule, PytorchDialect dialect, bool messages) {
  return Writer(schedule, dialect).write(messages);
}

} // namespace stagecraft
