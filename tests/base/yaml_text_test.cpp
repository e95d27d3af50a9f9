// Texts in YAML: plain where that is plainly the same, and read back in any case.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/base/format/yaml_text.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("words and quantities stand as they are, everything else in quotes", "[base][yaml]") {
  for (const std::string text : {"resnet50", "80 GiB", "3.5 GB/s", "layer.0/attention_b", "10x"}) {
    CHECK(yaml_text(text) == text);
  }
  CHECK(yaml_text("") == "\"\"");
  CHECK(yaml_text("null") == "\"null\"");
  CHECK(yaml_text("No") == "\"No\"");
  CHECK(yaml_text("a, b") == "\"a, b\"");
  CHECK(yaml_text("say \"x\"\n") == "\"say \\\"x\\\"\\u000a\"");
}

TEST_CASE("every text reads back as it was, as a value and as a key", "[base][yaml]") {
  for (const std::string& text : std::vector<std::string>{"two\nlines",
                                                          " leading",
                                                          "trailing ",
                                                          "a  b",
                                                          "- item",
                                                          "? key",
                                                          "a: b",
                                                          "a:",
                                                          "a #b",
                                                          "#",
                                                          "'",
                                                          "\"",
                                                          "\\",
                                                          "%",
                                                          "@",
                                                          "`",
                                                          "*a",
                                                          "&a",
                                                          "!t",
                                                          "|",
                                                          ">",
                                                          "{}",
                                                          "[]",
                                                          ",",
                                                          "---",
                                                          "...",
                                                          "~",
                                                          "null",
                                                          "true",
                                                          "<<",
                                                          "=",
                                                          "0x10",
                                                          "1e3",
                                                          ".inf",
                                                          "na\xc3\xafve",
                                                          "\xf0\x9f\x98\x80",
                                                          "\x01\x1b\x7f",
                                                          "\xc2\x85",
                                                          "\xe2\x80\xae",
                                                          "\xe2\x80\xa8",
                                                          "\xef\xbb\xbf",
                                                          std::string("\0", 1)}) {
    CAPTURE(text);
    const yaml::Node block = yaml::parse("k: " + yaml_text(text) + "\n" + yaml_text(text + "x") + ": v\n", "block");
    CHECK(block.entries[0].value.text == text);
    CHECK(block.entries[1].key == text + "x");
    const yaml::Node flow = yaml::parse("{k: [" + yaml_text(text) + "], " + yaml_text(text + "x") + ": v}", "flow");
    CHECK(flow.entries[0].value.items.front().text == text);
    CHECK(flow.entries[1].key == text + "x");
  }
}

} // namespace
} // namespace stagecraft
