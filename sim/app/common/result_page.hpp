// The page of results: the answer on top, and copies of the inputs, so that it is whole where it is sent to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/report/page/documents.hpp"
#include "sim/report/page/page.hpp"

namespace stagecraft {

/// In place of a page's file: it goes to stdout.
inline constexpr std::string_view kPageToStdout = "-";

/// Adds a document's answer, its sections and its inputs to the page that is written to `output`. `alone`: the page
/// shows nothing else, so that titles need not say whose they are.
void add_to_page(Page& page, DocumentPage document, bool alone, const std::filesystem::path& output);

/// The page that shows one result in JSON.
std::string page_of(const std::string& json, const std::filesystem::path& output);

} // namespace stagecraft
