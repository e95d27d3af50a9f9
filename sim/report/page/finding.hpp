// Findings, ranked by what they change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft {

/// A sentence, and by what factor what it tells of would change the time, the cost or another figure; 1: it does not.
struct Finding {
  double factor = 1;
  std::string sentence;
};

/// The sentences, the largest factor first.
inline std::vector<std::string> ranked_sentences(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.factor > b.factor; });
  std::vector<std::string> sentences;
  for (Finding& finding : findings) {
    sentences.push_back(std::move(finding.sentence));
  }
  return sentences;
}

} // namespace stagecraft
