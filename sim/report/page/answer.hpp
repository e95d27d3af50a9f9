// The answer card: what a reader takes home who has never heard of pipelines. It stands on top of every page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// A figure of the card: "Time per step", "1.905 s", "64 samples".
struct AnswerFigure {
  std::string name, value;
  std::string detail = {}; ///< its range, or what it counts
};

/// Something that the answer rests on: "Precision", "bf16".
struct AnswerBasis {
  std::string name, value;
};

struct Answer {
  std::string sentence; ///< "": the document has no answer
  std::vector<AnswerFigure> figures = {};
  std::string sure = {}; ///< how sure it is, in sentences
  std::vector<AnswerBasis> basis = {};
  std::string title = {}; ///< whose answer it is, on a page of several documents
};

} // namespace stagecraft
