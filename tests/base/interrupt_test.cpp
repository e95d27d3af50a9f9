// Interrupts: what they end, what they remove, and that the first one can be noted instead.
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "sim/base/system/file.hpp"
#include "sim/base/system/file_writer.hpp"
#include "sim/base/system/interrupt.hpp"
#include "tests/base/folder.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr int kStatus = 130;

using test::Folder;

// The exit status of a child that does `work`, -1 where a signal has ended it. The test's own process stays as it is.
int status_of(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    on_interrupt([] { _exit(kStatus); });
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("an interrupt ends the program and removes what is being written", "[base][interrupt]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Folder folder;
  write_file(folder / "old", "kept");
  CHECK(status_of([&] {
          FileWriter one(folder / "old");
          FileWriter other(folder / "new");
          one.add("half");
          other.add(std::string(100'000, 'x')); // more than waits in memory
          raise(signal);
        }) == kStatus);
  CHECK(folder.entries() == 1);
  CHECK(read_file(folder / "old") == "kept");
}

TEST_CASE("what was finished or given up is left alone", "[base][interrupt]") {
  const Folder folder;
  CHECK(status_of([&] {
          write_file(folder / "whole", "text");
          { const FileWriter given_up(folder / "none"); }
          raise(SIGTERM);
        }) == kStatus);
  CHECK(folder.entries() == 1);
  CHECK(read_file(folder / "whole") == "text");
}

TEST_CASE("a child that is interrupted does not remove what its parent writes", "[base][interrupt]") {
  const Folder folder;
  FileWriter file(folder / "file");
  CHECK(status_of([] { raise(SIGINT); }) == kStatus);
  CHECK(folder.entries() == 1);
  file.add("text");
  file.finish();
  CHECK(read_file(folder / "file") == "text");
}

TEST_CASE("the first interrupt can be noted, the second one ends the program", "[base][interrupt]") {
  CHECK(status_of([] {
          const InterruptNote note;
          raise(SIGTERM);
          _exit(note.was_interrupted() ? 1 : 2);
        }) == 1);
  CHECK(status_of([] {
          const InterruptNote note;
          raise(SIGTERM);
          raise(SIGINT);
          _exit(1);
        }) == kStatus);
  CHECK(status_of([] {
          { const InterruptNote note; }
          raise(SIGINT);
          _exit(1);
        }) == kStatus);
  CHECK(status_of([] {
          ignore_interrupts();
          raise(SIGINT);
          raise(SIGTERM);
        }) == 0);
}

TEST_CASE("no more files are written at a time than an interrupt can remove", "[base][interrupt]") {
  const Folder folder;
  std::vector<std::unique_ptr<FileWriter>> files;
  for (std::size_t i = 0; i < UnfinishedFile::kMost; ++i) {
    files.push_back(std::make_unique<FileWriter>(folder / std::to_string(i)));
  }
  CHECK_THROWS_AS(FileWriter(folder / "another"), std::logic_error);
  files.pop_back();
  CHECK_NOTHROW(FileWriter(folder / "another"));
}

} // namespace
} // namespace stagecraft
