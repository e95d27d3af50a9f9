// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/documents.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/format/json.hpp"
#include "sim/base/limits.hpp"
#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

/// A kind of document. It is recognised by keys that no kind before it has.
struct DocumentRow {
  std::string_view command;
  std::array<const char*, 2> keys;
  DocumentPage (*page)(const JsonDocument& document);
};

constexpr std::array kDocuments = {
    DocumentRow{"buy", {"choices", "verdict"}, purchase_page},
    DocumentRow{"compare", {"runs", "verdict"}, comparison_page},
    DocumentRow{"replay", {"strategy", "iteration_seconds"}, run_page},
    DocumentRow{"explain", {"explanation", "strategy"}, explanation_page},
    DocumentRow{"validate", {"rows", "skipped"}, validation_page},
    DocumentRow{"calibrate show", {"fits", "measured"}, fits_page},
    DocumentRow{"calibrate predict", {"rows", "device"}, prediction_page},
    DocumentRow{"judge", {"planners", "plans"}, judgement_page},
    DocumentRow{"adapt", {"policies", "phases"}, adapt_page},
    DocumentRow{"a trace", {"traceEvents", "traceEvents"}, trace_page},
};

// The id of a process or thread.
std::int64_t id_at(const Json& value, const char* key, TrackReader& reader) {
  const auto found = value.find(key);
  if (found == value.end()) {
    return 0;
  }
  return found->is_number_integer() ? found->get<std::int64_t>()
                                    : reader.number_of(found->is_string() ? found->get<std::string>() : found->dump());
}

TrackReader::Event event_of(const Json& value, TrackReader& reader) {
  TrackReader::Event event;
  const std::string phase = text_at(value, "ph");
  event.phase = phase.empty() ? '\0' : phase.front();
  event.process = id_at(value, "pid", reader);
  event.row = id_at(value, "tid", reader);
  event.microseconds = number_at(value, "ts");
  event.duration = number_at(value, "dur");
  event.name = text_at(value, "name");
  event.category = text_at(value, "cat");
  if (const auto arguments = value.find("args"); arguments != value.end() && arguments->is_object()) {
    event.argument_name = text_at(*arguments, "name");
    event.bytes = number_at(*arguments, "bytes");
    event.micro_batch = whole_at(*arguments, "micro_batch", -1);
    event.iteration = whole_at(*arguments, "iteration", 0);
    const auto critical = arguments->find("critical");
    event.critical = critical != arguments->end() && critical->is_boolean() && critical->get<bool>();
  }
  return event;
}

} // namespace

std::vector<std::string_view> document_kinds() {
  std::vector<std::string_view> kinds;
  for (const DocumentRow& row : kDocuments) {
    kinds.push_back(row.command);
  }
  return kinds;
}

JsonDocument read_json_document(const std::string& file, const std::string& text) {
  JsonDocument document;
  constexpr int kNowhere = std::numeric_limits<int>::max();
  int depth_of_events = kNowhere;
  bool expected = false;
  TrackReader reader;
  const auto visit = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > limits::kDepth) {
      json::parse(json::Source(text, file)); // which says where
      throw InputError({file, 0, 0}, "values lie more than " + std::to_string(limits::kDepth) + " deep");
    }
    if (event == Json::parse_event_t::key) {
      expected = depth_of_events == kNowhere && parsed == "traceEvents";
    } else if (event == Json::parse_event_t::array_start && expected) {
      expected = false;
      depth_of_events = depth + 1;
      reader = {};
    } else if (event == Json::parse_event_t::object_end && depth == depth_of_events) {
      reader.take(event_of(parsed, reader));
      return false;
    } else if (event == Json::parse_event_t::array_end && depth == depth_of_events - 1) {
      depth_of_events = kNowhere;
      parsed = document.timelines.size();
      document.timelines.push_back(reader.finish());
    }
    return true;
  };
  if (json::is_blank(text)) {
    throw InputError({file, 1, 1},
                     "the file is empty; allowed: what commands write with --format json, or compare with -o");
  }
  try {
    document.content = std::make_shared<const Json>(Json::parse(text, visit));
  } catch (const Json::exception& failure) {
    const std::string_view what = failure.what();
    const auto* syntax = dynamic_cast<const Json::parse_error*>(&failure);
    const Where where = syntax != nullptr ? json::Source(text, file).place_of_byte(syntax->byte) : Where{file};
    throw InputError(where, "no JSON: " + std::string(what.substr(what.find("] ") + 2)) +
                                "; allowed: what commands write with --format json, or compare with -o");
  }
  if (document.json().is_array()) { // a trace without an object around it
    throw InputError({file, 0, 0}, "a list; allowed: an object, as results and traces with traceEvents are");
  }
  return document;
}

