// Reading YAML: places, duplicate and unknown keys, getters and their errors, settings on top.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/yaml.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"

namespace stagecraft {
namespace {

yaml::Node parse(std::string_view text) { return yaml::parse(text, "a.yaml"); }
std::string error(const std::string& text) {
  return test::error_of([&] { parse(text); });
}

TEST_CASE("lines and columns count from 1", "[base][yaml]") {
  const yaml::Node root = parse("first: 1\nsecond:\n  inner: [a, bb]\n");
  CHECK(root.where == Where{"a.yaml", 1, 1});
  CHECK(root.find("first")->where == Where{"a.yaml", 1, 8});
  CHECK(root.entries[1].where == Where{"a.yaml", 2, 1});
  const yaml::Node* inner = root.find("second")->find("inner");
  REQUIRE(inner != nullptr);
  CHECK(inner->where == Where{"a.yaml", 3, 10});
  CHECK(inner->items[1].where == Where{"a.yaml", 3, 14});
  CHECK(inner->items[1].text == "bb");
  CHECK(root.find("third") == nullptr);
}

TEST_CASE("a duplicate key is an error at its second place", "[base][yaml]") {
  CHECK_THROWS_WITH(parse("a: 1\nb: 2\na: 3\n"), "a.yaml:3:1: duplicate key 'a'; allowed: each key once");
  CHECK_THROWS_WITH(parse("x:\n  a: 1\n  a: 2\n"), Catch::StartsWith("a.yaml:3:3: duplicate key 'a'"));
}

TEST_CASE("input that is not a single YAML document is refused", "[base][yaml]") {
  CHECK_THROWS_WITH(parse(""), Catch::Contains("the file is empty"));
  CHECK_THROWS_WITH(parse("a: 1\n---\nb: 2\n"), Catch::Contains("several YAML documents"));
  CHECK_THROWS_WITH(parse("a: [1, 2\n"), Catch::StartsWith("a.yaml:") && Catch::Contains("not valid YAML"));
  // The parser's own words end with the first byte of the letter.
  CHECK_THROWS_WITH(parse("a: \"\\\xc3\xa9\"\n"), Catch::EndsWith("not valid YAML: unknown escape character"));
  CHECK_THROWS_WITH(parse("? [a, b]\n: 1\n"), Catch::Contains("a key must be plain text"));
}

TEST_CASE("aliases that multiply beyond a million values are refused", "[base][yaml]") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 8; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + before;
    for (int i = 1; i < 10; ++i) {
      text += ", " + before;
    }
    text += "]\n";
  }
  CHECK_THROWS_WITH(parse(text), Catch::Contains("more than 1000000 values"));
}

TEST_CASE("an alias within the value that it names is refused where it stands", "[base][yaml]") {
  CHECK_THAT(error("a: &a [*a]"), Catch::StartsWith("a.yaml:1:8: an alias within the value that it names"));
  CHECK_THAT(error("a: &a {b: [1, *a]}"), Catch::StartsWith("a.yaml:1:15: an alias within"));
  CHECK_THAT(error("{b: *a}"), Catch::StartsWith("a.yaml:1:5: not valid YAML"));
  CHECK(parse("a: &a [x, y]\nb: *a\n").find("b")->items.size() == 2);
}

TEST_CASE("what follows a document is refused, however it is broken", "[base][yaml]") {
  CHECK_THAT(error("[1,3],"), Catch::StartsWith("a.yaml:1:6: several YAML documents"));
  CHECK_THAT(error(","), Catch::StartsWith("a.yaml:1:1: "));
  CHECK_THAT(error("a: 1\n...\nb: 2"), Catch::Contains("several YAML documents"));
  CHECK(error("a: 1\n...\n# the end\n").empty());
}

TEST_CASE("only UTF-8 without control characters is text", "[base][yaml]") {
  CHECK(parse("a: \u00fcber").find("a")->text == "\u00fcber");
  CHECK_THAT(error("a: 1\nb: \xff"), Catch::StartsWith("a.yaml:2:4: "));
  CHECK_THAT(error(std::string("a: 1\nb: \0 c", 12)), Catch::StartsWith("a.yaml:2:4: a control character"));
  CHECK_THAT(error(std::string("\xff\xfe"
                               "a\0:\0 \0"
                               "1\0",
                               10)),
             Catch::StartsWith("a.yaml:1:1: "));
}

