// Every file of tests/bad_input/study and plan has one defect, and its first line tells how it is refused: "# expect:
// LINE:COLUMN: start" of the error, or "# defect: start" of a defect in the plan.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan_format/plan_file.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// What follows `prefix` in the first line, or nothing where it has another one.
std::optional<std::string> first_line(const fs::path& file, const std::string& prefix) {
  const std::string text = read_file(file);
  if (!text.starts_with(prefix)) {
    return std::nullopt;
  }
  return text.substr(prefix.size(), text.find('\n') - prefix.size());
}

TEST_CASE("bad studies are refused with the place and the reason", "[study][bad-input]") {
  const auto files = yaml_files(kRoot / "tests/bad_input/study");
  REQUIRE(files.size() >= 45);
  for (const fs::path& file : files) {
    INFO(file.filename());
    const auto expected = first_line(file, "# expect: ");
    REQUIRE(expected.has_value());
    const std::string error = error_of([&] { load_study(yaml::load(file), {file.parent_path(), kRoot}, {}); });
    CHECK_THAT(error, Catch::StartsWith(file.string() + ":" + *expected));
  }
}

TEST_CASE("bad plans are refused with the place or the defect", "[study][bad-input]") {
  const auto files = yaml_files(kRoot / "tests/bad_input/plan");
  REQUIRE(files.size() >= 20);
  const Study chain = study(chain_study(""));
  for (const fs::path& file : files) {
    INFO(file.filename());
    if (const auto expected = first_line(file, "# expect: ")) {
      const std::string error = error_of([&] { read_plan(yaml::load(file), *chain.model, chain.platform); });
      CHECK_THAT(error, Catch::StartsWith(file.string() + ":" + *expected));
      continue;
    }
    const auto expected = first_line(file, "# defect: ");
    REQUIRE(expected.has_value());
    const Plan plan = read_plan(yaml::load(file), *chain.model, chain.platform);
    const auto defects = plan_defects(plan, *chain.model, chain.platform);
    REQUIRE_FALSE(defects.empty());
    CHECK_THAT(defects.front(), Catch::StartsWith(*expected));
  }
}

} // namespace
} // namespace stagecraft::test
