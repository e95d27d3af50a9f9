// SPDX-License-Identifier: Apache-2.0
#include "sim/base/edit_distance.hpp"
#include "tests/catch.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("a distance counts letters put in, left out, changed and swapped", "[base]") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("parallel", "paralel") == 1);
  CHECK(edit_distance("format", "fromat") == 1);
  CHECK(edit_distance("optimizer", "Optimiser") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a misspelling is near a name, the nearer the shorter it is", "[base]") {
  const std::vector<std::string> names = {"dtype", "sequence_parallel", "fp8", "float8"};
  CHECK(misspelt("sequense_paralel", names) == "sequence_parallel");
  CHECK(misspelt("dtyp", names) == "dtype");
  CHECK(misspelt("flaot8", names) == "float8");
  CHECK(misspelt("qtyp", names).empty());
  CHECK(misspelt("fp4", names).empty());
  CHECK(misspelt("dtype", names).empty());
  CHECK(misspelt("sequence", names).empty());
}

} // namespace
} // namespace stagecraft::test
