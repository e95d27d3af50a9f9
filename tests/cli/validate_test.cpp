// `stagecraft validate` on tables that strangers wrote: where its outputs go, what they say, and how it ends.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/base/format/csv.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

const std::string kHeader = "case,source,model,layers,hidden,heads,seq_len,vocab,gpu,num_gpus,micro_batch,global_batch,"
                            "precision,metric,unit,value\n";

// A GPT of two layers on one A100.
std::string row(const std::string& name, const std::string& figure = "iteration_seconds,s,0.1") {
  return name + ",Megatron-LM,GPT small,2,512,8,128,1024,A100-SXM4-80GB,1,1,8,bf16," + figure + "\n";
}

TEST_CASE("studies of rows stay in their folder, each in a file of its own", "[cli][validate]") {
  const Workshop shop;
  fs::create_directories(shop.folder() / "tables");
  shop.write("tables/a.csv", kHeader + row("../../up") + row("/etc/x") + row("same"));
  shop.write("tables/b.csv", kHeader + row("same") + row(std::string(400, 'x')));
  shop.succeed("validate tables --studies deep/down/here --quiet");
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(shop.folder() / "deep")) {
    if (entry.is_regular_file()) {
      files.insert(fs::relative(entry.path(), shop.folder() / "deep/down/here").string());
    }
  }
  CHECK(files == std::set<std::string>{"-.-..-up.yaml", "-etc-x.yaml", "same.yaml", "same (b).yaml",
                                       std::string(200, 'x') + ".yaml"});
  CHECK(!fs::exists(shop.folder() / "deep/up.yaml"));
  CHECK_THAT(shop.read("deep/down/here/same (b).yaml"), Catch::StartsWith("# case same of b.csv\n"));
}

TEST_CASE("no output replaces a table that is read, nor another output", "[cli][validate]") {
  const Workshop shop;
  const std::string table = kHeader + row("a");
  shop.write("t.csv", table);
  shop.write("flags.csv", "case,recompute\na,none\n");
  for (const char* flags : {"t.csv -o t.csv", "t.csv --errors t.csv", "t.csv --what-ifs ./t.csv", ". -o t.csv",
                            "t.csv --errors flags.csv", ". --what-ifs flags.csv"}) {
    const Outcome outcome = shop.run(std::string("validate ") + flags);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains("this file is an input, and would be lost; allowed: another name"));
  }
  CHECK(shop.read("t.csv") == table);
  CHECK_THAT(shop.run("validate t.csv --errors x --what-ifs ./x").err, Contains("two outputs go into this file"));
  CHECK_THAT(shop.run("validate t.csv --errors no/x").err, Contains("no such directory 'no'"));
  shop.succeed("validate t.csv -o out.json --quiet");
  shop.succeed("validate . -o out.json --quiet"); // an output of before is no input
}

TEST_CASE("what the system refuses is an error, and no bug", "[cli][validate]") {
  const Workshop shop;
  shop.write("t.csv", kHeader + row("a"));
  fs::create_symlink("loop", shop.folder() / "loop");
  fs::create_symlink("loop.csv", shop.folder() / "loop.csv");
  for (const auto& [words, message] : {std::pair{"t.csv --studies /proc/x", "/proc/x: no folder can be made here"},
                                       {"t.csv --figures /proc/x", "/proc/x: no folder can be made here"},
                                       {"t.csv --studies t.csv", "t.csv: no folder can be made here"},
                                       {"loop", "loop: cannot be read: Too many levels of symbolic links"},
                                       {"loop.csv", "loop.csv: cannot be read: Too many levels of symbolic links"},
                                       {"nothing.csv", "nothing.csv: no such file"},
                                       {"nothing", "nothing: no such file or folder"}}) {
    const Outcome outcome = shop.run(std::string("validate ") + words);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains(message));
  }
}

} // namespace
} // namespace stagecraft::test
