// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/model_summary.hpp"

#include <nlohmann/json.hpp>

#include "sim/base/named_table.hpp"
#include "sim/base/schema.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {
namespace {

std::string summary_json(const ModelGraph& model) {
  const ModelTotals totals = totals_of(model);
  const nlohmann::ordered_json json = {{"schema", kSchema},
                                       {"name", model.name},
                                       {"operators", model.size()},
                                       {"parameters", totals.parameters},
                                       {"forward_flops", totals.forward.value},
                                       {"backward_flops", totals.backward.value},
                                       {"activation_bytes", totals.output_elements * row_of(Precision::fp32).bytes}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string summary_text(const ModelGraph& model) {
  const ModelTotals totals = totals_of(model);
  std::string text = model.name + (model.description.empty() ? "" : ": " + model.description) + "\n" +
                     std::to_string(model.size()) + " operators, " + to_text(totals.parameters / 1e6, 2) +
                     " M parameters; per sample: forward " + to_text(totals.forward) + ", backward " +
                     to_text(totals.backward) + ", activations " + to_text(Bytes{4 * totals.output_elements}) +
                     " (fp32)\n";
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
  for (OperatorId op = 0; op < model.size(); ++op) {
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
  return text + "\n" + to_text(table, use_color());
}

} // namespace

void emit_model(const OutputOptions& options, const ModelGraph& model) {
  emit(options, options.format == "json" ? summary_json(model) : summary_text(model));
}

} // namespace stagecraft
