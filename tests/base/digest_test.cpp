// Fingerprints, compared with the definition of FNV-1a.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/base/system/digest.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

// FNV-1a of 128 bits as its definition says, with digits of base 2^8: slow and simple.
std::string by_definition(const std::string& bytes) {
  std::array<unsigned, 16> state{}; // the lowest byte first
  const std::string basis = "6c62272e07bb014262b821756295c58d";
  for (unsigned i = 0; i < 16; ++i) {
    state.at(15 - i) = static_cast<unsigned>(std::stoul(basis.substr(2 * i, 2), nullptr, 16));
  }
  for (const char byte : bytes) {
    state[0] ^= static_cast<unsigned char>(byte);
    std::array<unsigned, 17> product{};
    for (unsigned i = 0; i < 16; ++i) { // times 0x1 000000 000000 000000 00013b
      product.at(i) += state.at(i) * 0x3b;
      if (i + 1 < 16) {
        product.at(i + 1) += state.at(i);
      }
      if (i + 11 < 16) {
        product.at(i + 11) += state.at(i);
      }
    }
    for (unsigned i = 0; i < 16; ++i) {
      product.at(i + 1) += product.at(i) >> 8U;
      state.at(i) = product.at(i) & 0xffU;
    }
  }
  std::string text;
  for (unsigned i = 16; i-- > 0;) {
    text += "0123456789abcdef"[state.at(i) >> 4U];
    text += "0123456789abcdef"[state.at(i) & 15U];
  }
  return text;
}

TEST_CASE("a fingerprint is FNV-1a over texts, each followed by its length in eight bytes", "[base][digest]") {
  for (const std::string text : {"", "a", "foobar", "a longer text, to carry through every byte of the state"}) {
    std::string bytes = text;
    for (unsigned i = 0; i < 8; ++i) {
      bytes += static_cast<char>(text.size() >> (8 * i));
    }
    CHECK(to_text(Fingerprint().add(text).digest()) == by_definition(bytes));
  }
}

TEST_CASE("fingerprints tell apart where one text ends", "[base][digest]") {
  const Digest one = Fingerprint().add("ab").add("c").digest();
  CHECK(one != Fingerprint().add("a").add("bc").digest());
  CHECK(one == Fingerprint().add("ab").add("c").digest());
}

} // namespace
} // namespace stagecraft
