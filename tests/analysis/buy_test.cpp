// The buyer's question: what offers are, what a run on one takes, and which offer is chosen.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <limits>

#include "sim/analysis/buy.hpp"
#include "sim/report/error_of_ratio.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

Approx exactly(double value) { return Approx(value).epsilon(1e-12); }

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  for (const Offer& offer : read_offers(yaml::parse(text, "offer"))) {
    names.push_back(offer.name);
  }
  return names;
}

TEST_CASE("an offer is a platform, or several numbers of one kind of node", "[analysis][buy]") {
  CHECK(names_of("dgx-h100") == std::vector<std::string>{"dgx-h100"});
  CHECK(names_of("2, 16 x dgx-h100") == std::vector<std::string>{"2 x dgx-h100", "16 x dgx-h100"});
  CHECK(names_of("2,4 x dgx-h100") == std::vector<std::string>{"2 x dgx-h100", "4 x dgx-h100"});
  CHECK(names_of("{platform: 2 x dgx-h100, name: ours, price: 2 USD/h}") == std::vector<std::string>{"ours"});
  CHECK(names_of("{platform: {nodes: 2 x dgx-h100}, name: ours}") == std::vector<std::string>{"ours"});
  // No number, so no list of numbers: what is wrong is said where the platform is read.
  CHECK(names_of("2,,4 x dgx-h100") == std::vector<std::string>{"2,,4 x dgx-h100"});
  CHECK(names_of("a, b x c") == std::vector<std::string>{"a, b x c"});
  const std::vector<Offer> priced = read_offers(yaml::parse("{platform: '1, 2 x dgx-h100', price: 2 USD/h}", "offer"));
  REQUIRE(priced.size() == 2);
  for (const Offer& offer : priced) {
    REQUIRE(offer.platform);
    CHECK(offer.platform->text == offer.name);
    REQUIRE(offer.price);
    CHECK(offer.price->text == "2 USD/h");
  }
}

BuyQuestion question_of(const std::string& study, std::vector<Setting> settings = {}) {
  return load_buy_question(yaml::parse(study, "study.yaml"), settings);
}

TEST_CASE("a question that cannot be asked is refused with its place", "[analysis][buy]") {
  const auto refused = [](const std::string& study, std::vector<Setting> settings = {}) {
    return error_of([&] { load_buy_question(yaml::parse(study, "study.yaml"), settings); });
  };
  CHECK_THAT(refused("model: m\n"), Contains("which machines are offered?"));
  CHECK_THAT(refused("model: m\nplatform: p\nbuy: {offers: [q]}\n"), StartsWith("study.yaml:2:11: 'platform' stands"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q, q]}\n"), StartsWith("study.yaml:2:19: two offers are called 'q'"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [[q]]}\n"), Contains("not an offer"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q]}\nperturb: {jitter: 0.1}\n"),
             StartsWith("study.yaml:3:10: 'perturb'"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q]}\n", {{"sweep.seed", "2"}}), StartsWith("--set sweep.seed: 'sweep'"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q]}\n", {{"platform", "p"}}), StartsWith("--set platform: 'platform'"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [{platform: {nodes: 2 x q}}]}\n"), Contains("has no name"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [{platform: '1, 2 x q', name: n}]}\n"), Contains("one name for 2"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q], objective: money}\n"), Contains("training-cost"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q], constraints: {budget: 3 h}}\n"), Contains("USD"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q], constraints: {power: 3 kW}}\n"), Contains("unknown key 'power'"));
  CHECK_THAT(refused("model: m\nbuy: {offers: [q], failures: {mean_time_between: 1 d, iterations: 5}}\n"),
             Contains("unknown key 'iterations'"));
}

