// Every way to choose letters, for tests that hold for all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/program/share_by_search.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft::testing {

using Letters = std::variant<SharedLetters, Infeasible>;

/// A rule with its options.
struct NamedRule {
  std::string name;
  std::function<Letters(const std::vector<Signature>&, const Layout&)> share;
};

/// Megatron-LM's, TorchTitan's, and searches on fast and on slow links.
std::vector<NamedRule> named_rules();

/// Times of a made-up group: a rank computes an element in a nanosecond, half of it for what it reads and writes and
/// half by its part of the work, and sends one in `per_element` of that. The operators must outlive what is returned.
StepTimes made_up_times(const std::vector<Signature>& operators, int degree, double per_element);

} // namespace stagecraft::testing
