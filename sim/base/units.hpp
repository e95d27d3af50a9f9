// Physical quantities as types: a number that knows its dimension, read from and shown as text with a unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"

namespace stagecraft {

inline constexpr double kSecondsOfHour = 3600, kSecondsOfDay = 24 * kSecondsOfHour;

/// A value in SI units (s, B, FLOP, J, USD) whose dimension is the exponent of each; dimensionless results are plain
/// doubles. `bytes / bandwidth + latency` compiles, `bytes + latency` does not.
template <int Time, int Data, int Work, int Energy, int Money> struct Quantity {
  double value = 0;

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return {-value}; }
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value -= other.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return {a.value * factor}; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return {a.value * factor}; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return {a.value / divisor}; }
};

template <int T, int D, int W, int E, int M, int T2, int D2, int W2, int E2, int M2>
constexpr auto operator*(Quantity<T, D, W, E, M> a, Quantity<T2, D2, W2, E2, M2> b) {
  if constexpr (T + T2 == 0 && D + D2 == 0 && W + W2 == 0 && E + E2 == 0 && M + M2 == 0) {
    return a.value * b.value;
  } else {
    return Quantity<T + T2, D + D2, W + W2, E + E2, M + M2>{a.value * b.value};
  }
}

template <int T, int D, int W, int E, int M, int T2, int D2, int W2, int E2, int M2>
constexpr auto operator/(Quantity<T, D, W, E, M> a, Quantity<T2, D2, W2, E2, M2> b) {
  return a * Quantity<-T2, -D2, -W2, -E2, -M2>{1 / b.value};
}

template <int T, int D, int W, int E, int M>
constexpr double operator/(Quantity<T, D, W, E, M> a, Quantity<T, D, W, E, M> b) {
  return a.value / b.value;
}

using Seconds = Quantity<1, 0, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0, 0>;
using BytesPerSecond = Quantity<-1, 1, 0, 0, 0>;
using Flops = Quantity<0, 0, 1, 0, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1, 0, 0>;
using Joules = Quantity<0, 0, 0, 1, 0>;
using Watts = Quantity<-1, 0, 0, 1, 0>;
using Dollars = Quantity<0, 0, 0, 0, 1>;
using DollarsPerSecond = Quantity<-1, 0, 0, 0, 1>;

/// Reads a number with its unit, "900 GB/s" or "2us"; GB = 10^9 B, GiB = 2^30 B, Gb = 10^9 bits. Only 0 may stand
/// without a unit. Throws InputError naming the units allowed, or a number that is not finite.
template <class Q> Q parse_quantity(std::string_view text, const Where& where);

/// Reads a finite decimal number that fills the whole text; a leading zero before another digit is refused.
double parse_number(std::string_view text, const Where& where);

/// The number that a text holds, plain or with any known unit, in SI units; nothing for any other text.
std::optional<double> find_amount(std::string_view text);

/// Reads an integer in [low, high] that fills the whole text; a leading zero before another digit is refused.
int parse_integer(std::string_view text, int low, int high, const Where& where);

/// A quantity for people, about four significant digits in a fitting unit: "12.30 ms", "1.500 GiB", "31.20 GB/s".
std::string to_text(Seconds);
std::string to_text(Bytes);
std::string to_text(BytesPerSecond);
std::string to_text(Flops);
std::string to_text(FlopsPerSecond);
std::string to_text(Joules);
std::string to_text(Watts);
std::string to_text(Dollars);

/// A plain number for people with the given count of decimals.
std::string to_text(double value, int decimals);

/// A plain number for files with at most so many significant digits: 0.25, 1.5e-06.
std::string to_digits(double value, int digits);

/// A part of a whole for people: 0.123 is "12.3 %" with one decimal.
std::string percent(double part, int decimals);

} // namespace stagecraft
