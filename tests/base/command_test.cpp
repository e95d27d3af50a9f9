// Running another program: its input, its output, and every way in which it can fail.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "sim/base/system/command.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

CommandAnswer shell(const std::string& script, const std::string& input = "", double seconds = 60) {
  return run_command({{"sh", "-c", script}, ".", seconds}, input);
}

TEST_CASE("a command gets its input and gives its output", "[base][command]") {
  const std::string large(1 << 20, 'x'); // more than a pipe holds
  CHECK(shell("cat", large).output == large);
  CHECK(shell("cat", large).why_not.empty());
  CHECK(run_command({{"printf", "%s", "a b"}, "."}, "").output == "a b"); // arguments are not split as by a shell
}

TEST_CASE("a command starts in its folder", "[base][command]") {
  CHECK(run_command({{"pwd"}, "/"}, "").output == "/\n");
  CHECK_THAT(run_command({{"pwd"}, "/no/such/folder"}, "").why_not, Catch::Contains("cannot be run"));
}

TEST_CASE("a command that fails says how, with the last line of its errors", "[base][command]") {
  CHECK(shell("echo one >&2; echo two >&2; exit 3").why_not == "it ended with status 3: two");
  CHECK(shell("exit 1").why_not == "it ended with status 1");
  CHECK(shell("kill -9 $$").why_not == "it was ended by signal 9");
  CHECK(run_command({{"no-such-program-anywhere"}, "."}, "").why_not == "'no-such-program-anywhere' cannot be run");
}

TEST_CASE("a command that takes too long is killed with its children", "[base][command]") {
  const std::filesystem::path late = std::filesystem::temp_directory_path() / "stagecraft-late";
  std::filesystem::remove(late);
  CHECK(shell("(sleep 1; touch " + late.string() + ") & sleep 60", "", 0.1).why_not == "it took longer than 100.0 ms");
  CHECK(shell("sleep 1.2").why_not.empty());
  CHECK(!std::filesystem::exists(late));
}

TEST_CASE("a command that never stops printing is stopped", "[base][command]") {
  CHECK_THAT(shell("exec yes").why_not, Catch::Contains("printed more than 64 MiB"));
}

TEST_CASE("a command line is shown as a shell reads it, and shows nothing that is not there", "[base][command]") {
  CHECK(to_text(Command{{"python3", "my_planner.py", "--fast=1"}}) == "python3 my_planner.py --fast=1");
  CHECK(to_text(Command{{"sh", "-c", "a b", ""}}) == "sh -c 'a b' ''");
  CHECK(to_text(Command{{"it's", "a\\b"}}) == "$'it\\'s' $'a\\\\b'");
  CHECK(to_text(Command{{"a\nb", "\x1b[2J", "\xe2\x80\xae"}}) == "$'a\\x0ab' $'\\x1b[2J' $'\\xe2\\x80\\xae'");
}

} // namespace
} // namespace stagecraft