TEST_CASE("settings change the question, and the study's own platform is an offer", "[analysis][buy]") {
  std::vector<Setting> settings = {{"buy.offers", "[a, b]"}, {"training.precision", "bf16"}};
  const BuyQuestion question = load_buy_question(yaml::parse("model: m\nbuy: {offers: [c]}\n", "study.yaml"), settings);
  CHECK(question.offers.size() == 2);
  CHECK(question.terms.goal->name == "training-cost");
  REQUIRE(settings.size() == 1);
  CHECK(settings.front().key == "training.precision");
  CHECK(question.rest.find("buy") == nullptr);
  const BuyQuestion own = question_of("model: m\nplatform: p\n");
  REQUIRE(own.offers.size() == 1);
  CHECK(own.offers.front().name == "p");
  CHECK(own.rest.find("platform") != nullptr);
}

// A run of 1 s for 10 samples of 100 tokens: 1e9 tokens take 1e6 s, 11.574 days, and 1e7 samples, at 36 J each 100 kWh.
// Nine of ten measured runs take 0.8 to 1.5 times as long.
Run run_of(double seconds = 1, double joules = 36) {
  Run run;
  run.strategy = "mesh";
  run.schedule = "1f1b";
  run.feasible = true;
  run.tokens = 1e9;
  run.devices = {"a", "b"};
  run.metrics.iteration = Seconds{seconds};
  run.samples_per_second = 10 / seconds;
  run.tokens_per_second = 1000 / seconds;
  run.energy_per_sample = Joules{joules};
  run.expected = RunExpected{Seconds{0.8 * seconds}, Seconds{1.5 * seconds}, "runs", 12, 0.05};
  return run;
}

Run not_fitting() {
  Run run;
  run.why_not = "too large";
  return run;
}

// On two devices, which together cost so many dollars for 1e6 s; below 0: nobody says.
Choice chosen(const std::string& buy, const std::vector<Run>& runs, double usd = 50) {
  const BuyQuestion question = question_of("model: m\nbuy: {offers: [o], " + buy + "}\n");
  Comparison comparison;
  comparison.runs = runs;
  const std::string each = std::to_string(usd / 2 * 3600 / 1e6);
  return choice_of(question.terms, question.offers.front(),
                   study(chain_study(usd < 0 ? "" : "price: " + each + " USD/h\n")), comparison);
}

TEST_CASE("a choice is days, money and energy of the whole training", "[analysis][buy]") {
  const Choice choice = chosen("", {run_of(), not_fitting()});
  CHECK(choice.offer == "o");
  CHECK(choice.devices == 2);
  CHECK(choice.why_not.empty());
  CHECK(choice.whole.time.value == exactly(1e6));
  CHECK(choice.whole.cost.value == exactly(50));
  CHECK(choice.kilowatt_hours == exactly(100));
  CHECK_FALSE(choice.goodput);
  REQUIRE(choice.whole.range);
  CHECK(choice.whole.range->second == exactly(1.5));
}

TEST_CASE("a limit that is just kept is kept, and one that the range may break is said", "[analysis][buy]") {
  CHECK(chosen("constraints: {training-time: 1000000 s}", {run_of()}).why_not.empty());
  CHECK_THAT(chosen("constraints: {training-time: 999999 s}", {run_of()}).why_not,
             Contains("takes 11.6 days, more than 999999 s"));
  CHECK(chosen("constraints: {budget: 50 USD}", {run_of()}).why_not.empty());
  CHECK_THAT(chosen("constraints: {budget: 49.99 USD}", {run_of()}).why_not, Contains("more than 49.99 USD"));
  CHECK(chosen("constraints: {training-time: 1500000 s}", {run_of()}).remark.find("may take") == std::string::npos);
  CHECK_THAT(chosen("constraints: {training-time: 1499999 s}", {run_of()}).remark,
             Contains("may take more than 1499999 s"));
  CHECK_THAT(chosen("constraints: {budget: 1 USD}", {run_of()}, -1).why_not, Contains("nobody says"));
  CHECK(chosen("constraints: {budget: 1 USD}", {run_of()}, 0).qualifies()); // given, and nothing
}

