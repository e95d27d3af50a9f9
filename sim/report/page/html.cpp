// Writes a page as HTML, with its data for the scripts.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "sim/base/system/digest.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/report/page/assets.hpp"
#include "sim/report/page/page.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : with_visible_controls(text)) {
    switch (c) {
    case '&':
      safe += "&amp;";
      break;
    case '<':
      safe += "&lt;";
      break;
    case '>':
      safe += "&gt;";
      break;
    case '"':
      safe += "&quot;";
      break;
    case '\'':
      safe += "&#39;";
      break;
    default:
      safe += c;
    }
  }
  return safe;
}

// A text whose line ends stay.
std::string escaped_lines(const std::string& text) {
  std::string safe;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    safe += escaped(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return safe;
}

bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Puts words in place of all controls in texts, which the scripts show as they are.
void make_controls_visible(Json& value) {
  if (value.is_structured()) {
    for (Json& part : value) {
      make_controls_visible(part);
    }
  } else if (auto* text = value.get_ptr<std::string*>(); text != nullptr && !is_plain(*text)) {
    *text = with_visible_controls(*text);
  }
}

// JSON that HTML parsers do not take for markup.
std::string in_script(Json value) {
  make_controls_visible(value);
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    c == '<' ? safe += "\\u003c" : safe += c;
  }
  return safe;
}

Json number_of(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json to_value(const ChartAxis& axis, bool logarithmic) {
  Json value{{"title", axis.title}, {"log", logarithmic}, {"zero", axis.from_zero}};
  if (!axis.names.empty()) {
    value["names"] = axis.names;
  }
  return value;
}

std::string_view name_of(Look look) {
  switch (look) {
  case Look::points:
    return "points";
  case Look::line:
    return "line";
  case Look::steps:
    return "steps";
  case Look::front:
    return "front";
  case Look::bars:
    return "bars";
  case Look::cells:
    return "cells";
  case Look::guide:
    return "guide";
  case Look::faint:
    return "faint";
  }
  return "";
}

Json to_value(const Chart& chart) {
  Json value{{"title", chart.title},
             {"choice", chart.choice},
             {"note", chart.note},
             {"x", to_value(chart.x, is_logarithmic(chart, false))},
             {"y", to_value(chart.y, is_logarithmic(chart, true))},
             {"value", chart.value},
             {"least_is_best", chart.least_is_best},
             {"interval", chart.interval},
             {"wide", chart.wide},
             {"series", Json::array()}};
  for (const ChartSeries& series : chart.series) {
    Json marks = Json::array();
    for (const Mark& mark : series.marks) {
      marks.push_back({number_of(mark.x), number_of(mark.y), mark.text, number_of(mark.low), number_of(mark.high),
                       number_of(mark.value)});
      if (series.look == Look::bars) {
        marks.back().insert(marks.back().end(), {mark.begin, mark.label, mark.color});
      }
    }
    value["series"].push_back({{"name", series.name}, {"look", name_of(series.look)}, {"marks", std::move(marks)}});
    if (series.color >= 0) {
      value["series"].back()["color"] = series.color;
    }
  }
  for (const ChartLine& line : chart.lines) {
    value["lines"].push_back({line.x, line.text});
  }
  if (!chart.all.empty()) {
    value["all"] = to_value(chart.all.front());
  }
  return value;
}

bool says_something(const PageCell& cell) { return cell.number ? std::isfinite(*cell.number) : !cell.text.empty(); }

// Columns with something to show in at least one row.
std::vector<std::size_t> telling_columns(const PageTable& table) {
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.rows.empty() || std::any_of(table.rows.begin(), table.rows.end(),
                                          [&](const auto& row) { return says_something(row[column]); })) {
      columns.push_back(column);
    }
  }
  return columns;
}

Json to_value(const PageTable& table) {
  const std::vector<std::size_t> shown = telling_columns(table);
  Json columns = Json::array(), rows = Json::array(), main = Json::array();
  for (const std::size_t column : shown) {
    columns.push_back(table.columns[column]);
  }
  for (const std::string& name : table.main) {
    if (const auto found = std::find(columns.begin(), columns.end(), name); found != columns.end()) {
      main.push_back(found - columns.begin());
    }
  }
  for (const std::vector<PageCell>& row : table.rows) {
    Json& cells = rows.emplace_back(Json::array());
    for (const std::size_t column : shown) {
      const PageCell& cell = row[column];
      cells.push_back(cell.number ? Json{cell.text, number_of(*cell.number)} : Json(cell.text));
    }
  }
  return {{"title", table.title},
          {"columns", std::move(columns)},
          {"main", std::move(main)},
          {"rows", std::move(rows)},
          {"note", table.note}};
}

