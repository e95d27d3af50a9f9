// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/kernel_forms.hpp"

#include "calibrate/fit/forms/fit_cast.hpp"
#include "calibrate/fit/forms/fit_family.hpp"
#include "calibrate/fit/forms/fit_line.hpp"

namespace stagecraft::fit {
namespace {

// With fewer samples no grid is tried, or only the coarse one.
constexpr std::size_t kFewForGrid = 12, kManyForGrid = 400;
// With fewer samples than this, a few draws of held-back shapes would choose a form by chance, so more are drawn.
constexpr std::size_t kFewForChoice = 30;
constexpr int kMoreRounds = 5;
// Forms are ordered from simple to complex; a more complex one must lower the error to this share.
constexpr double kWorthIt = 0.98;
// With more sizes than this, an interpolation through all of them would be too long.
constexpr std::size_t kManyForStraight = 60;

const std::vector<std::string_view> kTileCorrections = {
    "later-wave-64x64",   "later-wave-128x128", "later-wave-128x256", "later-wave-256x128", "first-wave-128x128",
    "first-wave-128x256", "best-wave",          "pad-rows-128",       "odd-rows-8",         "single-row"};
const std::vector<std::string_view> kChosenTileCorrections = [] {
  std::vector<std::string_view> features = kTileCorrections;
  features.insert(features.begin(), "chosen-tiles");
  return features;
}();
const std::vector<std::string_view> kImageCorrections = {
    "wave-64x64",     "wave-128x64",     "wave-128x128",  "wave-256x128",  "pad-columns-32",
    "pad-columns-64", "pad-columns-128", "odd-columns-2", "odd-columns-4", "odd-depth-2",
    "odd-depth-4",    "pad-image-2",     "pad-image-4",   "pad-image-6",   "inverse-image"};
const std::vector<std::string_view> kAttentionCorrections = {"wave-64x64", "wave-128x128", "ungrouped"};

std::vector<KernelForm> product_forms(bool many) {
  std::vector<KernelForm> forms = {
      {"proportional", {}, {"flops"}},
      {"sum", {}, {"launch", "flops", "bytes", "wave-flops-64x64", "wave-flops-128x128", "result"}},
      {"grid", GridForm{{{"rows", 10}, {"columns", 7}, {"depth", 7}}, kTileCorrections, 0.03}, {}},
      {"plain grid", GridForm{{{"rows", 10}, {"columns", 7}, {"depth", 7}}, {}, 0.1}, {}}};
  if (many) {
    forms.push_back(
        {"fine grid", GridForm{{{"rows", 16}, {"columns", 10}, {"depth", 10}}, kTileCorrections, 0.03}, {}});
    forms.push_back(
        {"finest grid", GridForm{{{"rows", 16}, {"columns", 14}, {"depth", 14}}, kChosenTileCorrections, 0.03}, {}});
  }
  return forms;
}

std::vector<KernelForm> image_forms(bool many) {
  std::vector<KernelForm> forms = {
      {"proportional", {}, {"flops"}},
      {"sum",
       {},
       {"launch", "flops", "bytes", "wave-flops-64x64", "wave-flops-128x64", "winograd-2-flops", "winograd-4-flops"}},
      {"grid", GridForm{{{"rows", 7}, {"columns", 7}, {"depth", 7}}, kImageCorrections, 0.03}, {}}};
  if (many) {
    forms.push_back({"fine grid", GridForm{{{"rows", 9}, {"columns", 9}, {"depth", 9}}, kImageCorrections, 0.03}, {}});
  }
  return forms;
}

std::vector<KernelForm> attention_forms(bool many) {
  std::vector<KernelForm> forms = {
      {"proportional", {}, {"flops"}},
      {"sum", {}, {"launch", "flops", "bytes", "wave-flops-128x128", "result"}},
      {"grid", GridForm{{{"sequence", 10}, {"batch", 5}, {"heads", 4}}, kAttentionCorrections, 0.03}, {}}};
  if (many) {
    forms.push_back(
        {"grouped grid",
         GridForm{{{"batch", 8}, {"sequence", 14}, {"heads", 6}, {"kv-heads", 4}}, kAttentionCorrections, 0.001},
         {}});
    forms.push_back(
        {"sized grid",
         GridForm{{{"rows", 10}, {"sequence", 9}, {"heads", 5}, {"head-size", 2}}, kAttentionCorrections, 0.03},
         {}});
  }
  return forms;
}

std::vector<KernelForm> memory_forms(std::size_t samples) {
  std::vector<KernelForm> forms = {{"proportional", {}, {"bytes"}},
                                   {"sum", {}, {"launch", "bytes", "rows"}},
                                   {"grid", GridForm{{{"rows", 9}, {"columns", 6}}, {}, 0.1}, {}},
                                   {"grid by bytes", GridForm{{{"bytes", 12}, {"columns", 4}}, {}, 0.1}, {}}};
  for (const int segments : {1, 2, 3, 4}) {
    forms.push_back({std::to_string(segments) + " segments", {}, {}, segments});
  }
  if (samples <= kManyForStraight) {
    forms.push_back({"straight", {}, {}});
  }
  return forms;
}

} // namespace

std::vector<KernelForm> forms_for(KernelOp op, std::size_t samples) {
  const bool many = samples >= kManyForGrid;
  std::vector<KernelForm> forms = op == KernelOp::gemm          ? product_forms(many)
                                  : op == KernelOp::convolution ? image_forms(many)
                                  : op == KernelOp::attention   ? attention_forms(many)
                                  : op == KernelOp::launch      ? std::vector<KernelForm>{{"sum", {}, {"launch"}}}
                                                                : memory_forms(samples);
  if (samples < kFewForGrid) {
    std::erase_if(forms, [](const KernelForm& form) { return form.grid.has_value() || form.segments > 2; });
  }
  return forms;
}

KernelFit fit_form(const KernelSamples& samples, const KernelForm& form, const Roofline& base, double processors) {
  const KernelSample& first = samples.front();
  KernelFit fit{
      .op = first.kernel.op, .pass = first.kernel.pass, .precision = first.kernel.precision, .variant = first.variant};
  fit.name = std::string(row_of(fit.op).name) + "/" + std::string(row_of(fit.pass).name) + "/" +
             std::string(row_of(fit.precision).name) + (fit.variant.empty() ? "" : "/" + fit.variant);
  if (form.grid) {
    fit.grid = fit_grid(samples, *form.grid, base, processors);
  } else if (!form.family.empty()) {
    fit.family = fit_family(samples, form.family, processors);
  } else {
    std::vector<LinePoint> points;
    for (const KernelSample& sample : samples) {
      points.push_back({bytes_of(sample.kernel).value, sample.time});
    }
    fit.line = form.segments > 0 ? fit_line(std::move(points), form.segments) : interpolate(std::move(points));
  }
  return fit;
}

Seconds time_by(const KernelFit& fit, const Kernel& kernel, double processors) {
  if (fit.grid) {
    return time_of(*fit.grid, kernel, processors);
  }
  return fit.family ? time_of(*fit.family, kernel, processors) : fit.line->time(bytes_of(kernel).value);
}

namespace {

// The mean factor by which times are off, less 1; nothing where no shape could be held back.
std::optional<double> mean_factor(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) {
    sum += error > 0 ? error : -error / (1 + error);
  }
  return errors.empty() ? std::nullopt : std::optional(sum / static_cast<double>(errors.size()));
}

} // namespace

