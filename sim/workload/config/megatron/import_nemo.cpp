// Rows of NeMo's scripts/performance/recommended_model_configs, and our plans as such a row. NeMo's performance scripts
// (helpers.py) decide what a row leaves out.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/edit_distance.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/config/megatron/megatron_training.hpp"

namespace stagecraft {
namespace {

struct FlagColumn {
  std::string_view name, flag;
};
// Each degree under its long name and its short one.
constexpr std::array kFlagColumns = {
    FlagColumn{"tp_size", "tensor-model-parallel-size"},
    FlagColumn{"tp", "tensor-model-parallel-size"},
    FlagColumn{"pp_size", "pipeline-model-parallel-size"},
    FlagColumn{"pp", "pipeline-model-parallel-size"},
    FlagColumn{"cp_size", "context-parallel-size"},
    FlagColumn{"cp", "context-parallel-size"},
    FlagColumn{"ep_size", "expert-model-parallel-size"},
    FlagColumn{"ep", "expert-model-parallel-size"},
    FlagColumn{"etp_size", "expert-tensor-parallel-size"},
    FlagColumn{"etp", "expert-tensor-parallel-size"},
    FlagColumn{"vp_size", "num-virtual-stages-per-pipeline-rank"},
    FlagColumn{"vp", "num-virtual-stages-per-pipeline-rank"},
    FlagColumn{"mbs", "micro-batch-size"},
    FlagColumn{"gbs", "global-batch-size"},
    FlagColumn{"seq_len", "seq-length"},
};
constexpr std::array<std::string_view, 4> kColumnsOfNames = {"task", "model", "size", "system"};
constexpr std::array<std::string_view, 8> kOtherColumns = {"num_gpus",          "cuda_graphs", "dtype",
                                                           "use_mcore_fsdp",    "fsdp",        "recompute_layers",
                                                           "recompute_modules", "fp8_recipe"};

bool is_flag_column(std::string_view name) {
  return std::any_of(kFlagColumns.begin(), kFlagColumns.end(),
                     [&](const FlagColumn& column) { return column.name == name; });
}

// "64.0", as pandas writes it, is 64.
CsvCell whole(CsvCell cell) {
  if (const std::size_t dot = cell.text.find('.');
      dot != std::string::npos && cell.text.find_first_not_of('0', dot + 1) == std::string::npos) {
    cell.text.erase(dot);
  }
  return cell;
}

// What NeMo's scripts, which read tables with pandas, take for a cell without a value.
bool is_empty(const CsvCell& cell) {
  constexpr std::array<std::string_view, 6> kEmpty = {"", "none", "nan", "null", "n/a", "na"};
  return std::find(kEmpty.begin(), kEmpty.end(), lower_case(cell.text)) != kEmpty.end();
}

class Row {
public:
  Row(const ConfigSource& source, const ConfigContext& context)
      : table_(source.text, source.file, {}),
        header_(source.text.substr(0, source.text.find('\n'))), whole_{source.file, 1, 1}, context_(context) {
    row_ = choose(source);
  }

  ImportedTraining read() {
    refuse_unknown_degrees();
    for (const FlagColumn& column : kFlagColumns) {
      if (has(column.name)) {
        add(column.flag, column.name);
      }
    }
    if (has("num_gpus")) {
      world_ = whole(cell("num_gpus")).integer(1, kMostMegatronRanks);
    }
    read_precision();
    read_sharing();
    read_recompute();
    if (is_on("cuda_graphs")) {
      set("enable-cuda-graph", "", "cuda_graphs");
    }
    list_others();
    return megatron_training(MegatronArguments(settings_, world_, whole_), std::move(unheeded_), context_);
  }

private:
  const CsvCell& cell(std::string_view column) const { return table_.at(row_, column); }
  bool has(std::string_view column) const { return table_.has(column) && !is_empty(cell(column)); }
  bool is_on(std::string_view column) const { return has(column) && whole(cell(column)).integer(0, 1) == 1; }

