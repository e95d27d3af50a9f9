// SPDX-License-Identifier: Apache-2.0
#include "sim/report/figure_frame.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/system/figure.hpp"
#include "sim/base/units.hpp"
#include "sim/report/terminal.hpp"

namespace stagecraft {
namespace {

constexpr int kTitleLine = 15, kLine = 13;     // pixels of a line of text
constexpr int kEdge = 5, kAxis = 48;           // pixels of an edge; of tics and the title of an axis
constexpr int kKeyLetter = 6, kKeySample = 34; // pixels of a letter and a sample in the key

int key_columns(const FigureFrame& frame) {
  std::size_t longest = 0;
  for (const std::string& name : frame.key) {
    longest = std::max(longest, display_width(name));
  }
  return std::max(1, kColumnWidth / (kKeySample + kKeyLetter * static_cast<int>(longest)));
}

int key_rows(const FigureFrame& frame) {
  const int columns = key_columns(frame);
  return (static_cast<int>(frame.key.size()) + columns - 1) / columns;
}

int title_height(const FigureFrame& frame) { return kTitleLine * static_cast<int>(frame.title.size()); }

int top_of(const FigureFrame& frame) {
  return 2 * kEdge + title_height(frame) + kLine * (key_rows(frame) + (frame.above ? 1 : 0));
}

// A place so many pixels below the top, as gnuplot counts: a part of the height, from below.
std::string on_screen(const FigureFrame& frame, double pixels) {
  constexpr int kDigits = 4;
  return "screen " + to_digits(1 - pixels / height_of(frame), kDigits);
}

} // namespace

int height_of(const FigureFrame& frame) { return top_of(frame) + frame.plot + kAxis + frame.below; }

std::string commands_of(const FigureFrame& frame) {
  std::string title;
  for (const std::string& line : frame.title) {
    title += (title.empty() ? "" : ".\"\\n\".") + gnuplot_text(line);
  }
  const int key = kEdge + title_height(frame), top = top_of(frame);
  return "unset title\n" +
         (title.empty()
              ? std::string()
              : "set label " + title + " at screen 0.5, " + on_screen(frame, kEdge + kTitleLine / 2.0) + " center\n") +
         "set key at screen 0.5, " + on_screen(frame, key) + " center top horizontal maxcols " +
         std::to_string(key_columns(frame)) + " reverse Left samplen 1.5 font ',9'\nset tmargin at " +
         on_screen(frame, top) + "\nset bmargin at " + on_screen(frame, top + frame.plot) + "\n";
}

std::vector<std::string> lines_of(const std::string& text) {
  constexpr std::size_t kWidth = 54; // letters per line
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    if (const std::size_t blank = text.rfind(' ', at + kWidth); end - at > kWidth && blank != text.npos && blank > at) {
      end = blank;
    }
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

double tic_distance(double low, double high, int most) {
  constexpr double kTen = 10;
  const double least = (high - low) / most, power = std::pow(kTen, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= least * (1 - 1e-9)) {
      return step * power;
    }
  }
  return kTen * power;
}

} // namespace stagecraft
