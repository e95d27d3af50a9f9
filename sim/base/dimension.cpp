// SPDX-License-Identifier: Apache-2.0
#include "sim/base/dimension.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

struct Name {
  Dimension dimension;
  std::string_view name;
};

constexpr std::array kNames = {
    Name{{{0, 0, 0, 0, 0}}, "a plain number"},     Name{{{1, 0, 0, 0, 0}}, "a time"},
    Name{{{0, 1, 0, 0, 0}}, "an amount of data"},  Name{{{-1, 1, 0, 0, 0}}, "a data rate"},
    Name{{{0, 0, 1, 0, 0}}, "an amount of work"},  Name{{{-1, 0, 1, 0, 0}}, "a rate of work"},
    Name{{{0, 0, 0, 1, 0}}, "an energy"},          Name{{{-1, 0, 0, 1, 0}}, "a power"},
    Name{{{0, 0, 0, 0, 1}}, "an amount of money"}, Name{{{-1, 0, 0, 0, 1}}, "a price per time"},
};

constexpr std::array<std::string_view, 5> kUnits = {"s", "B", "FLOP", "J", "USD"};

} // namespace

Dimension operator*(const Dimension& one, const Dimension& other) {
  Dimension product = one;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    product.exponents.at(i) += other.exponents.at(i);
  }
  return product;
}

Dimension operator/(const Dimension& one, const Dimension& other) {
  Dimension quotient = one;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    quotient.exponents.at(i) -= other.exponents.at(i);
  }
  return quotient;
}

std::string name_of(const Dimension& dimension) {
  const auto named =
      std::find_if(kNames.begin(), kNames.end(), [&](const Name& one) { return one.dimension == dimension; });
  if (named != kNames.end()) {
    return std::string(named->name);
  }
  std::string text = "a quantity in";
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const int exponent = dimension.exponents.at(i);
    if (exponent != 0) {
      text += " " + std::string(kUnits.at(i)) + (exponent == 1 ? "" : "^" + std::to_string(exponent));
    }
  }
  return text;
}

} // namespace stagecraft
