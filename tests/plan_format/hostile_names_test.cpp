// Names as no one writes them by hand: whatever plan is written with them is read back as the same plan.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_format/plan_file.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

const std::vector<std::string> kNames = {"two\nlines",
                                         "schema: none",
                                         "x\nstages: []",
                                         "\r\n",
                                         " leading",
                                         "trailing ",
                                         "\ttab",
                                         "- item",
                                         "? key",
                                         "a: b",
                                         "a #b",
                                         "#",
                                         "'",
                                         "\"",
                                         "\\",
                                         "\\n",
                                         "%",
                                         "@",
                                         "`",
                                         "*a",
                                         "&a",
                                         "!tag",
                                         "|",
                                         ">",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         "--- ",
                                         "...",
                                         "~",
                                         "null",
                                         "true",
                                         "0x10",
                                         "1e3",
                                         "<<",
                                         "=",
                                         "na\xc3\xafve",
                                         "\xe6\xbc\xa2\xe5\xad\x97",
                                         "\xf0\x9f\x98\x80",
                                         "\x01\x1b[2J\x7f",
                                         "\xc2\x85\xc2\x9b",
                                         "\xe2\x80\xae",
                                         "\xe2\x80\xa8",
                                         "\xef\xbb\xbf",
                                         "--num-layers 4",
                                         "a -- b",
                                         "WORLD_SIZE=4",
                                         "$HOME",
                                         "cuda:1",
                                         "3",
                                         std::string("\0", 1),
                                         std::string(2000, 'x')};

// The chain of four operators on two devices, which all have names made of this one.
struct Named {
  Study study;
  Plan plan;
};

Named named(const std::string& name) {
  Named one{study(chain_study("", "{devices: 2}")), {}};
  auto model = std::make_shared<ModelGraph>(*one.study.model);
  model->name = name;
  for (std::size_t op = 0; op < model->operators.size(); ++op) {
    model->operators[op].name = op == 0 ? name : name + std::to_string(op);
  }
  one.study.model = std::move(model);
  one.study.platform.name = name;
  one.study.platform.devices[0].name = name;
  one.study.platform.devices[1].name = name + "'";
  one.plan = {.strategy = name,
              .stages = {{.operators = {0, 1}, .devices = {0}, .shares = {}},
                         {.operators = {2, 3}, .devices = {1}, .shares = {}}}};
  return one;
}

TEST_CASE("each format reads back what it writes, whatever the names", "[study][formats]") {
  for (const std::string& name : kNames) {
    const Named one = named(name);
    for (const PlanFormat& format : plan_formats()) {
      CAPTURE(name, format.name);
      const WrittenPlan written =
          write_plan(format, {one.plan, *one.study.model, one.study.platform, one.study.training, 1});
      if (const auto* text = std::get_if<std::string>(&written)) {
        // As `check` does, which looks at the content alone.
        const Plan again = read_plan_text({*text, "file", *one.study.model, one.study.platform}, "");
        CHECK(again.stages == one.plan.stages);
      } else {
        // The chain has no numbered blocks, as Megatron-LM's layers are; torchgpipe's devices are ranks, of which the
        // name is one; and a key of JSON is at most 1024 bytes long.
        const bool cannot = format.name == "megatron" || (format.name == "torchgpipe" && name == "cuda:1") ||
                            (format.name == "device-map" && name.size() > 1024);
        CHECK(cannot);
      }
    }
  }
}

TEST_CASE("our own plans in YAML and JSON keep the strategy's name too", "[study][formats]") {
  for (const std::string& name : kNames) {
    CAPTURE(name);
    const Named one = named(name);
    const std::string text = plan_to_yaml(one.plan, *one.study.model, one.study.platform);
    CHECK(read_plan(yaml::parse(text, "plan.yaml"), *one.study.model, one.study.platform) == one.plan);
  }
}

TEST_CASE("a name that makes a plan look like one of another tool is a reason not to write it", "[study][formats]") {
  for (const std::string name : {"balance", "module_to_stage_map", "stages", "schema"}) {
    const Named one = named(name);
    const PlanFormat& device_map = find_by_name(plan_formats(), "device-map", "plan format", {"test", 0, 0});
    const WrittenPlan written =
        write_plan(device_map, {one.plan, *one.study.model, one.study.platform, one.study.training, 1});
    REQUIRE(std::holds_alternative<Infeasible>(written));
    CHECK_THAT(std::get<Infeasible>(written).reason,
               Catch::StartsWith("the names of the operators make it look like '"));
  }
}

} // namespace
} // namespace stagecraft::test
