// What the program writes is safe: under hostile names, on stdout, and when it is interrupted.
// SPDX-License-Identifier: Apache-2.0
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "sim/base/format/csv.hpp"
#include "sim/base/format/yaml_text.hpp"
#include "sim/base/utf8.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

const std::string kSly = "=two\nlines: \"x\" # \xe2\x80\xae'";

// The chain under another name, as YAML.
std::string sly_model() {
  std::string text = read_file(kChain);
  const std::size_t begin = text.find("name: ");
  REQUIRE(begin != std::string::npos);
  return text.replace(begin, text.find('\n', begin) - begin, "name: " + yaml_text(kSly));
}

TEST_CASE("plans of a model with a hostile name are checked, shown and compared", "[cli]") {
  const Workshop shop;
  shop.write("model.yaml", sly_model());
  shop.write("study.yaml", "model: model.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 2}\n"
                           "compare: {strategies: uniform, schedules: gpipe}\n");
  const std::string on_chain =
      " model.yaml --devices 2 --set training.global_batch=4 --micro-batches 2 --strategy uniform";
  for (const std::string& command : {"plan" + on_chain, "export stagecraft" + on_chain}) {
    shop.succeed(command + " -o plan.yaml");
    CHECK(shop.succeed("check plan.yaml model.yaml --devices 2 --set training.global_batch=4 --micro-batches 2").out ==
          "plan.yaml: a valid plan that fits\n");
    shop.write("printed.yaml", shop.succeed(command).out);
    CHECK(shop.read("printed.yaml") == shop.read("plan.yaml"));
  }
  // A strategy's name comes from a plan file, and so from a stranger.
  std::string plan = shop.read("plan.yaml");
  const std::size_t begin = plan.find("strategy: ");
  plan.replace(begin, plan.find('\n', begin) - begin, "strategy: " + in_double_quotes(kSly));
  shop.write("plan.yaml", plan);
  shop.succeed("compare study.yaml --plan plan.yaml --format csv -o out.csv");
  const CsvTable table(shop.read("out.csv"), "out.csv", {"strategy"});
  REQUIRE(table.rows() == 2);
  CHECK((table.at(0, "strategy").text == kSly || table.at(1, "strategy").text == kSly));
  CHECK_THAT(shop.read("out.csv"), Contains("\"'=two"));
  CHECK_THAT(shop.succeed("compare study.yaml --plan plan.yaml").out, !Contains("\xe2\x80\xae") && Contains("\\u202e"));
}

TEST_CASE("arguments and files that are not UTF-8 are refused, and told in words", "[cli][bad-input]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const Outcome argument = shop.run("compare study.yaml --set name=$(printf 'a\\377')");
  CHECK(argument.status == 2);
  CHECK_THAT(argument.err, Contains("argument 4 is not UTF-8: 'name=a\\xff'"));
  shop.write("\xff.yaml", small_study());
  CHECK_THAT(shop.run("compare $(printf '\\377.yaml')").err, Contains("argument 2 is not UTF-8: '\\xff.yaml'"));
  shop.write("orders.csv", "F0,B0\nF0,\xff\n");
  CHECK_THAT(shop.run("import schedule orders.csv").err, Contains("orders.csv:2:4: the byte 0xff is not UTF-8"));
  const Outcome escaped = shop.run("compare study.yaml --format $(printf '\\033[2J')");
  CHECK(escaped.status == 2);
  CHECK_THAT(escaped.err, Contains("unknown value '\\x1b[2J'; known: table, json, csv") && !Contains("\x1b"));
}

TEST_CASE("the output called - is stdout", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  const std::string csv = shop.succeed("compare study.yaml --format csv").out;
  const auto texts = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  CHECK(texts(shop.succeed("compare study.yaml --format csv -o -").out) == texts(csv));
  shop.succeed("compare study.yaml -o results.json");
  CHECK_THAT(shop.succeed("report results.json -o -").out,
             Catch::StartsWith("<!doctype html>") && Catch::EndsWith("</html>\n"));
  CHECK_THAT(shop.run("calibrate -o -").err, Contains("no file to write to; allowed: -o FILE"));
  CHECK_THAT(shop.run("merge a.sqlite -o -").err, Contains("allowed: -o FILE.sqlite"));
  CHECK(!shop.has("-"));
}

// Whether the process has handlers for both signals: bits 2 and 15 of SigCgt, from 1.
bool handles_interrupts(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigCgt:")) {
      const unsigned long long caught = std::stoull(line.substr(7), nullptr, 16);
      return (caught >> (SIGINT - 1) & 1U) != 0 && (caught >> (SIGTERM - 1) & 1U) != 0;
    }
  }
  return false;
}

// Starts the program. When this returns, it is the program that runs, and no copy of the test with its handlers.
pid_t start(const fs::path& folder, std::vector<std::string> words) {
  words.insert(words.begin(), STAGECRAFT_PROGRAM);
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t process = 0;
  REQUIRE(posix_spawn(&process, STAGECRAFT_PROGRAM, &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

// The result goes into a pipe that nobody reads: the program waits.
TEST_CASE("an interrupt ends any command with 130", "[cli]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Workshop shop;
  shop.write("study.yaml", small_study());
  REQUIRE(mkfifo((shop.folder() / "pipe").c_str(), 0600) == 0);
  const pid_t process = start(shop.folder(), {"compare", "study.yaml", "--quiet", "-o", "pipe"});
  for (int i = 0; i < 1000 && !handles_interrupts(process); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(process, signal);
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(shop.files() == 2); // the study and the pipe
}

} // namespace
} // namespace stagecraft::test
