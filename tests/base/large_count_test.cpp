// Counts of tokens as people write them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/large_count.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"

namespace stagecraft {
namespace {

TEST_CASE("large counts are read in digits, letters and words", "[base]") {
  for (const char* text : {"300e9", "300B", "300b", "300 billion", "0.3T", "300000M", "300000000000"}) {
    CHECK(parse_large_count(text, {}) == Approx(300e9));
  }
  CHECK(in_words(300e9) == "300 billion");
  CHECK(in_words(1.5e12) == "1.5 trillion");
  CHECK(in_words(64000) == "64,000");
  CHECK(with_commas(27963.2) == "27,963");
  CHECK(with_commas(14.6) == "14.6");
}

TEST_CASE("what is no count of tokens is refused", "[base]") {
  for (const char* text : {"", "B", "300X", "-1", "0", "2e18", "nan"}) {
    CHECK_THROWS_AS(parse_large_count(text, {}), InputError);
  }
}

} // namespace
} // namespace stagecraft
