// Results in JSON (docs/formats/results.md) as sections of the page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/page/page.hpp"

namespace stagecraft {

/// The part of the page that shows one document.
struct DocumentPage {
  std::string title; ///< "gpt2-xl on mixed-v100-p100"
  std::vector<PageSection> sections;
  std::vector<std::string> inputs; ///< files that the document names as its inputs
  Answer answer = {};
};

/// The kinds of documents that the report shows: names of the commands that write them, and traces.
std::vector<std::string_view> document_kinds();

/// Reads a document of any kind that the report shows. Throws InputError naming `file` for a text that is no JSON, or
/// none of these documents.
DocumentPage read_document(const std::string& file, const std::string& text);

} // namespace stagecraft
