// SPDX-License-Identifier: Apache-2.0
#include "sim/base/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "sim/base/dimension.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024.0;

constexpr Unit kTime[] = {{"s", 1},     {"ms", 1e-3}, {"us", 1e-6}, {"\xC2\xB5s", 1e-6},
                          {"ns", 1e-9}, {"min", 60},  {"h", 3600},  {"d", 86400}};
constexpr Unit kData[] = {{"B", 1},
                          {"kB", 1e3},
                          {"MB", 1e6},
                          {"GB", 1e9},
                          {"TB", 1e12},
                          {"KiB", kKi},
                          {"MiB", kKi* kKi},
                          {"GiB", kKi* kKi* kKi},
                          {"TiB", kKi* kKi* kKi* kKi}};
constexpr Unit kDataRate[] = {{"B/s", 1},
                              {"kB/s", 1e3},
                              {"MB/s", 1e6},
                              {"GB/s", 1e9},
                              {"TB/s", 1e12},
                              {"KiB/s", kKi},
                              {"MiB/s", kKi* kKi},
                              {"GiB/s", kKi* kKi* kKi},
                              {"TiB/s", kKi* kKi* kKi* kKi},
                              {"b/s", 0.125},
                              {"kb/s", 0.125e3},
                              {"Mb/s", 0.125e6},
                              {"Gb/s", 0.125e9},
                              {"Tb/s", 0.125e12}};
constexpr Unit kWork[] = {{"FLOP", 1},    {"kFLOP", 1e3},  {"MFLOP", 1e6},
                          {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}};
