// The report: one HTML file that says in words what was found, and shows it in charts, timelines and tables. It
// contains all that it needs and loads nothing from a network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/chart.hpp"
#include "sim/report/page/answer.hpp"
#include "sim/report/page/plan_picture.hpp"
#include "sim/report/page/tracks.hpp"

namespace stagecraft {

/// A cell: a number shown as `text` and sorted by `number`, or only a text.
struct PageCell {
  std::string text;
  std::optional<double> number = {};
};

/// A table that the reader can sort and filter. Columns without any content are not shown.
struct PageTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<PageCell>> rows;
  std::string note = {};              ///< says what the table leaves out
  std::vector<std::string> main = {}; ///< columns that are shown first, in this order; none: all
};

/// A run over time. Timelines of one section share their axis.
struct PageTimeline {
  std::string title;
  Tracks tracks;
};

/// Lets the reader switch between the charts of a section and their Chart::all.
struct PageSwitch {
  std::string label;   ///< "": no switch
  std::string off, on; ///< what is shown in each position, in a sentence
};

/// Sentences that a reader has to open to see.
struct PageFold {
  std::string title; ///< "": nothing is folded
  std::vector<std::string> sentences = {};
};

struct PageSection {
  std::string title;
  std::vector<std::string> sentences; ///< the most important first: of more than kMostSentences the rest is folded
  std::vector<Chart> charts = {};
  std::vector<PageTimeline> timelines = {};
  std::vector<PageTable> tables = {};
  PageSwitch all = {};
  PageFold fold = {};
  std::vector<PagePlan> plans = {};
};
inline constexpr std::size_t kMostSentences = 5;

/// A file that the results were made from.
struct PageLink {
  std::string text;
  std::string file;                     ///< relative to the page; "": no link
  std::optional<std::string> copy = {}; ///< what it holds, so that a page that is sent on is whole
  std::string left_out = {};            ///< why there is no copy
};

struct Page {
  std::string title;
  std::string subtitle = {};
  std::vector<Answer> answers = {};
  std::vector<PageSection> sections = {};
  std::vector<PageLink> inputs = {};
};

/// What the page's scripts draw, as JSON that may stand in HTML; to_html() embeds it.
std::string drawn_data(const Page& page);

/// The complete file. Texts are escaped, whatever they contain.
std::string to_html(const Page& page);

/// Every chart of the page for gnuplot. Numbers make their names unique.
std::vector<Figure> figures_of(const Page& page);

} // namespace stagecraft
