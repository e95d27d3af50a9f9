// Quantities whose dimension only their text knows: "10 us" is a time, "10" a plain number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// What Quantity has as a type, as a value: the exponents of s, B, FLOP, J and USD. All are 0 of a plain number.
struct Dimension {
  std::array<int, 5> exponents{};

  auto operator<=>(const Dimension&) const = default;
};

Dimension operator*(const Dimension& one, const Dimension& other);
Dimension operator/(const Dimension& one, const Dimension& other);

/// For messages: "a time", "a plain number", and of what has no name "a quantity in s^2 B".
std::string name_of(const Dimension& dimension);

struct AnyQuantity {
  double value = 0; ///< in SI units
  Dimension dimension;
};

/// The quantity of a text that is one, or a number; nothing of other texts.
std::optional<AnyQuantity> find_quantity(std::string_view text);

} // namespace stagecraft
