// What the study tests share: studies from text, run and looked up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>

#include "sim/base/system/file.hpp"
#include "sim/study/compare/compare.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::test {

namespace fs = std::filesystem;

inline const fs::path kRoot = test::source_dir();
/// Files are looked for in tests/study, then among the shipped ones.
inline const Folders kFolders{kRoot / "tests/study", kRoot};

/// The .yaml files of a folder, sorted.
inline std::vector<fs::path> yaml_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline Study study(const std::string& text, const std::vector<Setting>& settings = {}) {
  return load_study(yaml::parse(text, "study.yaml"), kFolders, settings);
}

/// The chain of tests/study/chain.yaml (four operators, F 1 s and B 2 s a sample, 4 MB between them) on `devices`
/// devices like those it was measured on, four samples per iteration.
inline std::string chain_study(const std::string& more, const std::string& platform = "{devices: 2}") {
  return "model: chain.yaml\nplatform: " + platform + "\n" + more;
}

inline ComparisonResult compare_text(const std::string& text, const std::vector<Setting>& settings = {}) {
  const Study read = study(text, settings);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  return compare(memo);
}

/// The run of these names.
inline const Run& find_run(const Comparison& comparison, std::string_view strategy, std::string_view schedule,
                           int micro_batches) {
  const auto found = std::find_if(comparison.runs.begin(), comparison.runs.end(), [&](const Run& run) {
    return run.strategy == strategy && run.schedule == schedule && run.micro_batches == micro_batches;
  });
  REQUIRE(found != comparison.runs.end());
  return *found;
}

} // namespace stagecraft::test
