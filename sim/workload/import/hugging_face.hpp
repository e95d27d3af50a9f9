// What readers of Hugging Face's config.json share: the document while it is read, and limits of sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/json.hpp"
#include "sim/workload/import/import.hpp"

namespace stagecraft::hugging_face {

/// Far above published models, and so that no tensor has more elements than a model may have.
inline constexpr int kMostLayers = 4096, kMostHeads = 4096, kMostHeadWidth = 4096, kMostExperts = 4096;
inline constexpr int kMostHidden = 1 << 20, kMostIntermediate = 1 << 23, kMostVocabulary = 1 << 24;

/// The fraction of a head that turns, in most families.
inline constexpr const char* kRotary = "partial_rotary_factor";
/// The number of layers that predict further tokens.
inline constexpr const char* kMtpLayers = "num_nextn_predict_layers";

/// The document while it is read: what is null counts as absent, and each key asked for is noted. Throws InputError at
/// the key whose value does not fit.
class Config {
public:
  Config(const json::Value& document, const json::Source& source);
  /// The object under a key, an empty one where it is absent. InputError where it is none.
  Config inner(const std::string& key);

  const json::Value* given(const std::string& key);
  bool has(const std::string& key) const;
  int size(const std::string& key, int most);
  int size(const std::string& key, int most, int otherwise);
  /// From 0 on; 0 where it is missing.
  int count(const std::string& key, int most);
  bool flag(const std::string& key, bool otherwise);
  std::string text(const std::string& key, const std::string& otherwise);
  /// Whether a probability of dropout is more than 0.
  bool drops(const std::string& key, double otherwise);
  /// The fraction of a head that turns: under its own key or, since transformers 5, among rope_parameters.
  double rotary(const std::string& key, double otherwise);
  /// The kind of layer that an activation is, of "silu", "gelu" and, where `plain`, "gelu_tanh" and "relu".
  std::string activation(const std::string& key, const std::string& otherwise, bool plain);
  /// The length of sequences that was asked for, or the longest that the model is made for, under `longest`; at most
  /// the positions that it has `learned`, if any.
  int sequence(const std::string& longest, const ImportOptions& options, int learned = 0);
  InputError error(const std::string& key, const std::string& what) const { return object_.error(key, what); }

  /// `modelled`: keys, of those that most families refuse, that this one reads, or whose meaning for storage it leaves
  /// aside.
  void refuse_what_is_not_modelled(std::span<const std::string_view> modelled);
  /// Keys that nothing has asked for and that say something.
  std::vector<std::string> unread() const;

private:
  Config(const json::Value& value, const json::Source& source, const std::string& path);

  static double fraction(json::Object object, const std::string& key);

  json::Object object_;
  const json::Value& all_;
  const json::Source& source_;
  std::set<std::string> asked_;
};

/// A model as a workload file, and how large its samples are, in words.
struct Written {
  std::string workload, samples;
  int mtp_layers = 0; ///< that predict further tokens, of the file; the workload may have fewer
};

/// A family of models: what its files are called, and how one becomes a workload file.
struct Family {
  std::string_view name;                         ///< model_type
  std::array<std::string_view, 2> architectures; ///< what the model may end with; the first where the file is silent
  Written (*write)(Config&, std::string_view architecture, const ImportOptions&);
  std::span<const std::string_view> modelled = {}; ///< as Config::refuse_what_is_not_modelled() takes them
};

std::span<const Family> decoder_families();    ///< language models of a decoder with RMS norms
std::span<const Family> laboratory_families(); ///< of single laboratories, with names of keys of their own
std::span<const Family> mixture_families();    ///< mixtures of experts beside those of the first
std::span<const Family> layer_norm_families(); ///< of a decoder with layer normalizations
std::span<const Family> encoder_families();    ///< BERT, T5, vision transformers

} // namespace stagecraft::hugging_face
