// Lines through times of DeepEP's kernels: made-up times are found again, and the shipped fits are those of the tables.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

#include "sim/base/system/file.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/fit/forms/fit_dispatch.hpp"

namespace stagecraft::fit {
namespace {

constexpr const char* kHeader = "node_num,hidden_size,num_token,num_topk,num_experts,dispatch_sms,dispatch_transmit_us,"
                                "dispatch_notify_us,combine_sms,combine_transmit_us,combine_notify_us\n";

TEST_CASE("a row of a table is a dispatch and a combine", "[fit][dispatch]") {
  // One of 16 experts on two nodes of eight ranks: half of all tokens go to the other node, and on a node seven eighths
  // to another rank.
  const auto read = read_dispatch_table(std::string(kHeader) + "2,1024,4096,1,16,20,90,10,24,180,20\n", "table.csv");
  REQUIRE(read.size() == 2);
  CHECK(read[0].op == "dispatch");
  CHECK(read[0].nodes == 2);
  CHECK(read[0].processors == 20);
  CHECK(read[0].tokens == 4096);
  CHECK(read[0].bytes == 1024 * (1 + 4.0 / 128));
  CHECK(read[0].between == Approx(0.5));
  CHECK(read[0].inside == Approx(7.0 / 8));
  CHECK(read[0].time.value == Approx(100e-6));
  CHECK(read[1].op == "combine");
  CHECK(read[1].processors == 24);
  CHECK(read[1].bytes == 2048);
  CHECK(read[1].time.value == Approx(200e-6));
}

TEST_CASE("what a table may not say", "[fit][dispatch]") {
  const auto message = [](const std::string& rows) {
    try {
      read_dispatch_table(kHeader + rows, "table.csv");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("") == "table.csv:1:1: the table has no rows; allowed: one or more");
  CHECK(message("2,1024,4096,1,12,20,90,10,24,180,20\n") ==
        "table.csv:2:15: does not divide into 16 ranks; allowed: what does");
  CHECK(message("1,1024,4096,1,16,20,0,0,24,180,20\n") == "table.csv:2:21: a time of 0; allowed: more than 0 us");
}

TEST_CASE("lines are found again from the times that they make", "[fit][dispatch]") {
  std::vector<MeasuredDispatch> measured;
  for (const double tokens : {1.0, 16.0, 256.0, 4096.0, 65536.0}) {
    for (const double bytes : {2e3, 4e3, 7e3}) {
      for (const double inside : {1.0, 3.0, 5.0}) {
        const double sent = tokens * bytes;
        measured.push_back({"dispatch", 1, 20, tokens, bytes, inside, 0,
                            Seconds{25e-6 + tokens * 2e-8 + sent * 1e-12 + sent * inside * 3e-12}});
      }
    }
    measured.push_back({"dispatch", 4, 20, tokens, 7e3, 5, 2.5, Seconds{90e-6 + tokens * 7e3 * 2.5 * 2e-11}});
  }
  const auto fits = fit_dispatches(measured, {BytesPerSecond{1e11}, BytesPerSecond{5e10}});
  REQUIRE(fits.size() == 2);
  CHECK(fits[0].line.start.value == Approx(25e-6));
  CHECK(fits[0].line.per_token.value == Approx(2e-8));
  CHECK(fits[0].line.own == Approx(1e-12));
  CHECK(fits[0].line.inside == Approx(3e-12));
  CHECK(fits[0].line.between == 0);
  CHECK(fits[0].error.points == 2 * 9);
  CHECK(fits[0].error.mean < 1e-6);
  CHECK(fits[1].nodes == 4);
  CHECK(fits[1].line.start.value == Approx(90e-6));
  CHECK(fits[1].line.between == Approx(2e-11));
  CHECK(fits[1].line.links.between.value == 5e10);
}

// What the shipped device files say is what the fit makes of the tables, but for rounding.
TEST_CASE("the shipped times of dispatches are those of their tables", "[fit][dispatch][data]") {
  const std::filesystem::path data = test::source_dir() / "../shared/data/kernels";
  const std::map<std::string, std::vector<std::string>> tables = {
      {"h100-sxm-80gb", {"h100_sxm_deepep_normal_0.5.12.csv", "h100_sxm_deepep_normal_0.5.6.post2.csv"}},
      {"h200-sxm", {"h200_sxm_deepep_normal_0.5.12.csv", "h200_sxm_deepep_normal_0.5.6.post2.csv"}},
      {"b200-sxm", {"b200_sxm_deepep_normal_0.5.12.csv"}}};
  if (!std::filesystem::exists(data / tables.at("b200-sxm").front())) {
    std::cout << "skipped: no ../shared/data/kernels\n";
    return;
  }
  const DeviceTypeSource types = device_types_in(test::source_dir() / "platforms" / "devices");
  for (const auto& [device, files] : tables) {
    const DeviceType type = load_device_type(types(device, {}));
    std::vector<MeasuredDispatch> measured;
    for (const std::string& file : files) {
      for (const MeasuredDispatch& one : read_dispatch_table(read_file(data / file), file)) {
        const bool first = &file == &files.front();
        if (first || one.nodes == 2 || one.nodes == 4) { // eight nodes: docs/decisions/0026
          measured.push_back(one);
        }
      }
    }
    const auto fits = fit_dispatches(measured, type.fits->dispatches.front().line.links);
    CAPTURE(device);
    std::vector<DispatchFit> of_tables = type.fits->dispatches;
    std::erase_if(of_tables, [](const DispatchFit& fit) { return fit.kernels != "deepep"; });
    REQUIRE(fits.size() == of_tables.size());
    for (std::size_t i = 0; i < fits.size(); ++i) {
      const DispatchFit &made = fits[i], &shipped = of_tables[i];
      CAPTURE(made.op, made.nodes, made.processors);
      CHECK(made.op == shipped.op);
      CHECK(made.nodes == shipped.nodes);
      CHECK(made.processors == shipped.processors);
      CHECK(made.line.start.value == Approx(shipped.line.start.value).epsilon(1e-4));
      CHECK(made.line.per_token.value == Approx(shipped.line.per_token.value).epsilon(1e-4));
      CHECK(made.line.own == Approx(shipped.line.own).epsilon(1e-4));
      CHECK(made.line.inside == Approx(shipped.line.inside).epsilon(1e-4));
      CHECK(made.line.between == Approx(shipped.line.between).epsilon(1e-4));
      CHECK(std::abs(made.error.mean - shipped.error.mean) < 6e-4);
      CHECK(made.error.mean < 0.12);
    }
  }
}

} // namespace
} // namespace stagecraft::fit
