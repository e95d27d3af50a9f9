// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/advice.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <regex>

#include "sim/app/common/call_words.hpp"
#include "sim/app/common/kinds_of_file.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/command.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/keys/node_shorthand.hpp"

namespace stagecraft {
namespace {

// Where `name` stands in a word, not as a part of a longer name; npos where it does not.
std::size_t find_name(const std::string& word, const std::string& name) {
  const auto in_names = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  for (std::size_t at = word.find(name); at != std::string::npos; at = word.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool negated = at > 0 && word[at - 1] == '-' && (at == 1 || word[at - 2] == '='); // --sort=-COLUMN
    const bool begins =
        at == 0 || negated || !in_names(word[at - 1]) || std::isdigit(static_cast<unsigned char>(word[at - 1])) != 0;
    if (begins && (end == word.size() || !in_names(word[end]))) {
      return at;
    }
  }
  return std::string::npos;
}

// The call with what was meant in place of what was written, where that stands in one word of it.
std::optional<Words> mended(const Words& words, const Correction& correction) {
  Words better = words;
  int changed = 0;
  for (std::size_t i = 1; i < better.size() && !correction.written.empty(); ++i) {
    if (const std::size_t at = find_name(better[i], correction.written); at != std::string::npos) {
      better[i].replace(at, correction.written.size(), correction.meant);
      ++changed;
    }
  }
  return changed == 1 ? std::optional(better) : std::nullopt;
}

// Whether a message blames a place in a file, in which no change of the call helps.
bool blames_a_file(std::string_view message) {
  std::error_code failure;
  return std::filesystem::exists(message.substr(0, std::min(message.find(':'), message.size())), failure);
}

// The call with a file for what it makes, where the message asks for one.
std::optional<Words> with_output(const Words& words, std::string_view message) {
  const bool asks = message.find("where do the results go?") != std::string_view::npos ||
                    message.find("where does the report go?") != std::string_view::npos ||
                    message.find("--output is required") != std::string_view::npos;
  const std::string command = command_of(words);
  const std::string stem = std::filesystem::path(first_argument(words)).stem().string();
  if (!asks || stem.empty() || (command != "sweep" && command != "report" && command != "merge")) {
    return std::nullopt;
  }
  Words whole = words;
  const std::string file = command == "report"  ? stem + ".html"
                           : command == "merge" ? "merged.sqlite"
                                                : stem + ".sqlite";
  whole.insert(whole.end(), {"-o", file});
  return whole;
}

// The call that sets a study's platform, where flags describe another beside it.
std::optional<Words> with_platform_key(const Words& words, std::string_view message) {
  if (message.find("is a study, which names its model and platform") == std::string_view::npos) {
    return std::nullopt;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKeys = {{
      {"--platform", "platform="},
      {"--devices", ""}, // a study has a platform of its own
      {"--bandwidth", ""},
      {"--latency", ""},
      {"--memory", ""},
  }};
  Words call;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto row = std::find_if(kKeys.begin(), kKeys.end(),
                                  [&](const auto& one) { return is_flag(words[i]) && one.first == flag_of(words[i]); });
    if (row == kKeys.end()) {
      call.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    const bool apart = equals == std::string::npos && i + 1 < words.size();
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1) : apart ? words[++i] : "";
    if (!row->second.empty()) {
      call.insert(call.end(), {"--set", std::string(row->second) + value});
    }
  }
  return call;
}

// What is said where several results are given to a command that takes none: a report shows them beside each other.
std::optional<Advice> several_results(const Words& words) {
  Words files;
  for (std::size_t i = 2; i < words.size() && !is_flag(words[i]); ++i) {
    const std::optional<KnownInput> input = known_input(words[i]);
    const bool results = input && input->what.starts_with("holds results");
    if (!results ||
        std::find(input->commands.begin(), input->commands.end(), command_of(words)) != input->commands.end()) {
      return std::nullopt;
    }
    files.push_back(words[i]);
  }
  if (files.size() < 2) {
    return std::nullopt;
  }
  Words report = {"report"};
  report.insert(report.end(), files.begin(), files.end());
  report.insert(report.end(), {"-o", "both.html"});
  return Advice{"these files hold results, which '" + command_of(words) + "' does not take",
                "did you mean:\n" + lines_of({{report, "what differs, side by side"}}, words.front())};
}

// What is said where a study names a file that is not there, as one that was copied to another folder may.
std::optional<Advice> missing_beside_study(const Words& words, std::string_view message) {
  namespace fs = std::filesystem;
  const auto study = std::find_if(words.begin() + 1, words.end(),
                                  [&](const std::string& word) { return message.starts_with(word + ":"); });
  std::error_code failure;
  if (message.find("no such file") == std::string_view::npos || study == words.end() || !fs::exists(*study, failure)) {
    return std::nullopt;
  }
  return Advice{"", "paths in '" + excerpt(*study, 200) + "' are relative to its folder, '" +
                        fs::absolute(*study, failure).parent_path().string() +
                        "', or to where the program is called\n"};
}

// What is said where the command's input is of a kind that other commands take.
std::optional<Advice> wrong_kind(const Words& words) {
  constexpr std::array kTakeInputs = {"compare", "plan",  "replay",   "explain", "execute", "train",
                                      "show",    "check", "sweep",    "judge",   "adapt",   "report",
                                      "points",  "merge", "validate", "export"};
  const std::string command = command_of(words);
  const std::string argument = input_argument(words);
  if (argument.empty() || std::find(kTakeInputs.begin(), kTakeInputs.end(), command) == kTakeInputs.end()) {
    return std::nullopt;
  }
  const std::optional<KnownInput> input = known_input(argument);
  if (!input || std::find(input->commands.begin(), input->commands.end(), command) != input->commands.end()) {
    return std::nullopt;
  }
  std::vector<Call> calls = input->calls;
  std::stable_partition(calls.begin(), calls.end(), [&](const Call& call) { return call.words.front() == command; });
  return Advice{"'" + excerpt(argument, 200) + "' " + input->what + ", which '" + command + "' does not take",
                "did you mean:\n" + lines_of(calls, words.front())};
}

// A number of devices and their type, as a word such as "16xH100" or "h100" names them.
struct NamedDevices {
  int count = 0; ///< 0: no number is given
  std::string type;
};

NamedDevices devices_in(const std::string& word) {
  NamedDevices devices{0, word};
  if (const std::optional<NodeShorthand> many = node_shorthand(word, {"--platform", 0, 0})) {
    devices = {many->count, many->node};
  }
  std::transform(devices.type.begin(), devices.type.end(), devices.type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return devices;
}

// What --platform takes for such devices: nodes that have as many in all come first, of the others the platform alone.
std::vector<std::string> platforms_with(const NamedDevices& devices) {
  const Folders folders{".", shipped_folder()};
  std::vector<std::string> exact, others;
  for (const std::string& name : shipped_names(folders, "platforms")) {
    const yaml::Node document = yaml::load(folders.shipped / "platforms" / (name + ".yaml"));
    const Platform platform = load_platform(document, device_types_in(folders.shipped / "platforms" / "devices"));
    const auto is_one = [&](const DeviceType& type) { return type.name.starts_with(devices.type); };
    if (devices.type.empty() || !std::all_of(platform.types.begin(), platform.types.end(), is_one)) {
      continue;
    }
    const auto size = static_cast<int>(platform.devices.size());
    const bool fits = devices.count > 0 && devices.count % size == 0;
    if (fits && devices.count == size) {
      exact.push_back(name);
    } else if (fits && platform.nodes.size() == 1 && document.find("network") != nullptr) {
      exact.push_back(std::to_string(devices.count / size) + " x " + name);
    } else {
      others.push_back(name);
    }
  }
  exact.insert(exact.end(), others.begin(), others.end());
  return exact;
}

// What is said where --platform names a device type instead.
std::optional<Advice> device_as_platform(const Words& words, std::string_view message) {
  if (message.find("unknown platform '") == std::string_view::npos || correction_in(message)) {
    return std::nullopt;
  }
  const auto flag = std::find(words.begin(), words.end(), "--platform");
  if (flag == words.end() || flag + 1 == words.end()) {
    return std::nullopt;
  }
  const std::string& word = *(flag + 1);
  std::vector<Call> calls;
  for (const std::string& platform : platforms_with(devices_in(word))) {
    constexpr std::size_t kMost = 3;
    if (calls.size() < kMost) {
      Words better = words;
      better[static_cast<std::size_t>(flag + 1 - words.begin())] = platform;
      calls.push_back({{better.begin() + 1, better.end()}, ""});
    }
  }
  return calls.empty()
             ? std::nullopt
             : std::optional(Advice{"no platform is called '" + excerpt(word) + "', but some have such devices",
                                    "did you mean:\n" + lines_of(calls, words.front())});
}

// The call with a key of training below `training`, where it was set at the top.
std::optional<Words> with_training_key(const Words& words, std::string_view message) {
  constexpr std::array kKeys = {"global_batch", "micro_batches", "micro_batch_size", "precision", "optimizer",
                                "recompute",    "framework",     "parallel",         "batch_size"};
  for (std::size_t i = 2; i < words.size() && message.find("(in study)") != std::string_view::npos; ++i) {
    const std::size_t begin = words[i].starts_with("--set=") ? 6 : 0;
    const std::string key = words[i].substr(begin, words[i].find_first_of("=.", begin) - begin);
    const bool is_set = begin > 0 || words[i - 1] == "--set";
    if (is_set && std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end() &&
        message.find("unknown key '" + key + "'") != std::string_view::npos) {
      Words better = words;
      better[i].replace(begin, key.size(), "training." + (key == "batch_size" ? "global_batch" : key));
      return better;
    }
  }
  return std::nullopt;
}

// The call with --seq N, where the length of a sequence was set as a key.
std::optional<Words> with_sequence_flag(const Words& words, std::string_view message) {
  constexpr std::array kKeys = {"seq", "sequence", "seq_len", "seq_length", "sequence_length", "max_seq_len"};
  for (std::size_t i = 2; i < words.size() && message.find("unknown key '") != std::string_view::npos; ++i) {
    const std::size_t begin = words[i].starts_with("--set=") ? 6 : 0;
    const std::size_t equals = words[i].find('=', begin);
    const std::string key = words[i].substr(begin, equals - begin), last = key.substr(key.rfind('.') + 1);
    const bool is_set = begin > 0 || words[i - 1] == "--set";
    const bool above = key == last || key == "training." + last;
    if (is_set && above && equals != std::string::npos && std::find(kKeys.begin(), kKeys.end(), last) != kKeys.end()) {
      Words better = words;
      better[i] = words[i].substr(equals + 1);
      if (begin == 0) {
        better[i - 1] = "--seq";
      } else {
        better.insert(better.begin() + static_cast<std::ptrdiff_t>(i), "--seq");
      }
      return better;
    }
  }
  return std::nullopt;
}

// The call with products in 8 bits, which are no precision here: `training.fp8` says how they are scaled.
std::optional<Words> with_fp8(const Words& words, std::string_view message) {
  static const std::regex kPrecision(R"((training\.precision=)(fp8|float8|e4m3)$)", std::regex::icase);
  for (std::size_t i = 2; i < words.size() && message.find("precision 'fp8'") != std::string_view::npos; ++i) {
    if (std::regex_search(words[i], kPrecision)) {
      Words better = words;
      better[i] = std::regex_replace(words[i], kPrecision, "training.fp8=delayed");
      return better;
    }
  }
  return std::nullopt;
}

// The word behind a flag; `words.size()` where there is none.
std::size_t value_of(const Words& words, std::string_view flag) {
  const auto at = std::find(words.begin(), words.end(), flag);
  return static_cast<std::size_t>(std::min(at + 1, words.end()) - words.begin());
}

// What is said where --platform has a number of nodes in another form than "N x NAME": "2 dgx-h100", "dgx-h100*2".
std::optional<Advice> nodes_as_platform(const Words& words, std::string_view message) {
  const std::size_t at = value_of(words, "--platform");
  if (message.find("unknown platform '") == std::string_view::npos || at == words.size()) {
    return std::nullopt;
  }
  static const std::regex kForms(
      R"(\s*(\d{1,5})\s*[x*]?\s*([A-Za-z][\w.-]*)\s*|\s*([A-Za-z][\w.-]*?)\s*[x*:]\s*(\d{1,5})\s*)", std::regex::icase);
  constexpr std::size_t kLongest = 100;
  std::smatch found;
  if (words[at].size() > kLongest || !std::regex_match(words[at], found, kForms)) {
    return std::nullopt;
  }
  const std::string count = found[1].matched ? found[1] : found[4], name = found[2].matched ? found[2] : found[3];
  const std::vector<std::string> known = shipped_names({".", shipped_folder()}, "platforms");
  const std::string close = nearest(name, known);
  if (close.empty()) {
    return std::nullopt;
  }
  Words better = words;
  better[at] = count + " x " + close;
  return Advice{"no platform is called '" + excerpt(words[at]) + "'; allowed: a name, or N x NAME for N such nodes",
                did_you_mean(better)};
}

// The file of a folder that is called nearly so; "" where none is.
std::string near_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  constexpr std::size_t kMostLookedAt = 1000;
  std::error_code failure;
  std::vector<std::string> beside;
  fs::directory_iterator file(path.has_parent_path() ? path.parent_path() : ".", failure);
  for (; file != fs::directory_iterator() && beside.size() < kMostLookedAt; file.increment(failure)) {
    beside.push_back(file->path().filename().string());
  }
  const std::string close = path.has_extension() ? nearest(path.filename().string(), beside) : "";
  return close.empty() ? "" : (path.parent_path() / close).string();
}

// The call with the file that is there and called nearly as the one that is not.
std::optional<Words> with_near_file(const Words& words, std::string_view message) {
  if (message.find("no such file") == std::string_view::npos) {
    return std::nullopt;
  }
  for (std::size_t i = 2; i < words.size(); ++i) {
    const bool blamed =
        message.find("'" + words[i] + "'") != std::string_view::npos || message.starts_with(words[i] + ":");
    if (const std::string close = blamed && !is_flag(words[i]) ? near_file(words[i]) : ""; !close.empty()) {
      Words better = words;
      better[i] = close;
      return better;
    }
  }
  return std::nullopt;
}

// What is said where a study changes the network of a platform that is one node.
std::optional<Advice> no_network(const Words& words, std::string_view message) {
  const std::size_t at = value_of(words, "--platform");
  if (!message.starts_with("--set platform.network.") ||
      message.find("missing key 'topology' in network") == std::string_view::npos || at == words.size()) {
    return std::nullopt;
  }
  return Advice{"'" + excerpt(words[at]) + "' is one node, without a network to change",
                "its links, below platform.nodes.0.links:\n" + lines_of({{{"show", words[at]}, ""}}, words.front())};
}

// What is said where two platforms are given to one comparison, each by its own flag or both behind one.
std::optional<Advice> two_platforms(const Words& words, std::string_view message) {
  const bool twice = message.starts_with("--platform: ") && message.find("required but received") != std::string::npos;
  const std::size_t first = value_of(words, "--platform");
  if (!twice || command_of(words) != "compare") {
    return std::nullopt;
  }
  const bool sets_batch = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("global_batch") != std::string::npos;
  });
  std::vector<Call> calls;
  Words pair = {"report"};
  for (std::size_t i = first; i < words.size() && calls.size() < 2; ++i) {
    if (words[i - 1] == "--platform") {
      const std::string file = std::string(calls.empty() ? "first" : "second") + ".json";
      Call call{{"compare", first_argument(words), "--platform", words[i], "-o", file}, ""};
      if (!sets_batch) { // or each cluster is asked with one of its own
        call.words.insert(call.words.end() - 2, {"--set", "training.global_batch=256"});
      }
      calls.push_back(std::move(call));
      pair.push_back(file);
    }
  }
  pair.insert(pair.end(), {"-o", "both.html"});
  calls.push_back({pair, "what differs, side by side"});
  calls.push_back({{"sweep", "reports/which-offer/study.yaml", "-o", "offers.sqlite"}, "many offers, ranked by cost"});
  return Advice{"one comparison is of one platform",
                "two of them, and both beside each other:\n" + lines_of(calls, words.front())};
}