TEST_CASE("of the runs on an offer the best that keeps the limits is taken", "[analysis][buy]") {
  const std::vector<Run> runs = {run_of(1, 72), run_of(2, 36)}; // fast and hungry, slow and frugal
  CHECK(chosen("", runs).kilowatt_hours == exactly(200));
  CHECK(chosen("objective: training-time", runs).kilowatt_hours == exactly(200));
  CHECK(chosen("objective: training-energy", runs).kilowatt_hours == exactly(100));
  const std::string within = "objective: training-energy, constraints: {training-time: 1500000 s}";
  CHECK(chosen(within, runs).kilowatt_hours == exactly(200));
  const Choice none = chosen("", {not_fitting()});
  CHECK_FALSE(none.fits());
  CHECK(none.why_not == "too large");
}

TEST_CASE("of runs that are as good as the best one is taken that surely fits", "[analysis][buy]") {
  Run tight = run_of(1);
  tight.expected_memory = RunExpectedMemory{.peak = Bytes{78}, .have = Bytes{80}, .low = Bytes{70}, .high = Bytes{81}};
  CHECK_THAT(chosen("", {tight}).remark, Contains("may not fit"));
  const auto safe = [](double seconds) {
    Run run = run_of(seconds);
    run.expected_memory = RunExpectedMemory{.peak = Bytes{70}, .have = Bytes{80}, .low = Bytes{60}, .high = Bytes{80}};
    return run;
  };
  CHECK(chosen("", {tight, safe(1 + kErrorOfRatio - 1e-6)}).remark == "a plan that is 6.0 % better may not fit");
  CHECK_THAT(chosen("", {tight, safe(1 + kErrorOfRatio + 1e-6)}).remark, StartsWith("may not fit: "));
  CHECK_THAT(chosen("", {tight, run_of(1.01)}).remark, StartsWith("may not fit: ")); // of which nobody knows it
  // Without a price the time decides.
  CHECK(chosen("", {tight, safe(1.05)}, -1).whole.time.value == exactly(1.05e6));
  CHECK(chosen("", {tight, safe(1.07)}, -1).whole.time.value == exactly(1e6));
  tight.expected_memory->high = Bytes{80};
  CHECK(chosen("", {tight}).remark.empty()); // all of its memory is not too much
  // A limit goes before that.
  tight.expected_memory->high = Bytes{81};
  CHECK_THAT(chosen("constraints: {training-time: 1000000 s}", {tight, safe(1.05)}).remark, Contains("may not fit"));
}

TEST_CASE("an offer is paid for whole, with devices that have no work", "[analysis][buy]") {
  Run run = run_of();
  run.devices = {"a"};
  run.unused_devices = {"b"};
  const Choice choice = chosen("", {run});
  CHECK(choice.whole.cost.value == exactly(50));
  CHECK_THAT(choice.remark, Contains("1 of 2 devices has no work"));
}

TEST_CASE("prices are of the types that an offer has, and its own goes before them", "[analysis][buy]") {
  const Study read = study(chain_study(""));
  const std::string type = read.platform.types.front().name;
  const std::vector<Setting> settings = {{"price." + type, "1 USD/h"}, {"price.other", "2 USD/h"}, {"seed", "3"}};
  const auto keys = [&](const Offer& offer) {
    std::string text;
    for (const Setting& setting : settings_for(offer, read.platform, settings)) {
      text += setting.key + " ";
    }
    return text;
  };
  CHECK(keys({.name = "o"}) == "price." + type + " seed ");
  CHECK(keys(read_offers(yaml::parse("{platform: p, price: 3 USD/h}", "offer")).front()) == "platform seed price ");
}

TEST_CASE("prices by type are each for the offers that have the type", "[analysis][buy]") {
  std::vector<Setting> settings = {{"price", "{b: 3 USD/h}"}};
  const BuyQuestion question =
      load_buy_question(yaml::parse("model: m\nprice: {a: 1 USD/h}\nbuy: {offers: [o]}\n", "study.yaml"), settings);
  CHECK(question.rest.find("price") == nullptr);
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].key == "price.a");
  CHECK(settings[1].key == "price.b"); // later ones go before those of the study
}