  void set(std::string_view flag, std::string text, std::string_view column) {
    settings_.push_back({std::string(flag), {std::move(text), cell(column).where}, std::string(column)});
  }
  void add(std::string_view flag, std::string_view column) { set(flag, whole(cell(column)).text, column); }
  // What the scripts set whatever the row says.
  void add_default(std::string_view flag) { settings_.push_back({std::string(flag), {"", whole_}, std::string(flag)}); }

  // The row whose cells are as the study says.
  std::size_t choose(const ConfigSource& source) {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      if (source.row == nullptr || is_meant(*source.row, row)) {
        rows.push_back(row);
      }
    }
    const Where where = source.row != nullptr ? source.row->where : whole_;
    if (rows.empty()) {
      throw InputError(where, source.row == nullptr || table_.rows() == 0
                                  ? "the table has no rows; allowed: one or more"
                                  : "no row of '" + source.file + "' is like that; " + nearest_rows(*source.row));
    }
    if (rows.size() > 1) {
      throw InputError(where, std::to_string(rows.size()) + " rows " +
                                  (source.row == nullptr ? "stand in the table" : "are like that") +
                                  "; allowed: {file: FILE, row: {COLUMN: VALUE, …}} for one; they differ in " +
                                  join(columns_that_differ(rows)));
    }
    return rows.front();
  }

  bool is_same(const CsvCell& cell, const std::string& value) const {
    return lower_case(whole(cell).text) == lower_case(whole({value, {}}).text);
  }

  bool is_meant(const yaml::Node& wanted, std::size_t row) const {
    if (wanted.kind != yaml::Node::Kind::map) {
      throw InputError(wanted.where, "'row' is no mapping; allowed: {COLUMN: VALUE, …}");
    }
    return std::all_of(wanted.entries.begin(), wanted.entries.end(), [&](const yaml::Node::Entry& entry) {
      if (!table_.has(entry.key)) {
        throw InputError(entry.where, unknown_name("column", entry.key, table_.columns()));
      }
      return is_same(table_.at(row, entry.key), yaml::scalar(entry.value, entry.key));
    });
  }

  // What the first key that no row fits with those before it could be.
  std::string nearest_rows(const yaml::Node& wanted) const {
    yaml::Node some = wanted;
    some.entries.clear();
    for (const yaml::Node::Entry& entry : wanted.entries) {
      std::vector<std::string> values;
      bool any = false;
      for (std::size_t row = 0; row < table_.rows(); ++row) {
        if (!is_meant(some, row)) {
          continue;
        }
        any = any || is_same(table_.at(row, entry.key), entry.value.text);
        const std::string value = whole(table_.at(row, entry.key)).text;
        if (std::find(values.begin(), values.end(), value) == values.end()) {
          values.push_back(value);
        }
      }
      if (!any) {
        return "known of '" + entry.key + "' there: " + join(values);
      }
      some.entries.push_back(entry);
    }
    return "allowed: values of one row";
  }

  std::vector<std::string> columns_that_differ(const std::vector<std::size_t>& rows) const {
    std::vector<std::string> differing;
    for (const std::string& column : table_.columns()) {
      if (std::any_of(rows.begin(), rows.end(), [&](std::size_t row) {
            return table_.at(row, column).text != table_.at(rows.front(), column).text;
          })) {
        differing.push_back(column);
      }
    }
    return differing;
  }

  void refuse_unknown_degrees() const {
    std::vector<std::string> known = names_of(kFlagColumns);
    std::vector<std::string> all = known;
    all.insert(all.end(), kColumnsOfNames.begin(), kColumnsOfNames.end());
    all.insert(all.end(), kOtherColumns.begin(), kOtherColumns.end());
    for (const std::string& column : table_.columns()) {
      if (const std::string meant = misspelt(column, all); !meant.empty()) {
        const auto at = static_cast<int>(std::min(header_.find(column), header_.size()));
        throw InputError({whole_.file, 1, at + 1},
                         "unknown column '" + excerpt(column) + "'; did you mean '" + meant + "'?");
      }
    }
    for (const std::string& column : table_.columns()) {
      if (column.ends_with("_size") && !is_flag_column(column) && has(column)) {
        throw InputError(cell(column).where, unknown_name("column", column, known));
      }
    }
  }

