// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/rows/truth_row.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <set>

#include "sim/base/format/csv.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/rows/truth_flags.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 7> kNeeded = {"case", "model", "gpu", "metric", "unit", "value", "global_batch"};
constexpr int kMost = 1 << 30;
constexpr std::size_t kLongestCell = 10'000; // characters; the longest known has 2,000

// Training samples of public data sets, as their papers have them, and what the host does alone before each epoch.
struct DataSet {
  std::string_view name;
  int samples;
  double host_seconds = 0;
  bool in_16_bits = false; ///< whether the model that is trained on it is, where nothing says otherwise
};
// He et al. 2017, table 1 and 4.1: of 1,000,209 ratings the last of each of 6,040 users is left out; four items that a
// user has not rated stand beside each.
constexpr int kRatings = 1000209 - 6040, kMovieLensSamples = kRatings * (1 + 4);
// The script that trains on them draws those four anew in a loop of Python (guoyang9/NCF, ng_sample): numpy's randint
// takes 1.07 us (lemire/fastrand, issue 2), what stands around it, a look-up among a million pairs and two lists, 1.31
// us on a Xeon of 2023.
constexpr double kDraw = 2.38e-6;
constexpr std::array kDataSets = {
    DataSet{"imagenet", 1281167}, // Russakovsky et al. 2015, table 2
    DataSet{"cifar100", 50000},   // Krizhevsky 2009
    DataSet{"cifar10", 50000},
    DataSet{"squad", 88524}, // of at most 384 tokens, 128 of them in common: what transformers' run_qa.py counts
    DataSet{"sentiment140", 1600000}, // Go et al. 2009
    // Panayotov et al. 2015, 960 hours; SeanNaren/deepspeech.pytorch, configs/librispeech.yaml: `precision: 16`
    DataSet{"librispeech", 281241, 0, true},
    DataSet{"movielens-1m", kMovieLensSamples, 4 * kRatings* kDraw},
};

// "1083366.5" of "1,083,366.5": without the commas behind every third digit from the point on, where all are there.
std::string without_thousands(const std::string& text) {
  constexpr std::size_t kGroup = 3;
  const std::size_t end = std::min(text.find_first_not_of("0123456789,"), text.size());
  const std::size_t first = text.find(',');
  if (first >= end || first == 0 || first > kGroup) {
    return text;
  }
  std::string number = text.substr(0, first);
  for (std::size_t comma = first; comma < end; comma += kGroup + 1) {
    const std::string group = text.substr(comma + 1, std::min(kGroup, end - std::min(comma + 1, end)));
    if (text[comma] != ',' || group.size() != kGroup || group.find(',') != std::string::npos) {
      return text;
    }
    number += group;
  }
  return number + text.substr(end);
}

// One line of the table while it is read.
class Line {
public:
  Line(const CsvTable& table, std::size_t row, TruthRow& into) : table_(table), number_(row), row_(into) {}

  std::string text(std::string_view column) const {
    if (!table_.has(column)) {
      return "";
    }
    const CsvCell& cell = table_.at(number_, column);
    if (cell.text.size() > kLongestCell) {
      throw InputError(cell.where, std::string(column) + " has " + std::to_string(cell.text.size()) +
                                       " characters; allowed: at most " + std::to_string(kLongestCell));
    }
    return without_blanks_around(cell.text);
  }
  const CsvCell& cell(std::string_view column) const { return table_.at(number_, column); }

  // The whole number in front of the cell, of `least` or more, 0 where it is empty. What is behind a space is a remark;
  // a text without a number in front is remembered.
  int count(std::string_view column, int least = 0) {
    if (!table_.has(column)) {
      return 0;
    }
    const CsvCell cell{without_thousands(text(column)), table_.at(number_, column).where};
    std::string number = cell.text.substr(0, cell.text.find(' '));
    if (const std::size_t point = number.find(".0"); point != std::string::npos && point + 2 == number.size()) {
      number.erase(point);
    }
    if (number.empty()) {
      return 0;
    }
    if (number.find_first_not_of("0123456789-") != std::string::npos) {
      remember(column, "which is no whole number");
      return 0;
    }
    return number == "-" ? 0 : CsvCell{number, cell.where}.integer(least, kMost);
  }

