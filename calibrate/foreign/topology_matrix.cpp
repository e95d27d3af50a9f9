// SPDX-License-Identifier: Apache-2.0
#include "calibrate/foreign/topology_matrix.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::foreign {
namespace {

struct ConnectionRow {
  std::string_view name;
  ConnectionKind kind;
};
constexpr std::array kConnections = {
    ConnectionRow{"X", ConnectionKind::self},           ConnectionRow{"PIX", ConnectionKind::one_bridge},
    ConnectionRow{"PXB", ConnectionKind::same_bridges}, ConnectionRow{"PHB", ConnectionKind::host_bridge},
    ConnectionRow{"NODE", ConnectionKind::numa_node},   ConnectionRow{"SYS", ConnectionKind::sockets}};
constexpr std::string_view kAllowed = "X, NV#, PIX, PXB, PHB, NODE, SYS";
constexpr int kMostLinks = 64, kMostProcessors = 1 << 16;

struct Cell {
  std::string text;
  Where where;
};

// Words separated by blanks and tabs, without escape sequences for colours.
std::vector<Cell> cells_of(std::string_view line, const std::string& file, int number) {
  std::vector<Cell> words;
  bool inside = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line.substr(at, 2) == "\x1b[") {
      at = std::min(line.find('m', at), line.size());
      continue;
    }
    const bool blank = std::isspace(static_cast<unsigned char>(line[at])) != 0;
    if (!blank && !inside) {
      words.push_back({"", {file, number, static_cast<int>(at) + 1}});
    }
    inside = !blank;
    if (inside) {
      words.back().text += line[at];
    }
  }
  return words;
}

bool is_gpu(const std::string& name) {
  return name.starts_with("GPU") && name.size() > 3 && std::isdigit(name[3]) != 0;
}

Connection connection_of(const Cell& word) {
  if (word.text.starts_with("NV")) {
    return {ConnectionKind::nvlink, parse_integer(word.text.substr(2), 1, kMostLinks, word.where)};
  }
  for (const ConnectionRow& row : kConnections) {
    if (row.name == word.text) {
      return {row.kind, 0};
    }
  }
  throw InputError(word.where,
                   "'" + excerpt(word.text) + "' is no connection of two devices; allowed: " + std::string(kAllowed));
}

class MatrixReader {
public:
  explicit MatrixReader(const std::string& file) : file_(file) {}

  TopologyMatrix read(std::string_view text) {
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      line(cells_of(text.substr(at, end - at), file_, ++number));
      at = end + 1;
    }
    finish();
    return std::move(matrix_);
  }

private:
  void line(const std::vector<Cell>& words) {
    if (words.empty()) {
      return;
    }
    if (matrix_.names.empty()) {
      if (is_gpu(words.front().text) && (words.size() == 1 || words[1].text != "X")) {
        header(words);
      }
    } else if (places_.size() < matrix_.names.size()) {
      row(words);
    } else if (words.size() == 2 && words[0].text.starts_with("NIC") && words[0].text.ends_with(':')) {
      matrix_.cards.push_back(words[0].text + " " + words[1].text);
    }
  }

  // Reads the names up to "CPU Affinity".
  void header(const std::vector<Cell>& words) {
    header_ = words.front().where;
    std::set<std::string> seen;
    for (const Cell& word : words) {
      if (word.text == "CPU") {
        affinity_ = true;
        break;
      }
      if (!seen.insert(word.text).second) {
        throw InputError(word.where, "'" + word.text + "' stands twice in the header; allowed: once");
      }
      if (is_gpu(word.text) && matrix_.gpus < static_cast<int>(matrix_.names.size())) {
        throw InputError(word.where, "'" + word.text + "' stands behind network cards; allowed: GPUs first");
      }
      matrix_.gpus += is_gpu(word.text) ? 1 : 0;
      matrix_.names.push_back(word.text);
    }
  }

  void row(const std::vector<Cell>& words) {
    const std::size_t index = places_.size(), count = matrix_.names.size();
    if (words.front().text != matrix_.names[index]) {
      throw InputError(words.front().where, "'" + excerpt(words.front().text) + "' instead of the row of '" +
                                                matrix_.names[index] +
                                                "'; allowed: the rows in the order of the header");
    }
    if (words.size() < count + 1) {
      throw InputError(words.back().where, "the row ends after " + std::to_string(words.size() - 1) +
                                               " connections; allowed: " + std::to_string(count));
    }
    places_.emplace_back();
    std::vector<Connection>& connections = matrix_.connections.emplace_back();
    for (std::size_t other = 0; other < count; ++other) {
      const Cell& word = words[other + 1];
      connections.push_back(connection_of(word));
      places_.back().push_back(word.where);
      if ((connections.back().kind == ConnectionKind::self) != (other == index)) {
        throw InputError(word.where, "'" + word.text + "' between '" + matrix_.names[index] + "' and '" +
                                         matrix_.names[other] + "'; allowed: X between each and itself, only there");
      }
      if (other < index && matrix_.connections[other][index] != connections.back()) {
        throw InputError(word.where, "'" + word.text + "' between '" + matrix_.names[index] + "' and '" +
                                         matrix_.names[other] + "', whose row says otherwise at " +
                                         to_text(places_[other][index]) + "; allowed: the same in both directions");
      }
    }
    if (static_cast<int>(index) < matrix_.gpus) {
      affinity({words.begin() + static_cast<std::ptrdiff_t>(count) + 1, words.end()});
    }
  }

  // Reads "0-31,64-95   0   N/A": logical processors, and the NUMA nodes that have them.
  void affinity(const std::vector<Cell>& rest) {
    const auto is_list = [](const Cell& word) {
      return word.text.find_first_not_of("0123456789-,") == std::string::npos;
    };
    if (affinity_ && !rest.empty() && is_list(rest[0])) {
      add_processors(rest[0]);
    }
    matrix_.sockets.push_back(affinity_ && rest.size() > 1 && is_list(rest[1]) ? rest[1].text : "");
  }

  void add_processors(const Cell& list) {
    for (std::size_t at = 0; at < list.text.size();) {
      const std::size_t end = std::min(list.text.find(',', at), list.text.size());
      const std::string range = list.text.substr(at, end - at);
      const std::size_t dash = std::min(range.find('-'), range.size());
      const int first = parse_integer(range.substr(0, dash), 0, kMostProcessors, list.where);
      const int last =
          dash < range.size() ? parse_integer(range.substr(dash + 1), 0, kMostProcessors, list.where) : first;
      for (int processor = first; processor <= last; ++processor) {
        processors_.insert(processor);
      }
      at = end + 1;
    }
  }

  void finish() {
    if (matrix_.names.empty()) {
      throw InputError({file_, 1, 1}, "no line of columns 'GPU0  GPU1 …'; allowed: the output of `nvidia-smi topo -m`");
    }
    if (places_.size() < matrix_.names.size()) {
      throw InputError(header_, "the matrix has " + std::to_string(places_.size()) + " rows; allowed: the " +
                                    std::to_string(matrix_.names.size()) + " of the header");
    }
    matrix_.processors = static_cast<int>(processors_.size());
  }

  const std::string& file_;
  TopologyMatrix matrix_;
  Where header_;
  bool affinity_ = false;
  std::vector<std::vector<Where>> places_; ///< places of the cells read so far
  std::set<int> processors_;
};

} // namespace

TopologyMatrix read_topology_matrix(std::string_view text, const std::string& file) {
  return MatrixReader(file).read(text);
}

} // namespace stagecraft::foreign
