// stagecraft buy: which machines, how many, which split, how many days and dollars, and how sure that is.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/buy.hpp"

#include <algorithm>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/common/workers.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/app/run/offer_studies.hpp"
#include "sim/app/run/question.hpp"
#include "sim/base/add_new.hpp"
#include "sim/result/setting_json.hpp"
#include "sim/study/compare/compare.hpp"

namespace stagecraft {
namespace {

struct BuyCommand {
  ModelOptions model; ///< MODEL may also be a study
  OutputOptions output;
  SettingOptions settings;
  std::vector<std::string> offers;
  std::string within, budget;
  int workers = 0; ///< 0: one per core
};

void add_flags(Flags& flags, BuyCommand& options) {
  add_model_flags(flags, options.model,
                  {.name = "STUDY",
                   .help = "a study file, with the key 'buy' or with --offer; or a model, by name or file",
                   .several_micro_batches = true,
                   .made_devices = false}); // what is bought has a name and a price
  flags.add(
      "--offer", &options.offers,
      "machines that may be had, as '2 x dgx-h100', or '2, 4 x dgx-h100' for two numbers of them; may be repeated",
      {.name = "P"});
  flags.add("--within", &options.within, "the longest that the training may take, as '60 d'", {.name = "T"});
  flags.add("--budget", &options.budget, "the most that it may cost, as '30 kUSD'", {.name = "USD"});
  add_result_flags(flags, options.output, {"table", "json", "csv", "html", "md"});
  add_table_flags(flags, options.output);
  add_setting_flags(flags, options.settings);
  add_money_flags(flags, options.settings);
  add_confidence_flag(flags, options.settings);
  add_workers_flag(flags, options.workers);
}

// What the flags change in the study: settings with the same effect.
std::vector<Setting> settings_of(const BuyCommand& options) {
  std::vector<Setting> settings = settings_of(options.settings, options.model);
  if (!options.offers.empty()) {
    yaml::Node offers{.kind = yaml::Node::Kind::sequence, .where = {"--offer", 0, 0}};
    for (const std::string& offer : options.offers) {
      offers.items.push_back(yaml::parse(offer, "--offer"));
    }
    settings.push_back({"buy.offers", "", std::move(offers)});
  }
  for (const auto& [key, flag, value] : {std::tuple{"buy.constraints.training-time", "--within", &options.within},
                                         {"buy.constraints.budget", "--budget", &options.budget}}) {
    if (!value->empty()) {
      settings.push_back({key, "", yaml::text_node(*value, {flag, 0, 0})});
    }
  }
  return settings;
}

OfferedStudy offered_by(const BuyCommand& options) {
  std::vector<Setting> settings = settings_of(options);
  const bool of_study = is_study(options.model.model);
  if (of_study) {
    refuse_model_flags(options.model);
  }
  BuyQuestion question =
      load_buy_question(of_study ? yaml::load(options.model.model) : document_of(options.model), settings);
  return {std::move(question), std::move(settings), of_study ? options.model.model : ""};
}

Purchase purchase_of(const BuyCommand& options) {
  const OfferedStudy offered = offered_by(options);
  Purchase purchase{.terms = offered.question.terms};
  Progress progress(options.output.quiet);
  const std::vector<GivenStudy> studies = studies_of_offers(offered);
  constexpr std::size_t kWhole = 1000; // parts of the bar for an offer
  for (std::size_t at = 0; at < studies.size(); ++at) {
    const GivenStudy& given = studies[at];
    ScheduleCounts counts;
    StudyMemo memo(given.study, counts);
    const auto show = [&](std::size_t done, std::size_t all) {
      progress.show(at * kWhole + kWhole * done / std::max<std::size_t>(all, 1), studies.size() * kWhole);
    };
    const ComparisonResult result =
        compare(memo, {.progress = show, .workers = workers_of(options.workers), .changes = 1});
    Choice choice = choice_of(purchase.terms, offered.question.offers[at], given.study, result.comparison);
    choice.assumed = given.assumed.settings;
    choice.setting = setting_json(
        {*given.study.model, given.study.training, given.study.platform, given.study.engine->name, program_version()});
    choice.question = question_json(given, {}, options.output.file);
    purchase.choices.push_back(std::move(choice));
    purchase.model = result.comparison.model;
    purchase.tokens = given.study.tokens;
    for (const std::string& input : given.inputs) {
      add_new(purchase.inputs, input);
    }
  }
  constexpr int kUsual = 8192;
  const int longest = offered.file.empty() ? longest_sequence(options.model) : 0;
  purchase.longest = longest > kUsual ? longest : 0;
  decide(purchase);
  return purchase;
}

std::string purchase_text(const Purchase& purchase, const BuyCommand& options) {
  std::string text;
  for (const std::string& sentence : purchase.verdict()) {
    text += sentence + "\n";
  }
  return text + "\n" + to_text(choices_table(purchase), view_of(options.output));
}

std::string purchase_markdown(const Purchase& purchase, const BuyCommand& options) {
  std::string text = "### " + purchase.model + ": which machines?\n\n";
  for (const std::string& sentence : purchase.verdict()) {
    text += sentence == purchase.answer ? "**" + sentence + "**\n" : sentence + "\n";
  }
  return text + "\n" + to_markdown(choices_table(purchase), options.output.columns) + how_to_repeat(options.output);
}

ExitStatus run(const BuyCommand& options) {
  check_columns(options.output, choices_table(Purchase{}));
  const Purchase purchase = purchase_of(options);
  emit(options.output, {.table = [&] { return purchase_text(purchase, options); },
                        .json = [&] { return to_json(purchase, true); },
                        .csv = [&] { return to_csv(purchase); },
                        .md = [&] { return purchase_markdown(purchase, options); }});
  return purchase.is_chosen() ? kDone : kNothingFeasible;
}

} // namespace

Job command_buy(Flags& flags) { return make_job<BuyCommand>(flags, add_flags, run); }

} // namespace stagecraft
