// Piper's planning inputs: what becomes of each number, and what is refused where.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

Json way(const char* id, double seconds, double a, const Json& before, const Json& after) {
  return {{"id", id},           {"timePerSample", seconds}, {"parameterSize", 8}, {"memoryUsageA", a},
          {"memoryUsageB", 16}, {"syncTimeFw", before},     {"syncTimeBw", after}};
}

// Two nodes, 7 -> 3, listed the other way round; the first at degrees 1 and 2.
Json two() {
  const Json none = Json::object();
  Json input = {{"maxDevices", 4}, {"maxMemoryPerDevice", 100}, {"bandwidth", 10}, {"mbsInBatch", 6}};
  input["nodes"] = Json::array({{{"id", 3}, {"TMPCs", {{"1", Json::array({way("vanilla", 6, 12, {{"7", 0}}, none)})}}}},
                                {{"id", 7},
                                 {"name", "Layer"},
                                 {"TMPCs",
                                  {{"1", Json::array({way("vanilla", 6, 12, none, {{"3", 0}}),
                                                      way("activation recomp", 7, 2, none, {{"3", 0}})})},
                                   {"2", Json::array({way("vanilla", 4, 8, none, {{"3", 5}})})}}}}});
  input["edges"] = Json::array({{{"sourceId", 7}, {"destId", 3}, {"communicationCost", 20}}});
  return input;
}

ModelGraph read(const Json& input, const ImportOptions& options = {}) {
  return import_piper(input.dump(), "f.json", options);
}

TEST_CASE("a planning input becomes a model with its devices", "[workload][piper]") {
  const ModelGraph model = read(two());
  REQUIRE(model.size() == 2);
  CHECK(model.operators[0].name == "7");
  CHECK(model.operators[0].type == "Layer");
  CHECK(model.operators[0].parameters == 2);      // 8 B in fp32
  CHECK(model.operators[0].output_elements == 5); // 20 B
  CHECK(model.operators[0].stash_elements == 3);
  CHECK(model.operators[0].resident_bytes == 16);
  CHECK(model.memory_given);
  CHECK(model.micro_batches == 6);
  REQUIRE(model.devices.size() == 1);
  CHECK(model.devices[0].count == 4);
  CHECK(model.devices[0].memory == Bytes{100});
  CHECK(model.devices[0].bandwidth == BytesPerSecond{10});
  CHECK(model.edge_bytes[0] == std::vector<Bytes>{Bytes{20}});
  CHECK(find_configuration(model, 0, 2, false)->outgoing == std::vector<Bytes>{Bytes{5}});
  CHECK(find_configuration(model, 0, 1, true)->per_micro_batch == Bytes{2});
  CHECK(find_configuration(model, 1, 1, true) == find_configuration(model, 1, 1, false)); // there is no other
  CHECK(find_configuration(model, 1, 2, false) == nullptr);
}

TEST_CASE("forward is what recompute adds, or a third", "[workload][piper]") {
  const ModelGraph model = read(two());
  REQUIRE(model.profiles.size() == 2);
  CHECK(model.profiles[0].times[0].forward == Seconds{1});
  CHECK(model.profiles[0].times[0].backward == Seconds{5});
  CHECK(model.profiles[0].times[1].forward == Seconds{2});
  CHECK(model.profiles[1].tensor_parallel == 2);
  CHECK(model.profiles[1].times[0].forward.value + model.profiles[1].times[0].backward.value == 4);
  CHECK(std::isinf(model.profiles[1].times[1].forward.value)); // no degree 2
}

TEST_CASE("a cost scale multiplies edges and exchanges", "[workload][piper]") {
  const ModelGraph model = read(two(), {.cost_scale = 0.5});
  CHECK(model.edge_bytes[0][0] == Bytes{10});
  CHECK(find_configuration(model, 0, 2, false)->outgoing[0] == Bytes{2.5});
}

TEST_CASE("bad planning inputs are refused by the path to the value", "[workload][piper]") {
  const auto refused = [](auto change, const std::string& expected) {
    Json input = two();
    change(input);
    CHECK_THAT(test::error_of([&] { read(input); }), Catch::StartsWith("f.json:") && Catch::Contains(": " + expected));
  };
  refused([](Json& j) { j.erase("bandwidth"); }, "the document: missing key 'bandwidth'");
  refused([](Json& j) { j["bandwith"] = 1; }, "the document: unknown key 'bandwith'");
  refused([](Json& j) { j["maxDevices"] = 0; }, "maxDevices: must be an integer from 1");
  refused([](Json& j) { j["maxMemoryPerDevice"] = 0; }, "maxMemoryPerDevice: must be 1 B to 1e18 B");
  refused([](Json& j) { j["nodes"] = Json::array(); }, "nodes: is empty");
  refused([](Json& j) { j["nodes"][1]["id"] = 3; }, "nodes[1].id: 3 is the id of an earlier node");
  refused([](Json& j) { j["nodes"][0]["TMPCs"] = Json::object(); }, "nodes[0].TMPCs: must be an object");
  refused([](Json& j) { j["nodes"][0]["TMPCs"]["x"] = Json::array(); }, "nodes[0].TMPCs.x: a key that must be");
  refused([](Json& j) { j["nodes"][0]["TMPCs"]["1"][0]["timePerSample"] = -1; },
          "nodes[0].TMPCs.1[0].timePerSample: must be a number of 0 or more");
  refused([](Json& j) { j["nodes"][0]["TMPCs"]["1"][0]["id"] = "other"; },
          "nodes[0].TMPCs.1[0].id: is 'other'; allowed: vanilla, activation recomp");
  refused([](Json& j) { j["nodes"][1]["TMPCs"]["1"][1]["id"] = "vanilla"; },
          "nodes[1].TMPCs.1[1].id: is 'vanilla' for the second time");
  refused([](Json& j) { j["nodes"][0]["TMPCs"]["1"][0]["syncTimeFw"] = Json::object(); },
          "nodes[0]: syncTimeFw does not name the node's neighbours");
  refused([](Json& j) { j["edges"][0]["destId"] = 4; }, "edges[0].destId: names no node");
  refused([](Json& j) { j["edges"].push_back(j["edges"][0]); }, "edges[1]: joins two nodes for the second time");
}

} // namespace
} // namespace stagecraft
