// Variables of shell scripts, told without a shell.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/shell_variables.hpp"
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

std::string value_of(const std::string& name, const std::string& script) {
  const ShellVariables read = read_shell_variables(script, "a.sh");
  const auto found = read.values.find(name);
  return found != read.values.end() ? found->second.text : "(none)";
}

std::string refusal_of_script(const std::string& script) {
  return error_of([&] { read_shell_variables(script, "a.sh"); });
}

TEST_CASE("assignments are told with their quotes and references", "[config][shell]") {
  CHECK(value_of("A", "export A=1 # one\n") == "1");
  CHECK(value_of("B", "export A=1 B=2\n") == "2");
  CHECK(value_of("A", "A='x y'\"z\"w\n") == "x yzw");
  CHECK(value_of("B", "A=2\nexport B=\"${A}x$A\"\n") == "2x2");
  CHECK(value_of("A", ": \"${A:=3}\"\n") == "3");
  CHECK(value_of("A", "A=1\n: \"${A:=3}\"\n") == "1");
  CHECK(value_of("A", "export A=${B:-4}\n") == "4");
  CHECK(value_of("A", "export A=1\nexport A=2\n") == "2");
}

TEST_CASE("what only a shell can tell is listed and has no value", "[config][shell]") {
  for (const std::string computed : {"$(nproc)", "$((1 << 2))", "$((1 / 0))", "$((HOME + 1))", "$((010 + 1))",
                                     "$((9999999999999999))", "`date`", "$HOME", "${X%.sh}", "\"$(a \"b\")\""}) {
    INFO(computed);
    const ShellVariables read = read_shell_variables("export A=" + computed + "\nexport B=$A\n", "a.sh");
    CHECK(read.values.empty()); // B comes from A
    CHECK(read.not_understood.size() == 2);
  }
  const ShellVariables read = read_shell_variables(
      "source other.sh\nif [ 1 ]; then\n  export A=1\nfi\nfor i in 1 2; do export A=$i; done\nA=5\n", "a.sh");
  CHECK(read.values.at("A").text == "5");
  CHECK(to_text(read.values.at("A").where) == "a.sh:6:3");
  CHECK(read.not_understood.size() == 3);
}

TEST_CASE("whole numbers are computed as a shell does", "[config][shell]") {
  CHECK(value_of("A", "A=$((1 + 2))\n") == "3");
  CHECK(value_of("C", "A=8\nB=4\nexport C=$(($A*${B}))\n") == "32");
  CHECK(value_of("C", "A=8\nB=4\nexport C=\"$(( (A + 1) * B / 2 - -7 % 4 ))\"x\n") == "21x"); // 36/2 + 3
  CHECK(value_of("B", "A=two\nB=$((A))\n") == "(none)");
  CHECK_THAT(refusal_of_script("A=$((1 + 2)\nB=1)\n"), Catch::StartsWith("a.sh:1:4: an expression without its end"));
}

TEST_CASE("references in a circle or to lines below are refused", "[config][shell]") {
  CHECK(refusal_of_script("export A=${B}\nexport B=${A}\n") ==
        "a.sh:1:10: 'B' is set only in line 2; allowed: a variable that a line above sets, or ${B:-VALUE}");
  CHECK_THAT(refusal_of_script("export A=$A\n"), Catch::StartsWith("a.sh:1:10: 'A' is set from itself"));
  CHECK_THAT(refusal_of_script("export A=\"x\n"), Catch::StartsWith("a.sh:1:10: a quotation without its end"));
  CHECK_THAT(refusal_of_script("export A=${B\n"), Catch::StartsWith("a.sh:1:11: an expression without its end"));
}

} // namespace
} // namespace stagecraft::test
