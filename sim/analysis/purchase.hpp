// What a buyer gets to hear: what the whole training takes on each offer, which one is best, and how sure that is. Plain
// values; the JSON keys have the same names (docs/formats/results.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/table.hpp"
#include "sim/result/run.hpp"
#include "sim/result/whole_training.hpp"

namespace stagecraft {

/// The best run on one offer. Where `why_not` says that nothing fits, only the names have values.
struct Choice {
  std::string offer;
  std::string platform;                  ///< its name in the run
  int devices = 0;                       ///< of the offer, those without work too
  int global_batch = 0;                  ///< samples of an iteration
  std::vector<std::string> device_types; ///< each once
  Run run;                               ///< by the least of what is asked for; one that does not fit where none does
  WholeTraining whole;                   ///< with what failures take
  double kilowatt_hours = 0;
  std::optional<double> goodput; ///< the part of the time in which iterations run that last; none: nothing fails
  std::string why_not;           ///< why it is none: nothing fits, or a limit; "": it may be chosen
  std::string remark;            ///< what the figures do not show
  std::string setting = {};      ///< what the run rests on, as JSON (setting_json()); "": not said
  std::string question = {};     ///< what was compared on the offer, as JSON, to ask it again; "": not said

  bool fits() const { return run.feasible; }
};

/// What is to be least.
struct PurchaseGoal {
  std::string_view name, help;
  std::string_view best, worse;        ///< "cheapest", "dearer"
  double (*of)(const Choice& choice); ///< infinite where it is not known
};
std::span<const PurchaseGoal> purchase_goals();

struct Purchase {
  std::string model;
  double tokens = 0;
  const PurchaseGoal* goal = nullptr;
  std::vector<Choice> choices;     ///< the best first; then what breaks a limit; then what does not fit
  std::vector<std::string> verdict; ///< sentences: the answer, how sure it is, what it rests on
  std::vector<std::string> inputs; ///< files, for readers to find

  /// Whether there is an answer.
  bool chosen() const { return !choices.empty() && choices.front().why_not.empty(); }
};

/// Orders the choices and fills in the verdict.
void decide(Purchase& purchase);

/// For a terminal: what each choice takes.
Table choices_table(const Purchase& purchase);
/// A document of schema stagecraft/1; `timing` false leaves out what differs from call to call.
std::string to_json(const Purchase& purchase, bool timing);
/// A line per choice.
std::string to_csv(const Purchase& purchase);

} // namespace stagecraft
