// What reports/validation says: the same in the project's README, of sets that are described, no goal reached that is
// not; and, where the tables are, what the program predicts of the smaller ones.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iostream>
#include <map>

#include "sim/validate/validators.hpp"
#include "tests/reports/reports.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kPage = test::kReports / "validation" / "README.md";
const fs::path kProject = test::source_dir() / "README.md";
const fs::path kData = test::source_dir() / ".." / "shared" / "data" / "truth";

// The part of a page that reports/validation/run made.
std::string part(const fs::path& page, const std::string& name) {
  const std::string text = read_file(page), mark = "<!-- made: " + name + " -->\n";
  const std::size_t begin = text.find(mark);
  INFO(page.lexically_normal().string() << " has no part '" << name << "'");
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find("<!-- made so far -->", begin);
  REQUIRE(end != std::string::npos);
  return text.substr(begin + mark.size(), end - begin - mark.size());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The cells of a row of a table in Markdown.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t begin = line.find('|') + 1; begin < line.size();) {
    const std::size_t end = std::min(line.find('|', begin), line.size());
    const std::string cell = line.substr(begin, end - begin);
    const std::size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
    begin = end + 1;
  }
  return cells;
}

// The rows of the part's table, below its head.
std::vector<std::vector<std::string>> table_of(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(part(kPage, name))) {
    if (line.starts_with("| ") && !line.starts_with("|-")) {
      rows.push_back(cells_of(line));
    }
  }
  REQUIRE(rows.size() > 1);
  rows.erase(rows.begin());
  return rows;
}

// Whether a figure is as good as a goal: "at most 3 %", "at least 0.95", "85 to 95 %", "100.0 %".
bool meets(const std::string& goal, const std::string& figure) {
  const double value = std::stod(figure);
  if (goal.starts_with("at most ")) {
    return value <= std::stod(goal.substr(8));
  }
  if (goal.starts_with("at least ")) {
    return value >= std::stod(goal.substr(9));
  }
  const std::size_t to = goal.find(" to ");
  return value >= std::stod(goal) && (to == std::string::npos || value <= std::stod(goal.substr(to + 4)));
}

TEST_CASE("the README quotes the first lines of the scoreboard", "[reports][scoreboard]") {
  const std::string quoted = part(kProject, "head");
  CHECK(quoted == part(kPage, "head"));
  CHECK(quoted.find(" are scored.") != std::string::npos);
}

TEST_CASE("every set of the scoreboard is described", "[reports][scoreboard]") {
  const std::string text = read_file(test::source_dir() / "docs/validation/measured-runs.md");
  for (const std::vector<std::string>& row : table_of("sets")) {
    INFO("docs/validation/measured-runs.md does not name the set '" << row[0] << "'");
    CHECK(text.find("| `" + row[0] + "` |") != std::string::npos);
  }
}

TEST_CASE("no goal of the scoreboard is called reached, or missed, that is not", "[reports][scoreboard]") {
  int reached = 0, missed = 0;
  for (const std::vector<std::string>& row : table_of("goals")) {
    REQUIRE(row.size() == 5);
    CAPTURE(row[0], row[2], row[3], row[4]);
    if (row[4].empty()) {
      CHECK(row[3].starts_with("not scored"));
      continue;
    }
    CHECK(row[4] == (meets(row[2], row[3]) ? "yes" : "no"));
    (row[4] == "yes" ? reached : missed) += 1;
  }
  CHECK(reached > 0);
  INFO("README.md says otherwise");
  CHECK(part(kProject, "sources")
            .find("**Goals.** Of " + std::to_string(reached + missed) + " that the project set itself, " +
                  std::to_string(reached) + " are reached.") != std::string::npos);
}

TEST_CASE("the scoreboard's errors of small sets are those of the program", "[reports][scoreboard][data]") {
  const std::vector<std::string> sets = {"korthikanti", "megatron_sc21", "torchtitan", "fms_fsdp"};
  std::vector<fs::path> tables;
  for (const std::string& set : sets) {
    tables.push_back(kData / (set + ".csv"));
    if (!fs::exists(tables.back())) {
      std::cout << "skipped: no " << tables.back().lexically_normal().string() << "\n";
      return;
    }
  }
  std::map<std::string, std::pair<int, double>> predicted; // rows and the sum of their errors, by set and metric
  for (const ValidationRow& row : validate(tables, {.shipped = test::source_dir(), .workers = 2}).rows) {
    auto& [rows, sum] = predicted[row.group + " | " + row.metric];
    ++rows;
    sum += std::abs(row.error());
  }
  REQUIRE(predicted.size() == 10);
  std::map<std::string, std::vector<std::string>> printed;
  for (const std::vector<std::string>& row : table_of("sets")) {
    printed[row[0] + " | " + row[1]] = row;
  }
  for (const auto& [key, of_key] : predicted) {
    CAPTURE(key);
    REQUIRE(printed.contains(key));
    CHECK(printed.at(key)[2] == std::to_string(of_key.first));
    const double mean = 100 * of_key.second / of_key.first;
    CHECK(std::stod(printed.at(key)[3]) == Approx(mean).margin(0.0501)); // a tenth of a percent is printed
  }
}

} // namespace
} // namespace stagecraft
