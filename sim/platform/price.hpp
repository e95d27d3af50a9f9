// What a device or a host costs, and who says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft {

namespace yaml {
class Map;
}

/// Money per time, and where the figure comes from.
struct Price {
  DollarsPerSecond rate;
  std::string source;   ///< whose price it is, as "RunPod, on demand"; "": not said
  std::string date;     ///< when it was asked: YYYY, YYYY-MM or YYYY-MM-DD; "": not known
  bool assumed = false; ///< a guess: nobody asks this price

  bool operator==(const Price&) const = default;
};

/// Reads the key `price` of a device type or host: a rate alone, or a mapping of rate, source, date, assumed;
/// `otherwise` where it is absent. Throws InputError.
Price read_price(yaml::Map& map, const Price& otherwise = {});

/// A price and what it is of: the name of a device type, or "host of NODE".
struct NamedPrice {
  std::string of;
  Price price;

  bool operator==(const NamedPrice&) const = default;
};

/// The source of a price that the study or the command line gives in place of the catalogue's.
inline constexpr char kGivenHere[] = "as given";

/// "2.86 USD/h (Google Cloud list price, date not known)".
std::string in_words(const Price& price);
/// "v100 2.86 USD/h (…); p100 1.43 USD/h (assumed: …)".
std::string in_words(std::span<const NamedPrice> prices);

/// Adds those of `more` that are not among `prices` yet.
void add_prices(std::vector<NamedPrice>& prices, std::span<const NamedPrice> more);

/// Whether the prices are not all of one source and one date.
bool differ_in_source(std::span<const NamedPrice> prices);

/// What a reader of figures of money must know, in a sentence: every price with its source and date, which are assumed,
/// and that prices of different sources are no offers of one market. "" without prices.
std::string price_remark(std::span<const NamedPrice> prices);

/// Stands before a figure of money that rests on an assumed price.
inline constexpr char kAssumedMark[] = "~";

} // namespace stagecraft
