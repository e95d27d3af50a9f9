// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/megatron_arguments.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "sim/base/edit_distance.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/names_without_effect.hpp"
#include "sim/workload/config/megatron/shell_arithmetic.hpp"
#include "sim/workload/config/megatron/unheeded_arguments.hpp"

namespace stagecraft {
namespace {

// Splits a shell script into words: blanks separate them, quotes and $((…)) hold them together, # begins a comment, and
// a backslash continues a line. The parentheses of an array, ARGS=( … ), are dropped. What a quotation holds together
// is parted again if arguments are in it, as a shell does where "--fp8-format hybrid" of an array, or ARGS="--bf16 …",
// is used.
class Words {
public:
  Words(const std::string& text, const std::string& file) : text_(text), at_{file, 1, 1} {}

  std::vector<ShellWord> read() {
    while (next_ < text_.size()) {
      const char c = text_[next_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || (c == '\\' && is_line_end(next_ + 1))) {
        finish();
        step();
      } else if (c == '#' && !open_) {
        while (next_ < text_.size() && text_[next_] != '\n') {
          step();
        }
      } else if (c == '\'' || c == '"') {
        quoted(c);
      } else if (const auto length = arithmetic_here()) {
        for (std::size_t i = 0; i < *length; ++i) {
          put(text_[next_]);
          step();
        }
      } else if (c == '(' && open_ && word_.text.ends_with('=')) {
        open_ = false;
        step();
      } else {
        put(c);
        step();
      }
    }
    finish();
    return std::move(words_);
  }

private:
  // The length of an expression that begins here.
  std::optional<std::size_t> arithmetic_here() const {
    const std::string_view rest = std::string_view(text_).substr(next_);
    return begins_arithmetic(rest) ? arithmetic_length(rest) : std::nullopt;
  }

  bool is_line_end(std::size_t at) const { return at >= text_.size() || text_[at] == '\n' || text_[at] == '\r'; }

  void step() {
    const bool line = text_[next_++] == '\n';
    at_.line += line ? 1 : 0;
    at_.column = line ? 1 : at_.column + 1;
  }

  void put(char c) {
    if (!open_) {
      word_ = {"", at_};
      open_ = true;
    }
    word_.text += c;
  }

  void quoted(char quote) {
    const Where start = at_;
    if (!open_) {
      word_ = {"", {at_.file, at_.line, at_.column + 1}};
      open_ = true;
    }
    step();
    for (; next_ < text_.size() && text_[next_] != quote; step()) {
      word_.text += text_[next_];
    }
    if (next_ == text_.size()) {
      throw InputError(start, "a quotation without its end");
    }
    step();
  }

  void finish() {
    if (open_ && word_.text.find('(') == std::string::npos && word_.text.ends_with(')')) {
      word_.text.pop_back();
    }
    if (open_ && !word_.text.empty()) {
      const std::size_t begin = arguments_in(word_.text);
      if (begin == std::string::npos) {
        words_.push_back(std::move(word_));
      } else {
        part(word_, begin);
      }
    }
    open_ = false;
  }

  static constexpr std::string_view kBlanks = " \t\r\n\\"; // a backslash continues a line of a quotation, too

  // Where the first argument stands, a word of a text from `from` on; npos where there is none.
  static std::size_t first_argument(std::string_view text, std::size_t from) {
    for (std::size_t at = text.find("--", from); at != std::string_view::npos; at = text.find("--", at + 1)) {
      if (at == from || kBlanks.find(text[at - 1]) != std::string_view::npos) {
        return at;
      }
    }
    return std::string::npos;
  }

  // Whether nothing but other variables' values stands there, "$ARGS ".
  static bool are_references(std::string_view head) {
    std::size_t at = head.find_first_not_of(kBlanks);
    while (at != std::string_view::npos && head[at] == '$') {
      at = std::min(head.find_first_of(kBlanks, at), head.size());
      at = head.find_first_not_of(kBlanks, at);
    }
    return at == std::string_view::npos;
  }