TEST_CASE("failures lengthen the training and make it dearer", "[analysis][buy]") {
  // Two devices fail every 200 s, one of them every 100; 10 iterations and a checkpoint of 2 s take 12 s.
  const Choice choice =
      chosen("failures: {mean_time_between: 200 s, checkpoint_every: 10, checkpoint: 2 s, restart: 50 s}", {run_of()});
  const double each = std::expm1(12.0 / 100) * (100 + 50) / 10;
  REQUIRE(choice.goodput);
  CHECK(*choice.goodput == exactly(1 / each));
  CHECK(choice.whole.time.value == exactly(1e6 * each));
  CHECK(choice.whole.cost.value == exactly(50 * each));
  CHECK(choice.kilowatt_hours == exactly(100 * each));
  for (const char* often : {"1 ms", "20 s"}) { // a segment takes 100 s, in which two devices fail far too often
    const Choice never =
        chosen("failures: {mean_time_between: " + std::string(often) + ", checkpoint_every: 100}", {run_of()});
    CHECK_THAT(never.why_not, Contains("more often"));
    CHECK(std::isinf(never.whole.time.value));
    CHECK(std::isinf(never.whole.cost.value));
  }
}

// Of so many seconds an iteration, and dollars for the whole training.
Choice named(const std::string& offer, double seconds, double usd) {
  Choice choice = chosen("", {run_of(seconds)}, usd / seconds);
  choice.offer = offer;
  return choice;
}

Purchase decided(std::vector<Choice> choices, const std::string& goal = "training-cost") {
  Purchase purchase{
      .model = "m", .tokens = 1e9, .terms = {.goal = &find_by_name(purchase_goals(), goal, "objective", {})}};
  purchase.choices = std::move(choices);
  decide(purchase);
  return purchase;
}

TEST_CASE("offers are ranked by what is asked for, then what breaks a limit, then what does not fit",
          "[analysis][buy]") {
  Choice late = named("late", 1, 1), large = chosen("", {not_fitting()});
  late.why_not = "takes too long";
  large.offer = "large";
  const std::vector<Choice> choices = {large, late, named("dear", 1, 9), named("cheap", 2, 5)};
  const auto order = [&](const char* goal) {
    std::string names;
    for (const Choice& choice : decided(choices, goal).choices) {
      names += choice.offer + " ";
    }
    return names;
  };
  CHECK(order("training-cost") == "cheap dear late large ");
  CHECK(order("training-time") == "dear cheap late large ");
  CHECK_THAT(decided(choices).answer, StartsWith("Train m on cheap, the cheapest of the 2 of 4 offers that qualify: "));
  CHECK_THAT(decided({choices[2], choices[3]}).answer, StartsWith("Train m on cheap, the cheapest of 2 offers: "));
  CHECK_THAT(decided({choices[2], large}).answer, StartsWith("Train m on dear, the only one of 2 offers"));
  CHECK_THAT(decided({choices[2]}).answer, StartsWith("Train m on dear: 1 billion tokens take"));
  const Purchase none = decided({late, large});
  CHECK_FALSE(none.is_chosen());
  CHECK(none.answer == "All 2 offers are out. The cheapest is late: training m on it takes too long.");
  CHECK(none.sure.empty());
  late.whole.cost = Dollars{std::numeric_limits<double>::infinity()};
  CHECK_THAT(decided({late, large}).answer, StartsWith("All 2 offers are out. late: training m on it"));
  late.whole.cost = Dollars{1};
  CHECK(decided({late}).answer == "late is out: training m on it takes too long.");
  CHECK(decided({large}).answer == "large cannot train m: too large.");
  CHECK(decided({}).verdict().empty());
}

