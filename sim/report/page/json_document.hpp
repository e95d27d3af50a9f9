// What the readers of single kinds of documents share: a document with its timelines, and values that may be missing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>

#include "sim/report/page/documents.hpp"

namespace stagecraft {

/// A document in which every traceEvents is the number of its timeline.
struct JsonDocument {
  std::shared_ptr<const nlohmann::json> content;
  std::vector<Tracks> timelines;

  const nlohmann::json& json() const { return *content; }
};

/// The same, read event by event, so that the largest timeline takes little memory. Throws InputError.
JsonDocument read_json_document(const std::string& file, const std::string& text);

/// A number of a key, or NaN where it is null, missing or no number.
double number_at(const nlohmann::json& json, const char* key);
/// A text of a key, or "".
std::string text_at(const nlohmann::json& json, const char* key);
/// The list of a key, empty where there is none.
const nlohmann::json& list_at(const nlohmann::json& json, const char* key);
/// The texts of a list.
std::vector<std::string> texts_at(const nlohmann::json& json, const char* key);
/// The numbers of a list.
std::vector<double> numbers_at(const nlohmann::json& json, const char* key);

/// A number for a table: six digits, "–" for NaN.
PageCell number_cell(double value);
/// In percent, sorted and filtered as percent.
PageCell percent_cell(double share);

/// Parts with one number each, as bars, the first on top.
Chart bars_of(const std::string& name, const std::string& title, const std::string& x,
              const std::vector<std::pair<std::string, double>>& parts);

/// A timeline among a document's, if its json has one.
void add_timeline(const JsonDocument& document, const nlohmann::json& run, const std::string& title,
                  std::vector<PageTimeline>& timelines);

// One for each kind of document.
DocumentPage comparison_page(const JsonDocument& document);
DocumentPage run_page(const JsonDocument& document);
DocumentPage explanation_page(const JsonDocument& document);
DocumentPage validation_page(const JsonDocument& document);
DocumentPage prediction_page(const JsonDocument& document);
DocumentPage fits_page(const JsonDocument& document);
DocumentPage judgement_page(const JsonDocument& document);
DocumentPage adapt_page(const JsonDocument& document);
DocumentPage trace_page(const JsonDocument& document);

} // namespace stagecraft
