// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/price.hpp"

#include <algorithm>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/format/yaml.hpp"

namespace stagecraft {
namespace {

// YYYY, YYYY-MM or YYYY-MM-DD, with a month from 01 to 12 and a day from 01 to 31.
bool is_date(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  const bool whole = text.size() == 4 || text.size() == 7 || text.size() == kForm.size();
  const auto fits = [](char c, char form) { return form == 'd' ? c >= '0' && c <= '9' : c == form; };
  if (!whole || !std::equal(text.begin(), text.end(), kForm.begin(), fits)) {
    return false;
  }
  const std::string month = text.size() > 4 ? text.substr(5, 2) : "01";
  const std::string day = text.size() > 7 ? text.substr(8) : "01";
  return month >= "01" && month <= "12" && day >= "01" && day <= "31";
}

} // namespace

Price read_price(yaml::Map& map, const Price& otherwise) {
  const yaml::Node* given = map.find("price");
  if (given == nullptr) {
    return otherwise;
  }
  if (given->kind != yaml::Node::Kind::map) {
    return {.rate = map.quantity<DollarsPerSecond>("price", physical::kPrice)};
  }
  yaml::Map fields(*given, "price");
  Price price{.rate = fields.quantity<DollarsPerSecond>("rate", physical::kPrice),
              .source = fields.text("source", ""),
              .date = fields.text("date", ""),
              .assumed = fields.boolean("assumed", false)};
  if (!price.date.empty() && !is_date(price.date)) {
    throw InputError(fields.where("date"),
                     "'" + price.date.substr(0, 60) + "' is no date; allowed: a year, month or day, as 2026-03");
  }
  if (price.assumed && price.source.empty()) {
    throw InputError(fields.where("assumed"), "an assumed price without a reason; needed: 'source', what it rests on");
  }
  fields.finish();
  return price;
}

std::string in_words(const Price& price) {
  const std::string rate = to_text(price.rate.value * kSecondsOfHour, 2) + " USD/h";
  if (price.rate.value == 0 && price.source.empty()) {
    return "no price";
  }
  const std::string source = price.source.empty() ? "source not given" : price.source;
  const std::string date = !price.date.empty()                                                   ? ", " + price.date
                           : price.assumed || price.source.empty() || price.source == kGivenHere ? ""
                                                                                                 : ", date not known";
  return rate + " (" + (price.assumed ? "assumed: " : "") + source + date + ")";
}

std::string in_words(std::span<const NamedPrice> prices) {
  std::string words;
  for (const NamedPrice& one : prices) {
    words += (words.empty() ? "" : "; ") + one.of + " " + in_words(one.price);
  }
  return words;
}

void add_prices(std::vector<NamedPrice>& prices, std::span<const NamedPrice> more) {
  for (const NamedPrice& one : more) {
    if (std::find(prices.begin(), prices.end(), one) == prices.end()) {
      prices.push_back(one);
    }
  }
}

bool differ_in_source(std::span<const NamedPrice> prices) {
  return std::any_of(prices.begin(), prices.end(), [&](const NamedPrice& one) {
    return one.price.source != prices.front().price.source || one.price.date != prices.front().price.date;
  });
}

std::string price_remark(std::span<const NamedPrice> prices) {
  if (prices.empty()) {
    return "";
  }
  const bool assumed = std::any_of(prices.begin(), prices.end(), [](auto& one) { return one.price.assumed; });
  return "Prices: " + in_words(prices) + "." +
         (assumed ? " What rests on an assumed price is marked " + std::string(kAssumedMark) + "." : "") +
         (differ_in_source(prices) ? " They are of different sources or dates, so a ranking by money compares offers "
                                     "that nobody makes together."
                                   : "");
}

} // namespace stagecraft
