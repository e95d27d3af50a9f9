// Shared by tests of studies: a shipped study's file and its page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <regex>

#include "sim/base/system/file.hpp"
#include "sim/study/keys/inputs.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::test {

inline const std::filesystem::path kReports = test::source_dir() / "reports";

inline Folders folders_of(const std::string& study) { return {kReports / study, test::source_dir()}; }

/// Checks that the page of a study contains these words, wherever its lines break.
inline void check_says(const std::string& study, const std::string& words) {
  std::string page = read_file(kReports / study / "README.md");
  page = std::regex_replace(page, std::regex("\\s+"), " ");
  INFO("reports/" << study << "/README.md should say: " << words);
  CHECK(page.find(words) != std::string::npos);
}

} // namespace stagecraft::test