DocumentPage read_document(const std::string& file, const std::string& text) {
  const JsonDocument document = read_json_document(file, text);
  const auto has = [&](const char* key) { return document.json().contains(key); };
  const auto row = std::find_if(kDocuments.begin(), kDocuments.end(),
                                [&](const DocumentRow& one) { return has(one.keys[0]) && has(one.keys[1]); });
  if (row == kDocuments.end()) {
    std::string allowed;
    for (const std::string_view kind : document_kinds()) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(kind);
    }
    throw InputError({file, 0, 0}, "not a result that a report shows; allowed: JSON of " + allowed);
  }
  try {
    DocumentPage page = row->page(document);
    page.inputs = texts_at(document.json(), "inputs");
    page.content = document.content;
    return page;
  } catch (const Json::exception& failure) {
    throw InputError({file, 0, 0}, "not as `" + std::string(row->command) + "` writes it: " + failure.what());
  }
}

double number_at(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_number() ? found->get<double>() : Mark::kNone;
}

std::int32_t whole_at(const Json& value, const char* key, std::int32_t otherwise) {
  const double found = number_at(value, key);
  const bool fits = found == std::floor(found) && found >= std::numeric_limits<std::int32_t>::min() &&
                    found <= std::numeric_limits<std::int32_t>::max();
  return fits ? static_cast<std::int32_t>(found) : otherwise;
}

