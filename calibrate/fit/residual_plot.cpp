// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/residual_plot.hpp"

#include <map>

#include "sim/base/command.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"

namespace stagecraft::fit {
namespace {

// Text of a gnuplot string in double quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

} // namespace

std::string draw_residuals(const std::vector<PredictedRow>& rows, const std::string& title,
                           const std::filesystem::path& file) {
  std::map<std::string, std::string> series;
  for (const PredictedRow& row : rows) {
    series[row.source] += csv_cell(row.measured.value) + " " + csv_cell(100 * row.error()) + "\n";
  }
  std::string script = "set terminal svg size 900,500\nset encoding utf8\nset logscale x\nset format x '%.0e'\n"
                       "set xlabel 'measured time [s]'\nset ylabel 'error of the prediction [%]'\nset grid\n"
                       "set title \"" +
                       escaped(title) + "\" noenhanced\n";
  std::string plots, data;
  for (const auto& [source, points] : series) {
    plots += (plots.empty() ? "plot 0 notitle with lines lc 'gray'" : "") + std::string(", '-' title \"") +
             escaped(source) + "\" with points pt 7 ps 0.3";
    data += points + "e\n";
  }
  if (plots.empty()) {
    return "there is nothing to draw";
  }
  const CommandAnswer answer = run_command({{"gnuplot"}, ".", 60}, script + plots + "\n" + data);
  if (!answer.why_not.empty()) {
    return "gnuplot: " + answer.why_not;
  }
  write_file(file, answer.output);
  return "";
}

} // namespace stagecraft::fit
