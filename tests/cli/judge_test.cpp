// What a study that names commands may do: nothing, until its user has allowed it.
// SPDX-License-Identifier: Apache-2.0
#include <pty.h>

#include <cerrno>
#include <csignal>

#include "tests/cli/program.hpp"
#include "tests/leash.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

// The command of the planner mine stands in line 4, column 36.
std::string foreign_study(const std::string& command, const std::string& more = "") {
  return "judge:\n  models: [" + kChain +
         "]\n  platforms: [{devices: 2}]\n  planners: [{name: mine, command: " + command + "}, single" + more +
         "]\ntraining: {global_batch: 4, micro_batches: 2}\n";
}

const std::string kTouches = "[sh, -c, 'touch ran; echo broken >&2; exit 3']";

// The program at a terminal on which `answer` is typed.
struct Talk {
  int status = -1;
  std::string said;
};

Talk talk(const Workshop& shop, const std::string& arguments, const std::string& answer) {
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(process >= 0);
  if (process == 0) {
    const std::string line = "cd '" + shop.folder().string() + "' && exec '" STAGECRAFT_PROGRAM "' " + arguments;
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(write(terminal, answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()));
  Talk talk;
  char letter = 0;
  for (ssize_t count = 0; (count = read(terminal, &letter, 1)) > 0 || (count < 0 && errno == EINTR);) {
    talk.said += count > 0 ? std::string(1, letter) : "";
  }
  int status = 0;
  waitpid(process, &status, 0);
  close(terminal);
  talk.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  UNSCOPED_INFO(talk.said);
  return talk;
}

TEST_CASE("judge runs no command of a study unasked", "[cli][judge]") {
  const Workshop shop;
  shop.write("judge.yaml", foreign_study(kTouches));
  const Outcome outcome = shop.run("judge judge.yaml");
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "error: judge.yaml:4:36: the study runs the program: sh -c 'touch ran; echo broken >&2; exit 3'; "
        "allowed: with --allow-commands, if you trust it\n");
  CHECK(shop.run("judge judge.yaml --quiet").status == 2);
  CHECK(!shop.has("ran"));
  shop.succeed("judge judge.yaml --allow-commands");
  CHECK(shop.has("ran"));
}

TEST_CASE("judge does not ask where there is nothing to run", "[cli][judge]") {
  const Workshop shop;
  shop.write("judge.yaml", foreign_study(kTouches));
  CHECK(shop.succeed("judge judge.yaml --set judge.planners='[single]'").err.empty());
  CHECK(!shop.has("ran"));
}

TEST_CASE("at a terminal judge shows each command once and waits for a yes", "[cli][judge]") {
  const Workshop shop;
  shop.write("judge.yaml", foreign_study(kTouches, ", {name: too, command: " + kTouches +
                                                       "}, {name: other, command: [\"a\\e[2J\\nb\"]}"));
  const auto [answer, runs] = GENERATE(table<std::string, bool>(
      {{"yes\n", true}, {"y\n", true}, {"no\n", false}, {"\n", false}, {"yes please\n", false}, {"\x04", false}}));
  const Talk said = talk(shop, "judge judge.yaml", answer);
  const std::string line = "  sh -c 'touch ran; echo broken >&2; exit 3'\r\n";
  CHECK_THAT(said.said, Contains(line) && Contains("  $'a\\x1b[2J\\x0ab'\r\n"));
  CHECK(said.said.find(line) == said.said.rfind(line));
  CHECK(shop.has("ran") == runs);
  CHECK(said.status == (runs ? 0 : 2));
}

TEST_CASE("no other command runs what a study of judge names", "[cli][judge]") {
  const Workshop shop;
  shop.write("judge.yaml", foreign_study(kTouches));
  const std::string command =
      GENERATE(as<std::string>(), "compare judge.yaml", "sweep judge.yaml", "sweep judge.yaml --count",
               "explain judge.yaml", "adapt judge.yaml", "show judge.yaml", "points judge.yaml", "report judge.yaml",
               "check judge.yaml", "replay judge.yaml", "plan judge.yaml", "validate judge.yaml");
  CHECK(shop.run(command).status == 2);
  CHECK(!shop.has("ran"));
}

TEST_CASE("a planner without a plan says why in the table of planners", "[cli][judge]") {
  const Workshop shop;
  shop.write("judge.yaml", foreign_study(kTouches));
  const std::string text = shop.succeed("judge judge.yaml --allow-commands").out;
  CHECK_THAT(text, Contains("remarks") && Contains("it ended with status 3: broken"));
  const Json planners = shop.succeed("judge judge.yaml --allow-commands --format json").json().at("planners");
  CHECK(planners.at(0).at("why_not").is_null());
  CHECK(planners.at(1).at("why_not") == "it ended with status 3: broken");
  CHECK_THAT(shop.succeed("judge judge.yaml --set judge.planners='[single]'").out, !Contains("remarks"));
}

TEST_CASE("a judge that is ended leaves nothing of a command", "[cli][judge]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGKILL);
  const Workshop shop;
  const Leash leash;
  shop.write("judge.yaml", foreign_study("[sh, -c, 'exec 3>" + leash.path() + "; setsid sleep 60 & exec sleep 60']"));
  const pid_t process = fork();
  if (process == 0) {
    std::signal(SIGTERM, SIG_DFL); // not Catch's
    const std::string line = "cd '" + shop.folder().string() +
                             "' && exec '" STAGECRAFT_PROGRAM "' judge judge.yaml --allow-commands >.log 2>&1";
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(leash.becomes(true));
  kill(process, signal);
  int status = 0;
  waitpid(process, &status, 0);
  CHECK((signal == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 130));
  CHECK(leash.becomes(false));
}

} // namespace
} // namespace stagecraft::test
