// The page's scripts and styles, which the build turns into string constants (cmake/embed_text.cmake).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace stagecraft::assets {

// NOLINTBEGIN(readability-identifier-naming): they are called as their files are
extern const std::string_view echarts_min_js; ///< Apache ECharts, see sim/report/page/assets/echarts
extern const std::string_view dom_js;
extern const std::string_view glossary_js;
extern const std::string_view tables_js;
extern const std::string_view cluster_js;
extern const std::string_view charts_js;
extern const std::string_view timeline_js;
extern const std::string_view page_js;
extern const std::string_view page_css;
// NOLINTEND(readability-identifier-naming)

} // namespace stagecraft::assets
