// Colours of colour refinement: numbers that are the same for what is alike, and differ for anything else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace stagecraft {

using Colour = std::uint64_t;

/// The colour of an ordered pair (the finalizer of SplitMix64, Steele et al. 2014). Sums of colours are colours of
/// multisets. Of 64 bits, so that two of a million differ by all odds of practice.
constexpr Colour mixed(Colour one, Colour other) {
  Colour colour = one * 0x9e3779b97f4a7c15ULL + (other ^ (other >> 32U)) + 0x632be59bd9b4e019ULL;
  colour = (colour ^ (colour >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  colour = (colour ^ (colour >> 27U)) * 0x94d049bb133111ebULL;
  return colour ^ (colour >> 31U);
}
constexpr Colour mixed(Colour one, double number) { return mixed(one, std::bit_cast<Colour>(number)); }

} // namespace stagecraft
