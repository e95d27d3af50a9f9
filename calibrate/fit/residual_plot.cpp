// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/residual_plot.hpp"

#include <map>

namespace stagecraft::fit {

Figure residual_figure(const std::vector<PredictedRow>& rows, const std::string& title, const std::string& name) {
  std::map<std::string, std::string> series;
  for (const PredictedRow& row : rows) {
    series[row.source] += figure_row({row.measured.value, 100 * row.error()});
  }
  Figure figure{.name = name,
                .title = title,
                .x = "measured time [s]",
                .y = "error of the prediction [%]",
                .commands = "set logscale x\nset format x '%.0e'\nset xzeroaxis lc rgb '#444444'\n",
                .series = {},
                .width = kPageWidth,
                .height = 380};
  for (const auto& [source, points] : series) {
    figure.series.push_back({source, "using 1:2 with points pt 7 ps 0.3", points});
  }
  return figure;
}

} // namespace stagecraft::fit
