// Writes the cache of the YAML files that come with the program, while it is built: make_yaml_cache CACHE FILE…
// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "sim/base/format/yaml_cache.hpp"
#include "sim/base/system/file.hpp"

int main(int count, char** words) {
  std::vector<std::string> texts;
  for (const char* file : std::span(words, static_cast<std::size_t>(count)).subspan(2)) {
    texts.push_back(stagecraft::read_file(file));
  }
  stagecraft::write_file(words[1], stagecraft::yaml::make_cache(texts));
}
