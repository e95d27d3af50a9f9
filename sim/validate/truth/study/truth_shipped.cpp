// The model of a row that is no decoder, or states no sizes: the shipped workload of its name.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "sim/base/format/yaml.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/study/keys/inputs.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/import/import.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// "unet564" of "U-Net (5,64)".
std::string letters_in(std::string_view text) {
  std::string letters;
  for (const char c : lower_case(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += c;
    }
  }
  return letters;
}

// "resnet50" of "ResNet-50 v1.5 (PyTorch)": letters and digits of so many words, in front of versions and remarks,
// as "-uncased" behind a name of Hugging Face.
std::string letters_of(std::string_view name, int words = 1) {
  std::string plain = plain_words(name);
  for (const std::string_view remark : {"-uncased", "-cased"}) {
    plain.resize(plain.size() - (plain.ends_with(remark) ? remark.size() : 0));
  }
  std::size_t end = plain.find_first_of(" _");
  while (--words > 0 && end != std::string::npos) {
    end = plain.find_first_of(" _", end + 1);
  }
  return letters_in(plain.substr(0, end));
}

// The name without a framework's in parentheses behind it: "Transformer" of "Transformer (PyTorch)", where "Transformer
// (base)" is another model.
std::string_view without_framework(std::string_view name) {
  constexpr auto kRemarks =
      std::to_array<std::string_view>({"jax", "keras", "mxnet", "paddle", "pytorch", "tensorflow", "tf", "tf1", "tf2"});
  const std::size_t remark = name.find('(');
  const bool known = remark != std::string_view::npos &&
                     std::find(kRemarks.begin(), kRemarks.end(), letters_in(name.substr(remark))) != kRemarks.end();
  return known ? name.substr(0, remark) : name;
}

// The workload whose file says that it is also called by this name, of which the letters are given. "": none.
std::string called_otherwise(const std::vector<std::string>& names, const fs::path& shipped,
                             const std::string& wanted) {
  for (const std::string& name : names) {
    const fs::path path = shipped / "workloads" / (name + ".yaml");
    const std::string text = read_file(path);
    if (text.find("\nalso_called:") == std::string::npos) {
      continue; // most files; reading them as YAML takes longer
    }
    const yaml::Node workload = yaml::parse(text, path.string());
    for (const yaml::Node* other : yaml::Map(workload, "workload").list("also_called")) {
      if (letters_in(other->text) == wanted) {
        return name;
      }
    }
  }
  return "";
}

// What NVIDIA's DeepLearningExamples has under a name that elsewhere is another model's, by letters.
struct Example {
  std::string_view called, workload;
};
constexpr std::array kExamples = {Example{"gnmt", "gnmtv2"}, Example{"ssd", "ssd300v11"},
                                  Example{"ssd300", "ssd300v11"}};

// The shipped workload of a row's name: that for its data set goes first, as `bert-base-squad` of `bert_base_uncased`
// on `squad`, then that of the whole name, as `u-net-5-64` of "U-Net (5,64)", then that with most of its first words,
// as `transformer-xl-base` of "Transformer-XL Base model", then that which is also called so. "": there is none.
std::string shipped_name(const TruthRow& row, const fs::path& shipped) {
  const std::string wanted = letters_of(row.model);
  const std::vector<std::string> names = shipped_names({.study = {}, .shipped = shipped}, "workloads");
  constexpr int kWords = 3;
  std::vector<std::string> tried;
  if (row.mentions("DeepLearningExamples")) {
    const auto theirs =
        std::find_if(kExamples.begin(), kExamples.end(), [&](const Example& one) { return one.called == wanted; });
    if (theirs != kExamples.end()) {
      tried.emplace_back(theirs->workload);
    }
  }
  const auto try_words = [&](const std::string& behind) {
    for (int words = kWords; words > 0; --words) {
      tried.push_back(letters_of(row.model, words) + behind);
    }
  };
  if (!row.data_set.empty()) {
    try_words(letters_of(row.data_set));
  }
  tried.push_back(letters_in(row.model));
  try_words("");
  for (const std::string& letters : tried) {
    const auto found =
        std::find_if(names.begin(), names.end(), [&](const std::string& name) { return letters_of(name) == letters; });
    if (!wanted.empty() && found != names.end()) {
      return *found;
    }
  }
  return wanted.empty() ? "" : called_otherwise(names, shipped, letters_in(without_framework(row.model)));
}

// A sample's shape is one of tokens, which a row may state.
bool reads_tokens(const yaml::Node& workload) {
  const yaml::Node* input = workload.find("input");
  const yaml::Node* shape = input == nullptr ? nullptr : input->find("shape");
  return shape != nullptr && shape->items.size() == 1;
}

