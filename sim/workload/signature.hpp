// How the tensors of an operator hang together, dimension by dimension, as in an Einstein sum: from this follows how
// devices may share its work, and what they must then exchange.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// What an operator does along a letter.
enum class Along {
  each,   ///< every index by itself, so devices may share the indices
  sum,    ///< adds up over it; devices that share the indices have parts of the sum
  whole,  ///< needs all of it at once, as a norm needs all features: no device can have a part
  reduce, ///< reduces over it inside: devices that share the indices exchange what `Signature::reductions` says
};

/// Names of the letters that every framework shares out in the same way.
inline constexpr std::string_view kSamples = "samples";
inline constexpr std::string_view kTokens = "tokens";
/// The name of the letter that ranks of an expert axis share.
inline constexpr std::string_view kExperts = "experts";

/// An index over which tensors of an operator run: samples, tokens, features, heads, …
struct Letter {
  std::string name;
  std::int64_t pieces = 1; ///< what it can be cut into at most; 0: any number of parts
  Along along = Along::each;
  bool any_order = false; ///< its indices may be handed out in any order: an operator takes that of its neighbours
  bool operator==(const Letter&) const = default;
};

/// A dimension of a tensor. Its size is the sum of its sections. Cut into n parts, part i has the i-th n-th of every
/// section: queries, keys and values that lie side by side are each cut by heads.
struct TensorDimension {
  int letter = 0; ///< index into Signature::letters
  std::vector<std::int64_t> sections;
  /// A second letter along which it may be cut instead, into parts of unequal size: rows of tokens, each of which
  /// belongs to an expert. -1: none.
  int sorted_by = -1;
  std::int64_t size() const { return std::accumulate(sections.begin(), sections.end(), std::int64_t{0}); }
  bool operator==(const TensorDimension&) const = default;
};
using TensorDimensions = std::vector<TensorDimension>;

/// The product of their sizes.
double elements_of(const TensorDimensions& dimensions);

struct InputSignature {
  int maker = -1; ///< the operator that makes it; -1: the data
  TensorDimensions dimensions;
  bool passes_gradient = true; ///< not where it is read as numbers of experts
  /// Backward reads it for the gradients of parameters alone: the output is linear in it.
  bool for_weights_alone = false;
  /// The output is a sum of its parts, as other inputs say: of terms of it the operator makes terms of the output.
  bool takes_terms = false;
  bool operator==(const InputSignature&) const = default;
};

struct ParameterSignature {
  TensorDimensions dimensions;
  bool added_last = false; ///< added to the output once it is whole: a bias, a table of positions
  bool trained = true;     ///< has a gradient
  int tied_to = -1;        ///< the operator whose first parameter this one is; -1: its own
  bool operator==(const ParameterSignature&) const = default;

  /// Whether the optimiser steps it with this operator.
  bool stepped() const { return trained && tied_to < 0; }
};

/// What is reduced over a `reduce` letter before the operator can go on.
struct InnerReduction {
  bool maximum = false;    ///< the greatest instead of the sum
  TensorDimensions tensor; ///< of what is exchanged
  bool operator==(const InnerReduction&) const = default;
};

/// Dimensions of all tensors that an operator reads and writes. A sample is a dimension too.
struct Signature {
  std::vector<Letter> letters;
  std::vector<InputSignature> inputs;
  TensorDimensions output;
  std::vector<ParameterSignature> parameters;
  std::vector<InnerReduction> reductions; ///< one after the other
  bool reads_inputs = false;              ///< backward reads the inputs
  bool reads_output = false;              ///< backward reads the output
  /// Of attention, whose queries need keys and values of all tokens: how many sections of its only input are queries,
  /// beside which these lie; 0: its inputs from the second on are these. Nothing: it is no attention.
  std::optional<int> queries{};
  bool operator==(const Signature&) const = default;
};

/// Where a letter stands among the dimensions of a tensor, be it as their second; -1: nowhere.
int dimension_of(const TensorDimensions& dimensions, int letter);

/// An operator that reads another one's output, as which of its inputs.
struct OutputReader {
  int op = -1, input = 0;
};
/// [operator]: who reads its output, in the order of operators.
std::vector<std::vector<OutputReader>> readers_of(const std::vector<Signature>& operators);

} // namespace stagecraft
