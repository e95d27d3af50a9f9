// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/study/truth_device.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <tuple>
#include <vector>

#include "sim/base/edit_distance.hpp"
#include "sim/base/format/yaml.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

using Words = std::set<std::string>;

bool is_digits(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// "80gb" where the ending is "gb", and not "gb200".
bool is_number_of(std::string_view word, std::string_view ending) {
  return word.ends_with(ending) && is_digits(word.substr(0, word.size() - ending.size()));
}

bool is_size(std::string_view word) { return is_number_of(word, "gb"); }

// Whether a word tells no devices apart: who makes them, what their chips are called, what their memory is made of, how
// many there are, and what they stand in.
bool says_nothing(const std::string& word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"accelerator", "amd",      "ampere",     "blackwell", "card",   "chip",   "cloud",    "core",     "edition",
       "founders",    "geforce",  "generation", "google",    "gpu",    "gpus",   "grace",    "graphics", "hopper",
       "instinct",    "ironwood", "lovelace",   "memory",    "node",   "nvidia", "nvlink",   "nvswitch", "oam",
       "pascal",      "per",      "server",     "superchip", "tensor", "tesla",  "trillium", "turing",   "ubb",
       "volta",       "vram",     "x",          "480gb"}); // the host's memory, by which the driver calls a GH200
  constexpr std::size_t kCount = 3;                        // digits; numbers of models that stand alone have four
  const auto numbered = [&](std::string_view front) {
    return word.starts_with(front) && is_digits(std::string_view(word).substr(front.size()));
  };
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() || (is_digits(word) && word.size() <= kCount) ||
         word.starts_with("hbm") || word.starts_with("gddr") || numbered("nvl") || numbered("gen") || numbered("x");
}

// A word of a name of a device as shipped names have it: "sxm" of the sockets that its generations call SXM2, SXM4 and
// SXM5, "80gb" of "80g". Nothing where it tells no devices apart.
std::string usual_word(const std::string& word) {
  if (says_nothing(word)) {
    return "";
  }
  if (word == "sxm2" || word == "sxm4" || word == "sxm5") {
    return "sxm";
  }
  return is_number_of(word, "g") ? word + "b" : word;
}

// "h100" and "sxm5" of "8xh100sxm5", "rtx" and "4090" of "rtx4090", "rtx", "2080" and "ti" of "rtx2080ti".
void add_parts(std::string word, std::vector<std::string>& to) {
  constexpr std::string_view kTi = "ti";
  if (word.size() > kTi.size() && word.ends_with(kTi) &&
      std::isdigit(static_cast<unsigned char>(word[word.size() - kTi.size() - 1])) != 0) {
    to.emplace_back(kTi);
    word.erase(word.size() - kTi.size());
  }
  const std::size_t letters = word.find_first_not_of("0123456789");
  if (letters > 0 && letters != std::string::npos && word[letters] == 'x') { // so many of them
    word.erase(0, letters + 1);
  }
  const std::size_t socket = word.find("sxm");
  if (socket > 0 && socket != std::string::npos) {
    to.push_back(word.substr(0, socket));
    word.erase(0, socket);
  } else if (word.starts_with("rtx") && is_digits(std::string_view(word).substr(std::string_view("rtx").size()))) {
    to.emplace_back("rtx");
    word.erase(0, std::string_view("rtx").size());
  }
  to.push_back(word);
}

// The words of a name of a device, as "a100", "sxm", "80gb" of "NVIDIA A100-SXM4-80GB" and of "A100 SXM 80 GB".
Words words_of(const std::string& name) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : name + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (!word.empty()) {
      if ((word == "gb" || word == "gib") && !found.empty() && is_digits(found.back())) {
        found.back() += "gb";
      } else {
        add_parts(word, found);
      }
      word.clear();
    }
  }
  Words words;
  std::transform(found.begin(), found.end(), std::inserter(words, words.end()), usual_word);
  words.erase("");
  return words;
}

