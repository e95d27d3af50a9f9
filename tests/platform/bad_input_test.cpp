// Every file of tests/bad_input/platform is refused where and as its first line says: "# expect: LINE:COLUMN: start".
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

TEST_CASE("bad platform files are refused with the place and the reason", "[platform][bad-input]") {
  const auto files = test::yaml_files(test::source_dir() / "tests/bad_input/platform");
  REQUIRE(files.size() >= 11);
  for (const auto& file : files) {
    const std::string text = read_file(file);
    const std::string prefix = "# expect: ";
    REQUIRE_THAT(text, Catch::StartsWith(prefix));
    const std::string expected = text.substr(prefix.size(), text.find('\n') - prefix.size());
    INFO(file.filename());
    CHECK_THROWS_MATCHES(
        load_platform(yaml::load(file), test::shipped_types()), InputError,
        Catch::Matchers::Predicate<InputError>(
            [&](const InputError& error) {
              INFO(error.what());
              return std::string_view(error.what()).substr(0, file.string().size() + 1 + expected.size()) ==
                     file.string() + ":" + expected;
            },
            "starts with " + expected));
  }
}

} // namespace
} // namespace stagecraft
