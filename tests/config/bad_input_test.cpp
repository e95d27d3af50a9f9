// Every file of tests/bad_input/config has one defect, and its first line tells how it is refused on eight devices:
// "# expect: LINE:COLUMN: start". A table begins behind that line, and its lines are counted from there.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("bad configurations are refused with the place and the reason", "[config][bad-input]") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/bad_input/config")) {
    const std::string file = entry.path().filename().string();
    INFO(file);
    std::string text = read_file(entry.path());
    const std::string prefix = "# expect: ";
    REQUIRE(text.starts_with(prefix));
    const std::string expected = text.substr(prefix.size(), text.find('\n') - prefix.size());
    if (entry.path().extension() == ".csv") {
      text.erase(0, text.find('\n') + 1);
    } else if (entry.path().extension() == ".json") {
      text.erase(0, text.find('\n')); // JSON has no comments
    }
    CHECK_THAT(refusal(text, file), Catch::StartsWith(file + ":" + expected));
    ++files;
  }
  CHECK(files >= 25);
}

} // namespace
} // namespace stagecraft::test