  // Where the arguments begin that a quotation of several words holds: behind NAME= whatever stands before them, behind
  // the program that takes them ("python pretrain_gpt.py --bf16"), or behind other variables' values; npos where it
  // holds none.
  static std::size_t arguments_in(std::string_view text) {
    const std::size_t equals = text.find('=');
    const bool assigns = equals != 0 && equals < text.find_first_of(" \t\n-$");
    const std::size_t from = assigns ? equals + 1 : 0;
    const bool several = text.find_first_of(kBlanks, from) != std::string_view::npos;
    const std::size_t begin = several ? first_argument(text, from) : std::string::npos;
    if (begin == std::string::npos) {
      return begin;
    }
    const std::string_view head = text.substr(from, begin - from);
    return assigns || are_references(head) || head.find(".py") != std::string_view::npos ? begin : std::string::npos;
  }

  // Adds the words of a quotation from `begin` on, each with its place.
  void part(const ShellWord& whole, std::size_t begin) {
    Where where = whole.where;
    ShellWord word;
    for (std::size_t at = 0; at <= whole.text.size(); ++at) {
      const bool blank = at == whole.text.size() || kBlanks.find(whole.text[at]) != std::string_view::npos;
      if (blank && !word.text.empty()) {
        words_.push_back(std::exchange(word, {}));
      } else if (!blank && at >= begin) {
        word.where = word.text.empty() ? where : word.where;
        word.text += whole.text[at];
      }
      const bool line = at < whole.text.size() && whole.text[at] == '\n';
      where.line += line ? 1 : 0;
      where.column = line ? 1 : where.column + 1;
    }
  }

