// The buyer's question: on which of some offers is a model trained with the least money, time or energy?
// docs/formats/study.md, "buy".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/purchase.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// Machines that somebody offers.
struct Offer {
  std::string name;
  std::optional<yaml::Node> platform; ///< as a study's key; none: the study's own
  std::optional<yaml::Node> price;    ///< the same; none: as the study or the catalogue says
  Where where;
};

/// A question as read. Platforms and prices of offers are read as each is compared.
struct BuyQuestion {
  yaml::Node rest; ///< the study's other keys, the same for every offer
  std::vector<Offer> offers;
  PurchaseTerms terms;
};

/// Reads key `buy` of a study, with those of the settings on top that change it, which are taken out of `settings`.
/// Without the key the study's platform is the only offer. Throws InputError, also where there is no offer, and where
/// the study has keys that a purchase does not heed.
BuyQuestion load_buy_question(const yaml::Node& study, std::vector<Setting>& settings);

/// The offers that one text or mapping names: "2 x dgx-h100", "2, 4 x dgx-h100", which are two, a file, or
/// {platform, name, price}. Throws InputError.
std::vector<Offer> read_offers(const yaml::Node& node);

/// The settings of a study of this offer. Those for prices of types that its platform lacks are left out.
std::vector<Setting> settings_for(const Offer& offer, const Platform& platform, const std::vector<Setting>& settings);

/// The best run of a ranked comparison for this buyer: of those that compete with the winner the least by the goal
/// within the limits, or the least of all where each breaks one; of those as good as it, by how far off ratios of two
/// predictions are, one whose memory surely fits. The study says how many tokens are trained.
Choice choice_of(const PurchaseTerms& terms, const Offer& offer, const Study& study, const Comparison& comparison);

} // namespace stagecraft
