// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/unknown_words.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "sim/app/common/kinds_of_file.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

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
