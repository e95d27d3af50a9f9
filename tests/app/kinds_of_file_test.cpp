// What files are, told by their content.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>

#include "sim/app/common/kinds_of_file.hpp"
#include "sim/base/system/file.hpp"
#include "sim/study/keys/inputs.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = test::source_dir();

// Whether every file of the folder that has this ending is of the kind.
void check_all(const fs::path& folder, const std::string& what) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") {
      INFO(entry.path().string());
      const std::optional<KnownInput> input = known_input(entry.path().string());
      REQUIRE(input);
      CHECK(input->what == what);
    }
  }
}

TEST_CASE("shipped files are recognised for what they are", "[app]") {
  check_all(kRoot / "workloads", "is a model");
  check_all(kRoot / "platforms", "is a platform");
  check_all(kRoot / "platforms/devices", "is a device type");
  CHECK(known_input((kRoot / "reports/gpt2-xl-mixed/study.yaml").string())->what == "is a study");
  CHECK(known_input((kRoot / "reports/wang-2020/study.yaml").string())->what == "is a study that judges planners");
  CHECK(known_input((kRoot / "reports/patent-2022/slow-down.yaml").string())->what ==
        "is a study of training over time");
  CHECK(known_input((kRoot / "reports/network-for-16/study.yaml").string())->what == "is a study with axes");
  CHECK_FALSE(known_input((kRoot / "README.md").string()));
  CHECK_FALSE(known_input("no-such-name"));
  CHECK_FALSE(known_input(""));
}

// Both tables count GPUs in a column; only frameworks' have one of degrees by their own names.
TEST_CASE("a table with a column of GPUs is no configuration of a framework", "[app]") {
  const auto what = [](const std::string& header) {
    const fs::path file = fs::temp_directory_path() / ("stagecraft-kinds-" + std::to_string(::getpid()) + ".csv");
    write_file(file.string(), header + "\n");
    const std::string is = known_input(file.string())->what;
    fs::remove(file);
    return is;
  };
  CHECK(what("gpu,num_gpus,size_bytes,time_us") == "is a table");
  CHECK(what("model,num_gpus,tp_size,pp_size") == "is a configuration of a training framework");
  CHECK(what("model, \"tp_size\", num_gpus") == "is a configuration of a training framework");
}

TEST_CASE("a shipped name is what its file is, and its calls name it", "[app]") {
  for (const auto& [name, what] :
       {std::pair{"gpt2-xl", "is a model"}, {"dgx-h100", "is a platform"}, {"h100-sxm-80gb", "is a device type"}}) {
    const std::optional<KnownInput> input = known_input(name);
    REQUIRE(input);
    CHECK(input->what == what);
    REQUIRE_FALSE(input->calls.empty());
    CHECK(std::find(input->calls[0].words.begin(), input->calls[0].words.end(), name) != input->calls[0].words.end());
  }
}

TEST_CASE("calls are lines to copy, with purposes in one column", "[app]") {
  CHECK(lines_of({{{"show", "a b"}, "one"}, {{"list"}, "two"}}, "stagecraft") == "  stagecraft show 'a b'  # one\n"
                                                                                 "  stagecraft list        # two\n");
}

} // namespace
} // namespace stagecraft