std::string text_at(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& list_at(const Json& value, const char* key) {
  static const Json kNone = Json::array();
  const auto found = value.find(key);
  return found != value.end() && found->is_array() ? *found : kNone;
}

const Json& object_at(const Json& value, const char* key) {
  static const Json kNone = Json::object();
  const auto found = value.find(key);
  return found != value.end() && found->is_object() ? *found : kNone;
}

std::vector<std::string> texts_at(const Json& value, const char* key) {
  std::vector<std::string> texts;
  for (const Json& one : list_at(value, key)) {
    texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return texts;
}

std::vector<double> numbers_at(const Json& value, const char* key) {
  std::vector<double> numbers;
  for (const Json& one : list_at(value, key)) {
    numbers.push_back(one.is_number() ? one.get<double>() : Mark::kNone);
  }
  return numbers;
}

PageCell number_cell(double value) {
  if (!std::isfinite(value)) {
    return {"–", value};
  }
  constexpr int kDigits = 4;
  constexpr double kWhole = 1e4; // from here on as a whole number, not by its first digits
  return {std::abs(value) < kWhole || std::abs(value) >= 1e15 ? to_digits(value, kDigits) : to_text(value, 0), value};
}

PageCell percent_cell(double share) { return number_cell(100 * share); }

// What stands at the end of a bar, by the unit of its axis: "45.24 ms" on an axis in [s].
static std::string bar_label(double value, const std::string& axis) {
  constexpr double kGibibytes = 1024.0 * 1024 * 1024;
  constexpr int kDigits = 3;
  if (axis.ends_with("[s]")) {
    const std::string text = to_text(Seconds{value});
    return text.ends_with(" us") ? text.substr(0, text.size() - 2) + "µs" : text; // as the page's scripts write it
  }
  if (axis.ends_with("[GiB]")) {
    return to_text(Bytes{value * kGibibytes});
  }
  return to_digits(value, kDigits) + (axis.ends_with("[%]") ? " %" : "");
}

Chart waterfall_of(const std::string& name, const std::string& title, const std::string& x,
                   const std::vector<WaterfallPart>& parts, const std::string& whole) {
  Chart chart{.name = name, .title = title, .x = {.title = x, .from_zero = true}, .y = {.title = ""}, .wide = true};
  ChartSeries series{"", Look::bars, {}};
  double at = 0;
  const auto add = [&](const std::string& part, double begin, double end, int color) {
    series.marks.push_back({.x = end,
                            .y = static_cast<double>(chart.y.names.size()),
                            .text = part,
                            .begin = begin,
                            .label = bar_label(end - begin, x),
                            .color = color});
    chart.y.names.push_back(part);
  };
  constexpr int kWork = 5, kLost = 1, kWon = 2, kWhole = 6; // light blue, red, green, grey
  double sum = 0;
  for (const WaterfallPart& part : parts) {
    sum += std::max(0.0, part.value);
  }
  constexpr double kSeen = 1e-6; // of the whole
  for (const WaterfallPart& part : parts) {
    if (std::abs(part.value) > kSeen * sum) {
      add(part.name, at, at + part.value, part.value < 0 ? kWon : part.is_work ? kWork : kLost);
      at += part.value;
    }
  }
  add(whole, 0, at, kWhole);
  chart.series.push_back(std::move(series));
  return chart;
}

Chart bars_of(const std::string& name, const std::string& title, const std::string& x,
              const std::vector<std::pair<std::string, double>>& parts) {
  Chart chart{.name = name, .title = title, .x = {.title = x, .from_zero = true}, .y = {.title = ""}};
  ChartSeries series{"", Look::bars, {}};
  for (const auto& [part, value] : parts) {
    if (std::isfinite(value)) {
      series.marks.push_back(
          {.x = value, .y = static_cast<double>(chart.y.names.size()), .text = part, .label = bar_label(value, x)});
      chart.y.names.push_back(part);
    }
  }
  chart.series.push_back(std::move(series));
  return chart;
}

void add_timeline(const JsonDocument& document, const Json& run, const std::string& title,
                  std::vector<PageTimeline>& timelines) {
  const auto timeline = run.find("timeline");
  const Json& holder = timeline == run.end() ? run : *timeline;
  if (holder.is_object() && holder.contains("traceEvents")) {
    timelines.push_back({title, document.timelines.at(holder.at("traceEvents").get<std::size_t>())});
  }
}

// The card of a trace: how long it is and what it holds.
static Answer trace_answer(const std::vector<PageTimeline>& timelines) {
  if (timelines.empty()) {
    return {};
  }
  const Tracks& tracks = timelines.front().tracks;
  std::map<std::string, double> seconds; // of each category
  for (std::size_t bar = 0; bar < tracks.start.size(); ++bar) {
    seconds[tracks.kinds[tracks.kind[bar]].category] += tracks.finish[bar] - tracks.start[bar];
  }
  Answer answer{"A timeline of " + to_text(Seconds{tracks.end()}) + ": " + std::to_string(tracks.start.size()) +
                " pieces of work in " + std::to_string(tracks.tracks.size()) + " rows."};
  answer.figures = {{"Length", to_text(Seconds{tracks.end()})},
                    {"Pieces of work", std::to_string(tracks.start.size())},
                    {"Rows", std::to_string(tracks.tracks.size()), "devices, links and what they do side by side"}};
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != seconds.end() && !most->first.empty()) {
    answer.figures.push_back({"Most time", most->first, to_text(Seconds{most->second}) + " over all rows"});
  }
  return answer;
}

DocumentPage trace_page(const JsonDocument& document) {
  PageSection section{.title = "Timeline", .sentences = {}};
  add_timeline(document, document.json(), "trace", section.timelines);
  std::string left_out;
  for (const PageTimeline& timeline : section.timelines) {
    for (const auto& [what, count] : timeline.tracks.left_out) {
      left_out += (left_out.empty() ? "" : ", ") + what + " (" + std::to_string(count) + ")";
    }
  }
  if (!left_out.empty()) {
    section.sentences.push_back("Not drawn of its events: " + left_out + ".");
  }
  const auto other = document.json().find("otherData");
  const std::string platform = other == document.json().end() ? "" : text_at(*other, "platform");
  return {
      platform.empty() ? "A trace" : "A trace of a run on " + platform, {section}, {}, trace_answer(section.timelines)};
}

} // namespace stagecraft
