// Mutations of text that libFuzzer does not have: of its numbers, words and lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>

namespace stagecraft::fuzz {

/// The text with one change: a number replaced by one at an edge of some type, a word by another word of the text, a
/// line removed or copied to another place. The same text if there is nothing to change.
std::string mutated(std::string text, std::mt19937& random);

} // namespace stagecraft::fuzz
