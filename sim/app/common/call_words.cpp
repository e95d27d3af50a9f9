// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/call_words.hpp"

#include <algorithm>

#include "sim/base/system/command.hpp"

namespace stagecraft {
namespace {

// What a command needs beside its first argument: one of these flags, the first of them as here.
struct Need {
  std::vector<std::string_view> commands, flags;
  std::string value;
};

const std::vector<Need>& needs() {
  static const std::vector<Need> kNeeds = {
      {{"compare", "plan", "replay", "explain", "execute", "train"}, {"--platform", "--devices"}, "dgx-h100"},
      {{"plan"}, {"--strategy"}, "optimal"},
      {{"replay", "explain", "execute", "train"}, {"--strategy", "--plan"}, "optimal"},
      {{"train"}, {"--schedule"}, "1f1b"},
  };
  return kNeeds;
}

// Whether the training has degrees of its own, by a framework's configuration or one by one.
bool has_degrees(const Words& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("training.config=") != std::string::npos || word.find("training.parallel") != std::string::npos;
  });
}

// Of the words behind the command that are neither flags nor, as they may be, values of flags the one of that number.
std::string argument_at(const Words& words, int number) {
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (!is_flag(words[i]) && (i == 2 || !is_flag(words[i - 1])) && number-- == 0) {
      return words[i];
    }
  }
  return "";
}

} // namespace

bool is_flag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::string flag_of(const std::string& word) { return word.substr(0, word.find('=')); }

bool gives(const Words& words, std::string_view flag) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return flag_of(word) == flag; });
}

std::string command_of(const Words& words) { return words.size() > 1 && !is_flag(words[1]) ? words[1] : std::string(); }

std::string first_argument(const Words& words) { return argument_at(words, 0); }

std::string input_argument(const Words& words) { return argument_at(words, command_of(words) == "export" ? 1 : 0); }

std::optional<Words> completed(const Words& words) {
  const std::string command = command_of(words);
  Words whole = words;
  for (const Need& need : needs()) {
    const bool needed = std::find(need.commands.begin(), need.commands.end(), command) != need.commands.end();
    const bool given =
        std::any_of(need.flags.begin(), need.flags.end(), [&](std::string_view flag) { return gives(words, flag); });
    if (needed && !given && need.value == "optimal" && has_degrees(words)) {
      whole.insert(whole.end(), {"--strategy", "mesh"}); // the split that the degrees say
    } else if (needed && !given) {
      whole.insert(whole.end(), {std::string(need.flags.front()), need.value});
    }
  }
  return whole.size() > words.size() ? std::optional(whole) : std::nullopt;
}

std::string did_you_mean(const Words& words) {
  return "did you mean: " + to_text(Command{.words = words, .folder = {}}) + "\n";
}

} // namespace stagecraft