TEST_CASE("a lead that predictions are not sure of is too close to call", "[analysis][buy]") {
  const auto sure = [](double lead) { return decided({named("one", 1, 5), named("other", 1, 5 * (1 + lead))}).sure; };
  CHECK_THAT(sure(kErrorOfRatio - 1e-3), StartsWith("Too close to call against other"));
  CHECK_THAT(sure(kErrorOfRatio + 1e-3), StartsWith("The next is other"));
  // Of two device types the worse known decides.
  Choice one = named("one", 1, 5), other = named("other", 1, 5.5);
  one.device_types = {"a"};
  other.device_types = {"b"};
  other.run.expected->median = 0.16;
  CHECK_THAT(decided({one, other}).sure, StartsWith("Too close to call against other (10 % dearer): runs like one"));
  other.run.expected->median = 0.05;
  CHECK_THAT(decided({one, other}).sure, StartsWith("The next is other"));
  other.run.expected.reset();
  CHECK_THAT(decided({one, other}).sure, Contains("nothing says how far off"));
  // Of those that cost as good as the same the fastest is named.
  CHECK_THAT(decided({named("slow", 2, 5), named("fast", 1, 5.1)}).sure,
             Contains("Of these fast is the fastest: 11.6 days"));
}

TEST_CASE("offers that cost nothing are compared, too", "[analysis][buy]") {
  const Purchase free = decided({named("slow", 2, 0), named("fast", 1, 0)});
  CHECK(free.choices.front().offer == "fast");
  CHECK_THAT(free.sure, StartsWith("Too close to call against slow (the same)"));
  CHECK_THAT(decided({named("paid", 1, 5), named("free", 2, 0)}).sure, StartsWith("The next is paid (dearer): "));
}

TEST_CASE("what was assumed is said, for all offers or for each by itself", "[analysis][buy]") {
  Choice one = named("one", 1, 5), other = named("other", 1, 9);
  one.assumed = {{"training.optimizer", "adam"}, {"training.parallel", "{tensor: 1}"}};
  other.assumed = {{"training.optimizer", "adam"}, {"training.parallel", "{tensor: 2}"}};
  one.framework = other.framework = "f";
  CHECK_THAT(join(decided({one, other}).notes, "\n"),
             Contains("Assumed, since nobody says otherwise: training.optimizer=adam; for each offer by itself "
                      "training.parallel."));
  CHECK_THAT(join(decided({one, other}).notes, "\n"), !Contains("No framework") && !Contains("Batches"));
  other.global_batch = 8 * one.global_batch;
  other.framework = "";
  CHECK_THAT(join(decided({one, other}).notes, "\n"), Contains("No framework is named") && Contains("Batches differ"));
}

TEST_CASE("a purchase as JSON and CSV says what the contract names", "[analysis][buy]") {
  const Purchase purchase = decided({named("one", 1, 50), chosen("", {not_fitting()})});
  const auto json = nlohmann::json::parse(to_json(purchase, false));
  CHECK(json.at("schema") == "stagecraft/1");
  CHECK(json.at("answer") == purchase.answer);
  CHECK(json.at("runs").size() == 2);
  const auto& choice = json.at("choices").at(0);
  CHECK(choice.at("offer") == "one");
  CHECK(choice.at("days").get<double>() == exactly(1e6 / 86400));
  CHECK(choice.at("usd") == exactly(50));
  CHECK(choice.at("kwh") == exactly(100));
  CHECK(choice.at("goodput").is_null());
  CHECK(choice.at("why_not").is_null());
  CHECK(choice.at("interval").at("low_usd") == exactly(40));
  CHECK(choice.at("interval").at("high_days").get<double>() == exactly(1.5e6 / 86400));
  CHECK_THAT(choice.at("interval").at("basis").get<std::string>(), Contains("12 models"));
  const auto& other = json.at("choices").at(1);
  CHECK(other.at("days").is_null());
  CHECK(other.at("why_not") == "too large");
  const std::string csv = to_csv(purchase);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK_THAT(csv, Contains("\none,") && Contains("too large"));
}

} // namespace
} // namespace stagecraft::test
