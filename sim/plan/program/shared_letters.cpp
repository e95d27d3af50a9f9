// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/shared_letters.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
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

// Tokens; of what needs all of them at once, attention, the heads.
AxisLetters tokens_or_heads(const std::vector<Signature>& operators) {
  AxisLetters chosen;
  for (const Signature& signature : operators) {
    const int tokens = find_letter(signature, kTokens);
    const bool whole = tokens != kNone && signature.letters[tokens].along == Along::whole;
    const bool attends = signature.queries.has_value();
    chosen.letters.push_back(whole || attends ? feature_letter(signature) : tokens);
  }
  return chosen;
}

AxisLetters letters_named(const std::vector<Signature>& operators, std::string_view name) {
  AxisLetters named;
  for (const Signature& signature : operators) {
    named.letters.push_back(find_letter(signature, name));
  }
  return named;
}

// Pieces of the letter that an operator shares along an axis, of what outer axes leave of it; 0: any number.
std::int64_t pieces_of(const std::vector<Signature>& operators, const Layout& layout, const SharedLetters& shared,
                       std::size_t axis, int op) {
  std::int64_t pieces = operators[op].letters[shared[op][axis]].pieces;
  for (std::size_t i = 0; i < axis; ++i) {
    if (shared[op][i] == shared[op][axis] && layout.dimensions[i].size > 1) {
      pieces = std::max<std::int64_t>(pieces / layout.dimensions[i].size, pieces > 0 ? 1 : 0);
    }
  }
  return pieces;
}

// The nearest number of ranks among which every operator can share what it shares along an axis.
std::int64_t nearest_for_all(const std::vector<Signature>& operators, const Layout& layout, const SharedLetters& shared,
                             std::size_t axis, const std::function<bool(int op)>& divides) {
  std::int64_t common = 0;
  for (int op = 0; op < static_cast<int>(operators.size()); ++op) {
    if (divides(op)) {
      common = std::gcd(common, pieces_of(operators, layout, shared, axis, op));
    }
  }
  return nearest(common, layout.dimensions[axis].size);
}

} // namespace

std::optional<Infeasible> sharing_defect(const std::vector<Signature>& operators, const Layout& layout,
                                         const SharedLetters& shared, std::size_t axis, const std::set<int>& padded) {
  const Layout::Dimension& dimension = layout.dimensions[axis];
  const auto divides = [&](int op) {
    return is_letter(shared[op][axis]) && !(dimension.axis == Axis::tensor && padded.count(op) > 0);
  };
  for (int op = 0; op < static_cast<int>(operators.size()); ++op) {
    if (dimension.size == 1 || !is_letter(shared[op][axis])) {
      continue;
    }
    const Letter& letter = operators[op].letters[shared[op][axis]];
    if (letter.along == Along::whole) {
      return Infeasible{"operator " + std::to_string(op) + " needs all " + letter.name + " at once, so the " +
                        std::string(name_of(dimension.axis)) + " axis cannot share them"};
    }
    std::string outer; // what shares the letter already
    for (std::size_t i = 0; i < axis; ++i) {
      if (shared[op][i] == shared[op][axis] && layout.dimensions[i].size > 1) {
        outer += std::to_string(layout.dimensions[i].size) + " " + std::string(name_of(layout.dimensions[i].axis)) +
                 "-parallel x ";
      }
    }
    if (divides(op) && pieces_of(operators, layout, shared, axis, op) % dimension.size != 0) {
      return Infeasible{std::to_string(letter.pieces) + " " + letter.name + " do not divide over " + outer +
                        std::to_string(dimension.size) + " " + std::string(name_of(dimension.axis)) +
                        "-parallel ranks; nearest that does: " +
                        std::to_string(nearest_for_all(operators, layout, shared, axis, divides))};
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
    if (dimension.size == 1) {
      continue; // nothing to share
    }
    std::variant<AxisLetters, Infeasible> chosen =
        Infeasible{"the rule of " + std::string(framework) + " lays out experts by their own layout"};
    if (dimension.axis == Axis::data || dimension.axis == Axis::context) {
      chosen = letters_named(operators, dimension.axis == Axis::data ? kSamples : kTokens);
    } else if (dimension.axis == Axis::heads) {
      chosen = tokens_or_heads(operators);
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
