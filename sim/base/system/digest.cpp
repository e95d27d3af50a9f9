// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/digest.hpp"

namespace stagecraft {

namespace {

constexpr unsigned kByte = 8, kHigh = 64;

__extension__ using Wide = unsigned __int128;

// state = (state xor byte) * (2^88 + 0x13b), modulo 2^128
void add_byte(std::uint8_t byte, std::uint64_t& high, std::uint64_t& low) {
  constexpr std::uint64_t kPrime = 0x13b;
  constexpr unsigned kShift = 88 - 64;
  low ^= byte;
  const Wide product = static_cast<Wide>(low) * kPrime;
  high = high * kPrime + (low << kShift) + static_cast<std::uint64_t>(product >> kHigh);
  low = static_cast<std::uint64_t>(product);
}

} // namespace

Fingerprint& Fingerprint::add(std::string_view text) {
  std::uint64_t high = high_, low = low_;
  for (const char letter : text) {
    add_byte(static_cast<std::uint8_t>(letter), high, low);
  }
  high_ = high;
  low_ = low;
  return add(text.size());
}

Fingerprint& Fingerprint::add(std::uint64_t number) {
  for (unsigned byte = 0; byte < sizeof number; ++byte) {
    add_byte(static_cast<std::uint8_t>(number >> (byte * kByte)), high_, low_);
  }
  return *this;
}

Digest Fingerprint::digest() const {
  Digest digest;
  for (unsigned byte = 0; byte < sizeof low_; ++byte) {
    digest.bytes.at(byte) = static_cast<std::uint8_t>(high_ >> (kByte * (sizeof low_ - 1 - byte)));
    digest.bytes.at(sizeof low_ + byte) = static_cast<std::uint8_t>(low_ >> (kByte * (sizeof low_ - 1 - byte)));
  }
  return digest;
}

std::string to_text(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kNibble = 4;
  constexpr unsigned kLow = 15;
  std::string text;
  for (const std::uint8_t byte : digest.bytes) {
    text += kDigits[byte >> kNibble];
    text += kDigits[byte & kLow];
  }
  return text;
}

} // namespace stagecraft
