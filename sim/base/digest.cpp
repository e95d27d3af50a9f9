// SPDX-License-Identifier: Apache-2.0
#include "sim/base/digest.hpp"

namespace stagecraft {

namespace {

constexpr unsigned kByte = 8;

// The product of two 64-bit numbers: high and low half.
struct Product {
  std::uint64_t high, low;
};
Product multiply(std::uint64_t a, std::uint64_t b) {
  constexpr unsigned kHalf = 32;
  constexpr std::uint64_t kMask = 0xffffffffU;
  const std::uint64_t lows = (a & kMask) * (b & kMask);
  const std::uint64_t middle = (a >> kHalf) * (b & kMask) + (lows >> kHalf);
  const std::uint64_t other = (a & kMask) * (b >> kHalf) + (middle & kMask);
  return {(a >> kHalf) * (b >> kHalf) + (middle >> kHalf) + (other >> kHalf), (other << kHalf) | (lows & kMask)};
}

} // namespace

// state = (state xor byte) * (2^88 + 0x13b), modulo 2^128
void Fingerprint::add_byte(std::uint8_t byte) {
  constexpr std::uint64_t kPrime = 0x13b;
  constexpr unsigned kShift = 88 - 64;
  low_ ^= byte;
  const Product product = multiply(low_, kPrime);
  high_ = product.high + high_ * kPrime + (low_ << kShift);
  low_ = product.low;
}

Fingerprint& Fingerprint::add(std::string_view text) {
  for (const char letter : text) {
    add_byte(static_cast<std::uint8_t>(letter));
  }
  return add(text.size());
}

Fingerprint& Fingerprint::add(std::uint64_t number) {
  for (unsigned byte = 0; byte < sizeof number; ++byte) {
    add_byte(static_cast<std::uint8_t>(number >> (byte * kByte)));
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

bool begins_with(const Digest& digest, std::string_view digits) {
  constexpr std::size_t kFewest = 8;
  return digits.size() >= kFewest && to_text(digest).starts_with(digits);
}

} // namespace stagecraft
