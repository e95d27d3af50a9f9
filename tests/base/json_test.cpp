// Reading JSON: places of syntax errors and of bad values, unknown and duplicate keys, limits.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/base/format/json.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"

namespace stagecraft {
namespace {

std::string error_of(const std::string& text) {
  const std::string file = "f.json";
  return test::error_of([&] { json::parse({text, file}); });
}

TEST_CASE("bad JSON is refused with line and column", "[base][json]") {
  CHECK_THAT(error_of("{\n  \"a\": 1,\n  \"b\" 2}"), Catch::StartsWith("f.json:3:7: syntax error"));
  CHECK(error_of("") == "f.json:1:1: the file is empty; allowed: one JSON document");
  CHECK(error_of(" \n\t") == error_of(""));
  CHECK_THAT(error_of("{\"a\": NaN}"), Catch::StartsWith("f.json:1:7: "));
  CHECK_THAT(error_of("{} {}"), Catch::StartsWith("f.json:1:4: "));
  CHECK_THAT(error_of("{\"a\": 1e999}"), Catch::StartsWith("f.json:1:7: number overflow"));
  CHECK_THAT(error_of("{\"a\": \"\xff\"}"), Catch::StartsWith("f.json:1:8: "));
}

TEST_CASE("a refusal of JSON shows a part of what was read", "[base][json]") {
  const std::string refusal = error_of("{\"a\": " + std::string(1'000'000, '9') + "}");
  CHECK_THAT(refusal, Catch::StartsWith("f.json:1:7: number overflow"));
  CHECK(refusal.size() < 400);
}

TEST_CASE("a key given twice and a tower of brackets are refused", "[base][json]") {
  CHECK_THAT(error_of("{\"a\": 1, \"b\": {\"a\": 2}, \"a\": 3}"), Catch::StartsWith("f.json:1:25: duplicate key 'a'"));
  CHECK(error_of("{\"a\": 1, \"b\": {\"a\": 2}}").empty());
  constexpr int kTower = 100'000;
  CHECK_THAT(error_of(std::string(kTower, '[')), Catch::Contains("f.json:1:101: values lie more than 100 deep"));
  CHECK(error_of(std::string(100, '[') + std::string(100, ']')).empty());
}

TEST_CASE("values are blamed by their path", "[base][json]") {
  const std::string file = "f.json";
  const std::string text = R"({"nodes": [0, 1, 2,
  {"n": -1, "i": 1.5, "f": 2, "t": 3, "l": {}, "ok": 0.5, "yes": 1}]})";
  const json::Source source(text, file);
  const json::Value value = json::parse(source);
  json::Object object(value["nodes"][3], source, "nodes[3]");
  CHECK(object.amount("ok") == 0.5);
  CHECK(object.amount("absent", 7) == 7);
  CHECK(object.flag("yes"));
  CHECK(object.text("absent", "none") == "none");
  CHECK(test::error_of([&] { object.amount("n"); }) == "f.json:2:9: nodes[3].n: must be a number of 0 or more, got -1");
  CHECK_THAT(test::error_of([&] { object.integer("i", 0, 9); }), Catch::Contains("must be an integer from 0 to 9"));
  CHECK_THAT(test::error_of([&] { object.flag("f"); }), Catch::Contains("nodes[3].f"));
  CHECK_THAT(test::error_of([&] { object.text("t", ""); }), Catch::Contains("must be text"));
  CHECK_THAT(test::error_of([&] { object.list("l"); }), Catch::Contains("must be an array"));
  CHECK(test::error_of([&] { object.amount("gone"); }) == "f.json:2:3: nodes[3]: missing key 'gone'");
}

TEST_CASE("keys that nobody asked for are refused", "[base][json]") {
  const std::string file = "f.json";
  const std::string text = R"({"cost": 1, "coast": 2})";
  const json::Source source(text, file);
  const json::Value value = json::parse(source);
  json::Object object(value, source, "");
  object.amount("cost");
  CHECK_THAT(test::error_of([&] { object.finish(); }),
             Catch::StartsWith("f.json:1:1: the document: unknown key 'coast'; did you mean 'cost'?"));
  CHECK_THAT(test::error_of([&] { json::Object(value.at("cost"), source, "cost"); }),
             Catch::StartsWith("f.json:1:10: cost: is no object but number"));
}

TEST_CASE("a value is found by its path, whatever its text holds", "[base][json]") {
  const std::string file = "f.json";
  const std::string text = "{\"a.b\": \"x]}\\\"{[\",\n \"list\": [[], {}, [1,22,\n333]],\n\t\"end\" : true}";
  const json::Source source(text, file);
  CHECK(source.place("") == Where{file, 1, 1});
  CHECK(source.place("a.b") == Where{file, 1, 9});
  CHECK(source.place("list") == Where{file, 2, 10});
  CHECK(source.place("list[0]") == Where{file, 2, 11});
  CHECK(source.place("list[2][1]") == Where{file, 2, 22});
  CHECK(source.place("list[2][2]") == Where{file, 3, 1});
  CHECK(source.place("end") == Where{file, 4, 10});
  CHECK(source.place("list[2][7].x") == Where{file, 2, 19}); // absent: what is there of it
  CHECK(source.place("nothing") == Where{file, 1, 1});
}

} // namespace
} // namespace stagecraft
