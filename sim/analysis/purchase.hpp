// What a buyer gets to hear: what the whole training takes on each offer, which is best, and how sure that is. Plain
// values; the JSON keys have the same names (docs/formats/results.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/replay/what_if/perturb.hpp"
#include "sim/report/table.hpp"
#include "sim/result/run.hpp"
#include "sim/result/whole_training.hpp"
#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// What an offer costs: all its devices and hosts, whether or not they have work.
struct OfferPrice {
  DollarsPerSecond rate;
  bool is_known = false; ///< of every device somebody says what it costs
  std::vector<NamedPrice> prices;
};
OfferPrice price_of(const Platform& platform);

/// The best run on one offer. Where nothing fits only the names and `why_not` have values.
struct Choice {
  std::string offer;
  std::string platform;                  ///< its name in the run
  int devices = 0;                       ///< of the offer, those without work too
  std::vector<std::string> device_types; ///< each once
  int global_batch = 0;                  ///< samples of an iteration
  std::string framework;                 ///< whose recipe it trains by; "": an ideal machine
  std::vector<Setting> assumed;          ///< what nobody said
  OfferPrice price;
  Run run;                       ///< by the least of what is asked for; one that does not fit where none does
  WholeTraining whole;           ///< with what failures take
  double kilowatt_hours = 0;     ///< the same
  std::optional<double> goodput; ///< part of the time in which iterations run that last; none: failures do not count
  std::string why_not;           ///< why it is out, what a training on it does or why none fits; "": it qualifies
  std::string remark;            ///< what the figures do not show
  std::string setting = {};      ///< what the run rests on, as JSON (setting_json()); "": not said
  std::string question = {};     ///< what was compared on the offer, as JSON, to ask it again; "": not said

  bool fits() const { return run.feasible; }
  bool qualifies() const { return why_not.empty(); }
};

/// "mesh, 1f1b, data 16, tensor 1, …"; "" where nothing fits.
std::string plan_of(const Choice& choice);

/// What is to be least.
struct PurchaseGoal {
  std::string_view name, help;
  std::string_view best, worse;       ///< "cheapest", "dearer"
  double (*of)(const Choice& choice); ///< infinite where it is not known
};
std::span<const PurchaseGoal> purchase_goals();

/// A limit, with its words.
template <class Q> struct PurchaseLimit {
  Q most;
  std::string text;
};

/// What a choice is made by.
struct PurchaseTerms {
  const PurchaseGoal* goal = nullptr;
  std::optional<PurchaseLimit<Seconds>> time;
  std::optional<PurchaseLimit<Dollars>> budget;
  std::optional<Failures> failures;
};

struct Purchase {
  std::string model;
  double tokens = 0;
  PurchaseTerms terms;
  std::vector<Choice> choices;     ///< the best first; then what breaks a limit; then what does not fit
  std::vector<std::string> inputs; ///< files, for readers to find
  int longest = 0;                 ///< tokens of a sequence, the longest of the model, since nobody said how many

  // In sentences; "": there is nothing to say.
  std::string answer, sure, prices;
  std::vector<std::string> notes; ///< what the answer rests on

  /// Whether an offer qualifies.
  bool is_chosen() const { return !choices.empty() && choices.front().qualifies(); }
  /// All sentences, in order.
  std::vector<std::string> verdict() const;
};

/// Orders the choices and fills in the sentences.
void decide(Purchase& purchase);

/// For a terminal: what each choice takes.
Table choices_table(const Purchase& purchase);
/// A document of schema stagecraft/1; `timing` false leaves out what differs from call to call.
std::string to_json(const Purchase& purchase, bool timing);
/// A line per choice.
std::string to_csv(const Purchase& purchase);

} // namespace stagecraft
