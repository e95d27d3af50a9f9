// Names of files made of names that strangers chose.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file_names.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("a name of a file leads out of no folder, shows itself, and is short enough", "[base][file]") {
  CHECK(safe_file_name("llama-70B (8 x H100), 0.5") == "llama-70B (8 x H100), 0.5");
  CHECK(safe_file_name("../../x") == "-.-..-x");
  CHECK(safe_file_name("a\\b") == "a-b");
  CHECK(safe_file_name(std::string("a\0b\n", 4)) == "a-b-");
  CHECK(safe_file_name("") == "unnamed");
  CHECK(safe_file_name(std::string(300, 'x')) == std::string(200, 'x'));
  const std::string umlauts = "x" + std::string(100, 'x') + "\xc3\xa4\xc3\xa4";
  CHECK(safe_file_name(umlauts) == umlauts);
}

TEST_CASE("a name of a file is given out once", "[base][file]") {
  FileNames names;
  CHECK(names.unique("a", "one") == "a");
  CHECK(names.unique("a", "two") == "a (two)");
  CHECK(names.unique("a", "two") == "a (two) (2)");
  CHECK(names.unique("/a") == "-a");
  CHECK(names.unique("-a") == "-a (2)");
}

} // namespace
} // namespace stagecraft
