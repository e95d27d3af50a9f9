// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/rows/truth_flags.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

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

void check_columns(const CsvTable& table, const std::string& file) {
  for (const std::string& column : table.columns()) {
    find_by_name(kColumns, column, "column", {file, 1, 1});
  }
}

// The first word, or the text whole, is one that the column knows.
void check_cell(const FlagColumn& column, const CsvCell& cell) {
  if (column.is_count) {
    cell.integer(1, kMostOfFlag);
    return;
  }
  const auto known = [&](std::string_view word) { return !word.empty() && cell.text.starts_with(word); };
  if (column.words.front().empty() || std::any_of(column.words.begin(), column.words.end(), known)) {
    return;
  }
  std::vector<std::string> names;
  for (const std::string_view word : column.words) {
    if (!word.empty()) {
      names.emplace_back(word);
    }
  }
  throw InputError(cell.where, unknown_name(column.name, cell.text, names));
}

// The words of one row of the file.
CaseFlags flags_of(const CsvTable& table, std::size_t row) {
  CaseFlags flags{table.at(row, "case").where};
  for (const FlagColumn& column : kColumns) {
    if (column.name == "case" || column.name == "file" || !table.has(column.name)) {
      continue;
    }
    const CsvCell cell{without_blanks_around(table.at(row, column.name).text), table.at(row, column.name).where};
    if (!cell.text.empty() && cell.text != "unknown" && !(column.is_count && states_nothing(lower_case(cell.text)))) {
      check_cell(column, cell);
      flags.words[std::string(column.name)] = cell.text;
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

void check_cases(const TableFlags& flags, const std::set<std::string>& cases, const std::filesystem::path& table) {
  std::vector<std::string> all; // of the folder, read where it is needed
  for (const auto& [name, of_case] : flags) {
    if (cases.contains(name)) {
      continue;
    }
    if (all.empty()) {
      all = cases_in(table.has_parent_path() ? table.parent_path() : std::filesystem::path("."));
    }
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      const std::string meant = nearest(name, all);
      throw InputError(of_case.where, "no table here has a case '" + excerpt(name) + "'" +
                                          (meant.empty() ? "" : "; did you mean '" + meant + "'?") +
                                          "; allowed: cases of the tables in this folder");
    }
  }
}

} // namespace stagecraft
