// How far off predictions of measured runs were, by families of runs: docs/validation/intervals.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// Runs whose predictions are expected to be alike in how far off they are.
struct ErrorFamily {
  std::string name;
  int models = 0, rows = 0;
  double factor =
      1; ///< nine of ten measurements of another model lie within prediction / factor and prediction * factor
  double median = 0; ///< the median absolute error
  double centre = 1; ///< measurements lie round so many times the prediction, which is then what the factor is of

  /// Between which two figures nine of ten measurements lie, of so much predicted.
  template <class Figure> Figure low(Figure predicted) const { return predicted * centre / factor; }
  template <class Figure> Figure high(Figure predicted) const { return predicted * centre * factor; }
};

/// What a run is, as far as families go.
struct FamilyTraits {
  bool time = true; ///< of a time, or of a rate; else of memory, or of power
  bool power = false;
  bool mixture = false;  ///< of experts
  bool attention = true; ///< its model has attention
  bool several_nodes = false;
  std::string_view framework;  ///< its recipe
  bool measured_device = true; ///< kernels of its devices were measured
};

/// The names of the families that a run belongs to, from the narrowest to the widest.
std::vector<std::string> families_of(const FamilyTraits& traits);

/// Reads a list of families, `families: [{name, models, rows, factor, median, centre}]`. Throws InputError.
std::vector<ErrorFamily> read_error_families(const yaml::Node& document);

/// Those shipped, of studies that name a framework's recipe, platforms/errors/measured-runs.yaml, or of those that name
/// none, platforms/errors/without-framework.yaml; none where there is no such file.
std::vector<ErrorFamily> shipped_error_families(const Folders& folders, bool framework = true);

/// The text of such a file.
std::string error_families_text(const std::vector<ErrorFamily>& families);

/// The narrowest family of those given that a run belongs to; nothing where there is none.
std::optional<ErrorFamily> narrowest_family(const std::vector<ErrorFamily>& families, const FamilyTraits& traits);

/// The widest one, of a run of which no narrower family tells; nothing where it is not among those given.
std::optional<ErrorFamily> widest_family(const std::vector<ErrorFamily>& families, const FamilyTraits& traits);

} // namespace stagecraft