Words device_names(const fs::path& shipped) {
  std::error_code failure;
  Words names;
  for (const auto& entry : fs::directory_iterator(shipped / "platforms" / "devices", failure)) {
    names.insert(entry.path().stem().string());
  }
  return names;
}

struct NodeOf {
  std::string_view family, node; ///< of a device type, and the platform that is a node of it
};
// The first family that fits.
constexpr std::array kNodes = {
    NodeOf{"a100-sxm", "dgx-a100"},     NodeOf{"h100-sxm", "dgx-h100"},     NodeOf{"h200", "dgx-h200"},
    NodeOf{"h800", "hgx-h800"},         NodeOf{"h20-", "dgx-h100"},         NodeOf{"a800-sxm", "hgx-a800"},
    NodeOf{"b200", "dgx-b200"},         NodeOf{"b300", "dgx-b200"},         NodeOf{"gb200", "gb200-nvl72"},
    NodeOf{"gb300", "gb200-nvl72"},     NodeOf{"mi3", "mi300x-8"},          NodeOf{"v100-sxm3", "dgx-2"},
    NodeOf{"v100-sxm", "nvlink-v100"},  NodeOf{"tpu-v5e", "tpu-v5e-16x16"}, NodeOf{"tpu-v5p", "tpu-v5p-4x4x4"},
    NodeOf{"tpu-v6e", "tpu-v6e-16x16"}, NodeOf{"tpu-v7x", "tpu-v7x-4x4x4"}, NodeOf{"tpu-v4", "tpu-v4-4x4x4"},
};

// What JAX and Google call chips of TPUs beside the names of their generations, as words.
struct TpuName {
  std::string_view name, generation;
};
constexpr std::array kTpuNames = {
    TpuName{"v5 lite", "v5e"}, TpuName{"v5litepod", "v5e"}, TpuName{"trillium", "v6e"},
    TpuName{"v6 lite", "v6e"}, TpuName{"ironwood", "v7x"},  TpuName{"tpu7x", "v7x"},
};

// "tpu" and "v6e" of "TPU v6 lite", its words else.
Words with_tpu_name(Words words, const std::string& text) {
  const auto found = std::find_if(kTpuNames.begin(), kTpuNames.end(),
                                  [&](const TpuName& one) { return text.find(one.name) != std::string::npos; });
  if (found != kTpuNames.end()) {
    for (const char* word : {"v5", "v6", "lite", "v5litepod", "tpu7x"}) {
      words.erase(word);
    }
    words.insert({"tpu", std::string(found->generation)});
  }
  return words;
}

// What a row calls its devices, in words. Those of a chassis of NVIDIA's are in its sockets, of a DGX-2 in SXM3; of
// AMD's modules of two chips a framework sees one, of which a node has eight.
Words wanted_words(const TruthRow& row) {
  constexpr int kChipsOfNode = 8;
  Words wanted = with_tpu_name(words_of(plain_words(row.gpu)), plain_words(row.gpu));
  if (wanted.erase("dgx") + wanted.erase("hgx") > 0) {
    wanted.insert("sxm");
  }
  if (lower_case(row.gpu).find("dgx-2") != std::string::npos) {
    for (const char* word : {"2h", "sxm"}) {
      wanted.erase(word);
    }
    wanted.insert("sxm3");
  }
  if ((wanted.contains("mi250") && !wanted.contains("128gb")) ||
      (wanted.contains("mi250x") && row.devices_per_node >= kChipsOfNode)) {
    wanted.insert("gcd");
  }
  return wanted;
}

bool is_form(const std::string& word) { return word == "sxm" || word == "sxm3" || word == "pcie" || word == "nvl"; }

