// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/kinds_of_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "sim/app/common/program.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/system/command.hpp"
#include "sim/report/terminal.hpp"
#include "sim/study/keys/inputs.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// The beginning of a file.
struct FileHead {
  std::string suffix, text;
  std::set<std::string> keys; ///< of the whole document, as far as the beginning shows them

  bool has(std::string_view key) const { return keys.count(std::string(key)) > 0; }
};

// The keys of a JSON object's first level. The text may end anywhere.
std::set<std::string> keys_of_json(std::string_view text) {
  std::set<std::string> keys;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      const std::size_t begin = ++at;
      while (at < text.size() && text[at] != '"') {
        at += text[at] == '\\' ? 2 : 1;
      }
      const std::size_t after = text.find_first_not_of(" \t\r\n", std::min(at + 1, text.size()));
      if (depth == 1 && after != std::string_view::npos && text[after] == ':') {
        keys.emplace(text.substr(begin, at - begin));
      }
    } else if (text[at] == '{' || text[at] == '[') {
      ++depth;
    } else if (text[at] == '}' || text[at] == ']') {
      --depth;
    }
  }
  return keys;
}

// The keys of a YAML mapping's first level: words at the beginnings of lines.
std::set<std::string> keys_of_yaml(std::string_view text) {
  std::set<std::string> keys;
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    const std::string_view words = text.substr(line, end - line);
    const std::size_t colon = words.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (colon != std::string_view::npos && colon > 0 && words[colon] == ':') {
      keys.emplace(words.substr(0, colon));
    }
    line = end + 1;
  }
  return keys;
}

FileHead head_of(const fs::path& file) {
  constexpr std::size_t kHead = 1U << 16U;
  FileHead head{.suffix = file.extension().string(), .text = std::string(kHead, '\0'), .keys = {}};
  std::ifstream in(file, std::ios::binary);
  in.read(head.text.data(), kHead);
  head.text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  head.keys = head.suffix == ".json" ? keys_of_json(head.text) : keys_of_yaml(head.text);
  return head;
}

bool is_yaml(const FileHead& file) { return file.suffix == ".yaml" || file.suffix == ".yml"; }
bool is_results(const FileHead& file) { return file.suffix == ".json" && file.has("schema"); }

// In calls, FILE stands for the file and STEM for its name without the suffix.
struct FileKind {
  std::string_view name; ///< by which shipped folders refer to it
  std::string_view what;
  bool (*is_one)(const FileHead& file);
  std::vector<std::string_view> commands; ///< that take such a file first
  std::vector<Call> calls;
};

// Sections of frameworks' files, which no study has, and words that show others of them.
bool is_config(const FileHead& file) {
  const auto says = [&](const char* word) { return file.text.find(word) != std::string::npos; };
  if (file.suffix == ".csv") {
    const std::vector<std::string> header = csv_header(file.text);
    return std::ranges::any_of(header, [](const std::string& name) { return name == "tp_size" || name == "tp"; });
  }
  if (is_yaml(file)) {
    return file.has("per_device_batch_size") || file.has("base_config") || file.has("parallelism") ||
           file.has("mixed_precision") || (file.has("train") && !file.has("training"));
  }
  return file.suffix == ".toml" || says("--tensor-model-parallel-size") || says("--micro-batch-size") ||
         says("TENSOR_MODEL_PARALLEL") || says("export MINIBS=") ||
         (file.suffix == ".json" && (file.has("zero_optimization") || file.has("train_batch_size")));
}

bool is_study(const FileHead& file) {
  return is_yaml(file) && file.has("model") && !file.has("witness") && !is_config(file);
}

std::vector<FileKind> study_kinds() {
  const std::vector<std::string_view> commands = {"compare", "explain", "replay", "show",
                                                  "sweep",   "judge",   "adapt",  "buy"};
  return {
      {"judge",
       "is a study that judges planners",
       [](const FileHead& file) { return is_yaml(file) && file.has("judge"); },
       commands,
       {{{"judge", "FILE"}, "which planner is best, and by how much"}, {{"show", "FILE"}, "what it asks"}}},
      {"adapt",
       "is a study of training over time",
       [](const FileHead& file) { return is_study(file) && file.has("adapt"); },
       commands,
       {{{"adapt", "FILE"}, "train in a world that changes, adapting or not"},
        {{"compare", "FILE"}, "rank its splits and schedules as the world is at first"}}},
      {"buy",
       "is a study of a purchase",
       [](const FileHead& file) { return is_study(file) && file.has("buy"); },
       commands,
       {{{"buy", "FILE"}, "which of its offers to take: days, dollars, how sure"},
        {{"buy", "FILE", "-o", "STEM.html"}, "the same as a page"}}},
      {"sweep",
       "is a study with axes",
       [](const FileHead& file) { return is_study(file) && file.has("sweep"); },
       commands,
       {{{"sweep", "FILE", "-o", "STEM.sqlite"}, "every combination of its axes"},
        {{"compare", "FILE"}, "rank its splits and schedules, without the axes"},
        {{"show", "FILE"}, "what it asks"}}},
      {"study",
       "is a study",
       is_study,
       commands,
       {{{"compare", "FILE"}, "rank its splits and schedules"},
        {{"explain", "FILE"}, "what holds the winner back"},
        {{"replay", "FILE"}, "the winner's timeline"},
        {{"show", "FILE"}, "what it asks"},
        {{"compare", "FILE", "-o", "STEM.html"}, "the same as a page"}}},
  };
}

