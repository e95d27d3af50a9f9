// Quantities whose dimension is known only from their text: "10 us" is a time, "10" a plain number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// The dimension of a Quantity as a value instead of a type: the exponents of s, B, FLOP, J and USD. A plain number has
/// 0 in all of them.
struct Dimension {
  std::array<int, 5> exponents{};

  auto operator<=>(const Dimension&) const = default;
};

Dimension operator*(const Dimension& one, const Dimension& other);
Dimension operator/(const Dimension& one, const Dimension& other);

/// For messages: "a time", "a plain number", and for a dimension without a name "a quantity in s^2 B".
std::string name_of(const Dimension& dimension);

struct AnyQuantity {
  double value = 0; ///< in SI units
  Dimension dimension;
};

/// The quantity or plain number that a text holds; nothing for any other text.
std::optional<AnyQuantity> find_quantity(std::string_view text);

} // namespace stagecraft