// The words of the model, as "rtx", "2080" and "ti": all but form factor, memory, power, and who measured it.
Words model_of(const Words& words) {
  constexpr auto kOthers = std::to_array<std::string_view>({"class", "measured", "simumax"});
  Words model;
  std::copy_if(words.begin(), words.end(), std::inserter(model, model.end()), [&](const std::string& word) {
    return !is_form(word) && !is_size(word) && !is_number_of(word, "w") &&
           std::find(kOthers.begin(), kOthers.end(), word) == kOthers.end();
  });
  return model;
}

// Whether both say nothing that the other denies: of those words that tell something, one is the same.
bool agree(const Words& has, const Words& wanted, bool (*tells)(const std::string& word)) {
  const auto told = [&](const Words& words) { return std::any_of(words.begin(), words.end(), tells); };
  return !told(has) || !told(wanted) ||
         std::any_of(has.begin(), has.end(), [&](const auto& word) { return tells(word) && wanted.contains(word); });
}

// Whether the words may mean a shipped type: they name its model, whose series may be left out, or a Quadro of it be
// named, where its number is no other's, as in "4090" and "Quadro RTX A6000", and no other form factor or memory.
bool may_be(const Words& has, const Words& wanted) {
  const Words model = model_of(has);
  Words named = model_of(wanted);
  if (named.empty()) {
    return false;
  }
  if (model != named && model.contains("rtx") && !model.contains("quadro")) {
    named.erase("quadro");
    named.insert("rtx");
  }
  const bool only_series = named == Words{"rtx"};
  return model == named && !only_series && agree(has, wanted, is_form) &&
         agree(has, wanted, [](const std::string& word) { return is_size(word); });
}

// The device type with the most words in common, among those that a name may be.
// Words that only one of the two has count half against it. Of several it is, in a node of several, the one that
// shipped nodes are made of: who writes "8 x H100" and not "H100 PCIe" has those of a DGX.
std::string nearest_device(const TruthRow& row, const fs::path& shipped) {
  const Words wanted = wanted_words(row);
  const bool several = std::max(row.devices_per_node, row.devices) > 1;
  std::string best;
  double best_score = 0;
  for (const std::string& name : device_names(shipped)) {
    const Words has = words_of(name);
    if (!may_be(has, wanted)) {
      continue;
    }
    const auto common = static_cast<double>(
        std::count_if(has.begin(), has.end(), [&](const std::string& word) { return wanted.contains(word); }));
    const double score = common - (static_cast<double>(has.size() + wanted.size()) - 2 * common) / 2;
    const bool in_nodes = several && node_of(name) != kPlainNode && node_of(best) == kPlainNode;
    if (best.empty() || score > best_score || (score == best_score && in_nodes)) {
      best = name;
      best_score = score;
    }
  }
  return best;
}

// A laboratory whose devices its rows do not tell apart from others, and the type that they are.
struct Laboratory {
  std::string_view name, device, measured;
};
constexpr std::array kLaboratories = {
    // Its own kernels of a B200 come with its runs, and this type has their speed.
    Laboratory{"SimuMax", "b200-sxm", "b200-sxm-simumax"},
    // Its "v100" trains ResNet-50 with 360 images at once, BERT with 56 sequences, for which 16 GB are too few.
    Laboratory{"Zeus", "v100-pcie-16gb", "v100-pcie-32gb"},
};

// The type of the row's devices: what its laboratory is known to have, where that is more than the row says.
std::string device_of(const TruthRow& row, const fs::path& shipped) {
  const std::string device = nearest_device(row, shipped);
  const auto own = std::find_if(kLaboratories.begin(), kLaboratories.end(),
                                [&](const Laboratory& one) { return one.device == device && row.mentions(one.name); });
  return own == kLaboratories.end() ? device : std::string(own->measured);
}

std::string text_of(const Words& words) { return join({words.begin(), words.end()}, " "); }

