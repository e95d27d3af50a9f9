// The commands that README.md, reports/README.md and docs/tutorial.md show run as they stand.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

// The arguments of each command in a document, except those that need a file of the reader's or take minutes.
std::vector<std::string> commands_of(const fs::path& document) {
  std::vector<std::string> commands;
  std::istringstream in(read_file(document));
  for (std::string line; std::getline(in, line);) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    for (const std::string program : {"build/release/stagecraft ", "stagecraft "}) {
      if (line.starts_with(program) && line.find("model.onnx") == std::string::npos &&
          line.find("config.json") == std::string::npos && line.find("gpt2-xl-mixed") == std::string::npos) {
        const bool long_study = line.find("resnet50-mixed") != std::string::npos; // two of its strategies will do
        commands.push_back(line.substr(program.size()) +
                           (long_study ? " --set compare.strategies='[uniform, data-parallel]'" : ""));
        break;
      }
    }
  }
  return commands;
}

TEST_CASE("commands that the documents show run as they stand", "[cli][docs]") {
  const Workshop shop;
  shop.link("reports");
  for (const auto& [document, least] :
       {std::pair{"README.md", 8}, {"reports/README.md", 3}, {"docs/tutorial.md", 10}}) {
    const auto commands = commands_of(kRoot / document);
    CHECK(commands.size() >= static_cast<std::size_t>(least));
    for (const std::string& command : commands) {
      INFO(document << ": " << command);
      CHECK(shop.run(command).status == 0);
    }
  }
}

} // namespace
} // namespace stagecraft::test
