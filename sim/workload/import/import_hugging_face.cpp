// Hugging Face's config.json: each becomes the workload file that one would write by hand, and is read as that.
// docs/formats/hugging-face.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/hugging_face.hpp"

namespace stagecraft {
namespace {

using hugging_face::Config;
using hugging_face::Family;

struct NamedLack {
  std::string_view name, lack;
};

// Architectures that people have, and what of them there is no layer or block for.
constexpr NamedLack kNotModelled[] = {
    {"clip", "two models that are trained against each other"},
    {"deberta-v2", "attention to distances between tokens"},
    {"dinov2", "a teacher beside the model"},
    {"exaone4", "norms behind parts alone"},
    {"gemma3", "images; its text_config alone is a gemma3_text"},
    {"gpt_neo", "kinds of attention in a pattern of their own"},
    {"jamba", "state spaces of the first kind, as Mamba"},
    {"llama4", "images; its text_config alone is a llama4_text"},
    {"mamba", "state spaces of the first kind; known is mamba2"},
    {"minimax", "linear attention"},
    {"minimax_m1", "linear attention"},
    {"minimax_m2", "norms of whole queries and keys"},
    {"minimax_text_01", "linear attention"},
    {"mistral3", "images; its text_config alone is a mistral"},
    {"modernbert", "an encoder with rotary embeddings and windows"},
    {"olmo", "norms without parameters"},
    {"olmo2", "norms of whole queries and keys"},
    {"olmo3", "norms of whole queries and keys"},
    {"olmoe", "norms of whole queries and keys"},
    {"qwen2_vl", "images"},
    {"qwen2_5_vl", "images"},
    {"qwen3_next", "linear attention"},
    {"qwen3_vl", "images"},
    {"rwkv", "a recurrence in place of attention"},
    {"siglip", "two models that are trained against each other"},
    {"whisper", "sound, of which convolutions make tokens"},
};

// The family, and what of it the file says that the model ends with.
struct Found {
  const Family& family;
  std::string_view architecture;
};

std::vector<const Family*> all_families() {
  std::vector<const Family*> all;
  for (const auto families :
       {hugging_face::decoder_families(), hugging_face::laboratory_families(), hugging_face::mixture_families(),
        hugging_face::layer_norm_families(), hugging_face::encoder_families()}) {
    for (const Family& family : families) {
      all.push_back(&family);
    }
  }
  return all;
}

// The first of `architectures`, or "".
std::string first_architecture(Config& config) {
  const json::Value* list = config.given("architectures");
  if (list != nullptr && (!list->is_array() || std::any_of(list->begin(), list->end(),
                                                           [](const json::Value& one) { return !one.is_string(); }))) {
    throw config.error("architectures", "must be an array of texts");
  }
  return list != nullptr && !list->empty() ? list->front().get<std::string>() : "";
}

// The family by model_type, or where that is missing, by the first of `architectures`.
Found find_family(Config& config) {
  const std::string type = config.text("model_type", "");
  const std::string first = first_architecture(config);
  std::vector<std::string> known;
  for (const Family* family : all_families()) {
    std::vector<std::string> ends(family->architectures.begin(), family->architectures.end());
    ends.erase(std::remove(ends.begin(), ends.end(), ""), ends.end());
    const auto end = std::find(ends.begin(), ends.end(), first);
    if (type.empty() ? end != ends.end() : family->name == type) {
      if (!first.empty() && end == ends.end()) {
        throw config.error("architectures[0]", "is '" + excerpt(on_one_line(first)) +
                                                   "', which is not modelled of this family; allowed: " + join(ends));
      }
      return {*family, first.empty() ? family->architectures.front() : family->architectures[end - ends.begin()]};
    }
    known.emplace_back(type.empty() ? ends.front() : family->name);
  }
  for (const NamedLack& row : kNotModelled) {
    if (row.name == type) {
      throw config.error("model_type",
                         "'" + type + "' is not modelled: it has " + std::string(row.lack) + "; known: " + join(known));
    }
  }
  if (type.empty() && first.empty()) {
    throw config.error("", "missing keys 'model_type' and 'architectures'; allowed: one of them, as beside weights");
  }
  throw config.error(type.empty() ? "architectures" : "model_type",
                     unknown_name("architecture", excerpt(on_one_line(type.empty() ? first : type)), known));
}

// The name of the file, or of its folder where that is the usual config.json.
std::string name_of(const std::string& file, const Family& family) {
  const std::filesystem::path path(file);
  const std::string folder = path.parent_path().filename().string();
  const std::string stem = path.stem().string();
  return stem != "config"                                    ? stem
         : folder.empty() || folder == "." || folder == ".." ? std::string(family.name)
                                                             : folder;
}

// What the layers that predict further tokens add, or that they are left out; "" where the file has none.
std::string words_of_mtp_layers(int of_file, int taken, const ModelGraph& model) {
  const std::string layers = of_file == 1 ? "layer that predicts a further token"
                                          : std::to_string(of_file) + " layers that predict further tokens";
  if (taken == 0) {
    return of_file == 0 ? "" : ", without its " + layers;
  }
  double parameters = 0;
  const auto behind = [](const Operator& op) { return op.name == "next_loss"; };
  for (auto op = std::find_if(model.operators.begin(), model.operators.end(), behind); op != model.operators.end();
       ++op) {
    parameters += op->parameters;
  }
  return ", with " + (taken == of_file ? "its " + layers : std::to_string(taken) + " of its " + layers) + " (" +
         to_text(parameters / 1e6, 2) + " M parameters; embedding and head are the model's, and not counted again)";
}

// A model, and the workload file that it is read from.
struct ReadModel {
  std::string workload;
  ModelGraph model;
};

ReadModel read_model(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  const json::Source source(bytes, file);
  const json::Value document = json::parse(source);
  Config config(document, source);
  const auto [family, architecture] = find_family(config);
  config.refuse_what_is_not_modelled(family.modelled);
  hugging_face::Written written = family.write(config, architecture, options);
  const int taken = options.mtp_layers.value_or(written.mtp_layers);
  if (taken > written.mtp_layers) {
    throw config.error(written.mtp_layers > 0 ? hugging_face::kMtpLayers : "",
                       std::to_string(taken) +
                           " layers that predict further tokens are asked for, of which there are " +
                           std::to_string(written.mtp_layers) + "; allowed: 0 to as many");
  }
  ImportOptions as_written = options; // the workload has its length already, a T5's twice: of encoder and decoder
  as_written.sequence.reset();
  ModelGraph model = load_workload(yaml::parse(written.workload, file + ", as a workload"), as_written);
  const std::vector<std::string> unread = config.unread();
  model.name = name_of(file, family);
  model.description = std::string(family.name) + " of Hugging Face, " + written.samples +
                      words_of_mtp_layers(written.mtp_layers, taken, model) +
                      (unread.empty() ? "" : "; keys not read: " + join(unread));
  return {std::move(written.workload), std::move(model)};
}

} // namespace

ModelGraph import_hugging_face(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  return read_model(bytes, file, options).model;
}

std::string hugging_face_workload(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  if (options.lora) {
    throw InputError({"--lora", 0, 0}, "a workload file has no adapters; allowed: 'lora' of a study's model");
  }
  const auto [workload, model] = read_model(bytes, file, options);
  constexpr std::string_view kName = "name: model\n"; // by which each begins
  const auto quoted = [&](const std::string& text) { return yaml::flow_text(yaml::text_node(text, {file, 0, 0})); };
  return "name: " + quoted(model.name) + "\ndescription: " + quoted(model.description) + "\n" +
         workload.substr(kName.size());
}

} // namespace stagecraft
