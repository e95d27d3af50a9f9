// SPDX-License-Identifier: Apache-2.0
#include "sim/result/expected.hpp"

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

std::string basis_of(const std::string& family, int models, double median) {
  return family + ", " + std::to_string(models) + " models, median error " + percent(median, 0);
}

} // namespace

std::string basis_of(const RunExpected& expected) {
  return basis_of(expected.family, expected.models, expected.median);
}

std::string basis_of_range(const MeasuredRun& run) {
  return run.expected     ? basis_of(*run.expected)
         : run.confidence ? std::to_string(run.confidence->iteration.samples) + " draws of errors of costs"
                          : "";
}

std::string in_words(const RunExpected& expected) {
  return "Measured, it would take between " + to_text(expected.low) + " and " + to_text(expected.high) +
         " nine times out of ten, as predictions of others were off: " + basis_of(expected) + ".";
}

std::string in_words(const RunExpectedMemory& expected) {
  const bool surely = expected.high <= expected.have;
  return "Its fullest device, '" + expected.device + "', needs " + to_text(expected.peak) + " of " +
         to_text(expected.have) + "; measured, it would need between " + to_text(expected.low) + " and " +
         to_text(expected.high) + " nine times out of ten, " + (surely ? "which fits: " : "so that it may not fit: ") +
         basis_of(expected.family, expected.models, expected.median) + ".";
}

std::string expected_in_words(const MeasuredRun& run) {
  std::string text = run.expected ? in_words(*run.expected) : "";
  if (run.expected_memory) {
    text += (text.empty() ? "" : " ") + in_words(*run.expected_memory);
  }
  return text;
}

} // namespace stagecraft