KernelFit fit_kernel(const KernelSamples& samples, const Roofline& base, double processors,
                     const CrossValidation& validation) {
  const auto errors_of = [&](const KernelForm& form, const CrossValidation& draws) {
    const auto fit = [&](const KernelSamples& known) -> Predictor {
      return [fit = fit_form(known, form, base, processors), processors](const KernelSample& sample) {
        return time_by(fit, sample.kernel, processors).value;
      };
    };
    return validate(samples, draws, fit);
  };
  const std::vector<KernelForm> forms = forms_for(samples.front().kernel.op, samples.size());
  CrossValidation choosing = validation;
  choosing.rounds *= samples.size() < kFewForChoice ? kMoreRounds : 1;
  const KernelForm* best = &forms.front();
  std::optional<double> least;
  for (const KernelForm& form : forms) {
    const std::optional<double> off = mean_factor(errors_of(form, choosing));
    if (off && (!least || *off < kWorthIt * *least)) {
      least = off;
      best = &form;
    }
  }
  CrossValidation others = choosing;
  others.seed += 1000;
  KernelFit fit = fit_form(samples, *best, base, processors);
  (fit.grid     ? fit.grid->error
   : fit.family ? fit.family->error
                : fit.line->error) = error_of(errors_of(*best, others), scheme_text(others));
  fit.cast = fit.grid ? fit_cast(samples) : 0;
  return fit;
}

} // namespace stagecraft::fit
