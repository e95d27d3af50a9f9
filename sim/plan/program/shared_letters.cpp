// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/shared_letters.hpp"

#include <string>

namespace stagecraft {
namespace {

std::int64_t nearest(std::int64_t pieces, std::int64_t size) {
  for (std::int64_t away = 1;; ++away) {
    if (size > away && pieces % (size - away) == 0) {
      return size - away;
    }
    if (size + away <= pieces && pieces % (size + away) == 0) {
      return size + away;
    }
  }
}

} // namespace

std::optional<Infeasible> sharing_defect(const std::vector<Signature>& operators, const Layout& layout,
                                         const SharedLetters& shared, std::size_t axis, const std::set<int>& padded) {
  const Layout::Dimension& dimension = layout.dimensions[axis];
  for (int op = 0; op < static_cast<int>(operators.size()); ++op) {
    if (dimension.size == 1 || shared[op][axis] == kNone) {
      continue;
    }
    const Letter& letter = operators[op].letters[shared[op][axis]];
    if (letter.along == Along::whole) {
      return Infeasible{"operator " + std::to_string(op) + " needs all " + letter.name + " at once, so the " +
                        std::string(name_of(dimension.axis)) + " axis cannot share them"};
    }
    if (letter.pieces % dimension.size != 0 && !(dimension.axis == Axis::tensor && padded.count(op) > 0)) {
      return Infeasible{
          std::to_string(letter.pieces) + " " + letter.name + " do not divide over " + std::to_string(dimension.size) +
          " " + std::string(name_of(dimension.axis)) +
          "-parallel ranks; nearest that does: " + std::to_string(nearest(letter.pieces, dimension.size))};
    }
  }
  return std::nullopt;
}

} // namespace stagecraft
