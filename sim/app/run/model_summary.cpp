// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/model_summary.hpp"

#include <nlohmann/json.hpp>

#include "sim/base/format/schema.hpp"
#include "sim/base/named_table.hpp"
#include "sim/report/table.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

// Blocks that follow one another and have the same sums.
struct EqualBlocks {
  std::string first, last;
  int count = 1;
  std::size_t operators = 0;
  double parameters = 0, stash_elements = 0; ///< of one of them
  Flops forward;

  bool same_sums(const EqualBlocks& other) const {
    return operators == other.operators && parameters == other.parameters && stash_elements == other.stash_elements &&
           forward == other.forward;
  }
};

EqualBlocks sums_of(const ModelGraph& model, const Block& block) {
  EqualBlocks sums{.first = block.name, .last = block.name, .operators = block.operators.size()};
  for (const OperatorId op : block.operators) {
    sums.parameters += model.operators[op].parameters;
    sums.stash_elements += model.operators[op].stash_elements;
    sums.forward += model.operators[op].forward.flops;
  }
  return sums;
}

// Empty where no block is one of a row.
std::vector<EqualBlocks> equal_blocks(const ModelGraph& model) {
  std::vector<EqualBlocks> rows;
  bool numbered = false;
  for (const Block& block : blocks_of(model)) {
    EqualBlocks sums = sums_of(model, block);
    numbered = numbered || block.numbered;
    if (!rows.empty() && rows.back().same_sums(sums)) {
      rows.back().last = sums.last;
      ++rows.back().count;
    } else {
      rows.push_back(std::move(sums));
    }
  }
  return numbered ? rows : std::vector<EqualBlocks>();
}

// The names of the precisions that store numbers in as many bytes.
struct StoredSize {
  std::string names;
  double bytes;
};
std::vector<StoredSize> stored_sizes() {
  std::vector<StoredSize> sizes;
  for (const PrecisionRow& row : kPrecisions) {
    if (!sizes.empty() && sizes.back().bytes == row.bytes) {
      sizes.back().names += ", " + std::string(row.name);
    } else {
      sizes.push_back({std::string(row.name), row.bytes});
    }
  }
  return sizes;
}

// A table of the blocks, each with its memory: of its parameters, and of what it keeps of a sample for backward.
std::string blocks_text(const OutputOptions& options, const ModelGraph& model) {
  Table table{{{"block"}, {"equal ones", Align::right}, {"forward", Align::right}, {"parameters", Align::right}}, {}};
  for (const char* what : {"parameters", "kept"}) {
    for (const StoredSize& size : stored_sizes()) {
      table.columns.push_back({std::string(what) + " in " + size.names, Align::right});
    }
  }
  for (const EqualBlocks& row : equal_blocks(model)) {
    std::vector<Cell> cells = {{row.first + (row.count > 1 ? " … " + row.last : "")},
                               {std::to_string(row.count)},
                               {to_text(row.forward)},
                               {to_text(row.parameters, 0)}};
    for (const double amount : {row.parameters, row.stash_elements}) {
      for (const StoredSize& size : stored_sizes()) {
        cells.push_back({to_text(Bytes{amount * size.bytes})});
      }
    }
    table.rows.push_back(std::move(cells));
  }
  return table.rows.empty()
             ? ""
             : "\nEach block, and what it keeps of a sample for backward:\n" + to_text(table, plain_view_of(options));
}

// The devices of one memory on which the model fits alike.
struct AlikeDevices {
  DeviceFit fit;
  std::vector<std::string> names;
};

std::vector<AlikeDevices> alike(const std::vector<DeviceFit>& fits) {
  std::vector<AlikeDevices> rows;
  for (const DeviceFit& fit : fits) {
    if (rows.empty() || rows.back().fit.memory != fit.memory) {
      rows.push_back({fit, {}});
    }
    rows.back().names.push_back(fit.device);
  }
  return rows;
}

std::string fits_text(const DeviceFits& fits, const OutputOptions& options) {
  const TrainingMemory& needs = fits.needs;
  std::string text =
      "\nTo train on one sample takes " + to_text(needs.whole) + " in " +
      (needs.precision == "bf16" ? "16 bits" : needs.precision) + " with " + needs.optimizer +
      (needs.recomputed ? ", " + to_text(*needs.recomputed) + " with recompute: " + needs.recompute : "") +
      " (parameters, gradients, states, activations).\n";
  Table table{{{"memory", Align::right}, {"fits on one"}, {"devices at least", Align::right}, {"devices"}}, {}};
  for (const AlikeDevices& row : alike(fits.devices)) {
    const Style style = row.fit.fits ? Style::good : row.fit.fits_recomputed ? Style::plain : Style::dim;
    table.rows.push_back({{to_text(row.fit.memory), style},
                          {row.fit.fits              ? "yes"
                           : row.fit.fits_recomputed ? "with recompute: " + needs.recompute
                                                     : "no",
                           style},
                          {std::to_string(row.fit.devices), style},
                          {join(row.names), style}});
  }
  TableView view = plain_view_of(options);
  view.wrap = true;
  return text + to_text(table, view);
}