  // "fp8" is with delayed scales unless a recipe is named: set_precision_configs().
  void read_precision() {
    add_default("grad-reduce-in-bf16");
    const std::string type = has("dtype") ? lower_case(cell("dtype").text) : "bf16";
    if (type != "bf16" && !type.starts_with("fp8") && type != "nvfp4") {
      throw InputError(cell("dtype").where, unknown_name("dtype", type, {"bf16", "fp8", "nvfp4"}));
    }
    add_default("bf16");
    if (type == "nvfp4") {
      set("fp4-format", "e2m1", "dtype");
    } else if (type.starts_with("fp8")) {
      const std::string recipe = has("fp8_recipe") ? lower_case(cell("fp8_recipe").text)
                                 : type.size() > 4 ? type.substr(4) // fp8_cs
                                                   : "ds";
      set("fp8-format", "hybrid", "dtype");
      const std::string known = recipe == "ds"                        ? "delayed"
                                : recipe == "cs"                      ? "tensorwise"
                                : recipe == "ss"                      ? "blockwise"
                                : recipe == "mx" || recipe == "mxfp8" ? "mxfp8"
                                                                      : recipe;
      set("fp8-recipe", known, "dtype");
      if (known == "delayed" || known == "tensorwise") { // bf16_with_fp8_mixed() and its like
        set("fp8-param-gather", "", "dtype");
      }
    }
  }

  // The scripts' recipes share optimiser states and overlap what replicas exchange.
  void read_sharing() {
    if (has("tp_size") || has("tp")) {
      add_default("sequence-parallel");
    }
    add_default("use-distributed-optimizer");
    add_default("overlap-grad-reduce");
    add_default("overlap-param-gather");
    for (const char* column : {"use_mcore_fsdp", "fsdp"}) {
      if (is_on(column)) {
        set("use-megatron-fsdp", "", column);
        set("data-parallel-sharding-strategy", "optim_grads_params", column);
      }
    }
  }

  void read_recompute() {
    const int layers = has("recompute_layers") ? whole(cell("recompute_layers")).integer(0, kMostConfigDegree) : 0;
    if (layers > 0) {
      set("recompute-granularity", "full", "recompute_layers");
      set("recompute-method", "block", "recompute_layers");
      set("recompute-num-layers", std::to_string(layers), "recompute_layers");
    }
    if (has("recompute_modules")) {
      if (layers > 0) {
        throw InputError(cell("recompute_modules").where,
                         "given beside 'recompute_layers', which NeMo refuses; allowed: one of them");
      }
      set("recompute-granularity", "selective", "recompute_modules");
      add("recompute-modules", "recompute_modules");
    }
  }

  void list_others() {
    const auto is_known = [](std::string_view name) {
      return is_flag_column(name) ||
             std::find(kColumnsOfNames.begin(), kColumnsOfNames.end(), name) != kColumnsOfNames.end() ||
             std::find(kOtherColumns.begin(), kOtherColumns.end(), name) != kOtherColumns.end();
    };
    for (const std::string& column : table_.columns()) {
      const std::string value = has(column) ? lower_case(whole(cell(column)).text) : "0";
      if (!is_known(column) && value != "0" && value != "false") {
        unheeded_.push_back(excerpt(column) + " " + excerpt(cell(column).text));
      }
    }
  }

  CsvTable table_;
  std::string header_;
  Where whole_;
  const ConfigContext& context_;
  std::size_t row_ = 0;
  int world_ = 0;
  std::vector<MegatronSetting> settings_;
  std::vector<std::string> unheeded_;
};

} // namespace

ImportedTraining import_nemo(const ConfigSource& source, const ConfigContext& context) {
  ImportedTraining read = Row(source, context).read();
  read.framework = "nemo-2025";
  return read;
}

} // namespace stagecraft
