// The buyer's question: on which of some offers is a model trained with the least money, time or energy?
// docs/formats/study.md, "buy".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/purchase.hpp"
#include "sim/replay/what_if/perturb.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// Machines that somebody offers, as settings of a study.
struct Offer {
  std::string name;
  std::vector<Setting> settings; ///< its platform, and its prices where it has its own
};

/// Limits of a purchase, with their words.
template <class Q> struct PurchaseLimit {
  Q most;
  std::string text;
};

/// Valid by construction, except for the platforms, which are read as their offers are compared.
struct BuyQuestion {
  yaml::Node rest; ///< the study's other keys, the same for every offer
  std::vector<Offer> offers;
  const PurchaseGoal* goal = nullptr;
  std::optional<PurchaseLimit<Seconds>> time;
  std::optional<PurchaseLimit<Dollars>> budget;
  std::optional<Failures> failures;
};

/// Reads key `buy` of a study, with those of the settings on top that change it, which are taken out of `settings`.
/// Without the key the study's platform is the only offer. Throws InputError, also where there is no offer.
BuyQuestion load_buy_question(const yaml::Node& study, std::vector<Setting>& settings);

/// The offers that one text or mapping names: "2 x dgx-h100", "2, 4 x dgx-h100", which are two, a file, a platform of
/// its own, or {platform, name, price}. Throws InputError.
std::vector<Offer> read_offers(const yaml::Node& node);

/// The best run of a ranked comparison for this buyer: of those that compete with the winner the least by the goal
/// within the limits, or the least of all where each breaks one. The study says how many tokens are trained.
Choice choice_of(const BuyQuestion& question, const Offer& offer, const Study& study, const Comparison& comparison);

} // namespace stagecraft
