// The readers of the program that are fuzzed: one row each, for the fuzzer (fuzzer.cpp) and for the test that reads the
// files of tests/fuzz/corpus (corpus_test.cpp). CONTRIBUTING.md, "Fuzzing".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::fuzz {

inline constexpr std::size_t kMostPatterns = 4;

struct Reader {
  std::string_view name, help;
  /// Reads the bytes, and does what follows cheaply. It returns, or throws InputError; anything else is a defect. It
  /// depends on nothing but the bytes and the files shipped with the program.
  void (*read)(std::string_view bytes);
  /// Files to begin with, relative to the repository; where none match, that is no error.
  std::array<std::string_view, kMostPatterns> seeds;
  std::string_view dictionary;                  ///< tests/fuzz/dictionaries/NAME.dict; "": none
  std::vector<std::string> (*made)() = nullptr; ///< further seeds, for formats that are not text
};

/// The table, in the order of the folders of sim/.
std::span<const Reader> readers();

/// The row with this name; nullptr where there is none.
const Reader* find_reader(std::string_view name);

} // namespace stagecraft::fuzz