std::vector<FileKind> model_and_platform_kinds() {
  const std::vector<std::string_view> commands = {"compare", "plan",  "replay", "explain",
                                                  "execute", "train", "show",   "export"};
  return {
      {"platform",
       "is a platform",
       [](const FileHead& file) { return is_yaml(file) && file.has("nodes"); },
       {"show"},
       {{{"show", "FILE"}, "its devices and links"},
        {{"compare", "gpt2-xl", "--platform", "FILE"}, "rank the splits of a model on it"}}},
      {"device",
       "is a device type",
       [](const FileHead& file) { return is_yaml(file) && file.has("vendor"); },
       {"show"},
       {{{"show", "FILE"}, "its rates, memory and price"}, {{"list", "platforms"}, "clusters of such devices"}}},
      {"model",
       "is a model",
       [](const FileHead& file) {
         return (is_yaml(file) && (file.has("layers") || file.has("blocks"))) || file.suffix == ".onnx" ||
                (file.suffix == ".json" && (file.has("model_type") || file.has("architectures")));
       },
       commands,
       {{{"show", "FILE"}, "what it is made of, and on which devices it fits"},
        {{"compare", "FILE", "--platform", "dgx-h100"}, "rank its splits and schedules on a cluster"},
        {{"compare", "FILE", "--platform", "4 x dgx-h100", "--save-study", "study.yaml"},
         "the same on four such servers, and keep the question"},
        {{"replay", "FILE", "--platform", "dgx-h100", "--strategy", "optimal", "--schedule", "1f1b", "--micro-batches",
          "16", "--set", "training={global_batch: 64, precision: bf16, optimizer: adam}"},
         "one run and its timeline"}}},
      {"profile",
       "is a model with measured times",
       [](const FileHead& file) { return file.suffix == ".txt" && file.text.find(" -- ") != std::string::npos; },
       commands,
       {{{"show", "FILE"}, "what it is made of"},
        {{"compare", "FILE", "--devices", "4", "--bandwidth", "12 GB/s"},
         "rank its splits on four devices like the one it was measured on"}}},
      {"problem",
       "is a model that brings its devices",
       [](const FileHead& file) {
         return file.suffix == ".json" && (file.has("maxFPGAs") || file.has("maxMemoryPerDevice"));
       },
       commands,
       {{{"compare", "FILE"}, "rank its splits and schedules"}, {{"show", "FILE"}, "what it is made of"}}},
  };
}

std::vector<FileKind> other_kinds() {
  return {
      {"run",
       "is a run that `execute` carried out",
       [](const FileHead& file) { return is_results(file) && file.has("executed"); },
       {"explain", "report", "validate"},
       {{{"explain", "FILE"}, "what held it back"},
        {{"validate", "FILE"}, "how far off its prediction was"},
        {{"report", "FILE", "-o", "STEM.html"}, "both timelines as a page"}}},
      {"plan",
       "is a plan",
       [](const FileHead& file) {
         return (is_results(file) && file.has("bottleneck_seconds") && !file.has("engine")) ||
                (is_yaml(file) && file.has("stages"));
       },
       {"check", "show", "report"},
       {{{"check", "FILE", "MODEL", "--platform", "dgx-h100"}, "is it valid for this model, on this cluster?"},
        {{"show", "FILE", "MODEL", "--platform", "dgx-h100"}, "its ranks, with their coordinates and devices"},
        {{"compare", "MODEL", "--platform", "dgx-h100", "--plan", "FILE"}, "rank it beside our own splits"},
        {{"replay", "MODEL", "--platform", "dgx-h100", "--plan", "FILE", "--schedule", "1f1b"},
         "one run and its timeline"}}},
      {"results",
       "holds results",
       is_results,
       {"report", "explain", "replay", "check"},
       {{{"report", "FILE", "-o", "STEM.html"}, "show them as a page"},
        {{"report", "FILE", "--figures", "figures"}, "draw their charts as SVG and PDF"},
        {{"explain", "FILE"}, "what holds the best run back"}}},
      {"trace",
       "is a trace of a timeline",
       [](const FileHead& file) { return file.suffix == ".json" && file.has("traceEvents"); },
       {"report"},
       {{{"report", "FILE", "-o", "STEM.html"}, "show it as a page; https://ui.perfetto.dev opens it too"},
        {{"import", "kineto", "FILE", "--device", "h100-sxm-80gb", "-o", "STEM.yaml"},
         "where PyTorch's profiler wrote it: kernels to fit"}}},
      {"points",
       "holds results of a sweep",
       [](const FileHead& file) { return file.text.starts_with("SQLite format 3"); },
       {"points", "merge", "explain", "report"},
       {{{"report", "FILE", "-o", "STEM.html"}, "show them as a page"},
        {{"points", "FILE", "-o", "STEM.csv"}, "write them as CSV"},
        {{"explain", "FILE"}, "what holds the best one back"}}},
      {"config",
       "is a configuration of a training framework",
       is_config,
       {},
       {{{"compare", "MODEL", "--platform", "dgx-h100", "--set", "training.config=FILE"},
         "rank splits and schedules, trained as it says"},
        {{"explain", "MODEL", "--platform", "dgx-h100", "--set", "training.config=FILE", "--strategy", "mesh"},
         "what holds its own split back"}}},
      {"table",
       "is a table",
       [](const FileHead& file) { return file.suffix == ".csv"; },
       {"validate", "check"},
       {{{"validate", "FILE"}, "where it holds measured runs: how far off predictions are"},
        {{"check", "FILE"}, "where it holds a schedule: can it run?"}}},
  };
}

