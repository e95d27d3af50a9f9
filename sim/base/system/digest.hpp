// Fingerprints of inputs: 128 bits that differ where texts do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

/// The result of a fingerprint.
struct Digest {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Digest&) const = default;
};

/// A digest as 32 hexadecimal digits.
std::string to_text(const Digest& digest);

/// FNV-1a of 128 bits (Fowler, Noll, Vo; RFC 9923), fed piece by piece. No defence against forgery.
class Fingerprint {
public:
  /// Adds a text and its end, so that "ab", "c" and "a", "bc" differ.
  Fingerprint& add(std::string_view text);
  Fingerprint& add(std::uint64_t number);
  Digest digest() const;

private:
  std::uint64_t high_ = 0x6c62272e07bb0142U, low_ = 0x62b821756295c58dU;
};

} // namespace stagecraft
