// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/stage_borders.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

BitRows open_operators(const ModelGraph& model, const BitRows& ideals) {
  BitRows open(ideals.rows(), model.size());
  for (int ideal = 0; ideal < ideals.rows(); ++ideal) {
    const auto inside = ideals.row(ideal);
    const bool grows = ideal > 0 && is_subset(ideals.row(ideal - 1), inside);
    for (std::size_t word = 0; word < inside.size(); ++word) {
      // What was inside before and open to nobody stays so.
      const std::uint64_t closed = grows ? ideals.row(ideal - 1)[word] & ~open.row(ideal - 1)[word] : 0;
      for_each_bit(inside[word] & ~closed, word, [&](OperatorId op) {
        const auto& users = model.successors[op];
        if (std::any_of(users.begin(), users.end(), [&](OperatorId user) { return !has_bit(inside, user); })) {
          set_bit(open.row(ideal), op);
        }
      });
    }
  }
  return open;
}

} // namespace

StageBorders::StageBorders(const Problem& problem, const BitRows& ideals)
    : problem_(problem), ideals_(ideals), open_(open_operators(problem.model, ideals)),
      sources_(1, problem.model.size()) {
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    if (problem.model.predecessors[op].empty()) {
      set_bit(sources_.row(0), op);
    }
  }
}

Bytes StageBorders::cut_bytes(int ideal) const {
  Bytes sum;
  const auto open = open_.row(ideal);
  for (std::size_t word = 0; word < open.size(); ++word) {
    for_each_bit(open[word], word, [&](OperatorId op) { sum += problem_.output_bytes(op); });
  }
  return sum;
}

// Operators in ascending order, as Problem::border() adds them.
Problem::Border StageBorders::of_stage(int before, int ideal) const {
  Problem::Border sum;
  const auto high = ideals_.row(ideal);
  const auto low = ideals_.row(before);
  const auto in_stage = [&](OperatorId op) { return has_bit(high, op) && !has_bit(low, op); };
  for (std::size_t word = 0; word < high.size(); ++word) {
    const std::uint64_t stage = high[word] & ~low[word];
    const std::uint64_t leaving = open_.row(ideal)[word];
    const std::uint64_t reading = sources_.row(0)[word];
    for_each_bit((stage & (leaving | reading)) | open_.row(before)[word], word, [&](OperatorId op) {
      if (!has_bit(low, op)) {
        sum.outgoing += has_bit(open_.row(ideal), op) ? problem_.output_bytes(op) : Bytes{0};
        sum.incoming += has_bit(sources_.row(0), op) ? problem_.input_bytes() : Bytes{0};
        return;
      }
      const auto& users = problem_.model.successors[op];
      if (std::any_of(users.begin(), users.end(), in_stage)) {
        sum.incoming += problem_.output_bytes(op);
      }
    });
  }
  return sum;
}

} // namespace stagecraft
