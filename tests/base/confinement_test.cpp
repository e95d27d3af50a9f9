// Commands that a stranger wrote: what they cannot reach, what they may take, and that nothing of them stays.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "sim/base/process/child.hpp"
#include "sim/base/system/command.hpp"
#include "sim/base/system/confinement.hpp"
#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/leash.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using test::Leash;

CommandAnswer confined(const std::string& script, const std::string& input = "", double seconds = 60,
                       int memory_mebibytes = limits::kCommandMemoryMebibytes) {
  return run_command({{"sh", "-c", script}, ".", seconds, true, memory_mebibytes}, input);
}

bool holds(const std::string& gap) {
  const std::vector<std::string> gaps = confinement_gaps();
  return std::none_of(gaps.begin(), gaps.end(),
                      [&](const std::string& one) { return one.find(gap) != std::string::npos; });
}

TEST_CASE("a confined command gets its input and gives its output, or says how it ended", "[base][confinement]") {
  const std::string large(1 << 20, 'x');
  CHECK(confined("cat", large).output == large);
  CHECK(confined("cat </dev/stdin", "text").output == "text");
  CHECK(run_command({{"pwd"}, "/", 60, true}, "").output == "/\n");
  CHECK(confined("echo one >&2; echo two >&2; exit 3").why_not == "it ended with status 3: two");
  CHECK(confined("kill -9 $$").why_not == "it was ended by signal 9");
  CHECK(confined("exec sleep 60", "", 0.05).why_not == "it took longer than 50.00 ms");
  CHECK(run_command({{"no-such-program-anywhere"}, ".", 60, true}, "").why_not ==
        "'no-such-program-anywhere' cannot be run");
}

TEST_CASE("a confined command has no network but itself", "[base][confinement]") {
  if (!holds("network")) {
    WARN("skipped: no namespaces of networks here");
    return;
  }
  CHECK(confined("tail -n +3 /proc/net/dev | cut -d : -f 1 | tr -d ' '").output == "lo\n");
  CHECK(confined("tail -n +2 /proc/net/route").output.empty());
}

TEST_CASE("a confined command sees four variables", "[base][confinement]") {
  setenv("STAGECRAFT_SECRET", "secret", 1);
  const std::string seen = confined("exec env").output;
  unsetenv("STAGECRAFT_SECRET");
  CHECK_THAT(seen, Catch::Contains("PATH=") && !Catch::Contains("secret"));
}

TEST_CASE("a confined command has no open files of ours, and no terminal", "[base][confinement]") {
  const int file = open("/dev/null", O_RDONLY); // without O_CLOEXEC
  CHECK(confined("test -e /proc/self/fd/" + std::to_string(file) + " && echo open").output.empty());
  close(file);
  CHECK(confined("cut -d ' ' -f 7 /proc/self/stat").output == "0\n"); // the terminal's number
}

TEST_CASE("a confined command's limits stand", "[base][confinement]") {
  CHECK(confined("ulimit -v", "", 60, 1024).output == "1048576\n"); // KiB
  CHECK(confined("ulimit -c").output == "0\n");
  CHECK(confined("ulimit -f").output == std::to_string(limits::kCommandFileMebibytes * 2048) + "\n"); // of 512 bytes
  CHECK(confined("ulimit -v unlimited").why_not.substr(0, 20) == "it ended with status");
  CHECK_THAT(confined("grep NoNewPrivs /proc/self/status").output, Catch::EndsWith("1\n"));
  CHECK_THAT(confined("grep CapEff /proc/self/status").output, Catch::EndsWith("0000000000000000\n"));
}

TEST_CASE("a confined command starts only so many processes", "[base][confinement]") {
  if (!holds("number of processes")) {
    WARN("skipped: the kernel does not count the processes of root");
    return;
  }
  const std::string many = std::to_string(2 * limits::kCommandProcesses);
  CHECK(!confined("i=0; while [ $i -lt " + many + " ]; do sleep 60 & i=$((i+1)); done").why_not.empty());
}

// The shell is told to ignore SIGXFSZ, as Python does: then writing fails.
TEST_CASE("a confined command that prints or writes too much is ended", "[base][confinement]") {
  CHECK_THAT(confined("exec yes").why_not, Catch::Contains("printed more than 64 MiB"));
  CHECK_THAT(confined("trap '' XFSZ; exec yes").why_not, Catch::Contains("printed more than 64 MiB"));
  CHECK_THAT(confined("exec yes >&2").why_not, Catch::Contains("printed more than 64 MiB"));
  const Leash leash;
  const std::string file = leash.path() + "-file";
  CHECK(confined("exec dd if=/dev/zero bs=1M count=300 of=" + file).why_not.substr(0, 35) ==
        "it wrote a file of more than 256 Mi");
  CHECK(fs::file_size(file) == std::uintmax_t{limits::kCommandFileMebibytes} << 20);
}

TEST_CASE("nothing of a confined command is left when it ends or has to be ended", "[base][confinement]") {
  const Leash leash;
  const std::string leave = "exec 3>" + leash.path() + "; setsid sh -c 'sleep 60 & sleep 60' & ";
  CHECK(confined(leave + "echo done").output == "done\n");
  CHECK(!leash.is_held());
  CHECK_THAT(confined(leave + "exec sleep 60", "", 0.2).why_not, Catch::Contains("longer than"));
  CHECK(!leash.is_held());
  CHECK_THAT(confined(leave + "exec yes").why_not, Catch::Contains("printed more"));
  CHECK(!leash.is_held());
}

TEST_CASE("nothing of a confined command is left when its program is killed", "[base][confinement]") {
  const int signal = GENERATE(SIGKILL, SIGTERM);
  const Leash leash;
  const pid_t program = fork();
  if (program == 0) {
    std::signal(SIGTERM, SIG_DFL); // not Catch's
    confined("exec 3>" + leash.path() + "; echo >&3; setsid sleep 60 & exec sleep 60");
    _exit(0);
  }
  REQUIRE(leash.becomes(true));
  kill(program, signal);
  CHECK(leash.becomes(false));
  waitpid(program, nullptr, 0);
}

// As where an administrator forbids namespaces: here a namespace of users that may have no others.
TEST_CASE("a command is confined as far as the kernel allows it", "[base][confinement]") {
  const Leash leash;
  const std::optional<std::string> answer = answer_of_child(
      [&]() -> std::string {
        const std::string user = std::to_string(geteuid()) + " " + std::to_string(geteuid()) + " 1";
        if (unshare(CLONE_NEWUSER) != 0) {
          return "no namespaces";
        }
        std::ofstream("/proc/self/uid_map") << user;
        for (const char* kind : {"user", "pid", "net"}) {
          std::ofstream("/proc/sys/user/max_" + std::string(kind) + "_namespaces") << 0;
        }
        std::string found;
        for (const std::string& gap : confinement_gaps()) {
          found += gap + ", ";
        }
        const CommandAnswer said =
            confined("exec 3>" + leash.path() + "; setsid sh -c 'setsid sleep 60 & sleep 60' & ulimit -c");
        return found + said.output + said.why_not + (leash.is_held() ? "left" : "gone");
      },
      60);
  REQUIRE(answer);
  if (*answer == "no namespaces") {
    WARN("skipped: no namespaces of users here, so that the other tests show it");
    return;
  }
  CHECK_THAT(*answer, Catch::StartsWith("can use the network, can leave processes behind, "));
  CHECK_THAT(*answer, Catch::EndsWith(", 0\ngone"));
}

} // namespace
} // namespace stagecraft
