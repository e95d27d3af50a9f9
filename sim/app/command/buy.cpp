// stagecraft buy: which machines, how many, which split, how many days and dollars, and how sure that is.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/buy.hpp"

#include <algorithm>
#include <numeric>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/common/workers.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/app/run/question.hpp"
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
                   .several_micro_batches = true});
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

// What is asked, and how its offers are made studies.
struct Asked {
  const BuyCommand& options;
  std::vector<Setting> settings; ///< of the command line, without those of the question
  BuyQuestion question;
  yaml::Node document; ///< of a study, or of the model
  std::string file;    ///< the study's; "": none

  /// The offered machines as the settings change them.
  Platform platform_of(const Offer& offer) const {
    yaml::Node platform{.kind = yaml::Node::Kind::map, .where = document.where};
    const auto add = [&](const yaml::Node& node) { platform.entries.push_back({"platform", node.where, node}); };
    if (offer.platform) {
      add(*offer.platform);
    } else if (const yaml::Node* own = document.find("platform")) {
      add(*own);
    }
    std::vector<Setting> of_platform;
    std::copy_if(settings.begin(), settings.end(), std::back_inserter(of_platform),
                 [](const Setting& setting) { return setting.key.starts_with("platform"); });
    const ChangedStudy changed = changed_study(platform, of_platform);
    return read_platform(*changed.document.find("platform"), folders_of(file), changed.of_platform);
  }
};

Asked asked_by(const BuyCommand& options) {
  std::vector<Setting> settings = settings_of(options);
  const bool of_study = is_study(options.model.model);
  if (of_study) {
    refuse_model_flags(options.model);
  } else if (options.model.devices > 0) {
    throw InputError({"--devices", 0, 0}, "machines to buy have names and prices; allowed: --offer '2 x dgx-h100'");
  }
  BuyQuestion question =
      load_buy_question(of_study ? yaml::load(options.model.model) : document_of(options.model), settings);
  yaml::Node document = question.rest;
  return {options, std::move(settings), std::move(question), std::move(document), of_study ? options.model.model : ""};
}

// A price of a type that no offer has at the catalogue's price would change nothing.
void refuse_idle_prices(const Asked& asked, const std::vector<Platform>& platforms) {
  constexpr std::string_view kPrice = "price.";
  std::vector<std::string> types;
  for (std::size_t at = 0; at < platforms.size(); ++at) {
    for (const DeviceType& type : platforms[at].types) {
      if (!asked.question.offers[at].price && std::find(types.begin(), types.end(), type.name) == types.end()) {
        types.push_back(type.name);
      }
    }
  }
  for (const Setting& setting : asked.settings) {
    const bool of_type = setting.key.starts_with(kPrice);
    const std::string type = of_type ? setting.key.substr(kPrice.size()) : "";
    const bool idle =
        of_type ? std::find(types.begin(), types.end(), type) == types.end() : setting.key == "price" && types.empty();
    if (idle) {
      throw InputError(setting.parsed ? setting.parsed->where : Where{"--set " + setting.key, 0, 0},
                       "no offer without a price of its own has " + (of_type ? "a '" + type + "'" : "devices") +
                           (types.empty() ? "" : "; allowed: " + join(types)));
    }
  }
}

const std::string* value_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const Setting& setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &found->value;
}

// What must be the same for all offers, where nobody says it: the framework, since an ideal machine would win against
// real ones, and the batch, the least that each would take a whole number of times.
std::vector<Setting> shared_assumptions(const std::vector<std::vector<Setting>>& assumed) {
  constexpr long kMostTimes = 8; // the largest of them
  std::vector<Setting> shared;
  long common = 1, largest = 0;
  for (const std::vector<Setting>& of_offer : assumed) {
    const std::string* framework = value_of(of_offer, "training.framework");
    if (framework != nullptr && shared.empty()) {
      shared.push_back({"training.framework", *framework});
    }
    if (const std::string* batch = value_of(of_offer, "training.global_batch")) {
      const long samples = std::stol(*batch);
      largest = std::max(largest, samples);
      common = std::lcm(common, samples);
    }
  }
  if (largest > 0) {
    shared.push_back({"training.global_batch", std::to_string(common <= kMostTimes * largest ? common : largest)});
  }
  return shared;
}

// The studies of all offers, with the same assumptions where these would decide who wins.
std::vector<GivenStudy> studies_of(const Asked& asked) {
  std::vector<Platform> platforms; // all are read before any is compared
  for (const Offer& offer : asked.question.offers) {
    platforms.push_back(asked.platform_of(offer));
  }
  refuse_idle_prices(asked, platforms);
  std::vector<std::vector<Setting>> settings, assumed;
  for (std::size_t at = 0; at < platforms.size(); ++at) {
    settings.push_back(settings_for(asked.question.offers[at], platforms[at], asked.settings));
    assumed.push_back(first_assumptions(asked.document, asked.file, settings[at], AssumedDegrees::anywhere));
  }
  const std::vector<Setting> shared = shared_assumptions(assumed);
  std::vector<GivenStudy> studies;
  for (const std::vector<Setting>& own : settings) {
    std::vector<Setting> all = shared;
    all.insert(all.end(), own.begin(), own.end());
    studies.push_back(completed_study(asked.document, asked.file, all, AssumedDegrees::anywhere));
    GivenStudy& given = studies.back();
    given.assumed.settings.insert(given.assumed.settings.begin(), shared.begin(), shared.end());
    if (!(given.study.tokens > 0)) {
      throw InputError({"--tokens", 0, 0},
                       "how much is trained? allowed: --tokens 300B, or the key 'tokens' of the study");
    }
  }
  return studies;
}

void add_inputs(const GivenStudy& given, Purchase& purchase) {
  for (const std::string& input : given.inputs) {
    if (std::find(purchase.inputs.begin(), purchase.inputs.end(), input) == purchase.inputs.end()) {
      purchase.inputs.push_back(input);
    }
  }
}

Purchase purchase_of(const BuyCommand& options) {
  const Asked asked = asked_by(options);
  Purchase purchase{.terms = asked.question.terms};
  Progress progress(options.output.quiet);
  const std::vector<GivenStudy> studies = studies_of(asked);
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
    Choice choice = choice_of(purchase.terms, asked.question.offers[at], given.study, result.comparison);
    choice.assumed = given.assumed.settings;
    choice.setting = setting_json(
        {*given.study.model, given.study.training, given.study.platform, given.study.engine->name, program_version()});
    choice.question = question_json(given, {}, options.output.file);
    purchase.choices.push_back(std::move(choice));
    purchase.model = result.comparison.model;
    purchase.tokens = given.study.tokens;
    add_inputs(given, purchase);
  }
  constexpr int kUsual = 8192;
  const int longest = asked.file.empty() ? longest_sequence(options.model) : 0;
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
