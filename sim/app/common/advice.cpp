// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/advice.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <regex>

#include "sim/app/common/kinds_of_file.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/command.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/node_shorthand.hpp"

namespace stagecraft {
namespace {

bool is_flag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// "--set" of "--set=KEY=VALUE".
std::string flag_of(const std::string& word) { return word.substr(0, word.find('=')); }

bool gives(const Words& words, std::string_view flag) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return flag_of(word) == flag; });
}

std::string command_of(const Words& words) { return words.size() > 1 && !is_flag(words[1]) ? words[1] : std::string(); }

// The first word behind the command that is neither a flag nor, as it may be, a flag's value; "" where there is none.
std::string first_argument(const Words& words) {
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (!is_flag(words[i]) && (i == 2 || !is_flag(words[i - 1]))) {
      return words[i];
    }
  }
  return "";
}

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

// The call with all that it lacks; nothing where it lacks nothing.
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

// What is said where the command's first argument is of a kind that other commands take.
std::optional<Advice> wrong_kind(const Words& words) {
  constexpr std::array kTakeInputs = {"compare", "plan",  "replay", "explain", "execute", "train", "show",    "check",
                                      "sweep",   "judge", "adapt",  "report",  "points",  "merge", "validate"};
  const std::string command = command_of(words);
  const std::string argument = first_argument(words);
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

// Flags of other programs, and what says the same here; with "=", the flag's value follows at once.
struct ElsewhereFlag {
  std::string_view flag, here;
};
constexpr ElsewhereFlag kElsewhere[] = {
    {"--batch", "--set training.global_batch="},
    {"--batch-size", "--set training.global_batch="},
    {"--global-batch", "--set training.global_batch="},
    {"--global-batch-size", "--set training.global_batch="},
    {"--gbs", "--set training.global_batch="},
    {"--micro-batch-size", "--set training.micro_batch_size="},
    {"--mbs", "--set training.micro_batch_size="},
    {"--precision", "--set training.precision="},
    {"--dtype", "--set training.precision="},
    {"--optimizer", "--set training.optimizer="},
    {"--framework", "--set training.framework="},
    {"--recompute", "--set training.recompute="},
    {"--tp", "--set training.parallel.tensor="},
    {"--tensor-parallel", "--set training.parallel.tensor="},
    {"--tensor-model-parallel-size", "--set training.parallel.tensor="},
    {"--pp", "--set training.parallel.pipeline="},
    {"--pipeline-parallel", "--set training.parallel.pipeline="},
    {"--pipeline-model-parallel-size", "--set training.parallel.pipeline="},
    {"--dp", "--set training.parallel.data="},
    {"--data-parallel", "--set training.parallel.data="},
    {"--zero", "--set training.parallel.zero="},
    {"--cluster", "--platform"},
    {"--hardware", "--platform"},
    {"--seq-length", "--seq"},
    {"--seq-len", "--seq"},
    {"--sequence-length", "--seq"},
    {"--sequence", "--seq"},
    {"--context-length", "--seq"},
    {"--max-seq-len", "--seq"},
    {"--cost", "--price"},
    {"--rate", "--price"},
    {"--config", "--set training.config="},
    {"--out", "-o"},
    {"--json", "--format json"},
    {"--csv", "--format csv"},
    {"--markdown", "--format md"},
    {"--html", "--format html"},
    {"--model", ""},
    {"--study", ""},
};

// The call with `here` in place of the flag at `at`.
Words with_flag(Words words, std::size_t at, std::string_view here) {
  const std::size_t equals = words[at].find('=');
  if (equals != std::string::npos) { // "--batch=64" as "--batch 64"
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words[at].substr(equals + 1));
  }
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  const std::size_t blank = here.find(' ');
  std::string last(here.substr(blank == std::string_view::npos ? 0 : blank + 1));
  if (here.ends_with('=') && at < words.size()) {
    words[at].insert(0, last);
    last.clear();
  }
  if (!last.empty()) {
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), last);
  }
  if (blank != std::string_view::npos) {
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), std::string(here.substr(0, blank)));
  }
  return words;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
}

// The call with so many devices as `--gpus N` says, on nodes of the platform that it names, or of eight H100.
std::optional<Words> with_devices(const Words& words, std::size_t at, const std::string& flag) {
  constexpr std::array kFlags = {"--gpus", "--num-gpus", "--ngpus", "--n-gpus", "--gpu", "--world-size"};
  constexpr int kNode = 8, kMost = 100'000;
  if (at >= words.size() || std::find(kFlags.begin(), kFlags.end(), flag) == kFlags.end()) {
    return std::nullopt;
  }
  Words better = words;
  const std::size_t equals = words[at].find('=');
  const bool apart = equals == std::string::npos;
  const std::string value = !apart ? words[at].substr(equals + 1) : at + 1 < words.size() ? words[at + 1] : "";
  const int count = is_number(value) ? std::atoi(value.substr(0, 7).c_str()) : 0;
  if (count < 1 || count > kMost) {
    return std::nullopt;
  }
  const auto from = better.begin() + static_cast<std::ptrdiff_t>(at);
  better.erase(from, from + (apart ? 2 : 1));
  const auto platform = std::find(better.begin(), better.end(), "--platform");
  const bool named = platform != better.end() && platform + 1 != better.end();
  const std::string node = named ? *(platform + 1) : "dgx-h100";
  const std::string nodes = count <= kNode ? node : std::to_string((count + kNode - 1) / kNode) + " x " + node;
  if (named) {
    *(platform + 1) = nodes;
  } else {
    better.insert(better.end(), {"--platform", nodes});
  }
  return completed(better).value_or(better);
}

