// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "sim/analysis/buy.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/study/keys/perturb_options.hpp"

namespace stagecraft {
namespace {

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
    const std::string count = without_blanks_around(counts.substr(begin, comma - begin));
    if (count.empty()) { // "2,,4 x": no count, so no name of a platform either
      return {text};
    }
    platforms.push_back(count + text.substr(times));
    begin = comma + 1;
  }
  return platforms;
}

template <class Q> std::optional<PurchaseLimit<Q>> read_limit(yaml::Map& map, const char* key) {
  return map.has(key) ? std::optional(PurchaseLimit<Q>{map.quantity<Q>(key, yaml::kPositive), map.text(key)})
                      : std::nullopt;
}

// Two offers of one name could not be told apart.
void refuse_twins(const std::vector<Offer>& offers) {
  for (auto offer = offers.begin(); offer != offers.end(); ++offer) {
    if (std::any_of(offers.begin(), offer, [&](const Offer& other) { return other.name == offer->name; })) {
      throw InputError(offer->where,
                       "two offers are called '" + offer->name + "'; allowed: {platform: …, name: …} for one of them");
    }
  }
}

void read_buy(const yaml::Node& node, BuyQuestion& question) {
  yaml::Map map(node, "buy");
  for (const yaml::Node* offer : map.list("offers")) {
    std::vector<Offer> offers = read_offers(*offer);
    std::move(offers.begin(), offers.end(), std::back_inserter(question.offers));
  }
  refuse_twins(question.offers);
  question.terms.goal = &map.choice("objective", purchase_goals(), purchase_goals().front().name);
  if (const yaml::Node* limits = map.find("constraints")) {
    yaml::Map constraints(*limits, "constraints");
    question.terms.time = read_limit<Seconds>(constraints, "training-time");
    question.terms.budget = read_limit<Dollars>(constraints, "budget");
    constraints.finish();
  }
  if (const yaml::Node* failures = map.find("failures")) {
    question.terms.failures = read_failures(*failures, false);
  }
  map.finish();
}

// Keys of a study that ask other questions, which nobody would answer.
void refuse_other_questions(const yaml::Node& study, const std::vector<Setting>& settings) {
  constexpr std::array kOthers = {std::pair{"perturb", "buy.failures, for devices that fail"},
                                  std::pair{"sweep", "buy.offers in place of an axis, or a study of its own"}};
  for (const auto& [key, allowed] : kOthers) {
    const std::string message = "'" + std::string(key) + "' is not heeded by 'buy'; allowed: " + allowed;
    if (const yaml::Node* node = study.find(key)) {
      throw InputError(node->where, message);
    }
    for (const Setting& setting : settings) {
      if (is_of(setting, key)) {
        throw InputError({"--set " + setting.key, 0, 0}, message);
      }
    }
  }
}

// The place of the study's own platform, in its file or among the settings; nothing where it has none.
std::optional<Offer> own_platform(const yaml::Node& study, const std::vector<Setting>& settings) {
  const auto set = std::find_if(settings.rbegin(), settings.rend(),
                                [](const Setting& setting) { return setting.key == "platform"; });
  if (set != settings.rend()) {
    return Offer{.name = set->value, .where = {"--set platform", 0, 0}};
  }
  const yaml::Node* platform = study.find("platform");
  const bool is_named = platform != nullptr && platform->kind == yaml::Node::Kind::scalar;
  return platform == nullptr ? std::nullopt
                             : std::optional(Offer{.name = is_named ? platform->text : "the study's platform",
                                                   .where = platform->where});
}

// Prices by type one by one, since not every offer has every type: those of the study in front of the settings.
void spread_prices(yaml::Node& study, std::vector<Setting>& settings) {
  std::vector<Setting> spread;
  const auto add = [&](const yaml::Node& prices) {
    for (const yaml::Node::Entry& entry : prices.entries) {
      spread.push_back({"price." + entry.key, "", entry.value});
    }
  };
  if (const yaml::Node* prices = study.find("price"); prices != nullptr && prices->kind == yaml::Node::Kind::map) {
    add(*prices);
    yaml::erase(study, {"price"});
  }
  for (Setting& setting : settings) {
    const yaml::Node value = setting.key != "price" ? yaml::Node{}
                             : setting.parsed       ? *setting.parsed
                                                    : yaml::parse(setting.value, "--set price");
    value.kind == yaml::Node::Kind::map ? add(value) : spread.push_back(std::move(setting));
  }
  settings = std::move(spread);
}

} // namespace

std::vector<Offer> read_offers(const yaml::Node& node) {
  std::vector<Offer> offers;
  if (node.kind == yaml::Node::Kind::scalar) {
    for (const std::string& platform : platforms_of(node.text)) {
      offers.push_back({.name = platform, .platform = yaml::text_node(platform, node.where), .where = node.where});
    }
    return offers;
  }
  if (node.kind != yaml::Node::Kind::map) {
    throw InputError(node.where, "not an offer; allowed: a platform, as 2 x dgx-h100, or {platform, name, price}");
  }
  yaml::Map map(node, "offer");
  const yaml::Node& platform = map.node("platform");
  if (platform.kind == yaml::Node::Kind::scalar) {
    offers = read_offers(platform);
  } else {
    offers.push_back({.platform = platform, .where = node.where});
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
      offer.price = *price;
    }
  }
  map.finish();
  return offers;
}

BuyQuestion load_buy_question(const yaml::Node& study, std::vector<Setting>& settings) {
  BuyQuestion question{.rest = study};
  for (const Setting& setting : settings) {
    if (is_of(setting, "buy")) {
      apply(question.rest, setting);
    }
  }
  std::erase_if(settings, [](const Setting& setting) { return is_of(setting, "buy"); });
  refuse_other_questions(question.rest, settings);
  spread_prices(question.rest, settings);
  static const yaml::Node kNothing{.kind = yaml::Node::Kind::map};
  const yaml::Node* buy = question.rest.find("buy");
  read_buy(buy != nullptr ? *buy : kNothing, question);
  std::optional<Offer> own = own_platform(question.rest, settings);
  if (own && !question.offers.empty()) {
    throw InputError(own->where, "'platform' stands beside offers; allowed: an offer of 'buy' for it");
  }
  if (own) {
    question.offers.push_back(std::move(*own));
  }
  if (question.offers.empty()) {
    throw InputError(study.where, "which machines are offered? allowed: --offer '2 x dgx-h100', or a study's "
                                  "buy: {offers: [2 x dgx-h100, 4 x dgx-b200]}");
  }
  yaml::erase(question.rest, {"buy"});
  return question;
}

} // namespace stagecraft
