// The fuzzer: libFuzzer on one reader of the table. ./dev fuzz calls it.
//
//   stagecraft_fuzz --list                    names of the readers
//   stagecraft_fuzz READER --seeds FOLDER     writes the seeds of a reader into a folder
//   stagecraft_fuzz READER [libFuzzer's arguments: files to replay, or folders and options]
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "sim/base/system/file.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/fuzz/seeds.hpp"

namespace stagecraft::fuzz {
namespace {

// libFuzzer starts itself again with its own arguments alone, to minimise an input: the name then comes from here.
constexpr const char* kVariable = "STAGECRAFT_FUZZ_READER";

const Reader* chosen = nullptr;

[[noreturn]] void list() {
  for (const Reader& reader : readers()) {
    std::cout << reader.name << '\t' << reader.dictionary << '\t' << reader.help << '\n';
  }
  std::exit(0);
}

[[noreturn]] void refuse(const std::string& name) {
  std::cerr << "no reader '" << name << "'; allowed:";
  for (const Reader& reader : readers()) {
    std::cerr << ' ' << reader.name;
  }
  std::cerr << '\n';
  std::exit(2);
}

[[noreturn]] void write_seeds(const Reader& reader, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : seeds_of(reader)) {
    write_file(folder / ("seed-" + std::to_string(++number)), seed);
  }
  std::exit(0);
}

// Takes the reader's name out of the arguments, and what is not for libFuzzer.
void choose(int* count, char** arguments) {
  const char* given = std::getenv(kVariable);
  const std::string name = given != nullptr ? given : *count > 1 ? arguments[1] : "";
  if (name == "--list") {
    list();
  }
  chosen = find_reader(name);
  if (chosen == nullptr) {
    refuse(name);
  }
  if (given != nullptr) {
    return;
  }
  setenv(kVariable, name.c_str(), 1);
  for (int i = 1; i + 1 < *count; ++i) {
    arguments[i] = arguments[i + 1];
  }
  --*count;
  if (*count == 3 && std::string_view(arguments[1]) == "--seeds") {
    write_seeds(*chosen, arguments[2]);
  }
}

} // namespace
} // namespace stagecraft::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  stagecraft::fuzz::choose(count, *arguments);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    stagecraft::fuzz::chosen->read({reinterpret_cast<const char*>(data), size});
  } catch (const stagecraft::InputError&) { // refused, as it should be
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most); // libFuzzer's own

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 2 == 0) {
    return LLVMFuzzerMutate(data, size, most);
  }
  const std::string text = stagecraft::fuzz::mutated({reinterpret_cast<const char*>(data), size}, random);
  const std::size_t kept = std::min(text.size(), most);
  std::copy_n(text.begin(), kept, data);
  return kept;
}
