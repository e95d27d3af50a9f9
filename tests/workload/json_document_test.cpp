// Reading JSON: places of syntax errors, paths of bad values, unknown and duplicate keys.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/workload/import/json_document.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

std::string error_of(const std::string& text) {
  return test::error_of([&] { json::parse(text, "f.json"); });
}

TEST_CASE("bad JSON is refused with line and column", "[workload][json]") {
  CHECK_THAT(error_of("{\n  \"a\": 1,\n  \"b\" 2}"), Catch::StartsWith("f.json:3:7: syntax error"));
  CHECK_THAT(error_of(""), Catch::StartsWith("f.json:1:1: "));
  CHECK_THAT(error_of("{\"a\": NaN}"), Catch::StartsWith("f.json:1:7: "));
  CHECK_THAT(error_of("{} {}"), Catch::StartsWith("f.json:1:4: "));
  CHECK_THAT(error_of("{\"a\": 1e999}"), Catch::StartsWith("f.json: number overflow"));
  CHECK_THAT(error_of("{\"a\": \"\xff\"}"), Catch::StartsWith("f.json:1:8: "));
}

TEST_CASE("a key given twice and a tower of brackets are refused", "[workload][json]") {
  CHECK_THAT(error_of("{\"a\": 1, \"b\": {\"a\": 2}, \"a\": 3}"), Catch::StartsWith("f.json: duplicate key 'a'"));
  CHECK(error_of("{\"a\": 1, \"b\": {\"a\": 2}}").empty());
  constexpr int kTower = 100'000;
  CHECK_THAT(error_of(std::string(kTower, '[')), Catch::Contains("nested more than 100 deep"));
  CHECK(error_of(std::string(100, '[') + std::string(100, ']')).empty());
}

TEST_CASE("values are blamed by their path", "[workload][json]") {
  const std::string file = "f.json";
  const json::Value value = json::parse(R"({"n": -1, "i": 1.5, "f": 2, "t": 3, "l": {}, "ok": 0.5, "yes": 1})", file);
  json::Object object(value, file, "nodes[3]");
  CHECK(object.amount("ok") == 0.5);
  CHECK(object.amount("absent", 7) == 7);
  CHECK(object.flag("yes"));
  CHECK(object.text("absent", "none") == "none");
  CHECK(test::error_of([&] { object.amount("n"); }) == "f.json: nodes[3].n: must be a number of 0 or more, got -1");
  CHECK_THAT(test::error_of([&] { object.integer("i", 0, 9); }), Catch::Contains("must be an integer from 0 to 9"));
  CHECK_THAT(test::error_of([&] { object.flag("f"); }), Catch::Contains("nodes[3].f"));
  CHECK_THAT(test::error_of([&] { object.text("t", ""); }), Catch::Contains("must be text"));
  CHECK_THAT(test::error_of([&] { object.list("l"); }), Catch::Contains("must be an array"));
  CHECK(test::error_of([&] { object.amount("gone"); }) == "f.json: nodes[3]: missing key 'gone'");
}

TEST_CASE("keys that nobody asked for are refused", "[workload][json]") {
  const std::string file = "f.json";
  const json::Value value = json::parse(R"({"cost": 1, "coast": 2})", file);
  json::Object object(value, file, "");
  object.amount("cost");
  CHECK_THAT(test::error_of([&] { object.finish(); }),
             Catch::StartsWith("f.json: the document: unknown key 'coast'; did you mean 'cost'?"));
  CHECK_THAT(test::error_of([&] { json::Object(value.at("cost"), file, "edges[0]"); }),
             Catch::StartsWith("f.json: edges[0]: is no object but number"));
}

} // namespace
} // namespace stagecraft