template <class T> std::string base64(const std::vector<T>& values) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(values.size() * sizeof(T)); // little-endian, like typed arrays in every browser
  if (!bytes.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < left ? bytes[at + i] : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= left ? kDigits[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

// Moments as fractions of `end` in 32 bits, some nine digits.
std::vector<std::uint32_t> ticks_of(const std::vector<double>& moments, double end) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> ticks;
  ticks.reserve(moments.size());
  for (const double moment : moments) {
    ticks.push_back(end > 0 ? static_cast<std::uint32_t>(std::clamp(moment / end, 0.0, 1.0) * kMost) : 0);
  }
  return ticks;
}

Json to_value(const PageTimeline& timeline) {
  const Tracks& tracks = timeline.tracks;
  const double end = tracks.end();
  Json value{{"title", timeline.title}, {"end", end}, {"tracks", Json::array()}, {"kinds", Json::array()}};
  for (const Track& track : tracks.tracks) {
    value["tracks"].push_back({track.group, track.name});
  }
  for (const BarKind& kind : tracks.kinds) {
    value["kinds"].push_back({kind.category, kind.label, number_of(kind.bytes)});
  }
  value["begin"] = tracks.track_begin;
  value["start"] = base64(ticks_of(tracks.start, end));
  value["finish"] = base64(ticks_of(tracks.finish, end));
  value["kind"] = base64(tracks.kind);
  value["micro_batch"] = base64(tracks.micro_batch);
  value["iteration"] = base64(tracks.iteration);
  value["critical"] = base64(tracks.critical);
  value["levels"] = Json::array();
  for (const MemoryLevel& level : tracks.levels) {
    value["levels"].push_back({{"group", level.group},
                               {"name", level.name},
                               {"seconds", base64(ticks_of(level.seconds, end))},
                               {"bytes", base64(level.bytes)}});
  }
  return value;
}

Json to_value(const PlanLinks& links) {
  return {{"name", links.name},
          {"bandwidth", to_text(BytesPerSecond{links.bandwidth})},
          {"in_use", number_of(links.in_use)},
          {"carries", links.carries},
          {"links", links.links}};
}

Json to_value(const PlanTile& tile);
Json to_value(const PlanNode& node);

template <class Part> Json list_of(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts) {
    list.push_back(to_value(part));
  }
  return list;
}

Json to_value(const PlanTile& tile) {
  return {{"device", tile.device},
          {"stages", tile.stages},
          {"rank", tile.rank},
          {"memory", number_of(tile.memory)},
          {"busy", number_of(tile.busy)}};
}

Json to_value(const PlanNode& node) {
  return {{"name", node.name},
          {"devices", node.devices},
          {"alike", node.alike},
          {"tiles", list_of(node.tiles)},
          {"links", list_of(node.links)}};
}

Json to_value(const PagePlan& plan) {
  return {
      {"title", plan.title}, {"nodes", list_of(plan.nodes)}, {"network", list_of(plan.network)}, {"notes", plan.notes}};
}

// The data that scripts draw, section by section.
Json drawn(const Page& page) {
  Json sections = Json::array();
  for (const PageSection& section : page.sections) {
    Json& value =
        sections.emplace_back(Json{{"charts", Json::array()}, {"timelines", Json::array()}, {"tables", Json::array()}});
    if (!section.all.label.empty()) {
      value["all"] = {{"label", section.all.label}, {"off", section.all.off}, {"on", section.all.on}};
    }
    for (const PagePlan& plan : section.plans) {
      value["plans"].push_back(to_value(plan));
    }
    for (const Chart& chart : section.charts) {
      value["charts"].push_back(to_value(chart));
    }
    for (const PageTimeline& timeline : section.timelines) {
      value["timelines"].push_back(to_value(timeline));
    }
    for (const PageTable& table : section.tables) {
      value["tables"].push_back(to_value(table));
    }
  }
  return sections;
}

bool is_empty(const PageSection& section) {
  return section.sentences.empty() && section.fold.sentences.empty() && section.charts.empty() &&
         section.tables.empty() && section.timelines.empty() && section.plans.empty();
}

// The card on top: one sentence, some figures, how sure they are, and what they rest on.
std::string to_html(const Answer& answer, std::size_t number, std::size_t count) {
  const std::string of = count == 1 ? "" : " " + std::to_string(number) + " of " + std::to_string(count);
  std::string html = "<section class=\"answer\" aria-label=\"The answer" + of + "\">\n";
  html += answer.title.empty() ? "" : "<p class=\"of\">" + escaped(answer.title) + "</p>\n";
  html += "<p class=\"headline\">" + escaped(answer.sentence) + "</p>\n";
  if (!answer.figures.empty()) {
    html += "<dl class=\"figures\">\n";
    for (const AnswerFigure& figure : answer.figures) {
      html += "<div><dt>" + escaped(figure.name) + "</dt><dd><span class=\"value\">" + escaped(figure.value) +
              "</span>" +
              (figure.detail.empty() ? "" : " <span class=\"detail\">" + escaped(figure.detail) + "</span>") +
              "</dd></div>\n";
    }
    html += "</dl>\n";
  }
  html += answer.sure.empty() ? "" : "<p class=\"sure\"><b>How sure</b> " + escaped(answer.sure) + "</p>\n";
  if (!answer.basis.empty()) {
    html += "<dl class=\"basis\" aria-label=\"What it rests on\">\n";
    for (const AnswerBasis& basis : answer.basis) {
      constexpr std::size_t kLong = 64; // letters that take a line of their own
      html += std::string(basis.value.size() > kLong ? "<div class=\"long\">" : "<div>") + "<dt>" +
              escaped(basis.name) + "</dt><dd>" + escaped(basis.value) + "</dd></div>\n";
    }
    html += "</dl>\n";
  }
  return html + "</section>\n";
}