const std::vector<FileKind>& kinds() {
  static const std::vector<FileKind> kKinds = [] {
    std::vector<FileKind> all = study_kinds();
    for (std::vector<FileKind> more : {model_and_platform_kinds(), other_kinds()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return kKinds;
}

KnownInput input_of(const FileKind& kind, const std::string& name) {
  KnownInput input{name, std::string(kind.what), kind.calls, kind.commands};
  const std::string stem = fs::path(name).stem().string();
  for (Call& call : input.calls) {
    for (std::string& word : call.words) {
      for (const auto& [placeholder, text] : {std::pair{std::string_view("FILE"), name}, {"STEM", stem}}) {
        if (const std::size_t at = word.find(placeholder); at != std::string::npos) {
          word.replace(at, placeholder.size(), text);
          break;
        }
      }
    }
  }
  return input;
}

std::optional<KnownInput> known_file(const fs::path& file) {
  const FileHead head = head_of(file);
  for (const FileKind& kind : kinds()) {
    if (kind.is_one(head)) {
      return input_of(kind, file.string());
    }
  }
  return std::nullopt;
}

// The file that a folder is about: its study, else its configuration of a model, else its first file that is known.
std::optional<KnownInput> known_folder(const fs::path& folder) {
  std::vector<fs::path> files = {folder / "study.yaml", folder / "config.json"};
  std::error_code failure;
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, failure)) {
    constexpr std::size_t kMost = 1000;
    if (entry.is_regular_file(failure) && others.size() < kMost) {
      others.push_back(entry.path());
    }
  }
  std::sort(others.begin(), others.end());
  files.insert(files.end(), others.begin(), others.end());
  for (const fs::path& file : files) {
    if (fs::is_regular_file(file, failure)) {
      if (std::optional<KnownInput> input = known_file(file)) {
        input->what = "is a folder, and '" + file.filename().string() + "' in it " + input->what;
        const auto takes_folders = [](std::string_view command) {
          return command == "validate" || command == "report";
        };
        input->commands.erase(
            std::remove_if(input->commands.begin(), input->commands.end(), std::not_fn(takes_folders)),
            input->commands.end());
        return input;
      }
    }
  }
  return std::nullopt;
}

std::optional<KnownInput> known_name(const std::string& name) {
  const Folders folders{".", shipped_folder()};
  for (const auto& [folder, kind] :
       {std::pair{"workloads", "model"}, {"platforms", "platform"}, {"platforms/devices", "device"}}) {
    if (fs::is_regular_file(folders.shipped / folder / (name + ".yaml"))) {
      const auto row = std::find_if(kinds().begin(), kinds().end(),
                                    [&, kind = kind](const FileKind& one) { return one.name == kind; });
      return input_of(*row, name);
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<KnownInput> known_input(const std::string& name) {
  std::error_code failure;
  if (fs::is_regular_file(name, failure)) {
    return known_file(name);
  }
  if (fs::is_directory(name, failure)) {
    return known_folder(name);
  }
  const bool may_be_a_name = !name.empty() && name.find('/') == std::string::npos;
  return may_be_a_name ? known_name(name) : std::nullopt;
}

std::string lines_of(const std::vector<Call>& calls, const std::string& program) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const Call& call : calls) {
    Command command{.words = {program}, .folder = {}};
    command.words.insert(command.words.end(), call.words.begin(), call.words.end());
    lines.push_back("  " + to_text(command));
    width = std::max(width, display_width(lines.back()));
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string gap(width - display_width(lines[i]) + 2, ' ');
    text += lines[i] + (calls[i].purpose.empty() ? "" : gap + "# " + calls[i].purpose) + "\n";
  }
  return text;
}

} // namespace stagecraft
