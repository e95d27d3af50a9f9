// What the times of a run rest on: a profile, fits, the roofline.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

double share(const CostBasis& basis, CostSource source) { return basis.shares[static_cast<std::size_t>(source)]; }

Run best_of(const std::string& model, const std::string& platform, const std::string& cost_model) {
  return compare_text("model: " + model + "\nplatform: " + platform + "\ncost_model: " + cost_model +
                      "\ntraining: {global_batch: 4, micro_batches: 4}\n"
                      "compare: {strategies: [uniform], schedules: [1f1b]}\n")
      .comparison.runs.front();
}

TEST_CASE("a run says which share of each device's time rests on what", "[study][cost]") {
  const Run profiled = best_of("chain.yaml", "{devices: 2}", "profiled");
  REQUIRE(profiled.cost_basis.size() == 1);
  CHECK(share(profiled.cost_basis[0], CostSource::profile) == near(1));
  CHECK(profiled.cost_basis[0].seconds == near(4 * 4 * 3)); // four samples of four operators of F 1 s and B 2 s
  const Run stated = best_of("chain.yaml", "{devices: 2}", "constant");
  CHECK(share(whole_of(stated.cost_basis), CostSource::stated) == near(1));
  const Run roofline = best_of("products.yaml", "fitted-beside-not.yaml", "roofline");
  CHECK(share(whole_of(roofline.cost_basis), CostSource::roofline) == near(1));
}

// Times scaled from another device rest on a profile all the same; only those that nothing else explains are stated.
TEST_CASE("a result in JSON says the shares of fits, tables, the roofline and profiles", "[study][cost]") {
  const auto basis_of = [](const std::string& model, const std::string& platform, const std::string& cost_model) {
    const Run run = best_of(model, platform, cost_model);
    return nlohmann::json::parse(to_json(run, {}, false)).at("cost_basis");
  };
  for (const auto& [json, source, more] :
       {std::tuple{basis_of("products.yaml", "pcie-v100", "calibrated"), "fit", ""},
        {basis_of("products.yaml", "pcie-v100", "roofline"), "roofline", ""},
        {basis_of("chain.yaml", "{devices: 2}", "profiled"), "profile", ""},
        {basis_of("{file: chain.yaml, device: rtx-3090-24gb}", "pcie-v100", "profiled"), "profile", "scaled_profile"},
        {basis_of("chain.yaml", "{devices: 2}", "constant"), "", "stated"}}) {
    CAPTURE(json.dump(), source, more);
    for (const std::string name : {"fit", "table", "roofline", "profile"}) {
      CHECK(json.at(name).get<double>() == near(name == source ? 1 : 0));
    }
    for (const std::string name : {"scaled_profile", "stated"}) {
      CHECK(json.contains(name) == (name == more));
    }
    CHECK(json.at("types").size() >= 1);
  }
}

// A device with more measured shapes is measured all the same, whichever of both is more.
TEST_CASE("what was measured is one source, in the same shapes or in others", "[study][cost]") {
  CostBasis basis;
  const auto set = [&](CostSource source, double share) { basis.shares[static_cast<std::size_t>(source)] = share; };
  set(CostSource::fit, 0.3);
  set(CostSource::table, 0.3);
  set(CostSource::roofline, 0.4);
  CHECK(basis.measured() == near(0.6));
  CHECK(basis.main() == CostSource::fit);
  set(CostSource::table, 0);
  CHECK(basis.main() == CostSource::roofline);
}

TEST_CASE("fits stand beside the roofline where only one of two devices was measured", "[study][cost]") {
  const Run run = best_of("products.yaml", "fitted-beside-not.yaml", "calibrated");
  REQUIRE(run.cost_basis.size() == 2);
  CHECK(run.cost_basis[0].type == "v100-pcie-16gb");
  CHECK(share(run.cost_basis[0], CostSource::fit) == near(1));
  CHECK(share(run.cost_basis[1], CostSource::roofline) == near(1));
  // Shares of the whole are by seconds: the two devices' busy times without their optimiser steps.
  const CostBasis whole = whole_of(run.cost_basis);
  CHECK(share(whole, CostSource::fit) == near(run.cost_basis[0].seconds / whole.seconds));
  CHECK(whole.seconds == near(run.cost_basis[0].seconds + run.cost_basis[1].seconds));
  CHECK(run.cost_basis[0].seconds <= run.metrics.busy[0].value);
}

TEST_CASE("auto takes a profile, else fits where a device has them, else the roofline", "[study][cost]") {
  const auto iteration = [](const std::string& platform, const std::string& cost_model) {
    return best_of("products.yaml", platform, cost_model).metrics.iteration.value;
  };
  CHECK(share(whole_of(best_of("chain.yaml", "{devices: 2}", "auto").cost_basis), CostSource::profile) == near(1));
  CHECK(iteration("fitted-beside-not.yaml", "auto") == iteration("fitted-beside-not.yaml", "calibrated"));
  CHECK(iteration("fitted-beside-not.yaml", "auto") != iteration("fitted-beside-not.yaml", "roofline"));
}

// The fits of a product take less per sample the more there are, the roofline of the rest does not, so the shares
// depend on how many samples a device runs at once.
TEST_CASE("what a replica's time rests on is that of its own part of a micro-batch", "[study][cost]") {
  const auto basis = [](const std::string& strategy, int batch) {
    const Comparison comparison =
        compare_text("model: shapes.yaml\nplatform: pcie-v100\ncost_model: calibrated\ntraining: {global_batch: " +
                     std::to_string(batch) + "}\ncompare: {strategies: " + strategy + ", schedules: [accumulate]}\n")
            .comparison;
    REQUIRE(comparison.runs.front().feasible);
    return whole_of(comparison.runs.front().cost_basis);
  };
  const int devices = static_cast<int>(study("model: shapes.yaml\nplatform: pcie-v100\n").platform.devices.size());
  const double alone = share(basis("[single]", 2), CostSource::fit);
  CHECK(share(basis("[data-parallel]", 2 * devices), CostSource::fit) == near(alone));
  CHECK(share(basis("[single]", 2 * devices), CostSource::fit) != near(alone));
}

TEST_CASE("ranking a fitted device beside one that is not is remarked", "[study][cost]") {
  const auto verdict = [](const std::string& platform, const std::string& cost_model) {
    return join(compare_text("model: products.yaml\nplatform: " + platform + "\ncost_model: " + cost_model +
                             "\ntraining: {global_batch: 4}\ncompare: {strategies: [uniform], schedules: [1f1b]}\n")
                    .comparison.verdict,
                "\n");
  };
  CHECK_THAT(verdict("fitted-beside-not.yaml", "calibrated"),
             Catch::Contains("those of v100-pcie-16gb on fits to measurements, rtx-3090-24gb on the roofline"));
  CHECK_THAT(verdict("fitted-beside-not.yaml", "roofline"), !Catch::Contains("Times rest on"));
  CHECK_THAT(verdict("pcie-v100", "calibrated"), !Catch::Contains("Times rest on"));
}

} // namespace
} // namespace stagecraft::test