  // The number in the cell, of 1 or more, 0 where it is empty.
  double number(std::string_view column) {
    if (!table_.has(column) || text(column).empty()) {
      return 0;
    }
    return CsvCell{without_thousands(text(column)), table_.at(number_, column).where}.number(1, kMost);
  }

  // The cell as a number of 0 or more; it must not be empty.
  double figure(std::string_view column) const {
    return CsvCell{without_thousands(text(column)), table_.at(number_, column).where}.number(0);
  }

  std::optional<bool> truth(std::string_view column) {
    const std::string value = lower_case(text(column));
    if (value == "true" || value == "1") {
      return true;
    }
    if (value == "false" || value == "0") {
      return false;
    }
    if (!states_nothing(value)) {
      remember(column, "which is neither true nor false");
    }
    return std::nullopt;
  }

  // The words that a vocabulary begins with, as "50257 (padded)"; "128k" and "~50000" are rounded, and so not read.
  int vocabulary() {
    const std::string words = text("vocab");
    const std::size_t first = words.starts_with('~') ? 1 : 0;
    const std::size_t behind = std::min(words.find_first_not_of("0123456789.", first), words.size());
    const bool rounded = behind > first && (first > 0 || lower_case(words).find('k') == behind);
    if (states_nothing(plain_words(words)) || rounded) {
      return 0;
    }
    return count("vocab");
  }

private:
  void remember(std::string_view column, std::string_view why) {
    row_.unreadable = std::string(column) + " is '" + excerpt(text(column)) + "', " + std::string(why);
  }

  const CsvTable& table_;
  std::size_t number_;
  TruthRow& row_;
};

void read_sizes(Line& line, TruthSizes& sizes) {
  sizes = {.layers = line.count("layers", 1),
           .hidden = line.count("hidden", 1),
           .heads = line.count("heads", 1),
           .key_value_heads = line.count("kv_heads"),
           .feed_forward = line.count("ffn_hidden"),
           .experts = line.count("experts"),
           .experts_active = line.count("experts_active"),
           .expert_hidden = line.count("moe_ffn"),
           .sequence = line.count("seq_len", 1)};
}

void read_degrees(Line& line, TruthDegrees& degrees) {
  degrees = {.tensor = line.count("tensor_parallel", 1),
             .pipeline = line.count("pipeline_parallel", 1),
             .interleave = line.count("virtual_stages"),
             .data = line.count("data_parallel", 1),
             .context = line.count("context_parallel"),
             .expert = line.count("expert_parallel"),
             .sequence = line.truth("sequence_parallel")};
}

// "cifar100" of "dataset=cifar100; power_limit_W=100", after "dataset=", where that begins a word: up to a semicolon, a
// comma or a blank.
std::string text_after(const std::string& text, std::string_view words) {
  std::size_t found = text.find(words);
  while (found != std::string::npos && found > 0 &&
         std::string_view("; ,").find(text[found - 1]) == std::string_view::npos) {
    found = text.find(words, found + 1);
  }
  if (found == std::string::npos) {
    return "";
  }
  const std::size_t begin = found + words.size();
  return lower_case(text.substr(begin, std::min(text.find_first_of(";, ", begin), text.size()) - begin));
}

