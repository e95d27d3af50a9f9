// The model of a row that is no decoder, or states no sizes: the shipped workload of its name.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "sim/base/format/yaml.hpp"
#include "sim/study/inputs.hpp"
#include "sim/validate/truth/truth_study.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// "resnet50" of "ResNet-50 v1.5 (PyTorch)": letters and digits of so many words, in front of versions and remarks.
std::string letters_of(std::string_view name, int words = 1) {
  std::string letters;
  for (const char c : plain_words(name)) {
    words -= c == ' ' || c == '_' ? 1 : 0;
    if (words == 0) {
      break;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += c;
    }
  }
  return letters;
}

// The shipped workload of a row's name: that for its data set goes first, as `bert-base-squad` of `bert_base_uncased`
// on `squad`, then that with most of its first words, as `transformer-xl-base` of "Transformer-XL Base model". "":
// there is none.
std::string shipped_name(const TruthRow& row, const fs::path& shipped) {
  const std::string wanted = letters_of(row.model);
  const std::vector<std::string> names = shipped_names({.study = {}, .shipped = shipped}, "workloads");
  constexpr int kWords = 3;
  std::vector<std::string> tried;
  for (const std::string& behind : {letters_of(row.data_set), std::string()}) {
    for (int words = kWords; words > 0; --words) {
      tried.push_back(letters_of(row.model, words) + behind);
    }
  }
  for (const std::string& letters : tried) {
    const auto found =
        std::find_if(names.begin(), names.end(), [&](const std::string& name) { return letters_of(name) == letters; });
    if (!wanted.empty() && found != names.end()) {
      return *found;
    }
  }
  return "";
}

// A sample's shape is one of tokens, which a row may state.
bool reads_tokens(const yaml::Node& workload) {
  const yaml::Node* input = workload.find("input");
  const yaml::Node* shape = input == nullptr ? nullptr : input->find("shape");
  return shape != nullptr && shape->items.size() == 1;
}

// NVIDIA's example reads BERT's sequences of up to 512 tokens in bins of 64, by length (its change log of January
// 2022). Of Wikipedia's at 512 half of all tokens is padding (Krell et al. 2021, arXiv 2107.02027), which leaves 256 in
// the mean, and half a bin to fill up.
bool reads_bins(const TruthRow& row) {
  constexpr int kBinned = 512;
  return row.mentions("DeepLearningExamples") && letters_of(row.model).starts_with("bert") &&
         row.sizes.sequence == kBinned;
}
constexpr int kMeanOfBins = 512 / 2 + 64 / 2; // tokens

} // namespace

std::optional<ShippedModel> shipped_model(const TruthRow& row, const fs::path& shipped) {
  if ((row.sizes.hidden > 0 || row.sizes.layers > 0) && is_decoder(row)) {
    return std::nullopt;
  }
  const std::string name = shipped_name(row, shipped);
  if (name.empty()) {
    return std::nullopt;
  }
  yaml::Node workload = yaml::load(shipped / "workloads" / (name + ".yaml"));
  ShippedModel model{.images = !reads_tokens(workload)};
  if (model.images) {
    model.part.text = "model: " + name + "\n";
    return model;
  }
  const bool binned = reads_bins(row);
  const std::string stated = std::to_string(binned ? kMeanOfBins : row.sizes.sequence);
  if (binned) {
    model.part.assumed.push_back("sequences of " + stated + " tokens in the mean, as bins of 64 have them");
  }
  if (row.sizes.sequence > 0) {
    yaml::set(workload, "input.shape", "[" + stated + "]", row.where);
  } else {
    model.part.assumed.emplace_back("sequences as long as the workload's");
  }
  model.part.text = "model:\n  workload: " + yaml::flow_text(workload) + "\n";
  return model;
}

} // namespace stagecraft
