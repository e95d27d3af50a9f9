// What all other readers stand on: YAML, JSON, CSV, quantities.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "sim/base/format/csv.hpp"
#include "sim/base/format/json.hpp"
#include "sim/base/format/yaml.hpp"
#include "sim/base/units.hpp"
#include "tests/fuzz/fuzz_files.hpp"
#include "tests/fuzz/read.hpp"

namespace stagecraft::fuzz {
namespace {

// Looks up the places of some values: of the first ones at each depth.
void look_up(const json::Value& value, const json::Source& source, const std::string& path, int depth) {
  constexpr int kMostValues = 4;
  const Where where = source.place(path);
  require(where.line >= 1 && where.column >= 1, "every value has a place");
  int count = 0;
  for (auto item = value.begin(); depth > 0 && value.is_structured() && item != value.end(); ++item) {
    const std::string below =
        value.is_array() ? path + "[" + std::to_string(count) + "]" : path + (path.empty() ? "" : ".") + item.key();
    look_up(*item, source, below, depth - 1);
    if (++count == kMostValues) {
      break;
    }
  }
}

template <class Quantity> void read_quantity(std::string_view text) {
  try {
    const auto quantity = parse_quantity<Quantity>(text, {"text", 1, 1});
    require(std::isfinite(quantity.value), "a quantity is finite");
    to_text(quantity);
  } catch (const InputError&) { // the text may still be of another dimension
  }
}

} // namespace

void read_yaml(std::string_view bytes) {
  const std::string text = yaml::flow_text(yaml::parse(bytes, "file"));
  require(yaml::flow_text(yaml::parse(text, "flow text")) == text, "the text of a document reads back as the same");
}

void read_json(std::string_view bytes) {
  const std::string file = "file";
  const json::Source source(bytes, file);
  constexpr int kDepth = 4;
  look_up(json::parse(source), source, "", kDepth);
}

void read_csv(std::string_view bytes) {
  const CsvTable table(bytes, "file", {"a", "b"});
  for (std::size_t row = 0; row < table.rows(); ++row) {
    csv_cell(table.at(row, "a").text);
    for (const CsvCell& part : table.at(row, "a").split(';')) {
      part.integer(-1000, 1000);
    }
    csv_cell(table.at(row, "b").number());
  }
}

void read_quantities(std::string_view bytes) {
  read_quantity<Seconds>(bytes);
  read_quantity<Bytes>(bytes);
  read_quantity<BytesPerSecond>(bytes);
  read_quantity<Flops>(bytes);
  read_quantity<FlopsPerSecond>(bytes);
  read_quantity<Joules>(bytes);
  read_quantity<Watts>(bytes);
  read_quantity<Dollars>(bytes);
  find_amount(bytes);
  parse_integer(bytes, -1000, 1'000'000, {"text", 1, 1});
  to_digits(parse_number(bytes, {"text", 1, 1}), 4);
}

} // namespace stagecraft::fuzz
