// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "sim/base/format/end_of_equals.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("a run of equal numbers ends with the first other one, wherever that stands", "[base]") {
  for (const int length : {1, 31, 32, 33, 64, 65, 100}) {
    const auto end_with = [&](std::vector<std::int32_t> rest) {
      std::vector<std::int32_t> numbers(length, 7);
      numbers.insert(numbers.end(), rest.begin(), rest.end());
      return end_of_equals(numbers.data(), numbers.data() + numbers.size()) - numbers.data();
    };
    INFO(length);
    CHECK(end_with({}) == length);
    CHECK(end_with({8}) == length);
    CHECK(end_with({8, 7, 7}) == length);
    CHECK(end_with(std::vector<std::int32_t>(100, -7)) == length);
    CHECK(end_with(std::vector<std::int32_t>(100, 6)) == length);
  }
}

} // namespace
} // namespace stagecraft
