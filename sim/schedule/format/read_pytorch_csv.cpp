// Reads schedules in the CSV of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/schedule/format/csv_cells.hpp"
#include "sim/schedule/format/pytorch_csv.hpp"

namespace stagecraft {
namespace {

enum class Word { forward, input, backward, whole, weight, send_f, recv_f, send_b, recv_b, unshard, reshard, reduce };

struct WordRow {
  std::string_view text;
  Word word;
};
constexpr std::array kWords = {
    WordRow{"F", Word::forward},       WordRow{"I", Word::input},         WordRow{"B", Word::backward},
    WordRow{"BW", Word::whole},        WordRow{"W", Word::weight},        WordRow{"SEND_F", Word::send_f},
    WordRow{"RECV_F", Word::recv_f},   WordRow{"SEND_B", Word::send_b},   WordRow{"RECV_B", Word::recv_b},
    WordRow{"UNSHARD", Word::unshard}, WordRow{"RESHARD", Word::reshard}, WordRow{"REDUCE_GRAD", Word::reduce}};

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kFused = "OVERLAP_F_B";

struct Token {
  Word word = Word::forward;
  int stage = 0, micro_batch = 0;
  bool fused = false; ///< with the token before it
  Where where;

  bool computes() const { return word <= Word::weight; }
  bool sends() const { return word == Word::send_f || word == Word::send_b; }
  bool receives() const { return word == Word::recv_f || word == Word::recv_b; }
  bool messages() const { return sends() || receives(); }
};

std::string name_of(Word word, int stage, int micro_batch) {
  return std::to_string(stage) + std::string(kWords[static_cast<std::size_t>(word)].text) + std::to_string(micro_batch);
}

std::string name_of(const Token& token) { return name_of(token.word, token.stage, token.micro_batch); }

[[noreturn]] void refuse(std::string_view text, const Where& where) {
  throw InputError(where, "'" + excerpt(text, 40) +
                              "' is no task; allowed: a stage, F, I, B, BW, W, SEND_F, RECV_F, SEND_B, RECV_B, "
                              "UNSHARD, RESHARD or REDUCE_GRAD, and a micro-batch, as 0F3; or (0F7;7B3)OVERLAP_F_B");
}

Token read_token(std::string_view text, const Where& where) {
  const std::size_t name = std::min(text.find_first_not_of(kDigits), text.size());
  const std::size_t number = std::min(text.find_first_of(kDigits, name), text.size());
  const std::string_view word = text.substr(name, number - name);
  const auto row = std::find_if(kWords.begin(), kWords.end(), [&](const WordRow& one) { return one.text == word; });
  const bool digits = text.find_first_not_of(kDigits, number) == std::string_view::npos;
  if (name == 0 || row == kWords.end() || !digits || (number == text.size() && row->word < Word::unshard)) {
    refuse(text, where);
  }
  Token token{.word = row->word, .stage = parse_integer(text.substr(0, name), 0, kMostNumber, where), .where = where};
  if (number < text.size()) {
    token.micro_batch = parse_integer(text.substr(number), 0, kMostNumber, where);
  }
  return token;
}

// Reads a cell: one token, or several that run together.
void read_cell(std::string_view text, const Where& where, std::vector<Token>& order) {
  if (text.front() != '(') {
    order.push_back(read_token(text, where));
    return;
  }
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos || text.substr(end + 1) != kFused) {
    refuse(text, where);
  }
  const std::size_t first = order.size();
  for_each_cell(text.substr(1, end - 1), ';', [&](std::string_view part, int column) {
    Token token = read_token(part, {where.file, where.line, where.column + column});
    if (!token.computes()) {
      refuse(part, token.where);
    }
    token.fused = order.size() > first;
    order.push_back(token);
  });
  if (order.size() == first) {
    refuse(text, where);
  }
}

using Orders = std::vector<std::vector<Token>>;
using Task = std::pair<int, int>; // stage, micro-batch

// BW means old, I means current; without both, B and W of one micro-batch and stage mean old.
PytorchDialect dialect_of(const Orders& orders) {
  std::set<Task> weights;
  const Token* current = nullptr;
  const Token* old = nullptr;
  for (const auto& order : orders) {
    for (const Token& token : order) {
      if (token.word == Word::weight) {
        weights.insert({token.stage, token.micro_batch});
      }
      current = current == nullptr && token.word == Word::input ? &token : current;
      old = old == nullptr && token.word == Word::whole ? &token : old;
    }
  }
  if (current != nullptr && old != nullptr) {
    throw InputError(old->where, "'" + name_of(*old) + "' is of PyTorch's old dialect, '" + name_of(*current) +
                                     "' in line " + std::to_string(current->where.line) +
                                     " of today's; allowed: F, B, W and BW (old), or F, I, W and B");
  }
  const auto halves = [&](const auto& order) {
    return std::any_of(order.begin(), order.end(), [&](const Token& token) {
      return token.word == Word::backward && weights.contains({token.stage, token.micro_batch});
    });
  };
  const bool halved = current == nullptr && std::any_of(orders.begin(), orders.end(), halves);
  return old != nullptr || halved ? PytorchDialect::old : PytorchDialect::current;
}

Schedule schedule_of(const Orders& orders, PytorchDialect dialect) {
  const bool old = dialect == PytorchDialect::old;
  const Word whole = old ? Word::whole : Word::backward;
  const Word part = old ? Word::backward : Word::input;
  Schedule schedule;
  for (const auto& order : orders) {
    for (const Token& token : order) {
      schedule.splits_backward |= token.word == part || token.word == Word::weight;
    }
  }
  for (const auto& order : orders) {
    std::vector<Action>& actions = schedule.orders.emplace_back();
    for (const Token& token : order) {
      if (!token.computes()) {
        continue;
      }
      schedule.stages = std::max(schedule.stages, token.stage + 1);
      schedule.micro_batches = std::max(schedule.micro_batches, token.micro_batch + 1);
      const TaskKind kind = token.word == Word::forward  ? TaskKind::forward
                            : token.word == Word::weight ? TaskKind::weight
                                                         : TaskKind::backward;
      actions.push_back({kind, token.micro_batch, token.stage, token.fused});
      if (token.word == whole && schedule.splits_backward) {
        actions.push_back({TaskKind::weight, token.micro_batch, token.stage, true});
      }
    }
  }
  return schedule;
}

// Checks that messages are in place: each SEND after the work that makes its data, each RECV before the work that needs
// it, each exactly once, and no cycle of RECVs. Sends do not wait, as in PyTorch.
class MessageChecker {
public:
  explicit MessageChecker(const Orders& orders) : orders_(orders) {}