// Whether so many tokens are the first half of the workload's, which are an input and an output: a slice ends there.
bool is_one_side(const yaml::Node& workload, int tokens) {
  const yaml::Node& all = workload.find("input")->find("shape")->items.front();
  const std::vector<yaml::Node>& layers = workload.find("layers")->items;
  return all.text == std::to_string(2LL * tokens) && std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
           const yaml::Node* kind = layer.find("kind");
           const yaml::Node* start = layer.find("start");
           const yaml::Node* end = layer.find("end");
           return kind != nullptr && kind->text == "slice" && end != nullptr && end->text == std::to_string(tokens) &&
                  (start == nullptr || start->text == "0");
         });
}

// NVIDIA's example reads BERT's sequences of up to 512 tokens in bins of 64, by length (its change log of January
// 2022). Of Wikipedia's at 512 half of all tokens is padding (Krell et al. 2021, arXiv 2107.02027), which leaves 256 in
// the mean, and half a bin to fill up.
bool reads_bins(const TruthRow& row) {
  constexpr int kBinned = 512;
  return row.mentions("DeepLearningExamples PyTorch") && letters_of(row.model).starts_with("bert") &&
         row.sizes.sequence == kBinned;
}
constexpr int kMeanOfBins = 512 / 2 + 64 / 2; // tokens

// sitar-lab/NeuSight (MIT), neusight/Tracing/trace.py: forwards alone are of BertForSequenceClassification, which has
// no head for masked words, and trainings of BertForPreTraining, which has both.
bool classifies(const TruthRow& row) { return row.mentions("NeuSight") && row.mentions("forward only"); }

// BERT without its head for masked words: its layers end with the loss of the other head.
void leave_masked_words_out(yaml::Node& workload) {
  yaml::Node layers = *workload.find("layers");
  const auto is_last = [](const yaml::Node& layer) {
    const yaml::Node* name = layer.find("name");
    return name != nullptr && name->text == "next_sentence_loss";
  };
  const auto last = std::find_if(layers.items.begin(), layers.items.end(), is_last);
  if (last != layers.items.end()) {
    layers.items.erase(last + 1, layers.items.end());
    yaml::set(workload, "layers", layers);
  }
}

// "E,t*3|t*6|t*7|t*8L" of "balance=[3, 6, 7, 8]" in the note, where so many numbered blocks are all that the model has:
// torchgpipe counts the modules of a sequence, of which these are one each.
std::string stated_layers(const TruthRow& row, const yaml::Node& workload) {
  constexpr std::string_view kBalance = "balance=[";
  const std::size_t begin = row.note.find(kBalance);
  const std::size_t end = row.note.find(']', begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return "";
  }
  constexpr int kMostLayers = 100'000; // of a model
  std::string layers;
  long long sum = 0;
  std::istringstream numbers(row.note.substr(begin + kBalance.size(), end - begin - kBalance.size()));
  for (std::string number; std::getline(numbers, number, ',');) {
    const int count = std::atoi(number.c_str());
    if (count < 1 || count > kMostLayers) {
      return "";
    }
    layers += (layers.empty() ? "E,t*" : "|t*") + std::to_string(count);
    sum += count;
  }
  const LayerRow blocks = layer_row_of(load_workload(workload));
  const bool same = sum == static_cast<long long>(blocks.layers.size()) && blocks.before.empty();
  return same ? layers + "L" : "";
}

} // namespace

std::optional<ShippedModel> shipped_model(const TruthRow& row, const fs::path& shipped) {
  if ((row.sizes.hidden > 0 || row.sizes.layers > 0) && is_decoder(row)) {
    return std::nullopt;
  }
  const std::string name = shipped_name(row, shipped);
  if (name.empty()) {
    return std::nullopt;
  }
  const fs::path file = shipped / "workloads" / (name + ".yaml");
  yaml::Node workload = yaml::load(file);
  ShippedModel model{.images = !reads_tokens(workload),
                     .mixture = read_file(file).find("kind: router") != std::string::npos};
  if (model.images) {
    model.layers = stated_layers(row, workload);
    model.part.text = "model: " + name + "\n";
    return model;
  }
  if (classifies(row)) {
    leave_masked_words_out(workload);
  }
  const bool binned = reads_bins(row);
  const std::string stated = std::to_string(binned ? kMeanOfBins : row.sizes.sequence);
  if (binned) {
    model.part.assumed.push_back("sequences of " + stated + " tokens in the mean, as bins of 64 have them");
  }
  if (row.sizes.sequence == 0) {
    model.part.assumed.emplace_back("sequences as long as the workload's");
  } else if (is_one_side(workload, row.sizes.sequence)) {
    model.part.assumed.push_back(stated + " tokens on either side");
  } else {
    yaml::set(workload, "input.shape", "[" + stated + "]", row.where);
  }
  model.part.text = "model:\n  workload: " + yaml::flow_text(workload) + "\n" + adapters_of(row, model.part.assumed);
  return model;
}

} // namespace stagecraft
