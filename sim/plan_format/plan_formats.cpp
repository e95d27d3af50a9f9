// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_format/plan_formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/plan_format/plan_file.hpp"

namespace stagecraft {
namespace {

bool same_share(double a, double b) { return std::abs(a - b) <= 1e-9; }

// Blocks that run again one after another are the full recompute of a format that knows no more.
bool same_recompute(const Stage& written, const Stage& read, const Training& training) {
  return (written.recompute == read.recompute && written.recomputed == read.recomputed) ||
         (training.recompute.by_all_blocks() && written.recompute == Recompute::selective &&
          read.recompute == Recompute::full);
}

bool same_stages(const std::vector<Stage>& written, const std::vector<Stage>& read, const Training& training) {
  return std::equal(written.begin(), written.end(), read.begin(), read.end(), [&](const Stage& a, const Stage& b) {
    bool same =
        a.operators == b.operators && a.devices == b.devices && a.axes() == b.axes() && same_recompute(a, b, training);
    for (std::size_t replica = 0; same && replica < std::max(a.shares.size(), b.shares.size()); ++replica) {
      same = same_share(a.share(replica), b.share(replica));
    }
    return same;
  });
}

constexpr std::array kPlanFormats = {
    PlanFormat{"megatron", "Megatron-LM's arguments: sizes and layout of the pipeline", is_megatron_plan,
               read_megatron_plan, write_megatron_plan},
    PlanFormat{"pipedream", "PipeDream: a graph.txt with stage_id, or a runtime configuration", is_pipedream_plan,
               read_pipedream_plan, write_pipedream_plan},
    PlanFormat{"torchgpipe", "torchgpipe: a balance, the number of layers of each stage", is_torchgpipe_plan,
               read_torchgpipe_plan, write_torchgpipe_plan},
    PlanFormat{"device-map", "JSON {layer: device}, for loading a model", is_device_map, read_device_map,
               write_device_map, false},
    PlanFormat{"stagecraft", "stagecraft's own YAML or JSON, as `plan` writes it",
               [](const PlanSource&) { return true; }, read_stagecraft_plan, write_stagecraft_plan},
};

// The format that the content shows.
const PlanFormat& recognised(const PlanSource& source) {
  return *std::find_if(kPlanFormats.begin(), kPlanFormats.end(),
                       [&](const PlanFormat& candidate) { return candidate.recognises(source); });
}

} // namespace

const yaml::Node& PlanSource::document() const {
  if (!document_) {
    document_ = yaml::parse(text, file);
  }
  return *document_;
}

std::span<const PlanFormat> plan_formats() { return kPlanFormats; }

Plan read_plan_text(const PlanSource& source, std::string_view format) {
  check_utf8(source.text, source.file);
  const PlanFormat& row =
      format.empty() ? recognised(source) : find_by_name(kPlanFormats, format, "plan format", {"--plan-format", 0, 0});
  Plan plan = row.read(source);
  if (plan.strategy.empty()) {
    plan.strategy = std::filesystem::path(source.file).filename().string();
  }
  return plan;
}

Plan load_plan(const std::filesystem::path& path, std::string_view format, const ModelGraph& model,
               const Platform& platform) {
  return read_plan_text({read_file(path), path.string(), model, platform}, format);
}

WrittenPlan write_plan(const PlanFormat& format, const PlanToWrite& what) {
  WrittenPlan written = format.write(what);
  const std::string* text = std::get_if<std::string>(&written);
  if (text == nullptr) {
    return written;
  }
  const PlanSource source(*text, std::string(format.name), what.model, what.platform);
  try {
    if (const std::string_view seen = recognised(source).name; seen != format.name) {
      return Infeasible{"the names of the operators make it look like '" + std::string(seen) + "'"};
    }
    const Plan again = format.read(source);
    if (!format.whole || same_stages(what.plan.stages, again.stages, what.training)) {
      return written;
    }
  } catch (const InputError& refusal) { // a name that the format cannot hold
    return Infeasible{"it would be refused: " + std::string(refusal.what())};
  }
  return Infeasible{"the form '" + std::string(format.name) + "' cannot express these stages"};
}

std::string not_plain(const Plan& plan, std::string_view form, bool tensor_parallel) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const std::string which = "stage " + std::to_string(s);
    if (std::any_of(stage.shares.begin(), stage.shares.end(),
                    [&](double share) { return !same_share(share, stage.shares.front()); })) {
      return which + " gives its replicas unequal shares, and " + std::string(form) + " gives all the same";
    }
    if (stage.tensor_parallel > 1 && !tensor_parallel) {
      return which + " is tensor-parallel, which " + std::string(form) + " cannot express";
    }
    if (stage.tensor_rule != TensorRule::megatron) {
      return which + " shares operators by the rule '" + std::string(row_of(stage.tensor_rule).name) + "', and " +
             std::string(form) + " has its own";
    }
    if (stage.recompute == Recompute::selective) {
      return which + " recomputes some of its operators, which " + std::string(form) + " cannot express";
    }
    if (stage.recompute != plan.stages.front().recompute) {
      return which + " recomputes unlike stage 0, and " + std::string(form) + " treats all stages alike";
    }
  }
  return "";
}

} // namespace stagecraft
