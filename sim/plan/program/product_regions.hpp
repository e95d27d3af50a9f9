// Products of a model and what lies between them: what the rules of frameworks share out as one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "sim/workload/signature.hpp"

namespace stagecraft {

/// The first letter of that name; kNone where there is none.
int find_letter(const Signature& signature, std::string_view name);

/// The letter that a parameter of the operator is summed over; kNone where there is none.
int summed_letter(const Signature& signature);

/// The letter that the operator reduces over inside; kNone where there is none.
int reduced_letter(const Signature& signature);

/// The letter of the output's last dimension, if the operator keeps it apart and it counts features; or kNone.
int feature_letter(const Signature& signature);

/// Whether it multiplies an activation with a weight.
bool is_product(const Signature& signature);

/// Whether it looks rows of a weight up: an embedding.
bool is_look_up(const Signature& signature);

/// Products, and what lies between them: `first` can be shared by outputs, `last` by inputs, `between` by the features
/// that the first make. Between may be a loss, which reduces over them.
struct Region {
  std::set<int> first, between, last;
  bool reduces = false; ///< a loss is between
};

/// What a product's output reaches, with all that leads there; no value where it reaches what needs all features, or an
/// operator that is not `free`.
std::optional<Region> region_after(int product, const std::vector<Signature>& operators,
                                   const std::vector<std::vector<OutputReader>>& readers,
                                   const std::function<bool(int)>& free);

/// Where a region is a mixture's: what makes the rows that its first products read works on terms of their gradient,
/// and what combines the rows that its last ones make on terms of rows (kTermsOfGradient, kTerms). Returns the routers.
std::set<int> share_terms_of_rows(const Region& region, const std::vector<Signature>& operators,
                                  const std::vector<std::vector<OutputReader>>& readers, std::vector<int>& letters);

/// Shares a region: the first products by outputs, the last by inputs, and what is between by what the first make.
void share_region(const Region& region, const std::vector<Signature>& operators, std::vector<int>& letters);

} // namespace stagecraft
