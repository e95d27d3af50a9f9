// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/figure.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/system/command.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

constexpr int kDigits = 6; // significant digits of a number
// Letters are 10 pixels, 7.5 points, high. Sizes in commands (",9") are pixels; gnuplot writes 4/3 points of each to a
// PDF at scale 1.
constexpr double kPixelsPerInch = 96, kScaleOfPdf = 0.75 * 0.75;
const std::string kFont = " noenhanced font 'sans-serif,10'";
constexpr std::array kColors = {"#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#777777", "#8C6D31"};

std::string style() {
  std::string text = "set encoding utf8\n"
                     "set border 3 lc rgb '#444444'\nset tics nomirror textcolor rgb '#222222'\n"
                     "set grid lc rgb '#dddddd' lw 0.5\nset key noenhanced\n";
  for (std::size_t number = 1; number <= kColors.size(); ++number) {
    text += "set linetype " + std::to_string(number) + " lc rgb '" + figure_color(number) + "' lw 1 pt " +
            std::to_string(number + 3) + "\n";
  }
  return text + "set linetype cycle " + std::to_string(kColors.size()) + "\n";
}

} // namespace

std::string figure_row(const std::vector<double>& columns) {
  std::string row;
  for (const double value : columns) {
    row += (row.empty() ? "" : " ") + to_digits(value, kDigits);
  }
  return row + "\n";
}

// In double quotes gnuplot would run what stands between backquotes, and put in the value of a variable after @.
std::string gnuplot_text(const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::string quoted = "'";
  for (const char c : on_one_line(line)) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string file_name_of(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    if (plain || (!name.empty() && name.back() != '-')) {
      name += plain ? c : '-';
    }
  }
  return name;
}

std::string figure_color(std::size_t number) { return kColors[(number - 1) % kColors.size()]; }

std::string to_gnuplot(const Figure& figure) {
  std::string text = "set terminal svg size " + std::to_string(figure.width) + "," + std::to_string(figure.height) +
                     kFont + " background 'white'\nset output " + gnuplot_text(figure.name + ".svg") + "\n" + style() +
                     "set title " + gnuplot_text(figure.title) + "\nset xlabel " + gnuplot_text(figure.x) +
                     "\nset ylabel " + gnuplot_text(figure.y) + "\n" + figure.commands;
  std::string plots;
  for (std::size_t index = 0; index < figure.series.size(); ++index) {
    const Series& one = figure.series[index];
    plots += (plots.empty() ? "plot " : ", \\\n     ") + gnuplot_text(figure.name + ".dat") + " index " +
             std::to_string(index) + " " + one.style +
             (one.title.empty() ? " notitle" : " title " + gnuplot_text(one.title));
  }
  return text + plots + "\nset terminal pdfcairo size " + to_digits(figure.width / kPixelsPerInch, kDigits) + "in," +
         to_digits(figure.height / kPixelsPerInch, kDigits) + "in" + kFont + " fontscale " +
         to_digits(kScaleOfPdf, kDigits) + " background 'white'\nset output " + gnuplot_text(figure.name + ".pdf") +
         "\nreplot\n";
}

std::string draw(const Figure& figure, const std::filesystem::path& folder) {
  const auto empty = [](const Series& one) { return one.rows.empty(); };
  if (figure.series.empty() || std::any_of(figure.series.begin(), figure.series.end(), empty)) {
    return "there is nothing to draw";
  }
  make_folder(folder);
  std::string data;
  for (const Series& one : figure.series) { // gnuplot separates data sets by two empty lines
    data += (data.empty() ? "" : "\n\n") + std::string("# ") +
            on_one_line(one.title.empty() ? figure.title : one.title) + "\n" + one.rows;
  }
  write_file(folder / (figure.name + ".dat"), data);
  if (!figure.csv.empty()) {
    write_file(folder / (figure.name + ".csv"), figure.csv);
  }
  write_file(folder / (figure.name + ".gp"), to_gnuplot(figure));
  constexpr double kSeconds = 60;
  const CommandAnswer answer = run_command({{"gnuplot", figure.name + ".gp"}, folder, kSeconds}, "");
  return answer.why_not.empty() ? "" : "gnuplot: " + answer.why_not;
}

} // namespace stagecraft