std::string list_of(const std::vector<std::string>& sentences, std::size_t first, std::size_t last) {
  std::string html = "<ul class=\"summary\">\n";
  for (std::size_t at = first; at < last; ++at) {
    html += "<li>" + escaped(sentences[at]) + "</li>\n";
  }
  return html + "</ul>\n";
}

std::string folded(const std::string& title, const std::string& content) {
  return "<details class=\"fold\"><summary>" + escaped(title) + "</summary>\n" + content + "</details>\n";
}

std::string to_html(const PageSection& section, std::size_t number) {
  std::string html = "<section id=\"s" + std::to_string(number) + "\">\n<h2>" + escaped(section.title) + "</h2>\n";
  const std::size_t count = section.sentences.size(), shown = std::min(count, kMostSentences);
  html += shown == 0 ? "" : list_of(section.sentences, 0, shown);
  if (shown < count) {
    html += folded(std::to_string(count - shown) + " more", list_of(section.sentences, shown, count));
  }
  if (!section.fold.sentences.empty()) {
    html += folded(section.fold.title, list_of(section.fold.sentences, 0, section.fold.sentences.size()));
  }
  return html + "<div class=\"drawn\"></div>\n</section>\n";
}

std::string to_html(const PageLink& link) {
  if (link.copy) {
    return "<li><details><summary>" + escaped(link.text) + "</summary>\n<pre tabindex=\"0\">" +
           escaped_lines(*link.copy) + "</pre></details></li>\n";
  }
  const std::string name =
      link.file.empty() ? escaped(link.text) : "<a href=\"" + escaped(link.file) + "\">" + escaped(link.text) + "</a>";
  return "<li>" + name + (link.left_out.empty() ? "" : " <span>(" + escaped(link.left_out) + ")</span>") + "</li>\n";
}

std::string body_of(const Page& page) {
  std::string body = "<header>\n<h1>" + escaped(page.title) + "</h1>\n";
  body += page.subtitle.empty() ? "" : "<p class=\"subtitle\">" + escaped(page.subtitle) + "</p>\n";
  body += "<div id=\"tools\"></div>\n</header>\n<main>\n";
  for (std::size_t number = 0; number < page.answers.size(); ++number) {
    body += to_html(page.answers[number], number + 1, page.answers.size());
  }
  body +=
      "<noscript><p>Charts, timelines and tables need scripts; the answer and the findings do not.</p></noscript>\n";
  for (std::size_t number = 0; number < page.sections.size(); ++number) {
    body += is_empty(page.sections[number]) ? "" : to_html(page.sections[number], number);
  }
  body += "</main>\n<footer>\n<div id=\"words\"></div>\n";
  if (!page.inputs.empty()) {
    body += "<h2>Inputs</h2>\n<ul class=\"inputs\">\n";
    for (const PageLink& link : page.inputs) {
      body += to_html(link);
    }
    body += "</ul>\n";
  }
  return body + "<p>Made by Stagecraft. Charts: Apache ECharts, Apache License 2.0.</p>\n</footer>\n";
}

// A chart with its section's note on charts, since a figure for a paper stands alone.
Chart with_note(Chart chart, const std::string& note) {
  chart.note += (chart.note.empty() ? "" : "\n") + note;
  return chart;
}

} // namespace

std::string drawn_data(const Page& page) { return in_script(drawn(page)); }

std::string to_html(const Page& page) {
  const std::string data = drawn_data(page);
  // Nonce of the scripts: only scripts with this word run, and no text among the inputs can contain it.
  const std::string word = to_text(Fingerprint().add(data).digest());
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                     "style-src 'unsafe-inline'; script-src 'nonce-" +
                     word +
                     "'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<title>" +
                     escaped(page.title) + "</title>\n<style>\n" + std::string(assets::page_css) +
                     "</style>\n</head>\n<body>\n" + body_of(page);
  html += "<script type=\"application/json\" id=\"data\">" + data + "</script>\n";
  for (const std::string_view script : {assets::echarts_min_js, assets::dom_js, assets::glossary_js, assets::charts_js,
                                        assets::timeline_js, assets::tables_js, assets::cluster_js, assets::page_js}) {
    html += "<script nonce=\"" + word + "\">\n" + std::string(script) + "</script>\n";
  }
  return html + "</body>\n</html>\n";
}

std::vector<Figure> figures_of(const Page& page) {
  std::vector<Figure> figures;
  std::set<std::string> names;
  for (const PageSection& section : page.sections) {
    for (const Chart& chart : section.charts) {
      Figure& figure = figures.emplace_back(figure_of(chart.all.empty() ? chart : with_note(chart, section.all.off)));
      for (int number = 2; !names.insert(figure.name).second; ++number) {
        figure.name = chart.name + "-" + std::to_string(number);
      }
    }
  }
  return figures;
}

} // namespace stagecraft
