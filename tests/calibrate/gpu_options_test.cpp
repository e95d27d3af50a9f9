// The command line of the harness for GPUs.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "tests/catch.hpp"

#include "calibrate/gpu/sweep/options.hpp"

namespace stagecraft::gpu {
namespace {

TEST_CASE("options take their value after a space or an equals sign", "[gpu][options]") {
  const Options options = parse_options({"--budget", "60.5", "--out=h200.yaml", "--groups", "gemm,copies", "--list",
                                         "--libraries", "/a:/b", "--device", "1"});
  CHECK(options.budget == 60.5);
  CHECK(options.out == "h200.yaml");
  CHECK(options.groups == std::vector<std::string>{"gemm", "copies"});
  CHECK(options.libraries == std::vector<std::string>{"/a", "/b"});
  CHECK((options.list && !options.dry_run && options.device == 1));
  CHECK(parse_options({}).budget == 420);
}

TEST_CASE("wrong options are refused with what is allowed", "[gpu][options]") {
  CHECK_THROWS_WITH(parse_options({"--bugdet", "1"}), Catch::Contains("unknown option '--bugdet'"));
  CHECK_THROWS_WITH(parse_options({"--budget"}), Catch::Contains("--budget wants a value: SECONDS"));
  CHECK_THROWS_WITH(parse_options({"--budget", "0"}), "--budget '0'; allowed: a number from 1 to 86400");
  CHECK_THROWS_WITH(parse_options({"--budget", "7 minutes"}), Catch::Contains("allowed: a number"));
  CHECK_THROWS_WITH(parse_options({"--groups", "gemm,conv"}), Catch::Contains("unknown group 'conv'; allowed: shapes"));
  CHECK_THROWS_WITH(parse_options({"--groups", ""}), Catch::Contains("allowed: shapes"));
  CHECK_THROWS_WITH(parse_options({"--list=yes"}), "--list takes no value");
}

TEST_CASE("help names every option and group", "[gpu][options]") {
  const std::string help = help_text();
  for (const char* word : {"--budget", "--shapes", "--out", "--groups", "--list", "--dry-run", "convolution"}) {
    CHECK(help.find(word) != std::string::npos);
  }
}

} // namespace
} // namespace stagecraft::gpu
