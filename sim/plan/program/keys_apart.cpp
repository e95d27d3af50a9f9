// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/keys_apart.hpp"

#include <algorithm>
#include <string>

#include "sim/plan/program/product_regions.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

// The keys and values that lie beside queries: the last sections of the last dimension.
TensorDimensions keys_beside(TensorDimensions dimensions, int queries) {
  std::vector<std::int64_t>& sections = dimensions.back().sections;
  sections.erase(sections.begin(), sections.begin() + queries);
  return dimensions;
}

Signature hands_out(const Signature& attention, const TensorDimensions& keys) {
  Signature signature;
  signature.letters = attention.letters;
  for (Letter& letter : signature.letters) {
    letter.along = letter.name == kTokens ? Along::each : letter.along;
  }
  signature.inputs = {attention.inputs.front()};
  signature.output = keys;
  signature.queries = 0; // where attention shares heads, so does this
  return signature;
}

} // namespace

std::optional<KeysApart> keys_apart(const Signature& signature) {
  const int tokens = find_letter(signature, kTokens);
  if (!signature.queries || tokens == kNone) {
    return std::nullopt;
  }
  KeysApart apart{.keys = std::nullopt, .attention = signature};
  std::vector<InputSignature>& inputs = apart.attention.inputs;
  if (*signature.queries > 0) {
    const TensorDimensions keys = keys_beside(inputs.front().dimensions, *signature.queries);
    apart.keys = hands_out(signature, keys);
    inputs.push_back({.maker = -1, .dimensions = keys});
  }
  std::vector<Letter>& letters = apart.attention.letters;
  letters[tokens].along = Along::each;
  const auto of_keys = static_cast<int>(letters.size());
  letters.push_back({"tokens of keys", letters[tokens].pieces, Along::whole});
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    for (TensorDimension& dimension : inputs[i].dimensions) {
      dimension.letter = dimension.letter == tokens ? of_keys : dimension.letter;
    }
  }
  return apart;
}

} // namespace stagecraft