nlohmann::ordered_json json_of(const DeviceFits& fits) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceFit& fit : fits.devices) {
    devices.push_back({{"device", fit.device},
                       {"memory_bytes", fit.memory.value},
                       {"fits", fit.fits},
                       {"fits_recomputed", fit.fits_recomputed},
                       {"devices_at_least", fit.devices}});
  }
  const TrainingMemory& needs = fits.needs;
  return {{"precision", needs.precision},
          {"optimizer", needs.optimizer},
          {"training_bytes", needs.whole.value},
          {"recompute", needs.recompute},
          {"recomputed_bytes", needs.least().value},
          {"devices", devices}};
}

// Adds the names of operators, in order, and of blocks with theirs.
void add_names(const ModelGraph& model, nlohmann::ordered_json& json) {
  json["operator_names"] = nlohmann::ordered_json::array();
  for (const Operator& what : model.operators) {
    json["operator_names"].push_back(what.name);
  }
  json["block_operators"] = nlohmann::ordered_json::object();
  for (const Block& block : blocks_of(model)) {
    for (const OperatorId op : block.operators) {
      json["block_operators"][block.name].push_back(model.operators[op].name);
    }
  }
}

std::string summary_json(const ModelGraph& model, const std::optional<DeviceFits>& fits, bool all_operators) {
  const ModelTotals totals = totals_of(model);
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
  for (const EqualBlocks& row : equal_blocks(model)) {
    blocks.push_back({{"first", row.first},
                      {"last", row.last},
                      {"count", row.count},
                      {"operators", row.operators},
                      {"parameters", row.parameters},
                      {"forward_flops", row.forward.value},
                      {"stash_elements", row.stash_elements}});
  }
  nlohmann::ordered_json json = {{"schema", kSchema},
                                 {"name", model.name},
                                 {"operators", model.size()},
                                 {"parameters", totals.parameters},
                                 {"frozen_parameters", totals.frozen},
                                 {"active_parameters", totals.active},
                                 {"forward_flops", totals.forward.value},
                                 {"backward_flops", totals.backward.value},
                                 {"activation_bytes", totals.output_elements * row_of(Precision::fp32).bytes},
                                 {"blocks", blocks}};
  if (all_operators) {
    add_names(model, json);
  }
  if (fits) {
    json["fits"] = json_of(*fits);
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string summary_text(const OutputOptions& options, const ModelGraph& model, const std::optional<DeviceFits>& fits,
                         bool all_operators) {
  const ModelTotals totals = totals_of(model);
  std::string text = model.name + (model.description.empty() ? "" : ": " + model.description) + "\n" +
                     std::to_string(model.size()) + " operators, " + to_text(totals.parameters / 1e6, 2) +
                     " M parameters" +
                     (totals.frozen > 0 ? " to train and " + to_text(totals.frozen / 1e6, 2) + " M frozen" : "") +
                     (totals.active < totals.parameters + totals.frozen
                          ? ", of which a token meets " + to_text(totals.active / 1e6, 2) + " M"
                          : "") +
                     "; per sample: forward " + to_text(totals.forward) + ", backward " + to_text(totals.backward) +
                     ", activations " + to_text(Bytes{4 * totals.output_elements}) + " (fp32)\n";
  for (const Profile& profile : model.profiles) {
    Seconds forward;
    Seconds backward;
    for (const MeasuredTime& time : profile.times) {
      forward += time.forward;
      backward += time.backward;
    }
    text += "measured" + (profile.device.empty() ? "" : " on " + profile.device) +
            (profile.samples > 0 ? " with " + to_text(profile.samples, 0) + " samples" : " per minibatch") +
            ": forward " + to_text(forward) + ", backward " + to_text(backward) + "\n";
  }
  Table table{{{"operator"},
               {"type"},
               {"kind"},
               {"forward", Align::right},
               {"parameters", Align::right},
               {"output", Align::right},
               {"inputs"}},
              {}};
  constexpr OperatorId kFew = 40;
  const OperatorId shown = all_operators || model.size() <= kFew ? model.size() : kFew / 2;
  for (OperatorId op = 0; op < shown; ++op) {
    const Operator& what = model.operators[op];
    std::vector<std::string> inputs;
    for (const OperatorId maker : model.predecessors[op]) {
      inputs.push_back(model.operators[maker].name);
    }
    table.rows.push_back({{what.name},
                          {what.type},
                          {std::string(row_of(what.kind).name)},
                          {to_text(what.forward.flops)},
                          {to_text(what.parameters, 0)},
                          {to_text(what.output_elements, 0)},
                          {join(inputs)}});
  }
  if (shown < model.size()) {
    table.gaps.push_back(
        {table.rows.size(), "… " + std::to_string(model.size() - shown) + " more operators; --all prints every one"});
  }
  return text + blocks_text(options, model) + (fits ? fits_text(*fits, options) : "") + "\n" +
         to_text(table, plain_view_of(options));
}

} // namespace

void emit_model(const OutputOptions& options, const ModelGraph& model, const std::optional<DeviceFits>& fits,
                bool all_operators) {
  emit(options, options.format == "json" ? summary_json(model, fits, all_operators)
                                         : summary_text(options, model, fits, all_operators));
}

} // namespace stagecraft