// The number behind words of a note, as 150 of "power_limit_W=150; dataset=cifar10"; 0 where the words are not there.
double number_of_note(const Line& line, const std::string& note, std::string_view words) {
  const std::size_t found = note.find(words);
  if (found == std::string::npos) {
    return 0;
  }
  const std::size_t begin = note.find_first_not_of(' ', found + words.size());
  const std::size_t end = std::min(note.find_first_of(";, ", begin), note.size());
  const std::string text = begin == std::string::npos ? "" : note.substr(begin, end - begin);
  const Where where = line.cell("note").where;
  const std::optional<double> number = find_amount(text);
  if (!number || *number < 1 || *number > kMost) {
    throw InputError(where, "'" + std::string(words) + excerpt(text) + "' states no number; allowed: " +
                                std::string(words) + "N, a number from 1 to " + std::to_string(kMost));
  }
  return *number;
}

// What tables say of a run in their notes.
void read_note(const Line& line, TruthRow& row) {
  row.power_cap = number_of_note(line, row.note, "power_limit_W=");
  row.accumulated = static_cast<int>(number_of_note(line, row.note, "accumulated batch per GPU: "));
  row.data_set = text_after(row.note, "dataset=");
  row.optimizer = text_after(row.note, "optimizer=");
  const auto known =
      std::find_if(kDataSets.begin(), kDataSets.end(), [&](const DataSet& set) { return set.name == row.data_set; });
  row.epoch_samples = known == kDataSets.end() ? 0 : known->samples;
  row.epoch_host_seconds = known == kDataSets.end() ? 0 : known->host_seconds;
  row.in_16_bits = known != kDataSets.end() && known->in_16_bits;
}

// Refuses what a figure cannot be, as more of a whole than there is.
void check_value(const Line& line, const TruthRow& row, double told) {
  const Where& where = line.cell("value").where;
  if (row.value < 0 || told > row.known->most) {
    const bool percents = row.unit == "%";
    throw InputError(where, "'" + row.metric + "' is " + line.text("value") + (percents ? " %" : "") +
                                "; allowed: 0 to " +
                                (percents                                             ? "100 %"
                                 : row.known->key == "mfu" || row.known->key == "hfu" ? "1, and up to 100 of the unit %"
                                                                                      : "1"));
  }
  if (row.known->kind == FigureKind::verdict && told != 0 && told != 1) {
    throw InputError(where, "'" + row.metric + "' is " + line.text("value") +
                                "; allowed: 1 where a device lacked memory, 0 where none did");
  }
}

void read_value(Line& line, TruthRow& row) {
  row.metric = usual_metric(line.text("metric"));
  row.unit = line.text("unit");
  row.known = find_truth_metric(row.metric, row.unit);
  if (row.known != nullptr) {
    const double scale = scale_of(*row.known, row.unit, line.cell("unit").where);
    const double told = line.figure("value") * scale;
    row.value = row.known->told(told);
    check_value(line, row, told);
    if (row.metric == "epoch_seconds" && row.epoch_samples > 0) {
      row.value *= static_cast<double>(row.global_batch) / row.epoch_samples;
    }
  }
}

TruthRow read_row(const CsvTable& table, std::size_t number, const std::string& set) {
  TruthRow row;
  Line line(table, number, row);
  row.case_name = line.text("case");
  row.set = set;
  row.where = line.cell("case").where;
  row.source = line.text("source");
  row.table = line.text("table");
  row.model = line.text("model");
  row.note = line.text("note");
  read_sizes(line, row.sizes);
  row.sizes.vocabulary = line.vocabulary();
  row.gpu = line.text("gpu");
  row.intra_link = line.text("intra_link");
  row.inter_link = line.text("inter_link");
  row.devices_per_node = line.count("gpus_per_node", 1);
  row.nodes = line.count("nodes", 1);
  row.devices = line.count("num_gpus", 1);
  read_degrees(line, row.degrees);
  row.zero = line.text("zero_stage");
  row.precision = line.text("precision");
  row.schedule = line.text("schedule");
  row.recompute = line.text("recompute");
  row.micro_batch = line.number("micro_batch");
  row.global_batch = line.count("global_batch", 1);
  read_note(line, row);
  read_value(line, row);
  return row;
}