  const std::string& text_;
  std::size_t next_ = 0;
  Where at_;
  ShellWord word_;
  bool open_ = false;
  std::vector<ShellWord> words_;
};

constexpr std::array kFlags = {
    MegatronFlag{"num-layers", true},
    MegatronFlag{"mtp-num-layers", true},
    MegatronFlag{"tensor-model-parallel-size", true},
    MegatronFlag{"pipeline-model-parallel-size", true},
    MegatronFlag{"pipeline-model-parallel-layout", true},
    MegatronFlag{"num-layers-per-virtual-pipeline-stage", true},
    MegatronFlag{"num-virtual-stages-per-pipeline-rank", true},
    MegatronFlag{"decoder-first-pipeline-num-layers", true},
    MegatronFlag{"decoder-last-pipeline-num-layers", true},
    MegatronFlag{"account-for-embedding-in-pipeline-split", false},
    MegatronFlag{"account-for-loss-in-pipeline-split", false},
    MegatronFlag{"sequence-parallel", false},
    MegatronFlag{"tp-comm-overlap", false},
    MegatronFlag{"context-parallel-size", true},
    MegatronFlag{"expert-model-parallel-size", true},
    MegatronFlag{"expert-tensor-parallel-size", true},
    MegatronFlag{"data-parallel-size", true},
    MegatronFlag{"micro-batch-size", true},
    MegatronFlag{"global-batch-size", true},
    MegatronFlag{"recompute-granularity", true},
    MegatronFlag{"recompute-method", true},
    MegatronFlag{"recompute-num-layers", true},
    MegatronFlag{"recompute-modules", true, true},
    MegatronFlag{"recompute-activations", false},
    MegatronFlag{"checkpoint-activations", false}, // until 2022: all layers, one after another
    MegatronFlag{"cuda-graph-impl", true},
    MegatronFlag{"cuda-graph-modules", true, true},
    MegatronFlag{"cuda-graph-scope", true, true},
    MegatronFlag{"enable-cuda-graph", false},
    MegatronFlag{"external-cuda-graph", false},
    MegatronFlag{"clip-grad", true},
    MegatronFlag{"fp8-format", true},
    MegatronFlag{"fp8-recipe", true},
    MegatronFlag{"fp4-format", true},
    MegatronFlag{"fp4-recipe", true},
    MegatronFlag{"activation-func-fp8-input-store", false},
    MegatronFlag{"fp8-param-gather", false},
    MegatronFlag{"nproc-per-node", true},
    MegatronFlag{"nnodes", true},
    MegatronFlag{"seq-length", true},
    MegatronFlag{"optimizer", true},
    MegatronFlag{"sgd-momentum", true},
    MegatronFlag{"fp16", false},
    MegatronFlag{"bf16", false},
    MegatronFlag{"grad-reduce-in-bf16", false},
    MegatronFlag{"accumulate-allreduce-grads-in-fp32", false},
    MegatronFlag{"use-distributed-optimizer", false},
    MegatronFlag{"num-distributed-optimizer-instances", true},
    MegatronFlag{"use-megatron-fsdp", false},
    MegatronFlag{"use-custom-fsdp", false},
    MegatronFlag{"use-torch-fsdp2", false},
    MegatronFlag{"data-parallel-sharding-strategy", true},
    MegatronFlag{"overlap-grad-reduce", false},
    MegatronFlag{"overlap-param-gather", false},
    MegatronFlag{"ddp-bucket-size", true},
    MegatronFlag{"use-tp-pp-dp-mapping", false},
    MegatronFlag{"overlap-moe-expert-parallel-comm", false},
    MegatronFlag{"delay-wgrad-compute", false},
    MegatronFlag{"defer-embedding-wgrad-compute", false},
    MegatronFlag{"no-overlap-p2p-communication", false},
    MegatronFlag{"no-scatter-gather-tensors-in-pipeline", false},
    MegatronFlag{"wgrad-deferral-limit", true},
    MegatronFlag{"moe-deepep-num-sms", true},
    MegatronFlag{"moe-hybridep-num-sms", true},
    MegatronFlag{"no-gradient-accumulation-fusion", false},
    MegatronFlag{"optimizer-cpu-offload", false},
    MegatronFlag{"optimizer-offload-fraction", true},
    MegatronFlag{"attention-backend", true},
    MegatronFlag{"transformer-impl", true},
    MegatronFlag{"main-grads-dtype", true},
    MegatronFlag{"main-params-dtype", true},
    MegatronFlag{"use-precision-aware-optimizer", false},
    MegatronFlag{"enable-experimental", false},
    MegatronFlag{"no-rope-fusion", false},
    MegatronFlag{"exp-avg-dtype", true},
    MegatronFlag{"exp-avg-sq-dtype", true},
    MegatronFlag{"moe-token-dispatcher-type", true},
    MegatronFlag{"moe-expert-capacity-factor", true},
    MegatronFlag{"moe-pad-expert-input-to-capacity", false},
    MegatronFlag{"moe-enable-deepep", false}, // the only backend that there was
    MegatronFlag{"moe-flex-dispatcher-backend", true},
    MegatronFlag{"microbatch-group-size-per-virtual-pipeline-stage", true},
    MegatronFlag{"cp-comm-type", true},
    MegatronFlag{"hierarchical-context-parallel-sizes", true},
    MegatronFlag{"hidden-size", true},
    MegatronFlag{"ffn-hidden-size", true},
    MegatronFlag{"num-attention-heads", true},
    MegatronFlag{"num-query-groups", true},
    MegatronFlag{"kv-channels", true},
    MegatronFlag{"num-experts", true},
    MegatronFlag{"moe-router-topk", true},
    MegatronFlag{"moe-ffn-hidden-size", true},
    MegatronFlag{"vocab-size", true},
};

// What Megatron-LM called an argument before, or Megatron-DeepSpeed does.
struct OtherName {
  std::string_view name, today;
};
constexpr std::array kOtherNames = {
    OtherName{"model-parallel-size", "tensor-model-parallel-size"},
    OtherName{"moe-expert-parallel-size", "expert-model-parallel-size"},
    OtherName{"checkpoint-num-layers", "recompute-num-layers"},
    OtherName{"activations-checkpoint-method", "recompute-method"},
    OtherName{"activations-checkpoint-granularity", "recompute-granularity"},
    OtherName{"activations-checkpoint-num-layers", "recompute-num-layers"},
};

std::string name_of_today(const std::string& name) {
  const auto found =
      std::find_if(kOtherNames.begin(), kOtherNames.end(), [&](const OtherName& one) { return one.name == name; });
  return found != kOtherNames.end() ? std::string(found->today) : name;
}

// Real arguments, of Megatron-LM or of launchers, whose names are as near to one above as a misspelling of it.
constexpr std::array<std::string_view, 6> kNearOthers = {"fp4-param", "vocab-file", "nodes",
                                                         "node",      "nnode",      "fp8-param"};

// Arguments that place layers, of which a plan's note says what they mean, and sizes of the model and of the job.
constexpr std::array<std::string_view, 42> kOfPlans = {"use-tp-pp-dp-mapping",
                                                       "num-layers",
                                                       "mtp-num-layers",
                                                       "tensor-model-parallel-size",
                                                       "pipeline-model-parallel-size",
                                                       "pipeline-model-parallel-layout",
                                                       "num-layers-per-virtual-pipeline-stage",
                                                       "num-virtual-stages-per-pipeline-rank",
                                                       "decoder-first-pipeline-num-layers",
                                                       "decoder-last-pipeline-num-layers",
                                                       "account-for-embedding-in-pipeline-split",
                                                       "account-for-loss-in-pipeline-split",
                                                       "sequence-parallel",
                                                       "context-parallel-size",
                                                       "expert-model-parallel-size",
                                                       "expert-tensor-parallel-size",
                                                       "data-parallel-size",
                                                       "micro-batch-size",
                                                       "global-batch-size",
                                                       "recompute-granularity",
                                                       "recompute-method",
                                                       "recompute-num-layers",
                                                       "recompute-modules",
                                                       "recompute-activations",
                                                       "checkpoint-activations",
                                                       "clip-grad",
                                                       "fp8-format",
                                                       "fp8-recipe",
                                                       "fp4-format",
                                                       "fp4-recipe",
                                                       "nproc-per-node",
                                                       "nnodes",
                                                       "hidden-size",
                                                       "ffn-hidden-size",
                                                       "num-attention-heads",
                                                       "num-query-groups",
                                                       "kv-channels",
                                                       "num-experts",
                                                       "moe-router-topk",
                                                       "moe-ffn-hidden-size",
                                                       "seq-length",
                                                       "vocab-size"};

// "--num_layers=24" → "num-layers"; "" for a word that is no flag.
std::string flag_name(const std::string& word) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (word.size() < 3 || !word.starts_with("--") || !is_letter(word[2])) {
    return "";
  }
  std::string name = word.substr(2, word.find('=') - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Most of the many arguments do not change a plan. An unknown one that looks as if it placed layers must not be
// ignored.
bool places_layers(const std::string& name) {
  return name.find("pipeline-model") != std::string::npos || name.find("virtual") != std::string::npos ||
         name.find("pipeline-num") != std::string::npos || name.find("pipeline-stage") != std::string::npos ||
         name.find("pipeline-split") != std::string::npos || name.find("parallel-size") != std::string::npos ||
         name == "num-layer" || name == "encoder-num-layers" || name == "decoder-num-layers";
}

// The argument that the name of an unknown one misspells, or "".
std::string misspelt_flag(const std::string& name) {
  std::vector<std::string> known = names_of(kFlags);
  for (const auto names :
       {unheeded_megatron_flags(), megatron_dimensions(), std::span<const std::string_view>(kNearOthers)}) {
    known.insert(known.end(), names.begin(), names.end());
  }
  return misspelt(name, known);
}

// As errors name them: those that an unknown one may mean.
std::vector<std::string> written_flags() {
  std::vector<std::string> names;
  for (const MegatronFlag& flag : kFlags) {
    if (places_layers(std::string(flag.name))) {
      names.push_back("--" + std::string(flag.name));
    }
  }
  return names;
}

} // namespace

const MegatronFlag* find_megatron_flag(std::string_view name) {
  const auto found =
      std::find_if(kFlags.begin(), kFlags.end(), [&](const MegatronFlag& flag) { return flag.name == name; });
  return found == kFlags.end() ? nullptr : &*found;
}

std::vector<std::string> megatron_flags() { return names_of(kFlags); }

namespace {

// An argument without effect is not taken for a misspelt one.
void refuse_misspelt(const std::string& name, const Where& where) {
  if (is_megatron_name_without_effect(name)) {
    return;
  }
  if (const std::string meant = misspelt_flag(name); !meant.empty()) {
    throw InputError(where, "unknown argument '--" + excerpt(name) + "'; did you mean '--" + meant + "'?");
  }
  if (places_layers(name)) {
    throw InputError(where, unknown_name("argument", "--" + name, written_flags()));
  }
}

// What a plan's note says of an argument that no plan can say; "": nothing, since a plan says it or nothing depends on
// it.
std::string line_beside_plans(const std::string& name) {
  if (find_megatron_flag(name) == nullptr) {
    return megatron_line(name);
  }
  const bool is_of_plans = std::find(kOfPlans.begin(), kOfPlans.end(), name) != kOfPlans.end();
  return is_of_plans ? "" : "--" + name;
}

} // namespace

MegatronArguments::MegatronArguments(const std::string& text, const std::string& file) : whole_{file, 1, 1} {
  const std::vector<ShellWord> words = Words(text, file).read();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = name_of_today(flag_name(words[i].text));
    if (name.empty()) {
      remember_variable(words[i]);
      continue;
    }
    if (const MegatronFlag* flag = find_megatron_flag(name)) {
      add(*flag, words, i);
    } else {
      refuse_misspelt(name, words[i].where);
      others_.insert(name);
    }
    if (const std::string line = line_beside_plans(name);
        !line.empty() && std::find(unheeded_.begin(), unheeded_.end(), line) == unheeded_.end()) {
      unheeded_.push_back(line);
    }
  }
}

MegatronArguments::MegatronArguments(const std::vector<MegatronSetting>& settings, int world, Where whole,
                                     MegatronNames names)
    : whole_(std::move(whole)), world_(world), names_(names) {
  for (const MegatronSetting& setting : settings) {
    const auto [known, is_first] = values_.emplace(setting.name, setting);
    if (!is_first) {
      throw InputError(setting.value.where, "'" + excerpt(setting.written) + "' and '" +
                                                excerpt(known->second.written) +
                                                "' say the same; allowed: one of them");
    }
  }
}

std::string MegatronArguments::text(std::string_view name) const {
  if (!has(name)) {
    return "";
  }
  ShellWord value = values_.at(std::string(name)).value;
  resolve(value);
  return value.text;
}

std::vector<std::string> MegatronArguments::words(std::string_view name) const {
  const std::string given = text(name);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < given.size();) {
    const std::size_t end = std::min(given.find_first_of(" /,", begin), given.size());
    if (end > begin) {
      words.push_back(given.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return words;
}

int MegatronArguments::integer(std::string_view name, int low, int high, int otherwise) const {
  return has(name) ? parse_integer(text(name), low, high, where(name)) : otherwise;
}

double MegatronArguments::number(std::string_view name, double otherwise) const {
  return has(name) ? parse_number(text(name), where(name)) : otherwise;
}

std::string MegatronArguments::written(std::string_view name) const {
  if (has(name)) {
    return values_.at(std::string(name)).written;
  }
  std::string field(name);
  std::replace(field.begin(), field.end(), '-', '_');
  return names_ == MegatronNames::fields ? field : "--" + std::string(name);
}

// What is only a default, as 1 in ${NNODES:-1}, is for the environment to say.
int MegatronArguments::world() const {
  bool assumed = false;
  const auto count = [&](ShellWord value, int most) {
    resolve(value, {}, &assumed, true);
    return parse_integer(value.text, 1, most, value.where);
  };
  int world = world_;
  if (const auto found = variables_.find("WORLD_SIZE"); found != variables_.end()) {
    world = count(found->second, kMostMegatronRanks);
  } else if (has("nproc-per-node")) {
    constexpr int kMost = 1024;
    world = count(values_.at("nproc-per-node").value, kMost) *
            (has("nnodes") ? count(values_.at("nnodes").value, kMost) : 1);
  }
  return assumed ? 0 : world;
}

void MegatronArguments::remember_variable(const ShellWord& word) {
  const std::size_t equals = word.text.find('=');
  if (equals != std::string::npos && equals > 0 &&
      word.text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == equals) {
    variables_[word.text.substr(0, equals)] = {word.text.substr(equals + 1), word.where};
  }
}

void MegatronArguments::add(const MegatronFlag& flag, const std::vector<ShellWord>& words, std::size_t i) {
  ShellWord value = words[i];
  const std::size_t equals = value.text.find('=');
  if (flag.valued && equals != std::string::npos) {
    value.text.erase(0, equals + 1);
    value.where.column += static_cast<int>(equals) + 1;
  } else if (flag.valued) {
    if (i + 1 == words.size() || !flag_name(words[i + 1].text).empty()) {
      throw InputError(value.where, "'--" + std::string(flag.name) + "' has no value");
    }
    value = words[i + 1];
    for (std::size_t more = i + 2; flag.several && more < words.size(); ++more) {
      if (words[more].text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos) {
        break;
      }
      value.text += " " + words[more].text;
    }
  }
  MegatronSetting setting{std::string(flag.name), std::move(value), "--" + flag_name(words[i].text)};
  const auto [known, is_first] = values_.emplace(flag.name, setting);
  if (!is_first && known->second.value.text != setting.value.text && flag.valued) { // a switch is on, however often
    throw InputError(words[i].where, "'--" + std::string(flag.name) + "' is given twice, " +
                                         excerpt(known->second.value.text) + " and " + excerpt(setting.value.text) +
                                         "; allowed: one value");
  }
}

namespace {

/// "$NAME", "${NAME}" or "${NAME:-OTHERWISE}".
struct Reference {
  std::string name;
  std::optional<std::string> otherwise; ///< where the variable is not set
};

Reference reference_in(const std::string& text) {
  if (!text.starts_with("${") || !text.ends_with('}')) {
    return {text.substr(1), {}};
  }
  const std::string inside = text.substr(2, text.size() - 3);
  for (const std::string_view sign : {":-", ":=", "-", "="}) {
    if (const std::size_t at = inside.find(sign); at != std::string::npos) {
      return {inside.substr(0, at), inside.substr(at + sign.size())};
    }
  }
  return {inside, {}};
}

} // namespace

// A reference becomes the variable's value, whose own reference is followed too, and an expression its value; what the
// file does not set, or sets by itself, is as the reference says otherwise.
void MegatronArguments::resolve(ShellWord& value, std::set<std::string> followed, bool* assumed, bool outside) const {
  while (value.text.starts_with('$')) {
    if (begins_arithmetic(value.text)) {
      return compute(value, followed, assumed);
    }
    const Reference reference = reference_in(value.text);
    const auto found = variables_.find(reference.name);
    const bool again = !followed.insert(reference.name).second;
    if (reference.otherwise && (found == variables_.end() || found->second.text.empty() || again)) {
      value.text = *reference.otherwise;
      if (assumed != nullptr) {
        *assumed = true;
      }
    } else if (found == variables_.end() && outside) {
      *assumed = true; // it comes from the environment
      value.text = "1";
    } else if (found == variables_.end()) {
      throw InputError(value.where, "the variable '" + excerpt(value.text) + "' is not set in this file; " +
                                        "allowed: a value, or NAME=value before it");
    } else if (again) {
      throw InputError(found->second.where,
                       "the variable '" + excerpt(reference.name) + "' refers to itself; allowed: a value");
    } else {
      value.text = found->second.text;
    }
  }
}

void MegatronArguments::compute(ShellWord& value, const std::set<std::string>& followed, bool* assumed) const {
  constexpr std::size_t kMostFollowed = 200;
  if (followed.size() > kMostFollowed) {
    throw InputError(value.where,
                     "more than " + std::to_string(kMostFollowed) + " variables refer to one another; allowed: fewer");
  }
  const std::string whole = value.text;
  const std::optional<long long> number =
      shell_arithmetic(std::string_view(whole).substr(3, whole.size() - 5), [&](const std::string& name) {
        auto known = numbers_.find(name); // each is found once, however often expressions refer to it
        if (known == numbers_.end()) {
          ShellWord variable{"$" + name, value.where};
          Number found;
          resolve(variable, followed, &found.assumed);
          found.value = parse_integer(variable.text, 0, kMostMegatronRanks, variable.where);
          known = numbers_.emplace(name, found).first;
        }
        if (assumed != nullptr) {
          *assumed = *assumed || known->second.assumed;
        }
        return std::optional<long long>(known->second.value);
      });
  if (!number) {
    throw InputError(value.where, "'" + excerpt(whole) + "' is not understood; allowed: whole numbers and variables, " +
                                      "with + - * / % and brackets");
  }
  value.text = std::to_string(*number);
}

} // namespace stagecraft
