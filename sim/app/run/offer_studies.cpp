// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/offer_studies.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/add_new.hpp"
#include "sim/base/divisors.hpp"
#include "sim/base/named_table.hpp"

namespace stagecraft {
namespace {

// The offered machines as the settings change them.
Platform platform_of(const OfferedStudy& offered, const Offer& offer) {
  const yaml::Node& document = offered.question.rest;
  yaml::Node platform{.kind = yaml::Node::Kind::map, .where = document.where};
  const auto add = [&](const yaml::Node& node) { platform.entries.push_back({"platform", node.where, node}); };
  if (offer.platform) {
    add(*offer.platform);
  } else if (const yaml::Node* own = document.find("platform")) {
    add(*own);
  }
  std::vector<Setting> of_platform;
  std::copy_if(offered.settings.begin(), offered.settings.end(), std::back_inserter(of_platform),
               [](const Setting& setting) { return is_of(setting, "platform"); });
  const ChangedStudy changed = changed_study(platform, of_platform);
  return read_platform(*changed.document.find("platform"), folders_of(offered.file), changed.of_platform);
}

void need_tokens(const OfferedStudy& offered) {
  const bool set = std::any_of(offered.settings.begin(), offered.settings.end(),
                               [](const Setting& setting) { return setting.key == "tokens"; });
  if (!set && offered.question.rest.find("tokens") == nullptr) {
    throw InputError({"--tokens", 0, 0},
                     "how much is trained? allowed: --tokens 300B, or the key 'tokens' of the study");
  }
}

// A price of a type that no offer has at the catalogue's price would change nothing.
void refuse_idle_prices(const OfferedStudy& offered, const std::vector<Platform>& platforms) {
  constexpr std::string_view kPrice = "price";
  std::vector<std::string> types;
  for (std::size_t at = 0; at < platforms.size(); ++at) {
    for (const DeviceType& type : platforms[at].types) {
      if (!offered.question.offers[at].price) {
        add_new(types, type.name);
      }
    }
  }
  for (const Setting& setting : offered.settings) {
    const bool of_type = is_below(setting.key, kPrice);
    const std::string type = of_type ? setting.key.substr(kPrice.size() + 1) : "";
    const bool idle =
        of_type ? std::find(types.begin(), types.end(), type) == types.end() : setting.key == kPrice && types.empty();
    if (idle) {
      throw InputError(setting.parsed ? setting.parsed->where : Where{"--set " + setting.key, 0, 0},
                       "no offer without a price of its own has " + (of_type ? "a '" + type + "'" : "devices") +
                           (types.empty() ? "" : "; allowed: " + join(types)));
    }
  }
}

const std::string* value_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const Setting& setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &found->value;
}

// The framework of an offer whose devices suggest none, where those of another do: an ideal machine would win against
// real ones.
std::vector<Setting> framework_beside(const std::vector<Setting>& own,
                                      const std::vector<std::vector<Setting>>& assumed) {
  const auto has_one = [](const std::vector<Setting>& of_offer) {
    return value_of(of_offer, "training.framework") != nullptr;
  };
  const bool needs_one = !has_one(own) && std::any_of(assumed.begin(), assumed.end(), has_one);
  return needs_one ? std::vector<Setting>{{"training.framework", kUsualFramework}} : std::vector<Setting>{};
}

// The batch, where nobody says it, is the same for all offers: the largest that one of them would take by itself, made
// up so that the devices of each share it; where that is far larger, the least that each takes a whole number of times.
std::vector<Setting> shared_batch(const std::vector<std::vector<Setting>>& assumed,
                                  const std::vector<Platform>& platforms) {
  constexpr long kMostTimes = 8, kFewTimes = 2; // the largest of them
  constexpr long kMostSamples = 1L << 24;
  long common = 1, largest = 0, devices = 1;
  for (const Platform& platform : platforms) {
    devices = devices > kMostSamples ? devices : std::lcm(devices, static_cast<long>(platform.devices.size()));
  }
  for (const std::vector<Setting>& of_offer : assumed) {
    if (const std::string* batch = value_of(of_offer, "training.global_batch")) {
      const long samples = std::stol(*batch);
      largest = std::max(largest, samples);
      common = common > kMostTimes * kMostSamples ? common : std::lcm(common, samples);
    }
  }
  if (largest == 0) {
    return {};
  }
  const long shared = round_up(largest, devices);
  return {{"training.global_batch", std::to_string(shared <= kFewTimes * largest    ? shared
                                                   : common <= kMostTimes * largest ? common
                                                                                    : largest)}};
}

} // namespace

std::vector<GivenStudy> studies_of_offers(const OfferedStudy& offered) {
  const std::vector<Offer>& offers = offered.question.offers;
  const yaml::Node& document = offered.question.rest;
  need_tokens(offered);
  std::vector<Platform> platforms;
  for (const Offer& offer : offers) {
    platforms.push_back(platform_of(offered, offer));
  }
  refuse_idle_prices(offered, platforms);
  std::vector<std::vector<Setting>> settings, assumed;
  for (std::size_t at = 0; at < platforms.size(); ++at) {
    settings.push_back(settings_for(offers[at], platforms[at], offered.settings));
    assumed.push_back(first_assumptions(document, offered.file, settings[at], AssumedDegrees::anywhere));
  }
  const std::vector<Setting> batch = shared_batch(assumed, platforms);
  std::vector<GivenStudy> studies;
  for (std::size_t at = 0; at < settings.size(); ++at) {
    std::vector<Setting> shared = framework_beside(assumed[at], assumed);
    shared.insert(shared.end(), batch.begin(), batch.end());
    std::vector<Setting> all = shared;
    all.insert(all.end(), settings[at].begin(), settings[at].end());
    studies.push_back(completed_study(document, offered.file, all, AssumedDegrees::anywhere));
    std::vector<Setting>& said = studies.back().assumed.settings;
    said.insert(said.begin(), shared.begin(), shared.end());
  }
  return studies;
}

} // namespace stagecraft
