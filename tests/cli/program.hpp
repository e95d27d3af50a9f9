// Running the built program: in a folder of its own, with what it printed and how it ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline const fs::path kRoot = test::source_dir();
/// Four equal operators, one second forward and two backward each: tests/study/chain.yaml.
inline const std::string kChain = (kRoot / "tests/study/chain.yaml").string();

/// The outcome of one call of the program.
struct Outcome {
  int status = -1;
  std::string out, err;

  Json json() const { return Json::parse(out); }
};

/// A temporary folder in which the program runs.
class Workshop {
public:
  Workshop() {
    std::string name = (fs::temp_directory_path() / "stagecraft-cli-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Workshop() { fs::remove_all(folder_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// Runs `stagecraft ARGUMENTS`, split into words by the shell.
  Outcome run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command = "cd '" + folder_.string() + "' && " + environment + " '" + STAGECRAFT_PROGRAM + "' " +
                                arguments + " >.out 2>.err </dev/null";
    const int status = std::system(command.c_str());
    Outcome outcome;
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = read_file(folder_ / ".out");
    outcome.err = read_file(folder_ / ".err");
    fs::remove(folder_ / ".out");
    fs::remove(folder_ / ".err");
    UNSCOPED_INFO("stagecraft " << arguments << "\nended with " << outcome.status << "\n" << outcome.err);
    return outcome;
  }

  /// The same for a call that must succeed.
  Outcome succeed(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    REQUIRE(outcome.status == 0);
    return outcome;
  }

  /// Writes a file and returns its name.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return name;
  }
  /// Writes an executable script.
  void script(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  const fs::path& folder() const { return folder_; }
  /// Runs a shell command in the folder; returns its status.
  int shell(const std::string& line) const {
    return std::system(("cd '" + folder_.string() + "' && { " + line + " }").c_str());
  }
  /// Makes a folder of the repository appear here.
  void link(const std::string& name) const { fs::create_directory_symlink(kRoot / name, folder_ / name); }
  /// The number of files in the folder.
  long files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

private:
  fs::path folder_;
};

/// A result without values that differ from call to call.
inline Json without_timing(Json json) {
  json.erase("timing");
  if (json.contains("runs")) {
    for (Json& run : json["runs"]) {
      run.erase("timing");
    }
  }
  return json;
}

/// What a result answers, whatever the words in which it was asked.
inline Json answer_of(Json json) {
  json = without_timing(std::move(json));
  json.erase("question");
  return json;
}

/// A study of the chain on two devices like those it was measured on.
inline std::string small_study() {
  return "name: small\nmodel: " + kChain +
         "\nplatform: {devices: 2, bandwidth: 4 MB/s}\n"
         "training: {global_batch: 4, micro_batches: [2, 4]}\n"
         "compare: {strategies: [single, uniform], schedules: [accumulate, gpipe, 1f1b]}\n";
}

} // namespace stagecraft::test
