// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "sim/analysis/buy.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/study/keys/perturb_options.hpp"

namespace stagecraft {
namespace {

bool is_of_buy(const Setting& setting) { return setting.key == "buy" || setting.key.starts_with("buy."); }

std::string without_blanks(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// The platforms of "2, 4 x dgx-h100", or of any other text, which is one.
std::vector<std::string> platforms_of(const std::string& text) {
  const std::size_t times = text.find(" x ");
  const std::string counts = text.substr(0, times == std::string::npos ? 0 : times);
  const bool are_counts = std::all_of(counts.begin(), counts.end(), [](unsigned char letter) {
    return std::isdigit(letter) != 0 || letter == ' ' || letter == ',';
  });
  if (counts.find(',') == std::string::npos || !are_counts) {
    return {text};
  }
  std::vector<std::string> platforms;
  for (std::size_t begin = 0; begin <= counts.size();) {
    const std::size_t comma = std::min(counts.find(',', begin), counts.size());
    const std::string count = without_blanks(counts.substr(begin, comma - begin));
    if (count.empty()) { // "2,,4 x": no count, so no name of a platform either
      return {text};
    }
    platforms.push_back(count + text.substr(times));
    begin = comma + 1;
  }
  return platforms;
}

// Prices for all devices of an offer, or by type, as a study's key `price` has them.
void add_price(const yaml::Node& price, std::vector<Setting>& settings) { settings.push_back({"price", "", price}); }

std::optional<PurchaseLimit<Seconds>> read_time_limit(yaml::Map& map) {
  constexpr const char* kKey = "training-time";
  return map.has(kKey) ? std::optional(PurchaseLimit<Seconds>{map.quantity<Seconds>(kKey, yaml::kPositive),
                                                              map.text(kKey)})
                       : std::nullopt;
}

std::optional<PurchaseLimit<Dollars>> read_budget(yaml::Map& map) {
  constexpr const char* kKey = "budget";
  return map.has(kKey) ? std::optional(PurchaseLimit<Dollars>{map.quantity<Dollars>(kKey, yaml::kPositive),
                                                              map.text(kKey)})
                       : std::nullopt;
}

// Two offers of one name could not be told apart.
void refuse_twins(const std::vector<Offer>& offers, const Where& where) {
  for (auto offer = offers.begin(); offer != offers.end(); ++offer) {
    if (std::any_of(offers.begin(), offer, [&](const Offer& other) { return other.name == offer->name; })) {
      throw InputError(where, "two offers are called '" + offer->name + "'; allowed: {platform: …, name: …} each");
    }
  }
}

void read_buy(const yaml::Node& node, BuyQuestion& question) {
  yaml::Map map(node, "buy");
  for (const yaml::Node* offer : map.list("offers")) {
    std::vector<Offer> offers = read_offers(*offer);
    std::move(offers.begin(), offers.end(), std::back_inserter(question.offers));
  }
  refuse_twins(question.offers, map.where("offers"));
  question.goal = &map.choice("objective", purchase_goals(), purchase_goals().front().name);
  if (const yaml::Node* limits = map.find("constraints")) {
    yaml::Map constraints(*limits, "constraints");
    question.time = read_time_limit(constraints);
    question.budget = read_budget(constraints);
    constraints.finish();
  }
  if (const yaml::Node* failures = map.find("failures")) {
    question.failures = read_failures(*failures, false);
  }
  map.finish();
}

// The study's own platform.
Offer offer_of_study(const yaml::Node& platform) {
  return {.name = platform.kind == yaml::Node::Kind::scalar ? platform.text : "the study's platform", .settings = {}};
}

} // namespace

std::vector<Offer> read_offers(const yaml::Node& node) {
  std::vector<Offer> offers;
  if (node.kind == yaml::Node::Kind::scalar) {
    for (const std::string& platform : platforms_of(node.text)) {
      offers.push_back({platform, {{"platform", "", yaml::text_node(platform, node.where)}}});
    }
    return offers;
  }
  yaml::Map map(node, "offer");
  const yaml::Node& platform = map.node("platform");
  if (platform.kind == yaml::Node::Kind::scalar) {
    offers = read_offers(platform);
  } else {
    offers.push_back({"", {{"platform", "", platform}}});
  }
  const std::string name = map.text("name", offers.front().name);
  if (name.empty()) {
    throw InputError(node.where, "an offer whose platform is described here has no name; allowed: a 'name' beside it");
  }
  if (map.has("name") && offers.size() > 1) {
    throw InputError(map.where("name"), "one name for " + std::to_string(offers.size()) +
                                            " offers; allowed: one number of nodes beside a 'name'");
  }
  offers.front().name = name;
  if (const yaml::Node* price = map.find("price")) {
    for (Offer& offer : offers) {
      add_price(*price, offer.settings);
    }
  }
  map.finish();
  return offers;
}

BuyQuestion load_buy_question(const yaml::Node& study, std::vector<Setting>& settings) {
  BuyQuestion question{.rest = study};
  for (const Setting& setting : settings) {
    if (is_of_buy(setting)) {
      apply(question.rest, setting);
    }
  }
  std::erase_if(settings, is_of_buy);
  static const yaml::Node kNothing{.kind = yaml::Node::Kind::map};
  const yaml::Node* buy = question.rest.find("buy");
  read_buy(buy != nullptr ? *buy : kNothing, question);
  const yaml::Node* platform = question.rest.find("platform");
  if (question.offers.empty() && platform != nullptr) {
    question.offers.push_back(offer_of_study(*platform));
  } else if (question.offers.empty()) {
    throw InputError(study.where, "which machines are offered? allowed: --offer '2 x dgx-h100', or a study's "
                                  "buy: {offers: [2 x dgx-h100, 4 x dgx-b200]}");
  } else if (platform != nullptr) {
    throw InputError(platform->where, "'platform' stands beside offers; allowed: an offer of 'buy' for it");
  }
  yaml::erase(question.rest, {"buy"});
  return question;
}

} // namespace stagecraft
