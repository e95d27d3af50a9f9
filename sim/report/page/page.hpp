// The report: one HTML file that says in words what was found and shows it in charts, timelines and tables. It holds
// all that it needs and asks no network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/chart.hpp"
#include "sim/report/page/tracks.hpp"

namespace stagecraft {

/// A number shown as `text` and sorted by `number`, or a text alone.
struct PageCell {
  std::string text;
  std::optional<double> number = {};
};

/// A table that the reader sorts and filters. Columns that say nothing in any row are not shown.
struct PageTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<PageCell>> rows;
  std::string note = {}; ///< what is left out
};

/// A run over time. Timelines of one section share their axis.
struct PageTimeline {
  std::string title;
  Tracks tracks;
};

/// Between the charts of a section and those of everything, Chart::all.
struct PageSwitch {
  std::string label;   ///< "": there is none
  std::string off, on; ///< what is shown, in a sentence
};

struct PageSection {
  std::string title;
  std::vector<std::string> sentences;
  std::vector<Chart> charts = {};
  std::vector<PageTimeline> timelines = {};
  std::vector<PageTable> tables = {};
  PageSwitch all = {};
};

/// A file that the results were made from.
struct PageLink {
  std::string text;
  std::string file; ///< relative to the page; "": no link
};

struct Page {
  std::string title;
  std::string subtitle = {};
  std::vector<PageSection> sections = {};
  std::vector<PageLink> inputs = {};
};

/// The whole file. Texts of the page are shown as they are, whatever is in them.
std::string to_html(const Page& page);

/// Every chart of the page, for gnuplot; names are made unique by numbers.
std::vector<Figure> figures_of(const Page& page);

} // namespace stagecraft
