// What a shell makes of $((…)), whole numbers and variables with + - * / % and brackets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// The value of a variable, or nothing where it is not known.
using ShellNumber = std::function<std::optional<long long>(const std::string& name)>;

/// Whether a text begins as such an expression.
inline bool begins_arithmetic(std::string_view text) { return text.starts_with("$(("); }

/// The length of the expression at the beginning of a text, with both its ends; nothing where it has no end.
std::optional<std::size_t> arithmetic_length(std::string_view text);

/// The value of what stands between "$((" and "))"; names may have a $ before them, and braces. Nothing where it has
/// other operations, a variable that is not known, a division by zero or a number beyond 10^15.
std::optional<long long> shell_arithmetic(std::string_view inside, const ShellNumber& value_of);

} // namespace stagecraft
