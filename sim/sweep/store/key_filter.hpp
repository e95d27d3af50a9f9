// Tells which keys are certainly not in a set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sim/base/system/digest.hpp"

namespace stagecraft {

/// A Bloom filter over keys of points (Bloom 1970): it never denies a key that was added, and denies most that were
/// not. It takes 2 MiB, enough for some millions of points; with more it only helps less. All bits of a key lie in one
/// word, for one fetch from memory (Putze, Sanders, Singler 2007).
class KeyFilter {
public:
  void add(const Digest& key) {
    const Place place = place_of(key);
    words_[place.word] |= place.bits;
  }
  bool may_have(const Digest& key) const {
    const Place place = place_of(key);
    return (words_[place.word] & place.bits) == place.bits;
  }

private:
  static constexpr std::size_t kWords = std::size_t{1} << 18U;

  struct Place {
    std::size_t word;
    std::uint64_t bits;
  };

  // Keys are fingerprints, so their bytes are as good as random.
  static Place place_of(const Digest& key) {
    std::array<std::uint32_t, 4> parts{};
    std::memcpy(parts.data(), key.bytes.data(), sizeof parts);
    constexpr unsigned kBits = 64;
    return {parts[0] % kWords, 1ULL << (parts[1] % kBits) | 1ULL << (parts[2] % kBits) | 1ULL << (parts[3] % kBits)};
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kWords);
};

} // namespace stagecraft
