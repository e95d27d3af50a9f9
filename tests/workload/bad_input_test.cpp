// Every file of tests/bad_input/workload is refused where and as expected. The expectation "# expect: LINE:COLUMN:
// start of message" is the first line of a YAML file; for a .txt file it is in NAME.expect.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

std::string expectation_of(const std::filesystem::path& file) {
  std::filesystem::path source = file;
  if (file.extension() != ".yaml") {
    source.replace_extension(".expect");
  }
  const std::string text = read_file(source);
  const std::string prefix = "# expect: ";
  REQUIRE_THAT(text, Catch::StartsWith(prefix));
  return text.substr(prefix.size(), text.find('\n') - prefix.size());
}

TEST_CASE("bad model files are refused with the place and the reason", "[workload][bad-input]") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "tests/bad_input/workload")) {
    if (entry.path().extension() == ".expect") {
      continue;
    }
    ++files;
    INFO(entry.path().filename());
    const std::string expected = entry.path().string() + ":" + expectation_of(entry.path());
    CHECK_THAT(test::error_of([&] { load_model(entry.path()); }), Catch::StartsWith(expected));
  }
  CHECK(files >= 40);
}

TEST_CASE("deep nesting is refused, not followed", "[workload][bad-input]") {
  constexpr int kDepth = 100'000;
  const std::string deep = "name: t\nlayers: " + std::string(kDepth, '[') + std::string(kDepth, ']') + "\n";
  CHECK_THAT(test::error_of([&] { test::workload(deep); }), Catch::StartsWith("w.yaml:"));
}

} // namespace
} // namespace stagecraft
