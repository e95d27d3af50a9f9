// Results in JSON (docs/formats/results.md) as sections of the page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
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
  std::shared_ptr<const nlohmann::json> content = nullptr; ///< the document itself, without its timelines
};

/// The kinds of documents that the report shows: names of the commands that write them, and traces.
std::vector<std::string_view> document_kinds();

/// Reads a document of any kind that the report shows. Throws InputError naming `file` for a text that is no JSON, or
/// none of these documents.
DocumentPage read_document(const std::string& file, const std::string& text);

/// What changed from one result to another, and what that did: for two of `compare` or two of `replay`; nothing for
/// others.
std::optional<DocumentPage> difference_page(const std::string& name_before, const DocumentPage& before,
                                            const std::string& name_after, const DocumentPage& after);

/// Results of one model, each by the name of its file, as offers: what the best run of each takes and costs, the
/// cheapest first, and how sure that order is; nothing for documents of other kinds, or of several models.
std::optional<DocumentPage> offers_page(const std::vector<std::pair<std::string, const DocumentPage*>>& results);

} // namespace stagecraft