Advice likely_advice(const Words& words, std::string_view message) {
  for (const auto& look : {several_results, wrong_kind}) {
    if (std::optional<Advice> advice = look(words)) {
      return *advice;
    }
  }
  if (std::optional<Advice> advice = missing_beside_study(words, message)) {
    return *advice;
  }
  if (const std::optional<Words> better = with_platform_key(words, message)) {
    return {"", did_you_mean(*better)};
  }
  for (const auto& look : {nodes_as_platform, device_as_platform, no_network, two_platforms}) {
    if (std::optional<Advice> advice = look(words, message)) {
      return *advice;
    }
  }
  if (const std::optional<Words> better = with_near_file(words, message)) {
    return {"", did_you_mean(*better)};
  }
  for (const auto& look : {with_sequence_flag, with_fp8}) {
    if (const std::optional<Words> better = look(words, lower_case(message))) {
      return {"", did_you_mean(*better)};
    }
  }
  if (const std::optional<Words> better = with_training_key(words, message)) {
    return {"", did_you_mean(*better)};
  }
  const std::optional<Correction> correction = correction_in(message);
  if (correction && !blames_a_file(message)) {
    const std::optional<Words> better = mended(words, *correction);
    return {"", better ? did_you_mean(*better) : ""};
  }
  if (std::optional<Words> whole = with_output(words, message)) {
    return {"", did_you_mean(*whole)};
  }
  const bool lacks = message.find("missing key 'platform'") != std::string_view::npos ||
                     message.find("give either --strategy or --plan") != std::string_view::npos ||
                     message.find(" is required") != std::string_view::npos;
  if (lacks && !first_argument(words).empty()) {
    if (const std::optional<Words> whole = completed(words)) {
      return {"", did_you_mean(*whole)};
    }
  }
  return {};
}

} // namespace

Advice advice_on(const Words& words, std::string_view message) {
  Advice advice = likely_advice(words, message);
  if (advice.after == did_you_mean(words)) { // it would be refused again
    advice.after.clear();
  }
  return advice;
}

} // namespace stagecraft
