// The studies of a purchase: one for each offer, with the same assumptions where these would decide who wins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/buy.hpp"
#include "sim/app/run/given_study.hpp"

namespace stagecraft {

/// What is bought for: a question, and the study or model that it is about.
struct OfferedStudy {
  BuyQuestion question;
  std::vector<Setting> settings; ///< of the command line, without those of the question
  std::string file;              ///< the study's; "": a model without one
};

/// The study of each offer, in their order. All platforms are read before any degrees are tried. Throws InputError,
/// also where nobody says how many tokens are trained, and for prices that would change nothing.
std::vector<GivenStudy> studies_of_offers(const OfferedStudy& offered);

} // namespace stagecraft
