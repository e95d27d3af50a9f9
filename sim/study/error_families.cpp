// SPDX-License-Identifier: Apache-2.0
#include "sim/study/error_families.hpp"

#include "sim/base/units.hpp"

namespace stagecraft {

namespace {

// Scripts of plain PyTorch differ in what a training framework settles: kernels, casts, loops, optimisers.
std::string kind_of(const FamilyTraits& traits) {
  const bool plain = traits.framework.starts_with("pytorch");
  return traits.mixture      ? "mixtures"
         : !traits.attention ? "models without attention"
         : plain             ? "dense models in plain PyTorch"
                             : "dense models";
}

std::optional<ErrorFamily> family_called(const std::string& name, const std::vector<ErrorFamily>& families) {
  for (const ErrorFamily& family : families) {
    if (family.name == name) {
      return family;
    }
  }
  return std::nullopt;
}

} // namespace

std::vector<std::string> families_of(const FamilyTraits& traits) {
  const std::string figure = traits.power ? "power of " : traits.time ? "times of " : "memory of ";
  const std::string kind = figure + kind_of(traits);
  if (traits.time && !traits.measured_device) {
    const std::string where = " on devices whose kernels nobody measured";
    return {kind + where, figure + "all models" + where, kind, figure + "all models"};
  }
  const std::string nodes = kind + (traits.several_nodes ? " on several nodes" : " on one node");
  return {nodes + " by " + std::string(traits.framework), nodes, kind, figure + "all models"};
}

std::vector<ErrorFamily> read_error_families(const yaml::Node& document) {
  constexpr int kMost = 1'000'000'000;
  constexpr yaml::Range kFactor{1, 1e6, true, "1 to 1e6"};
  constexpr yaml::Range kCentre{1e-6, 1e6, true, "1e-6 to 1e6"};
  yaml::Map map(document, "error families");
  map.text("source", "");
  std::vector<ErrorFamily> families;
  for (const yaml::Node* node : map.list("families")) {
    yaml::Map item(*node, "family");
    families.push_back({.name = item.text("name"),
                        .models = item.integer("models", 1, kMost),
                        .rows = item.integer("rows", 1, kMost),
                        .factor = item.number("factor", kFactor),
                        .median = item.number("median", yaml::kNotNegative),
                        .centre = item.number("centre", kCentre, 1)});
    item.finish();
  }
  map.finish();
  return families;
}

std::vector<ErrorFamily> shipped_error_families(const Folders& folders, bool framework) {
  const std::filesystem::path file =
      folders.shipped / "platforms" / "errors" / (framework ? "measured-runs.yaml" : "without-framework.yaml");
  std::error_code failure;
  return std::filesystem::exists(file, failure) ? read_error_families(read_document(folders, file))
                                                : std::vector<ErrorFamily>{};
}

std::string error_families_text(const std::vector<ErrorFamily>& families) {
  std::string text = "families:\n";
  for (const ErrorFamily& family : families) {
    text += "  - {name: \"" + family.name + "\", models: " + std::to_string(family.models) +
            ", rows: " + std::to_string(family.rows) + ", factor: " + to_digits(family.factor, 4) +
            ", median: " + to_digits(family.median, 3) +
            (family.centre == 1 ? "" : ", centre: " + to_digits(family.centre, 4)) + "}\n";
  }
  return text;
}

std::optional<ErrorFamily> narrowest_family(const std::vector<ErrorFamily>& families, const FamilyTraits& traits) {
  for (const std::string& name : families_of(traits)) {
    if (std::optional<ErrorFamily> found = family_called(name, families)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<ErrorFamily> widest_family(const std::vector<ErrorFamily>& families, const FamilyTraits& traits) {
  return family_called(families_of(traits).back(), families);
}

} // namespace stagecraft