TEST_CASE("values may lie a hundred deep, by aliases too, and no deeper", "[base][yaml]") {
  const auto tower = [](int height, const std::string& top) {
    return std::string(height, '[') + top + std::string(height, ']');
  };
  CHECK(error(tower(99, "x")).empty());
  CHECK_THAT(error(tower(100, "[x]")), Catch::StartsWith("a.yaml:1:101: values lie more than 100 deep"));
  const std::string half = "a: &a " + tower(50, "") + "\nb: ";
  CHECK(error(half + tower(49, "*a")).empty());
  CHECK_THAT(error(half + tower(50, "*a")), Catch::Contains("values lie more than 100 deep"));
}

TEST_CASE("a key that stands twice among many is found", "[base][yaml]") {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    text += "k" + std::to_string(i) + ": " + std::to_string(i) + "\n";
  }
  CHECK(parse(text).entries.size() == 60'000);
  CHECK_THAT(error(text + "k7: 1\nk3: 1\n"), Catch::StartsWith("a.yaml:60001:1: duplicate key 'k7'"));
}

TEST_CASE("an unknown key is an error with its place and the nearest known one", "[base][yaml]") {
  const yaml::Node root = parse("name: x\nbandwith: 1 GB/s\n");
  yaml::Map map(root, "network");
  CHECK(map.text("name") == "x");
  CHECK(!map.has("bandwidth"));
  CHECK_THROWS_WITH(map.finish(), Catch::StartsWith("a.yaml:2:1: unknown key 'bandwith'; did you mean 'bandwidth'?") &&
                                      Catch::Contains("(in network)"));
}

TEST_CASE("keys that were asked for count as known, in any order and even if absent", "[base][yaml]") {
  const yaml::Node root = parse("b: 2\na: 1\n");
  yaml::Map map(root, "thing");
  CHECK(map.integer("a", 0, 9) == 1);
  CHECK(map.integer("b", 0, 9) == 2);
  CHECK(map.integer("c", 0, 9, 7) == 7);
  CHECK_NOTHROW(map.finish());
}

TEST_CASE("a missing key blames the mapping", "[base][yaml]") {
  const yaml::Node root = parse("x:\n  a: 1\n");
  yaml::Map map(*root.find("x"), "thing");
  CHECK_THROWS_WITH(map.text("b"), "a.yaml:2:3: missing key 'b' in thing");
  CHECK(map.where("a") == Where{"a.yaml", 2, 6});
  CHECK(map.where("b") == Where{"a.yaml", 2, 3});
}

TEST_CASE("a key with no value counts as absent", "[base][yaml]") {
  const yaml::Node root = parse("a:\nb: ~\n");
  yaml::Map map(root, "thing");
  CHECK(!map.has("a"));
  CHECK(map.text("b", "otherwise") == "otherwise");
  CHECK_NOTHROW(map.finish());
}

TEST_CASE("truth has three spellings, as in YAML's core schema", "[base][yaml]") {
  const yaml::Node root = parse("a: true\nb: True\nc: TRUE\nd: False\ne: tRUE\n");
  yaml::Map map(root, "thing");
  CHECK((map.boolean("a", false) && map.boolean("b", false) && map.boolean("c", false)));
  CHECK_FALSE(map.boolean("d", true));
  CHECK_THROWS_WITH(map.boolean("e", false), Catch::Contains("must be true or false, got 'tRUE'"));
}

TEST_CASE("values of the wrong kind or range are refused where they stand", "[base][yaml]") {
  const yaml::Node root = parse("n: 010\nlist: [1]\nmap: {a: 1}\nword: yes\nhalf: 1.5\nspeed: -1 GB/s\nshare: 1.5\n");
  yaml::Map map(root, "thing");
  CHECK_THROWS_WITH(map.integer("n", 0, 99), "a.yaml:1:4: 'n' must be an integer in [0, 99], got '010'");
  CHECK_THROWS_WITH(map.text("list"), "a.yaml:2:7: 'list' is a list; allowed: a plain value");
  CHECK_THROWS_WITH(map.list("map"), Catch::StartsWith("a.yaml:3:6: 'map' must be a list"));
  CHECK_THROWS_WITH(map.boolean("word", false), "a.yaml:4:7: 'word' must be true or false, got 'yes'");
  CHECK_THROWS_WITH(map.integer("half", 0, 9), Catch::Contains("must be an integer"));
  CHECK_THROWS_WITH(map.quantity<BytesPerSecond>("speed", yaml::kPositive),
                    "a.yaml:6:8: 'speed' must be more than 0, got '-1 GB/s'");
  CHECK_THROWS_WITH(map.number("share", yaml::kFraction), Catch::Contains("more than 0, at most 1"));
  CHECK_THROWS_WITH(yaml::Map(*root.find("list"), "thing"), "a.yaml:2:7: thing must be a mapping of keys to values");
}

