// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/shared_letters.hpp"

#include <string>

#include "sim/plan/program/product_regions.hpp"

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

AxisLetters letters_named(const std::vector<Signature>& operators, std::string_view name) {
  AxisLetters named;
  for (const Signature& signature : operators) {
    named.letters.push_back(find_letter(signature, name));
  }
  return named;
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

std::variant<SharedLetters, Infeasible>
share_axes(const std::vector<Signature>& operators, const Layout& layout, std::string_view framework,
           const std::function<std::variant<AxisLetters, Infeasible>(int ranks)>& along_tensor) {
  SharedLetters shared(operators.size(), std::vector<int>(layout.dimensions.size(), kNone));
  for (std::size_t axis = 0; axis < layout.dimensions.size(); ++axis) {
    const Layout::Dimension& dimension = layout.dimensions[axis];
    std::variant<AxisLetters, Infeasible> chosen =
        Infeasible{"the rule of " + std::string(framework) + " lays out experts by their own layout"};
    if (dimension.axis == Axis::data || dimension.axis == Axis::context) {
      chosen = letters_named(operators, dimension.axis == Axis::data ? kSamples : kTokens);
    } else if (dimension.axis == Axis::tensor) {
      chosen = along_tensor(dimension.size);
    }
    if (const Infeasible* reason = std::get_if<Infeasible>(&chosen)) {
      return *reason;
    }
    const AxisLetters& along = std::get<AxisLetters>(chosen);
    for (std::size_t op = 0; op < operators.size(); ++op) {
      shared[op][axis] = along.letters[op];
    }
    if (std::optional<Infeasible> defect = sharing_defect(operators, layout, shared, axis, along.padded)) {
      return *std::move(defect);
    }
  }
  return shared;
}

} // namespace stagecraft