void check_name(const TruthRow& row) {
  if (row.case_name.empty()) {
    throw InputError(row.where, "the case has no name; allowed: a name of its own for each row");
  }
  if (on_one_line(row.case_name) != row.case_name) {
    throw InputError(row.where, "the case '" + on_one_line(excerpt(row.case_name)) +
                                    "' has a control character in its name; allowed: a name on one line");
  }
}

// The table's flags go before, unless they were read in files of another run.
void add_launcher_flags(std::map<std::string, std::string>& flags, std::map<std::string, std::string> launcher) {
  const auto confidence = flags.find("confidence");
  if (confidence != flags.end() && confidence->second.find("other folder") != std::string::npos) {
    flags.swap(launcher);
  }
  flags.merge(launcher);
}

} // namespace

std::string plain_words(std::string_view text) {
  std::string plain = lower_case(text.substr(0, text.find('(')));
  while (!plain.empty() && plain.back() == ' ') {
    plain.pop_back();
  }
  return plain;
}

bool states_nothing(std::string_view words) {
  constexpr auto kSilent =
      std::to_array<std::string_view>({"", "-", "?", "n/a", "na", "none", "not stated", "unknown", "unspecified"});
  return std::find(kSilent.begin(), kSilent.end(), words) != kSilent.end();
}

bool trains_adapters(const TruthRow& row) {
  return row.mentions("lora") || plain_words(row.model).find("lora") != std::string::npos;
}

std::string TruthRow::flag(const std::string& column) const {
  const auto found = flags.find(column);
  return found == flags.end() ? "" : found->second;
}

bool TruthRow::mentions(std::string_view word) const {
  const std::string wanted = lower_case(word);
  const std::array texts = {&source, &table, &note};
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string* text) { return lower_case(*text).find(wanted) != std::string::npos; });
}

int number_after(const std::string& text, std::string_view words) {
  const std::size_t found = text.find(words);
  const long number = found == std::string::npos ? 0 : std::strtol(text.c_str() + found + words.size(), nullptr, 10);
  return static_cast<int>(std::clamp<long>(number, -kMost, kMost));
}

std::vector<std::string> missing_columns(const std::filesystem::path& file) {
  const std::vector<std::string> header = csv_header(read_file(file.string()));
  std::vector<std::string> missing;
  for (const std::string_view column : kNeeded) {
    if (std::find(header.begin(), header.end(), column) == header.end()) {
      missing.emplace_back(column);
    }
  }
  return missing;
}

bool is_truth_table(const std::filesystem::path& file) {
  return file.extension() == ".csv" && missing_columns(file).empty();
}

std::vector<TruthRow> read_truth(const std::filesystem::path& file) {
  const CsvTable table(read_file(file.string()), file.string(),
                       {kNeeded[0], kNeeded[1], kNeeded[2], kNeeded[3], kNeeded[4], kNeeded[5], kNeeded[6]});
  const std::string set = file.stem().string();
  const std::filesystem::path beside = file.parent_path() / "flags.csv";
  std::error_code failure;
  const TableFlags flags = std::filesystem::is_regular_file(beside, failure) ? read_flags(beside, set) : TableFlags();
  std::vector<TruthRow> rows;
  std::set<std::string> cases;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    rows.push_back(read_row(table, row, set));
    check_name(rows.back());
    if (!cases.insert(rows.back().case_name).second) {
      throw InputError(rows.back().where, "case '" + excerpt(rows.back().case_name) +
                                              "' is there twice; allowed: a name of its own for "
                                              "each row");
    }
    if (const auto found = flags.find(rows.back().case_name); found != flags.end()) {
      rows.back().flags = found->second.words;
      rows.back().flags_not_known = found->second.not_known;
    }
    add_launcher_flags(rows.back().flags, launcher_flags(rows.back()));
  }
  return rows;
}

} // namespace stagecraft
