// Every file that the fuzzer found a defect with, and some that each reader begins with: read, or refused with an
// InputError. CONTRIBUTING.md, "Fuzzing".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = test::source_dir() / "tests/fuzz";

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("every reader takes or refuses the files of its corpus", "[fuzz]") {
  constexpr std::size_t kFewest = 3;
  for (const Reader& reader : readers()) {
    const std::vector<fs::path> files = files_in(kFolder / "corpus" / reader.name);
    INFO(reader.name);
    CHECK(files.size() >= kFewest);
    for (const fs::path& file : files) {
      INFO(file.string());
      try {
        reader.read(read_file(file));
      } catch (const InputError& refusal) {
        CHECK_FALSE(std::string_view(refusal.what()).empty());
      } catch (const std::exception& defect) {
        FAIL_CHECK("neither read nor refused: " << defect.what());
      }
    }
  }
}

TEST_CASE("every folder of the corpus has a reader", "[fuzz]") {
  std::set<std::string_view> names;
  for (const Reader& reader : readers()) {
    INFO(reader.name);
    CHECK(names.insert(reader.name).second);
  }
  for (const fs::path& folder : files_in(kFolder / "corpus")) {
    INFO(folder.string());
    CHECK(names.contains(folder.filename().string()));
  }
}

TEST_CASE("dictionaries and readers name each other", "[fuzz]") {
  std::set<std::string> named;
  for (const Reader& reader : readers()) {
    if (!reader.dictionary.empty()) {
      named.insert(std::string(reader.dictionary) + ".dict");
    }
  }
  std::set<std::string> there;
  for (const fs::path& file : files_in(kFolder / "dictionaries")) {
    there.insert(file.filename().string());
  }
  CHECK(there == named);
}

// A seed that the reader refuses at once teaches the fuzzer little.
TEST_CASE("seeds that code makes are read", "[fuzz]") {
  for (const Reader& reader : readers()) {
    if (reader.made != nullptr) {
      INFO(reader.name);
      for (const std::string& seed : reader.made()) {
        CHECK_NOTHROW(reader.read(seed));
      }
    }
  }
}

} // namespace
} // namespace stagecraft::fuzz