  std::vector<ScheduleDefect> find_defects() {
    find_homes();
    check_pairs();
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      check_places(rank);
    }
    if (defects_.empty()) {
      find_deadlock();
    }
    return std::move(defects_);
  }

private:
  using Key = std::tuple<Word, int, int>; // word, stage, micro-batch

  static Key key_of(const Token& token) { return {token.word, token.stage, token.micro_batch}; }
  static std::string text_of(const Key& key) { return name_of(std::get<0>(key), std::get<1>(key), std::get<2>(key)); }
  static bool is_backward(Word word) { return word == Word::input || word == Word::backward || word == Word::whole; }

  // The other end of a message.
  static Key peer_of(const Token& token) {
    const int there = token.word == Word::send_f || token.word == Word::recv_b ? 1 : -1;
    constexpr std::array kPeers = {Word::recv_f, Word::send_f, Word::recv_b, Word::send_b};
    const auto index = static_cast<std::size_t>(token.word) - static_cast<std::size_t>(Word::send_f);
    return {kPeers[index], token.stage + there, token.micro_batch};
  }

  void note(std::size_t rank, const std::string& text) { defects_.push_back({text, static_cast<int>(rank)}); }

  void find_homes() {
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      for (const Token& token : orders_[rank]) {
        if (token.word == Word::forward) {
          home_[{token.stage, token.micro_batch}] = rank;
        }
      }
    }
  }

  void check_pairs() {
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      for (const Token& token : orders_[rank]) {
        if (token.messages() && !place_.try_emplace(key_of(token), rank).second) {
          note(rank, name_of(token) + " appears more than once, again on rank " + std::to_string(rank));
        }
      }
    }
    for (const auto& [key, rank] : place_) {
      const Key peer = peer_of({std::get<0>(key), std::get<1>(key), std::get<2>(key), false, {}});
      const auto found = place_.find(peer);
      if (found == place_.end()) {
        note(rank, text_of(key) + " on rank " + std::to_string(rank) + " has no " + text_of(peer));
      } else if (found->second == rank && std::get<0>(key) < std::get<0>(peer)) {
        note(rank, text_of(key) + " and " + text_of(peer) + " are both on rank " + std::to_string(rank));
      }
    }
  }

  // Checks the order of one rank.
  void check_places(std::size_t rank) {
    std::set<Key> done;
    for (const Token& token : orders_[rank]) {
      const int s = token.stage;
      const int m = token.micro_batch;
      if (token.word == Word::send_f && !done.contains({Word::forward, s, m})) {
        note(rank, name_of(token) + " on rank " + std::to_string(rank) + " stands before " +
                       name_of(Word::forward, s, m) + ", whose data it sends");
      } else if (token.word == Word::send_b && !done.contains({Word::backward, s, m})) {
        note(rank,
             name_of(token) + " on rank " + std::to_string(rank) + " stands before the backward whose data it sends");
      } else if (token.word == Word::forward) {
        check_input(token, rank, Word::recv_f, s - 1, done);
      } else if (is_backward(token.word)) {
        check_input(token, rank, Word::recv_b, s + 1, done);
      }
      done.insert({is_backward(token.word) ? Word::backward : token.word, s, m});
    }
  }

  // Input from another rank needs a RECV before it.
  void check_input(const Token& token, std::size_t rank, Word receive, int from_stage, const std::set<Key>& done) {
    const auto home = home_.find({from_stage, token.micro_batch});
    const Key key{receive, token.stage, token.micro_batch};
    if (home != home_.end() && home->second != rank && !done.contains(key)) {
      note(rank, name_of(token) + " on rank " + std::to_string(rank) + " has no " + text_of(key) + " before it");
    }
  }

  void find_deadlock() {
    std::vector<std::size_t> cursor(orders_.size(), 0);
    std::set<Key> sent;
    const auto waits = [&](std::size_t rank) {
      const Token& token = orders_[rank][cursor[rank]];
      return token.receives() && !sent.contains(peer_of(token));
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
        for (; cursor[rank] < orders_[rank].size() && !waits(rank); ++cursor[rank]) {
          const Token& token = orders_[rank][cursor[rank]];
          if (token.sends()) {
            sent.insert(key_of(token));
          }
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      if (cursor[rank] < orders_[rank].size()) {
        note(rank, "deadlock: " + cycle_from(rank, cursor));
        return;
      }
    }
  }

  std::string cycle_from(std::size_t rank, const std::vector<std::size_t>& cursor) const {
    const auto holder = [&](std::size_t at) { return place_.at(peer_of(orders_[at][cursor[at]])); };
    std::vector<char> seen(orders_.size(), 0);
    while (seen[rank] == 0) { // until the cycle is reached
      seen[rank] = 1;
      rank = holder(rank);
    }
    std::string cycle;
    std::size_t at = rank;
    do {
      const Token& token = orders_[at][cursor[at]];
      cycle += (cycle.empty() ? "" : "; ") + name_of(token) + " on rank " + std::to_string(at) + " waits for " +
               text_of(peer_of(token));
      at = holder(at);
    } while (at != rank);
    return cycle;
  }

  const Orders& orders_;
  std::map<Task, std::size_t> home_; // rank of the forward
  std::map<Key, std::size_t> place_; // rank of each message
  std::vector<ScheduleDefect> defects_;
};

} // namespace

bool is_pytorch_csv(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n,");
  return first != std::string_view::npos && (text[first] == '(' || kDigits.find(text[first]) != std::string_view::npos);
}

PytorchSchedule read_pytorch_csv(std::string_view text, const std::string& file) {
  Orders orders;
  for_each_line(text, [&](std::string_view line, int number) {
    std::vector<Token>& order = orders.emplace_back();
    for_each_cell(line, ',', [&](std::string_view cell, int column) {
      read_cell(cell, {file, number, column}, order);
    });
  });
  PytorchSchedule read{.dialect = dialect_of(orders)};
  read.schedule = schedule_of(orders, read.dialect);
  read.messages = std::any_of(orders.begin(), orders.end(), [](const auto& order) {
    return std::any_of(order.begin(), order.end(), [](const Token& token) { return token.messages(); });
  });
  if (read.messages) {
    read.defects = MessageChecker(orders).find_defects();
  }
  return read;
}

} // namespace stagecraft
