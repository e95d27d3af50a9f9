// Prices: how they are written, read and put into words.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "sim/base/format/yaml.hpp"
#include "sim/platform/price.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using test::near;

Price read(const std::string& text) {
  const yaml::Node document = yaml::parse(text, "card.yaml");
  yaml::Map map(document, "device type");
  return read_price(map);
}

TEST_CASE("a price is a rate alone, or a rate with its source, date and whether it is assumed", "[platform][price]") {
  const Price bare = read("price: 3.6 USD/h\n");
  CHECK(bare.rate.value == near(0.001));
  CHECK(in_words(bare) == "3.60 USD/h (source not given)");
  const Price asked = read("price: {rate: 3.6 USD/h, source: a shop, date: 2026-03}\n");
  CHECK(asked == Price{.rate = bare.rate, .source = "a shop", .date = "2026-03"});
  CHECK(in_words(asked) == "3.60 USD/h (a shop, 2026-03)");
  CHECK(in_words(read("price: {rate: 3.6 USD/h, source: a shop}\n")) == "3.60 USD/h (a shop, date not known)");
  const Price guess = read("price: {rate: 3.6 USD/h, source: half of another, assumed: true}\n");
  CHECK(in_words(guess) == "3.60 USD/h (assumed: half of another)");
  CHECK(read("name: card\n") == Price{});
  CHECK(in_words(Price{}) == "no price");
}

TEST_CASE("dates of prices are years, months or days", "[platform][price][bad-input]") {
  const auto dated = [](const std::string& date) {
    return read("price: {rate: 1 USD/h, date: '" + date + "'}\n").date;
  };
  for (const char* date : {"2026", "2026-01", "2026-12", "2026-12-31"}) {
    CHECK(dated(date) == date);
  }
  for (const char* date : {"26", "2026-00", "2026-13", "2026-1", "2026-12-00", "2026-12-32", "March 2026", "2026/03"}) {
    INFO(date);
    CHECK_THROWS_WITH(dated(date), Catch::Contains("is no date; allowed: a year, month or day, as 2026-03"));
  }
  CHECK_THROWS_WITH(read("price: {rate: 1 USD/h, assumed: true}\n"),
                    Catch::Contains("an assumed price without a reason"));
  CHECK_THROWS_WITH(read("price: {source: a shop}\n"), Catch::Contains("missing key 'rate'"));
  CHECK_THROWS_WITH(read("price: {rate: 1 USD/h, shop: x}\n"), Catch::Contains("unknown key 'shop'"));
}

TEST_CASE("the remark on prices names each once, those assumed, and that they are of different sources",
          "[platform][price]") {
  const Price shop{.rate = DollarsPerSecond{2.0 / 3600}, .source = "a shop", .date = "2026"};
  Price later = shop, guess = shop;
  later.date = "2027";
  guess.assumed = true;
  std::vector<NamedPrice> prices;
  CHECK(price_remark(prices).empty());
  add_prices(prices, std::array{NamedPrice{"x", shop}, NamedPrice{"y", shop}, NamedPrice{"x", shop}});
  CHECK(price_remark(prices) == "Prices: x 2.00 USD/h (a shop, 2026); y 2.00 USD/h (a shop, 2026).");
  CHECK_FALSE(differ_in_source(prices));
  prices.push_back({"z", guess});
  CHECK_FALSE(differ_in_source(prices));
  CHECK_THAT(price_remark(prices), Catch::Contains("What rests on an assumed price is marked ~."));
  prices.push_back({"w", later});
  CHECK(differ_in_source(prices));
  CHECK_THAT(price_remark(prices), Catch::Contains("different sources or dates"));
}

} // namespace
} // namespace stagecraft
