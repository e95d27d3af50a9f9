// Shared by the readers of all kinds of documents: a document with its timelines, and getters for values that may be
// missing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <memory>

#include "sim/report/page/documents.hpp"

namespace stagecraft {

/// A document whose traceEvents are moved to timelines; in the JSON their place holds the number of the timeline.
struct JsonDocument {
  std::shared_ptr<const nlohmann::json> content;
  std::vector<Tracks> timelines;

  const nlohmann::json& json() const { return *content; }
};

/// Reads a document, traces event by event, so that even a large timeline takes little memory. Throws InputError.
JsonDocument read_json_document(const std::string& file, const std::string& text);

/// The number at a key, or NaN where it is null, missing or no number.
double number_at(const nlohmann::json& json, const char* key);
/// The whole number of 32 bits at a key, or `otherwise`.
std::int32_t whole_at(const nlohmann::json& json, const char* key, std::int32_t otherwise);
/// The text at a key, or "".
std::string text_at(const nlohmann::json& json, const char* key);
/// The list at a key; empty where there is none.
const nlohmann::json& list_at(const nlohmann::json& json, const char* key);
/// The object at a key; empty where there is none.
const nlohmann::json& object_at(const nlohmann::json& json, const char* key);
/// The texts in the list at a key.
std::vector<std::string> texts_at(const nlohmann::json& json, const char* key);
/// The numbers in the list at a key.
std::vector<double> numbers_at(const nlohmann::json& json, const char* key);

/// A cell with a number: four digits or a whole number, or "–" for NaN.
PageCell number_cell(double value);
/// A cell with a share in percent; sorted and filtered as percent.
PageCell percent_cell(double share);

/// A bar chart of parts with one number each, the first on top.
Chart bars_of(const std::string& name, const std::string& title, const std::string& x,
              const std::vector<std::pair<std::string, double>>& parts);

/// A part of a whole; `is_work` false: it is lost, or won where the value is below 0.
struct WaterfallPart {
  std::string name;
  double value = 0;
  bool is_work = true;
};
/// Parts that add up, each beginning where the one before ends, and the whole at the bottom. A part below 0 goes back
/// from there. Parts of a millionth or less are left out.
Chart waterfall_of(const std::string& name, const std::string& title, const std::string& x,
                   const std::vector<WaterfallPart>& parts, const std::string& whole);

/// Adds the timeline of a run to a section, if its JSON has one.
void add_timeline(const JsonDocument& document, const nlohmann::json& run, const std::string& title,
                  std::vector<PageTimeline>& timelines);

// The readers, one for each kind of document.
DocumentPage comparison_page(const JsonDocument& document);
DocumentPage run_page(const JsonDocument& document);
DocumentPage explanation_page(const JsonDocument& document);
DocumentPage validation_page(const JsonDocument& document);
DocumentPage prediction_page(const JsonDocument& document);
DocumentPage fits_page(const JsonDocument& document);
DocumentPage judgement_page(const JsonDocument& document);
DocumentPage adapt_page(const JsonDocument& document);
DocumentPage purchase_page(const JsonDocument& document);
DocumentPage trace_page(const JsonDocument& document);

} // namespace stagecraft
