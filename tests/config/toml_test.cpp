// TOML is read as the nodes that YAML is read as, each with its place, and within the same limits.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/toml.hpp"
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

std::string refusal_of_toml(const std::string& text) {
  return error_of([&] { parse_toml(text, "a.toml"); });
}

TEST_CASE("TOML gives every kind of value as text with its place", "[config][toml]") {
  const yaml::Node read =
      parse_toml("z = 1_000\na = \"x # y\" # c\n[s.t]\nb = [1.5, true]\nc = {d = 'e'}\nd = 1979-05-27\n", "a.toml");
  CHECK(yaml::flow_text(read) ==
        R"({"z": "1000", "a": "x # y", "s": {"t": {"b": ["1.5", "true"], "c": {"d": "e"}, "d": "1979-05-27"}}})");
  CHECK(to_text(read.find("a")->where) == "a.toml:2:5");
  CHECK(to_text(read.find("s")->find("t")->entries.front().where) == "a.toml:4:1");
}

TEST_CASE("bad TOML is refused where it stands", "[config][toml]") {
  CHECK_THAT(refusal_of_toml("a = \n"), Catch::StartsWith("a.toml:1:") && Catch::Contains("not valid TOML"));
  CHECK_THAT(refusal_of_toml("a = 1\na = 2\n"), Catch::StartsWith("a.toml:2:"));
  CHECK_THAT(refusal_of_toml("[t]\n[t]\n"), Catch::StartsWith("a.toml:2:"));
  CHECK_THAT(refusal_of_toml("a = \"x\n"), Catch::StartsWith("a.toml:1:"));
  CHECK_THAT(refusal_of_toml("[\fa]\n"), Catch::StartsWith("a.toml:1:2: not valid TOML: a table's name"));
  CHECK_THAT(refusal_of_toml("[[=a]]\n"), Catch::StartsWith("a.toml:1:3: not valid TOML: a table's name"));
}

// A hundred levels are read, one more is not, however they are written.
TEST_CASE("TOML is read to the depth of YAML", "[config][toml]") {
  const auto lists = [](int depth) { return "a = " + repeated("[", depth) + repeated("]", depth) + "\n"; };
  const auto keys = [](int parts) { return "a" + repeated(".a", parts) + " = 1\n"; };
  const auto header = [](int parts) { return "[a" + repeated(".a", parts) + "]\n"; };
  CHECK(refusal_of_toml(lists(99)).empty());
  CHECK_THAT(refusal_of_toml(lists(101)), Catch::StartsWith("a.toml:1:105: values lie more than 100 deep"));
  CHECK(refusal_of_toml(keys(100)).empty());
  CHECK_THAT(refusal_of_toml(keys(101)), Catch::Contains("more than 100 deep"));
  CHECK(refusal_of_toml(header(99)).empty());
  CHECK_THAT(refusal_of_toml(header(100)), Catch::Contains("more than 100 deep"));
  CHECK_THAT(refusal_of_toml(header(60) + keys(60)), Catch::Contains("more than 100 deep"));
  CHECK_THAT(refusal_of_toml("b = [" + repeated("{a.b = ", 60) + "1"), Catch::Contains("more than 100 deep"));
  // What stands in strings and comments has no depth, and each value begins anew.
  CHECK(refusal_of_toml("a = \"" + repeated(".", 200) + "\" # " + repeated("[", 200) + "\n").empty());
  CHECK(refusal_of_toml("a = [" + repeated("0.5, ", 200) + "1]\n").empty());
  CHECK(refusal_of_toml(repeated("", 1) + "a = '''\n" + repeated("[.", 200) + "'''\n").empty());
}

} // namespace
} // namespace stagecraft::test