constexpr Unit kWorkRate[] = {{"FLOP/s", 1},    {"kFLOP/s", 1e3},  {"MFLOP/s", 1e6},
                              {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr Unit kEnergy[] = {{"J", 1}, {"mJ", 1e-3}, {"kJ", 1e3}, {"MJ", 1e6}, {"Wh", 3600}, {"kWh", 3.6e6}};
constexpr Unit kPower[] = {{"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {"MW", 1e6}};
constexpr Unit kMoney[] = {{"USD", 1}};
constexpr Unit kMoneyRate[] = {{"USD/h", 1.0 / 3600}, {"USD/s", 1}};

// What people also write for a unit of the tables above. Only spellings that can mean one thing: KB, which some take
// for 1000 and some for 1024 bytes, is none of them.
struct Spelling {
  std::string_view written, unit;
  double factor = 1; ///< what is written is as many of `unit`
};

constexpr Spelling kSpellings[] = {
    {"sec", "s"},          {"secs", "s"},      {"second", "s"},      {"seconds", "s"},      {"minute", "min"},
    {"minutes", "min"},    {"hr", "h"},        {"hrs", "h"},         {"hour", "h"},         {"hours", "h"},
    {"day", "d"},          {"days", "d"},      {"week", "d", 7},     {"weeks", "d", 7},     {"bps", "b/s"},
    {"kbps", "kb/s"},      {"Mbps", "Mb/s"},   {"Gbps", "Gb/s"},     {"Tbps", "Tb/s"},      {"bit/s", "b/s"},
    {"kbit/s", "kb/s"},    {"Mbit/s", "Mb/s"}, {"Gbit/s", "Gb/s"},   {"Tbit/s", "Tb/s"},    {"kBps", "kB/s"},
    {"MBps", "MB/s"},      {"GBps", "GB/s"},   {"TBps", "TB/s"},     {"GFLOPS", "GFLOP/s"}, {"TFLOPS", "TFLOP/s"},
    {"PFLOPS", "PFLOP/s"}, {"$", "USD"},       {"kUSD", "USD", 1e3}, {"MUSD", "USD", 1e6},  {"USD/hour", "USD/h"},
    {"USD/hr", "USD/h"},   {"$/h", "USD/h"},   {"$/hour", "USD/h"},  {"$/hr", "USD/h"},
};

// What a unit as written stands for, in SI units; nothing for one that none of `units` is.
std::optional<double> factor_of(std::string_view unit, std::span<const Unit> units) {
  const auto spelling = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                     [&](const Spelling& known) { return known.written == unit; });
  const bool spelled = spelling != std::end(kSpellings);
  const std::string_view name = spelled ? spelling->unit : unit;
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& known) { return known.name == name; });
  return found == units.end() ? std::nullopt : std::optional(found->factor * (spelled ? spelling->factor : 1));
}

template <class Q> constexpr std::span<const Unit> units_of() {
  if constexpr (std::is_same_v<Q, Seconds>) {
    return kTime;
  } else if constexpr (std::is_same_v<Q, Bytes>) {
    return kData;
  } else if constexpr (std::is_same_v<Q, BytesPerSecond>) {
    return kDataRate;
  } else if constexpr (std::is_same_v<Q, Flops>) {
    return kWork;
  } else if constexpr (std::is_same_v<Q, FlopsPerSecond>) {
    return kWorkRate;
  } else if constexpr (std::is_same_v<Q, Joules>) {
    return kEnergy;
  } else if constexpr (std::is_same_v<Q, Watts>) {
    return kPower;
  } else if constexpr (std::is_same_v<Q, Dollars>) {
    return kMoney;
  } else {
    static_assert(std::is_same_v<Q, DollarsPerSecond>);
    return kMoneyRate;
  }
}

// What is written for a unit that people shorten, by the time it is per or by the currency: "Gb" and "gbit" of "Gb/s",
// "k" of "kUSD".
constexpr Spelling kShortened[] = {{"gbit", "Gb/s"}, {"Gb", "Gb/s"},    {"GB", "GB/s"},   {"mbit", "Mb/s"},
                                   {"Mb", "Mb/s"},   {"MB", "MB/s"},    {"GiB", "GiB/s"}, {"gig", "Gb/s"},
                                   {"gbe", "Gb/s"},  {"gbits", "Gb/s"}, {"k", "kUSD"},    {"K", "kUSD"},
                                   {"M", "MUSD"}};

// "'10 GBs' has the unknown unit 'GBs'; did you mean 'GB/s'? allowed: …"
std::string unknown_unit(std::string_view text, std::string_view unit, std::span<const Unit> units) {
  const std::vector<std::string> known = names_of(units);
  std::vector<std::string> spelled = known; // with the spelling of rates that vendors print
  for (const Spelling& spelling : kSpellings) {
    const bool vendors = spelling.written.ends_with("bps") && spelling.written.size() > std::string_view("bps").size();
    if (vendors && std::find(known.begin(), known.end(), spelling.unit) != known.end()) {
      spelled.emplace_back(spelling.written);
    }
  }
  const std::string allowed = "allowed: " + join(spelled);
  if (unit.empty()) {
    return "'" + excerpt(text) + "' needs a unit; " + allowed;
  }
  std::vector<std::string> written = known;
  std::vector<std::string> meant = known;
  for (const Spelling& spelling : kSpellings) {
    if (std::find(known.begin(), known.end(), spelling.unit) != known.end()) {
      written.emplace_back(spelling.written);
      meant.emplace_back(spelling.factor == 1 ? spelling.unit : spelling.written);
    }
  }
  const auto exact = std::find_if(std::begin(kShortened), std::end(kShortened), [&](const Spelling& one) {
    const bool bits =
        one.unit.find("b/s") != std::string_view::npos && one.written.size() > 2; // "Gbit", whatever the case
    return (one.written == unit || (bits && same_name(one.written, unit))) &&
           std::find(written.begin(), written.end(), one.unit) != written.end();
  });
  if (exact != std::end(kShortened)) {
    return "'" + excerpt(text) + "' has the unknown unit '" + excerpt(unit, 20) + "'; did you mean '" +
           std::string(exact->unit) + "'? " + allowed;
  }
  const auto found = std::find(written.begin(), written.end(), nearest(unit, written));
  const std::string close = found != written.end() ? meant[static_cast<std::size_t>(found - written.begin())] : "";
  return "'" + excerpt(text) + "' has the unknown unit '" + excerpt(unit, 20) + "'; " +
         (close.empty() ? "" : "did you mean '" + close + "'? ") + allowed;
}

bool has_leading_zero(std::string_view text) {
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  return digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
}

constexpr std::string_view kNumbers = "; allowed: a decimal number, such as 1.5 or 2e-3";

// Whether digits in front of a text are a number that is too near 0 for a double.
bool is_too_small(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string digits(text.data(), end);
  return failure == std::errc::result_out_of_range && std::abs(std::strtod(digits.c_str(), nullptr)) < 1;
}

// Reads the number at the front of `text` and puts what follows it into `rest`; refuses forms that only std::from_chars
// allows.
double front_number(std::string_view text, std::string_view& rest, const Where& where) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (is_too_small(text)) {
    throw InputError(where, "'" + excerpt(text) + "' is too near 0; allowed: 0, or a number of at least 2.3e-308");
  }
  if (failure != std::errc{} || !std::isfinite(value)) {
    throw InputError(where, "'" + excerpt(text) + "' is not a finite number" + std::string(kNumbers));
  }
  if (has_leading_zero(text)) {
    throw InputError(where, "'" + excerpt(text) + "' has a leading zero; write it without");
  }
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

std::string scaled(double value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.factor) {
      best = &unit;
    }
  }
  const double shown = value / best->factor;
  const bool has_digits = shown != 0 && std::isfinite(shown);
  const int whole = has_digits ? std::max(1, static_cast<int>(std::floor(std::log10(std::abs(shown)))) + 1) : 1;
  return to_text(shown, std::clamp(4 - whole, 0, 3)) + " " + std::string(best->name);
}

} // namespace

template <class Q> Q parse_quantity(std::string_view text, const Where& where) {
  std::string_view unit;
  const double value = front_number(text, unit, where);
  while (!unit.empty() && unit.front() == ' ') {
    unit.remove_prefix(1);
  }
  if (unit.empty() && value == 0) {
    return Q{0};
  }
  const std::span<const Unit> units = units_of<Q>();
  const std::optional<double> factor = factor_of(unit, units);
  if (!factor) {
    throw InputError(where, unknown_unit(text, unit, units));
  }
  if (!std::isfinite(value * *factor)) {
    throw InputError(where, "'" + excerpt(text) + "' is not a finite number");
  }
  return Q{value * *factor};
}

