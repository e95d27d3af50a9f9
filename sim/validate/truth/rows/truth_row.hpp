// Tables of runs that others measured, one figure a row, all in one schema: docs/formats/truth.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

struct TruthMetric; // sim/validate/truth/rows/truth_metrics.hpp

/// Sizes of the model as the row has them. 0: not stated.
struct TruthSizes {
  int layers = 0, hidden = 0, heads = 0, key_value_heads = 0, feed_forward = 0, vocabulary = 0;
  int experts = 0, experts_active = 0, expert_hidden = 0;
  int sequence = 0; ///< tokens of a sample
};

/// Degrees of parallelism as the row has them. 0: not stated.
struct TruthDegrees {
  int tensor = 0, pipeline = 0, interleave = 0, data = 0, context = 0, expert = 0;
  std::optional<bool> sequence;
};

/// A measured figure, and what its table says of the run.
struct TruthRow {
  std::string case_name; ///< unique in its table
  std::string set;       ///< the table's name: its file's without the ending
  Where where;
  std::string source, table, model, note;
  TruthSizes sizes;
  std::string gpu, intra_link, inter_link;
  int devices_per_node = 0, nodes = 0, devices = 0; ///< 0: not stated
  TruthDegrees degrees;
  std::string zero, precision, schedule, recompute; ///< in the source's words
  double micro_batch = 0;                           ///< samples of a replica at a time; 0: not stated
  int global_batch = 0;                             ///< samples; 0: not stated
  std::string metric, unit;
  const TruthMetric* known = nullptr; ///< null: no metric that is predicted
  double value = 0;                   ///< in SI units; of an epoch's time, that of an iteration
  double power_cap = 0;               ///< W of each device; 0: none is stated
  int accumulated = 0;                ///< samples of a replica in an iteration; 0: not stated
  std::string data_set;               ///< its name, in lower case; "": none is stated
  int epoch_samples = 0;              ///< samples of its data set; 0: not known
  double epoch_host_seconds = 0;      ///< in which the host prepares an epoch and the devices wait
  bool in_16_bits = false;            ///< whether its model trains in 16 bits, where the row says nothing
  std::string optimizer;              ///< its name, in lower case; "": none is stated
  /// What flags.csv beside the table says of this case, by column; "unknown" and empty cells left out.
  std::map<std::string, std::string> flags;
  std::vector<std::string> flags_not_known{}; ///< CaseFlags::not_known
  std::string published;  ///< sizes that the row is silent on and the model's own configuration has; "": none
  std::string unreadable; ///< a cell whose text is no number, as "layers is '(18,208)'"; "": none

  /// A word of the flags, or "" where they are silent.
  std::string flag(const std::string& column) const;
  /// Whether the source, the table or the note has this word, whatever its case.
  bool mentions(std::string_view word) const;
};

/// What the script that launched the row's run says of it and the row does not, where that script is public: columns of
/// flags.csv, Megatron-LM's `cp_comm_type`, `micro_batches` of a replica and `micro_batch_size`.
std::map<std::string, std::string> launcher_flags(const TruthRow& row);

/// The number that follows these words in a text; 0 where they are not there, or no number follows.
int number_after(const std::string& text, std::string_view words);

/// The text in lower case, without what stands in parentheses.
std::string plain_words(std::string_view text);
/// Whether a cell's words, as plain_words(), say that its source states nothing.
bool states_nothing(std::string_view words);

/// Whether a run trains adapters beside frozen weights.
bool trains_adapters(const TruthRow& row);

/// The columns that a table in this schema needs and the file's first line lacks.
std::vector<std::string> missing_columns(const std::filesystem::path& file);
/// Whether the file is a table in this schema, by its header.
bool is_truth_table(const std::filesystem::path& file);

/// Reads a table, and the flags.csv beside it if there is one. InputError for a line with too few or too many cells,
/// two rows of one case, a value that is no finite number, a size or degree out of range, and a unit that the row's
/// metric does not have.
std::vector<TruthRow> read_truth(const std::filesystem::path& file);

} // namespace stagecraft