// Shipped types whose models are called most like the row's; none where nothing is like it.
std::vector<std::string> types_like(const TruthRow& row, const fs::path& shipped) {
  constexpr std::size_t kMost = 4;
  const Words wanted = model_of(wanted_words(row));
  std::vector<std::tuple<long, std::size_t, std::string>> types; // fewer words in common, and farther, is worse
  for (const std::string& name : device_names(shipped)) {
    const Words model = model_of(words_of(name));
    const long common =
        std::count_if(model.begin(), model.end(), [&](const auto& word) { return wanted.contains(word); });
    const std::size_t distance = edit_distance(text_of(model), text_of(wanted));
    if (common > 0 || 2 * distance <= text_of(wanted).size()) {
      types.emplace_back(-common, distance, name);
    }
  }
  std::sort(types.begin(), types.end());
  std::vector<std::string> nearest;
  for (const auto& [common, distance, name] : types) {
    const auto& [least, shortest, first] = types.front();
    if (common == least && distance == shortest && nearest.size() < kMost) {
      nearest.push_back(name);
    }
  }
  return nearest;
}

// "a100-pcie-80gb" of "a100-pcie-40gb": types that differ in their memory alone.
std::vector<std::string> with_other_memory(const std::string& device, const fs::path& shipped) {
  const auto without_size = [](const std::string& name) {
    Words words = words_of(name);
    std::erase_if(words, [](const std::string& word) { return is_size(word); });
    return words;
  };
  std::vector<std::string> others;
  for (const std::string& name : device_names(shipped)) {
    if (name != device && without_size(name) == without_size(device)) {
      others.push_back(name);
    }
  }
  return others;
}

} // namespace

std::string_view node_of(const std::string& device) {
  const auto found =
      std::find_if(kNodes.begin(), kNodes.end(), [&](const NodeOf& one) { return device.starts_with(one.family); });
  return found == kNodes.end() ? kPlainNode : found->node;
}

std::variant<std::string, Infeasible> truth_device(const TruthRow& row, const fs::path& shipped) {
  std::string device = device_of(row, shipped);
  if (!device.empty()) {
    return device;
  }
  const std::string allowed = "; allowed: one of `stagecraft list devices`";
  if (row.gpu.empty()) {
    return Infeasible{"the row names no GPU" + allowed};
  }
  const std::vector<std::string> nearest = types_like(row, shipped);
  const bool is_chip = wanted_words(row).contains("gcd") && !words_of(plain_words(row.gpu)).contains("gcd");
  return Infeasible{"the GPU '" + excerpt(row.gpu) + "'" + (is_chip ? ", of which a node has eight chips (GCD)," : "") +
                    " is not known" + (nearest.empty() ? "" : "; nearest: " + join(nearest)) + allowed};
}

std::string assumed_device(const TruthRow& row, const std::string& device, const fs::path& shipped) {
  if (words_of(device) == words_of(plain_words(row.gpu))) {
    return "";
  }
  const std::vector<std::string> others =
      leaves_memory_open(row, shipped) ? with_other_memory(device, shipped) : std::vector<std::string>();
  return "the device type " + device + (others.empty() ? "" : ", and not " + join(others, " or "));
}

std::set<std::string> device_precisions(const TruthRow& row, const fs::path& shipped) {
  std::set<std::string> precisions;
  const std::string device = device_of(row, shipped);
  if (!device.empty()) {
    const yaml::Node file = yaml::load(shipped / "platforms/devices" / (device + ".yaml"));
    const yaml::Node* peaks = file.find("peak");
    for (const auto& entry : peaks == nullptr ? std::vector<yaml::Node::Entry>() : peaks->entries) {
      precisions.insert(entry.key);
    }
  }
  return precisions;
}

bool leaves_memory_open(const TruthRow& row, const fs::path& shipped) {
  const Words wanted = words_of(plain_words(row.gpu));
  Words sizes;
  for (const std::string& name : device_names(shipped)) {
    const Words has = words_of(name);
    if (std::includes(has.begin(), has.end(), wanted.begin(), wanted.end())) {
      std::copy_if(has.begin(), has.end(), std::inserter(sizes, sizes.end()), is_size);
    }
  }
  return sizes.size() > 1;
}

} // namespace stagecraft