// What other programs call a command, and what says the same here.
struct ElsewhereCommand {
  std::string_view name, here;
};
constexpr ElsewhereCommand kCommandsElsewhere[] = {
    {"run", "compare"},     {"simulate", "compare"}, {"rank", "compare"},    {"optimize", "compare"},
    {"info", "show"},       {"describe", "show"},    {"view", "report"},     {"plot", "report"},
    {"ls", "list"},         {"models", "list"},      {"workloads", "list"},  {"platforms", "list"},
    {"strategies", "list"}, {"schedules", "list"},   {"devices", "list"},    {"verify", "check"},
    {"results", "points"},  {"estimate", "compare"}, {"predict", "compare"},
};

} // namespace

std::string did_you_mean(const Words& words) {
  return "did you mean: " + to_text(Command{.words = words, .folder = {}}) + "\n";
}

namespace {

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

UnknownFlag unknown_flag(const Words& words, const std::string& flag, const std::vector<std::string>& known) {
  const std::string name = flag_of(flag);
  const auto at = static_cast<std::size_t>(std::find(words.begin(), words.end(), flag) - words.begin());
  const auto elsewhere = std::find_if(std::begin(kElsewhere), std::end(kElsewhere),
                                      [&](const ElsewhereFlag& one) { return one.flag == name; });
  const bool same_here = std::find(known.begin(), known.end(), "--set") != known.end() ||
                         (elsewhere != std::end(kElsewhere) && !elsewhere->here.starts_with("--set"));
  if (const std::optional<Words> whole = with_devices(words, at, name)) {
    return {"unknown flag '" + excerpt(name) + "'", *whole};
  }
  if (name == "--budget" || name == "--days") {
    return {"unknown flag '" + name +
                "': a comparison is of one cluster. A sweep ranks clusters by what a training costs, " +
                "within a budget (constraints: {budget: 50 kUSD}) or a time (constraints: {training-time: 20 d}); " +
                "reports/which-offer/study.yaml is one to change",
            {words.front(), "sweep", "reports/which-offer/study.yaml", "-o", "offers.sqlite"}};
  }
  if (at < words.size() && elsewhere != std::end(kElsewhere) && same_here) {
    Words better = with_flag(words, at, elsewhere->here);
    if (elsewhere->here == "--price" && at + 1 < better.size() && is_number(better[at + 1])) {
      better[at + 1] += " USD/h";
    }
    return {"unknown flag '" + excerpt(name) + "'", completed(better).value_or(better)};
  }
  std::string close = nearest(name, known);
  const std::string message = unknown_name("flag", name, known);
  if (close.empty() || at >= words.size()) {
    return {message, {}};
  }
  Words better = words;
  better[at].replace(0, name.size(), close);
  return {message, better};
}

std::string unknown_command(const Words& words, const std::vector<std::string>& commands) {
  const std::string& first = words.at(1);
  Words better = words;
  if (std::optional<KnownInput> input = known_input(first)) {
    const bool names_a_model =
        std::find(input->commands.begin(), input->commands.end(), "compare") != input->commands.end();
    std::string text = "'" + excerpt(first, 200) + "' " + input->what + "; a command comes first\n";
    if (words.size() > 2 && names_a_model) {
      better.insert(better.begin() + 1, "compare");
      return "error: " + text + did_you_mean(better);
    }
    return "error: " + text + "what can be done with it:\n" + lines_of(input->calls, words.front());
  }
  const auto elsewhere = std::find_if(std::begin(kCommandsElsewhere), std::end(kCommandsElsewhere),
                                      [&](const ElsewhereCommand& one) { return one.name == first; });
  const bool is_kind = elsewhere != std::end(kCommandsElsewhere) && elsewhere->here == "list" && first != "ls";
  const std::string near =
      elsewhere != std::end(kCommandsElsewhere) ? std::string(elsewhere->here) : nearest(first, commands);
  std::string text = "error: unknown command '" + excerpt(first) + "'; known: " + join(commands) + "\n";
  if (near.empty()) {
    return text + "'" + words.front() + " --help' says what each does\n";
  }
  if (is_kind) {
    better.insert(better.begin() + 1, near);
  } else {
    better[1] = near;
  }
  return text + did_you_mean(better);
}

std::string first_steps(const std::string& program) {
  const std::vector<Call> calls = {
      {{"compare", "gpt2-xl", "--platform", "mixed-v100-p100"}, "which split and schedule of a model is fastest here?"},
      {{"compare", "config.json", "--seq", "4096", "--platform", "2 x dgx-h100"},
       "the same for a model of yours, on two such servers"},
      {{"show", "llama3-8b"}, "what a model is made of, and on which devices it fits"},
      {{"list"}, "what can be named: models, platforms, strategies, …"},
      {{"--help"}, "every command"},
  };
  return "Stagecraft rehearses a training run before you buy the cluster. What to do first:\n\n" +
         lines_of(calls, program);
}

} // namespace stagecraft
