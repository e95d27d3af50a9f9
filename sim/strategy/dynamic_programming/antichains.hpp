// Antichain states of a model graph: the points where a split may cut it (Ju et al. 2024; PipeDream's optimiser).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// A set of operators as bits, one row per state.
class BitRows {
public:
  BitRows() = default;
  BitRows(int rows, int bits) : words_((bits + 63) / 64), data_(static_cast<std::size_t>(rows) * words_) {}

  std::span<std::uint64_t> row(int r) { return {data_.data() + static_cast<std::size_t>(r) * words_, words_}; }
  std::span<const std::uint64_t> row(int r) const {
    return {data_.data() + static_cast<std::size_t>(r) * words_, words_};
  }
  int rows() const { return words_ == 0 ? 0 : static_cast<int>(data_.size() / words_); }

private:
  std::size_t words_ = 0;
  std::vector<std::uint64_t> data_;
};

inline bool has_bit(std::span<const std::uint64_t> bits, int at) { return ((bits[at / 64] >> (at % 64)) & 1) != 0; }
inline void set_bit(std::span<std::uint64_t> bits, int at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }
bool is_subset(std::span<const std::uint64_t> inner, std::span<const std::uint64_t> outer);

/// Calls `act` with the number of each bit of the word at place `word` of a row, ascending.
template <class Act> void for_each_bit(std::uint64_t bits, std::size_t word, const Act& act) {
  for (; bits != 0; bits &= bits - 1) {
    act(static_cast<int>(word) * 64 + std::countr_zero(bits));
  }
}

/// Whether a row holds all of the row before it and, beyond that, only later operators. Sums over its operators in
/// ascending order then continue those of the row before, to the last bit.
bool continues(const BitRows& rows, int row);

/// Calls `act` with each operator of a row, ascending; if the row `continues` the one before, only with those that it
/// adds.
template <class Act> void for_each_added(const BitRows& rows, int row, bool continues, const Act& act) {
  const auto bits = rows.row(row);
  for (std::size_t word = 0; word < bits.size(); ++word) {
    for_each_bit(continues ? bits[word] & ~rows.row(row - 1)[word] : bits[word], word, act);
  }
}

/// The states in topological order: state 0 is empty, the last one is the whole graph. A state stands for its ideal,
/// the antichain's operators and all their ancestors; states and ideals are one to one.
struct AntichainStates {
  BitRows ideals;
  bool contracted = false; ///< there were more than the cap: parallel branches were contracted

  int count() const { return ideals.rows(); }
};

/// All ideals of the graph, breadth first by size. If the graph has several sources, the empty state serves as their
/// virtual source, at no cost. If there are more than `cap`, the states are those of the graph with its parallel
/// branches contracted (contract_branches.hpp) and the prefixes of the topological order; at most `cap`, or size + 1 if
/// that is more.
AntichainStates antichain_states(const ModelGraph& model, int cap);

/// The note for a plan made from these states, or "".
std::string note_of(const AntichainStates& states, int cap);

/// The antichain DAG (Ju et al. 2024, after PipeDream): a node per antichain, named by its operators, ascending; node 0
/// is that of a virtual source before all operators without predecessors, and holds none.
struct AntichainDag {
  std::vector<std::vector<int>> antichains; ///< [node]: no member is an ancestor of another
  std::vector<std::vector<int>> augmented;  ///< [node]: and the ancestors of members whose output goes elsewhere too
  std::vector<std::vector<int>> next;       ///< [node]: nodes that one more operator leads to, in the order found
  BitRows ideals;                           ///< [node]: the members and all their ancestors
};

/// The antichain DAG of a graph given by predecessors, nodes in topological order. An edge replaces a member u of the
/// augmented antichain by a successor n of u that is not reached yet; members that are ancestors of others are dropped.
/// Nodes and ideals are one to one, and one node is reached from another exactly if its ideal contains the other's.
/// No value if there are more than `cap` nodes beside node 0.
std::optional<AntichainDag> antichain_dag(const std::vector<std::vector<int>>& predecessors, int cap);

/// The nodes of the DAG in topological order: reversed postorder of a depth-first search from node 0 (Ju et al. 2024).
std::vector<int> topological_order(const AntichainDag& dag);

/// The states of the model in the order of its antichain DAG; if there are more than `cap`, of the graph with its
/// parallel branches contracted (contract_branches.hpp), without further prefixes.
AntichainStates antichain_sequence(const ModelGraph& model, int cap);

/// The augmented antichain of an ideal (Ju et al. 2024, after PipeDream): its maximal operators, and every ancestor u
/// of one of them, x, with a successor that is neither x nor an ancestor of x. Ascending.
std::vector<OperatorId> augmented_antichain(const ModelGraph& model, std::span<const std::uint64_t> ideal);

/// [state]: the states whose ideals contain this one strictly, ascending.
std::vector<std::vector<std::int32_t>> states_above(const AntichainStates& states);

/// Of nested states, those next to the bounds of `parts` equal parts of the work, each once, with the first and the
/// last. A search over so few states bounds the search over all. `work` is that of each state's ideal.
std::vector<std::int32_t> few_states(std::span<const std::int32_t> nested, std::span<const double> work, int parts);

/// Sums over the ideal of each state, and the bytes that cross its border.
struct StateCosts {
  std::vector<std::vector<double>> seconds; ///< [device type][state], over operators that have a kernel
  std::vector<std::vector<int>> lacking;    ///< [device type][state]: operators without a kernel
  std::vector<double> parameters, resident_bytes, cut_bytes; ///< [state]
  std::vector<Activations> stash;                            ///< [state]
  std::vector<double> input_bytes;                           ///< [state]: of the model's input, fed to sources inside
  /// [state]: sum over the ideal of the least, over device types, of an operator's time / the type's time for the whole
  /// model. A device that takes T for the whole model does at most s / T of this work in s seconds.
  std::vector<double> weighted;
  std::vector<std::vector<std::int32_t>> above; ///< states_above()
  std::size_t pairs = 0;
};
StateCosts cost_states(const Problem& problem, const AntichainStates& states);

/// [state]: the output bytes of the state's augmented antichain, as PipeDream and Ju et al. count a cut: a tensor that
/// one branch has used up counts again for an antichain with several members. Never less than what crosses.
std::vector<double> augmented_cut_bytes(const Problem& problem, const AntichainStates& states);

} // namespace stagecraft