TEST_CASE("both ends of a range", "[base][yaml]") {
  const yaml::Node root = parse("zero: 0\none: 1\nlittle: 1e-300\n");
  yaml::Map map(root, "thing");
  CHECK(map.number("one", yaml::kFraction) == 1);
  CHECK(map.number("little", yaml::kPositive) == 1e-300);
  CHECK(map.number("zero", yaml::kNotNegative) == 0);
  CHECK_THROWS_AS(map.number("zero", yaml::kPositive), InputError);
  CHECK_THROWS_AS(map.number("zero", yaml::kFraction), InputError);
}

TEST_CASE("a scalar is a list of one", "[base][yaml]") {
  const yaml::Node root = parse("one: 4\nmore: [4, 8]\n");
  yaml::Map map(root, "thing");
  CHECK(map.list("one").size() == 1);
  CHECK(map.list("more").size() == 2);
  CHECK(map.list("none").empty());
}

struct Row {
  std::string_view name;
  int value;
};

TEST_CASE("a choice comes from a table of names", "[base][yaml]") {
  const std::vector<Row> table = {{"adam", 1}, {"momentum", 2}};
  const yaml::Node root = parse("a: momentum\nb: adm\n");
  yaml::Map map(root, "thing");
  CHECK(map.choice("a", table).value == 2);
  CHECK(map.choice("c", table, "adam").value == 1);
  CHECK_THROWS_WITH(map.choice("b", table), "a.yaml:2:4: unknown b 'adm'; did you mean 'adam'? known: adam, momentum");
}

TEST_CASE("settings change values, add keys and reach into lists, and their errors name the setting", "[base][yaml]") {
  const Where flag{"--set", 0, 0};
  yaml::Node root = parse("training: {global_batch: 8}\nnodes: [{count: 1}, {count: 2}]\nplain: 1\n");
  yaml::set(root, "training.global_batch", "16", flag);
  CHECK(root.find("training")->find("global_batch")->text == "16");
  CHECK(root.find("training")->find("global_batch")->where == flag);
  yaml::set(root, "training.micro_batches", "[4, 8]", flag);
  CHECK(root.find("training")->find("micro_batches")->items.size() == 2);
  yaml::set(root, "nodes.1.count", "5", flag);
  CHECK(root.find("nodes")->items[1].find("count")->text == "5");
  yaml::set(root, "new.deep.key", "x", flag);
  CHECK(root.find("new")->find("deep")->find("key")->text == "x");
  yaml::set(root, "plain", "", flag);
  CHECK(root.find("plain")->kind == yaml::Node::Kind::scalar);
  CHECK(root.find("plain")->text.empty());
  CHECK_THROWS_WITH(yaml::set(root, "nodes.2.count", "5", flag), Catch::StartsWith("--set: "));
  CHECK_THROWS_AS(yaml::set(root, "nodes.x", "5", flag), InputError);
  CHECK_THROWS_WITH(yaml::set(root, "training.global_batch.x", "5", flag), Catch::Contains("below a plain value"));
  CHECK_THROWS_AS(yaml::set(root, "plain", "[1", flag), InputError);
}

TEST_CASE("a key that is missing and nearly there is called so, at its place", "[base][yaml]") {
  const yaml::Node node = yaml::parse("latency: 1 us\nbandwith: 1 GB/s\n", "file.yaml");
  yaml::Map map(node, "network");
  try {
    map.node("bandwidth");
    FAIL("it is missing");
  } catch (const InputError& failure) {
    CHECK(std::string(failure.what()).find("file.yaml:2:") == 0);
    CHECK(std::string(failure.what()).find("unknown key 'bandwith'; did you mean 'bandwidth'?") != std::string::npos);
  }
  try {
    yaml::number(yaml::parse("nan", "file.yaml"), "share", yaml::kFraction);
    FAIL("it is no number");
  } catch (const InputError& failure) {
    CHECK(std::string(failure.what()).find("allowed: more than 0, at most 1") != std::string::npos);
  }
}

} // namespace
} // namespace stagecraft