template Seconds parse_quantity<Seconds>(std::string_view, const Where&);
template Bytes parse_quantity<Bytes>(std::string_view, const Where&);
template BytesPerSecond parse_quantity<BytesPerSecond>(std::string_view, const Where&);
template Flops parse_quantity<Flops>(std::string_view, const Where&);
template FlopsPerSecond parse_quantity<FlopsPerSecond>(std::string_view, const Where&);
template Joules parse_quantity<Joules>(std::string_view, const Where&);
template Watts parse_quantity<Watts>(std::string_view, const Where&);
template Dollars parse_quantity<Dollars>(std::string_view, const Where&);
template DollarsPerSecond parse_quantity<DollarsPerSecond>(std::string_view, const Where&);

double parse_number(std::string_view text, const Where& where) {
  if (text.empty()) {
    throw InputError(where, "a number is missing" + std::string(kNumbers));
  }
  std::string_view rest;
  const double value = front_number(text, rest, where);
  if (!rest.empty()) {
    throw InputError(where, "'" + excerpt(text) + "' is not a number" + std::string(kNumbers));
  }
  return value;
}

namespace {

struct DimensionUnits {
  Dimension dimension;
  std::span<const Unit> units;
};

template <int T, int D, int W, int E, int M> constexpr Dimension dimension_of(Quantity<T, D, W, E, M> /*unit*/) {
  return {{T, D, W, E, M}};
}

template <class... Q> std::array<DimensionUnits, sizeof...(Q)> all_units() {
  return {DimensionUnits{dimension_of(Q{}), units_of<Q>()}...};
}

} // namespace

std::optional<AnyQuantity> find_quantity(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !std::isfinite(value) || has_leading_zero(text)) {
    return std::nullopt;
  }
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.empty()) {
    return AnyQuantity{value, {}};
  }
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  static const auto kAll =
      all_units<Seconds, Bytes, BytesPerSecond, Flops, FlopsPerSecond, Joules, Watts, Dollars, DollarsPerSecond>();
  for (const DimensionUnits& known : kAll) {
    const std::optional<double> factor = factor_of(unit, known.units);
    if (factor && std::isfinite(value * *factor)) {
      return AnyQuantity{value * *factor, known.dimension};
    }
  }
  return std::nullopt;
}

std::optional<double> find_amount(std::string_view text) {
  const std::optional<AnyQuantity> found = find_quantity(text);
  return found ? std::optional(found->value) : std::nullopt;
}

int parse_integer(std::string_view text, int low, int high, const Where& where) {
  const std::string range = "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]";
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view digits = text.substr(!text.empty() && text.front() == '-' ? 1 : 0);
  const bool leading_zero = digits.size() > 1 && digits[0] == '0';
  if (failure != std::errc{} || end != text.data() + text.size() || value < low || value > high || leading_zero) {
    throw InputError(where, "'" + excerpt(text) + "' is not allowed; allowed: " + range +
                                (leading_zero ? ", without leading zeros" : ""));
  }
  return value;
}

std::string to_text(double value, int decimals) {
  char buffer[512]; // the largest number has 309 digits before the point
  const int length = std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return {buffer, static_cast<size_t>(std::min<int>(length, sizeof buffer - 1))};
}

std::string to_digits(double value, int digits) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, std::end(buffer), value, std::chars_format::general, digits).ptr};
}

std::string percent(double part, int decimals) {
  return std::isfinite(part) ? to_text(100 * part, decimals) + " %" : "\xe2\x80\x93";
}

std::string to_text(Seconds time) {
  static constexpr Unit kShown[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  return time.value == 0 ? "0 s" : scaled(time.value, kShown);
}

std::string to_text(Bytes bytes) {
  static constexpr Unit kShown[] = {
      {"B", 1}, {"KiB", kKi}, {"MiB", kKi * kKi}, {"GiB", kKi * kKi * kKi}, {"TiB", kKi * kKi * kKi * kKi}};
  return scaled(bytes.value, kShown);
}

std::string to_text(BytesPerSecond rate) {
  static constexpr Unit kShown[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
  return scaled(rate.value, kShown);
}

std::string to_text(Flops work) { return scaled(work.value, kWork); }
std::string to_text(FlopsPerSecond rate) { return scaled(rate.value, kWorkRate); }

std::string to_text(Joules energy) {
  static constexpr Unit kShown[] = {{"mJ", 1e-3}, {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}};
  return energy.value == 0 ? "0 J" : scaled(energy.value, kShown);
}

std::string to_text(Watts power) {
  static constexpr Unit kShown[] = {{"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
  return scaled(power.value, kShown);
}

std::string to_text(Dollars money) { return to_text(money.value, money.value < 0.1 ? 6 : 2) + " USD"; }

} // namespace stagecraft
