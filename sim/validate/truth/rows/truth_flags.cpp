// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/rows/truth_flags.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/count_of.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"

namespace stagecraft {
namespace {

constexpr int kMostOfFlag = 1 << 30;

// A column, and the words that its cells begin with; none: any text, which is looked at where it is used.
struct FlagColumn {
  std::string_view name;
  std::array<std::string_view, 6> words{};
  bool is_count = false;
};
constexpr std::array<std::string_view, 6> kTruth = {"true", "false", "n/a", "none"};
constexpr std::array kColumns = {
    FlagColumn{"case"},
    FlagColumn{"file"},
    FlagColumn{"recompute"},
    FlagColumn{"distributed_optimizer", kTruth},
    FlagColumn{"overlap_grad_reduce", kTruth},
    FlagColumn{"overlap_param_gather", kTruth},
    FlagColumn{"tp_comm_overlap", kTruth},
    FlagColumn{"moe_a2a_overlap", kTruth},
    FlagColumn{"cuda_graphs"},
    FlagColumn{"fsdp", {"none", "n/a", "optim_grads_params", "megatron-fsdp (optim_grads_params)"}},
    FlagColumn{"cpu_offload"},
    FlagColumn{"attention"},
    FlagColumn{"dispatcher", {"alltoall", "allgather", "deepep", "hybridep", "n/a", "none"}},
    FlagColumn{"fp8_recipe"},
    FlagColumn{"sequence_parallel", kTruth},
    FlagColumn{"vp", {}, true},
    FlagColumn{"cp_comm_type", {"p2p", "a2a", "all_gather", "a2a+p2p"}},
    FlagColumn{"micro_batches", {}, true},
    FlagColumn{"micro_batch_size", {}, true},
    FlagColumn{"source"},
    FlagColumn{"confidence"},
    FlagColumn{"note"},
};

// Other columns are ignored, as a table's are, but for one that is a known one misspelt.
void check_columns(const CsvTable& table, const std::string& file) {
  const std::vector<std::string> known = names_of(std::span<const FlagColumn>(kColumns));
  for (const std::string& column : table.columns()) {
    const bool is_known = std::find(known.begin(), known.end(), column) != known.end();
    if (!is_known && !nearest(column, known).empty()) {
      throw InputError({file, 1, 1}, unknown_name("column", column, known));
    }
  }
}

// Whether the text means something: it is a number of 1 and above, or begins with a word that the column knows.
bool is_known(const FlagColumn& column, const CsvCell& cell) {
  if (column.is_count) {
    cell.integer(1, kMostOfFlag);
    return true;
  }
  const auto known = [&](std::string_view word) { return !word.empty() && cell.text.starts_with(word); };
  return column.words.front().empty() || std::any_of(column.words.begin(), column.words.end(), known);
}

// The words of one row of the file.
CaseFlags flags_of(const CsvTable& table, std::size_t row) {
  CaseFlags flags;
  for (const FlagColumn& column : kColumns) {
    if (column.name == "case" || column.name == "file" || !table.has(column.name)) {
      continue;
    }
    const CsvCell cell{without_blanks_around(table.at(row, column.name).text), table.at(row, column.name).where};
    if (!cell.text.empty() && cell.text != "unknown" && !(column.is_count && states_nothing(lower_case(cell.text)))) {
      if (is_known(column, cell)) {
        flags.words[std::string(column.name)] = cell.text;
      } else {
        flags.not_known.push_back(std::string(column.name) + " '" + excerpt(cell.text) + "'");
      }
    }
  }
  return flags;
}

// The cases of all tables in a folder.
std::vector<std::string> cases_in(const std::filesystem::path& folder) {
  std::vector<std::string> cases;
  for (const std::filesystem::path& file : files_at(folder, is_truth_table)) {
    const CsvTable table(read_file(file.string()), file.string(), {"case"});
    for (std::size_t row = 0; row < table.rows(); ++row) {
      cases.push_back(without_blanks_around(table.at(row, "case").text));
    }
  }
  return cases;
}

} // namespace

TableFlags read_flags(const std::filesystem::path& file, const std::string& set) {
  const CsvTable table(read_file(file.string()), file.string(), {"case"});
  check_columns(table, file.string());
  TableFlags flags;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.has("file") && without_blanks_around(table.at(row, "file").text) != set + ".csv") {
      continue;
    }
    const std::string name = without_blanks_around(table.at(row, "case").text);
    if (!flags.emplace(name, flags_of(table, row)).second) {
      throw InputError(table.at(row, "case").where,
                       "case '" + excerpt(name) + "' is there twice; allowed: each once of a table");
    }
  }
  return flags;
}

std::string flags_without_row(const std::filesystem::path& folder, const std::set<std::string>& known) {
  const std::filesystem::path file = folder / "flags.csv";
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) {
    return "";
  }
  const CsvTable table(read_file(file.string()), file.string(), {"case"});
  std::vector<std::string> without;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::string name = without_blanks_around(table.at(row, "case").text);
    if (!known.contains(name)) {
      without.push_back(std::move(name));
    }
  }
  if (without.empty()) {
    return "";
  }
  const std::vector<std::string> cases = cases_in(folder);
  const std::set<std::string> others(cases.begin(), cases.end());
  std::erase_if(without, [&](const std::string& name) { return others.contains(name); });
  if (without.empty()) {
    return "";
  }
  const std::string meant = nearest(without.front(), cases);
  return file.string() + ": no table beside it has " + count_of(static_cast<int>(without.size()), "case") +
         " of its own, such as '" + excerpt(without.front()) + "'" +
         (meant.empty() ? "" : " ('" + meant + "' is there)") + ".";
}

} // namespace stagecraft
