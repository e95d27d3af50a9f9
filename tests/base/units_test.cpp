// Quantities: every unit, what is refused, and how they are shown.
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>

#include "sim/base/dimension.hpp"
#include "sim/base/units.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

const Where kHere{"a.yaml", 3, 7};

template <class Q> double read(std::string_view text) { return parse_quantity<Q>(text, kHere).value; }

template <class Q> void check_units(const std::vector<std::pair<std::string, double>>& units) {
  for (const auto& [unit, factor] : units) {
    CAPTURE(unit);
    CHECK(read<Q>("3 " + unit) == Approx(3 * factor).epsilon(1e-15));
    CHECK(read<Q>("2.5" + unit) == Approx(2.5 * factor).epsilon(1e-15)); // with or without a space
    CHECK(read<Q>("1e3 " + unit) == Approx(1e3 * factor).epsilon(1e-15));
    CHECK(read<Q>("0 " + unit) == 0);
  }
}

TEST_CASE("every unit has its factor", "[base][units]") {
  const double ki = 1024;
  check_units<Seconds>({{"s", 1},
                        {"ms", 1e-3},
                        {"us", 1e-6},
                        {"\xC2\xB5s", 1e-6},
                        {"ns", 1e-9},
                        {"min", 60},
                        {"h", 3600},
                        {"d", 86400}});
  check_units<Bytes>({{"B", 1},
                      {"kB", 1e3},
                      {"MB", 1e6},
                      {"GB", 1e9},
                      {"TB", 1e12},
                      {"KiB", ki},
                      {"MiB", ki * ki},
                      {"GiB", ki * ki * ki},
                      {"TiB", ki * ki * ki * ki}});
  check_units<BytesPerSecond>({{"B/s", 1},
                               {"kB/s", 1e3},
                               {"MB/s", 1e6},
                               {"GB/s", 1e9},
                               {"TB/s", 1e12},
                               {"KiB/s", ki},
                               {"MiB/s", ki * ki},
                               {"GiB/s", ki * ki * ki},
                               {"TiB/s", ki * ki * ki * ki},
                               {"b/s", 1.0 / 8},
                               {"kb/s", 1e3 / 8},
                               {"Mb/s", 1e6 / 8},
                               {"Gb/s", 1e9 / 8},
                               {"Tb/s", 1e12 / 8}});
  check_units<Flops>({{"FLOP", 1}, {"kFLOP", 1e3}, {"MFLOP", 1e6}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}});
  check_units<FlopsPerSecond>(
      {{"FLOP/s", 1}, {"kFLOP/s", 1e3}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}});
  check_units<Joules>({{"J", 1}, {"mJ", 1e-3}, {"kJ", 1e3}, {"MJ", 1e6}, {"Wh", 3600}, {"kWh", 3.6e6}});
  check_units<Watts>({{"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {"MW", 1e6}});
  check_units<Dollars>({{"USD", 1}});
  check_units<DollarsPerSecond>({{"USD/h", 1.0 / 3600}, {"USD/s", 1}});
}

TEST_CASE("units are read as people also write them", "[base][units]") {
  CHECK(read<BytesPerSecond>("10 Gbps") == Approx(10e9 / 8));
  CHECK(read<BytesPerSecond>("10 Gbit/s") == Approx(10e9 / 8));
  CHECK(read<BytesPerSecond>("900GBps") == Approx(900e9));
  CHECK(read<Seconds>("30 days") == Approx(30 * 86400));
  CHECK(read<Seconds>("1 week") == Approx(7 * 86400));
  CHECK(read<Seconds>("2 hours") == Approx(7200));
  CHECK(read<Dollars>("50 kUSD") == Approx(50'000));
  CHECK(read<DollarsPerSecond>("36 $/h") == Approx(0.01));
  CHECK(read<FlopsPerSecond>("989 TFLOPS") == Approx(989e12));
  CHECK(find_amount("10 Gbps") == Approx(10e9 / 8));
}

TEST_CASE("a unit that could mean two things is refused with the nearest that means one", "[base][units]") {
  CHECK_THROWS_WITH(read<Bytes>("4 KB"), Catch::Contains("unknown unit 'KB'; did you mean 'kB'? allowed: B, kB"));
  CHECK_THROWS_WITH(read<BytesPerSecond>("4 GB"), Catch::Contains("did you mean 'GB/s'?"));
  CHECK_THROWS_WITH(read<Dollars>("90k"), Catch::Contains("did you mean 'kUSD'?")); // and not 90 dollars
  CHECK_THROWS_WITH(read<Bytes>("90k"), !Catch::Contains("USD"));
  CHECK_THROWS_WITH(read<BytesPerSecond>("4 gbps"), Catch::Contains("did you mean 'Gb/s'?"));
  CHECK_THROWS_WITH(read<Bytes>("4 Gbps"), Catch::Contains("unknown unit 'Gbps'"));
}

TEST_CASE("a bare number other than 0 is refused", "[base][units]") {
  CHECK(read<Bytes>("0") == 0);
  CHECK(read<Bytes>("0.0") == 0);
  CHECK_THROWS_WITH(read<BytesPerSecond>("12 apples"), Catch::EndsWith("Tb/s, kbps, Mbps, Gbps, Tbps"));
  CHECK_THROWS_WITH(read<Bytes>("1"), "a.yaml:3:7: '1' needs a unit; allowed: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB");
  CHECK_THROWS_WITH(read<Seconds>("-2"), Catch::Contains("'-2' needs a unit"));
}

TEST_CASE("units of another dimension, of another case or unknown are refused", "[base][units]") {
  for (const std::string_view text : {"1 s", "1 gb", "1 GB/s", "1 Gb", "1 parsec", "1 B B", "1 Bx", "1 B "}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(read<Bytes>(text), Catch::Contains("unknown unit"));
  }
}

TEST_CASE("a number that is refused says which are allowed", "[base][units]") {
  CHECK_THROWS_WITH(parse_number("nan", {}), Catch::Contains("not a finite number; allowed: a decimal number"));
  CHECK_THROWS_WITH(parse_number("1e-400", {}), Catch::Contains("'1e-400' is too near 0; allowed: 0, or"));
  CHECK_THROWS_WITH(parse_number("1e400", {}), Catch::Contains("not a finite number"));
  CHECK_THROWS_WITH(parse_number("", {}), Catch::Contains("a number is missing; allowed: a decimal number"));
}

TEST_CASE("numbers that are not finite are refused", "[base][units]") {
  for (const std::string_view text : {"nan B", "inf B", "-inf B", "infinity B", "B", "", " 1 B", "+1 B", "0x10 B",
                                      "1e999 B", "1e308 TiB", ".5e B", "--1 B", "1,5 B"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read<Bytes>(text), InputError);
  }
  CHECK_THROWS_WITH(read<Bytes>("1e308 TiB"), Catch::Contains("not a finite number"));
}

TEST_CASE("leading zeros are refused, they may mean octal", "[base][units]") {
  for (const std::string_view text : {"010 B", "00 B", "-01 B", "01.5 B"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(read<Bytes>(text), Catch::Contains("leading zero"));
  }
  CHECK(read<Bytes>("0.5 B") == 0.5);
  CHECK(read<Bytes>("-0.5 B") == -0.5);
}

TEST_CASE("numbers fill the whole text", "[base][units]") {
  CHECK(parse_number("1.5", kHere) == 1.5);
  CHECK(parse_number("-2e-3", kHere) == -2e-3);
  for (const std::string_view text : {"", "1.5 s", "1.5x", "nan", "inf", "1e999", "007", "x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_number(text, kHere), InputError);
  }
}

TEST_CASE("integers stay within their range, which includes both ends", "[base][units]") {
  CHECK(parse_integer("1", 1, 8, kHere) == 1);
  CHECK(parse_integer("8", 1, 8, kHere) == 8);
  CHECK(parse_integer("-3", -3, 8, kHere) == -3);
  for (const std::string_view text :
       {"0", "9", "", "1.0", "1e1", "01", "-01", "99999999999999999999", "1 ", "x", "-"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_integer(text, 1, 8, kHere), Catch::Contains("allowed: an integer in [1, 8]"));
  }
}

TEST_CASE("dimensions are types", "[base][units]") {
  static_assert(std::is_same_v<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
  static_assert(std::is_same_v<decltype(Watts{} * Seconds{}), Joules>);
  static_assert(std::is_same_v<decltype(DollarsPerSecond{} * Seconds{}), Dollars>);
  static_assert(std::is_same_v<decltype(Flops{} / FlopsPerSecond{}), Seconds>);
  static_assert(std::is_same_v<decltype(Bytes{} / Bytes{}), double>);
  CHECK((Bytes{10} / BytesPerSecond{4} + Seconds{1}).value == 3.5);
  CHECK(Bytes{10} / Bytes{4} == 2.5);
}

TEST_CASE("quantities are shown in a fitting unit", "[base][units]") {
  CHECK(to_text(Seconds{0.0123}) == "12.30 ms");
  CHECK(to_text(Seconds{0}) == "0 s");
  CHECK(to_text(Seconds{std::numeric_limits<double>::infinity()}) == "inf s"); // has no digits to count
  CHECK(to_text(Bytes{1.5 * 1024 * 1024 * 1024}) == "1.500 GiB");
  CHECK(to_text(BytesPerSecond{31.2e9}) == "31.20 GB/s");
  CHECK(to_text(Dollars{0.05}) == "0.050000 USD");
  CHECK(to_text(1.25, 1).size() == 3);
  CHECK(percent(0.1234, 1) == "12.3 %");
  CHECK(percent(-0.5, 0) == "-50 %");
}

TEST_CASE("only a word that is a number or a quantity of any unit is an amount", "[base][units]") {
  CHECK(find_amount("10") == 10);
  CHECK(find_amount("-2.5e3") == -2500);
  CHECK(find_amount("10 Gb/s") == 1.25e9);
  CHECK(find_amount("2us") == parse_quantity<Seconds>("2us", {}).value);
  CHECK(find_amount("3 kFLOP/s") == 3000);
  for (const char* word : {"", "gpipe", "1f1b", "10 apples", "08", "1e999", "inf", "nan", "- 1"}) {
    INFO(word);
    CHECK_FALSE(find_amount(word));
  }
}

TEST_CASE("a quantity's text knows its dimension", "[base][units]") {
  const auto name = [](const char* text) { return name_of(find_quantity(text)->dimension); };
  CHECK(name("10") == "a plain number");
  CHECK(name("3 min") == "a time");
  CHECK(name("3 GiB") == "an amount of data");
  CHECK(name("3Gb/s") == "a data rate");
  CHECK(name("3 FLOP") == "an amount of work");
  CHECK(name("3 TFLOP/s") == "a rate of work");
  CHECK(name("3 kWh") == "an energy");
  CHECK(name("3 W") == "a power");
  CHECK(name("3 USD") == "an amount of money");
  CHECK(name("3 USD/h") == "a price per time");
  const Dimension time = find_quantity("1 s")->dimension, rate = find_quantity("1 B/s")->dimension;
  CHECK(rate * time == find_quantity("1 B")->dimension);
  CHECK(time / time == Dimension{});
  CHECK(name_of(rate / time) == "a quantity in s^-2 B");
}

} // namespace
} // namespace stagecraft
